"""Helpers for the whole process: lazy imports, interpreter settings, yielding the GIL, finding programs."""
