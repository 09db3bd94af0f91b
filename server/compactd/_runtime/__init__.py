"""Helpers for the whole process: lazy imports, yielding the GIL, finding programs."""
