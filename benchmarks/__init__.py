"""Benchmarks of the daemon's speed and memory, with comparisons: `python -m benchmarks`."""
