"""Tests of `benchmarks/against`: what it runs, prints and draws. They assert no measured time."""
