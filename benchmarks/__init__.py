"""`python -m benchmarks`: how fast the daemon is, side by side with what it could be compared to."""
