"""Tests of `benchmarks/reduce`."""
