"""Readers, cache and sums of `compactd usage`."""
