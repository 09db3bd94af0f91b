"""Tests of the benchmark of what compacting costs."""
