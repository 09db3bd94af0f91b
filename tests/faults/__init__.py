"""Faults: simulated ones by the million, real ones on the real process, and breaks on purpose."""
