"""Faults: millions of simulated ones, real ones on the real process, and deliberate breaks of the source."""
