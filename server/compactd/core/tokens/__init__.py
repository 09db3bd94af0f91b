"""Counts and estimates of tokens."""
