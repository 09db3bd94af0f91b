"""Helpers for the whole process: lazy imports, garbage collection, yielding the GIL, finding programs."""
