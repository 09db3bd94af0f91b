"""Reduce a tool's output when it enters the context: what is left out, and what is said instead."""
