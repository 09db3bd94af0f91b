"""Tests of `core/reduce`."""
