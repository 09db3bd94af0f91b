"""Decide whether a failed request was a context overflow, and what the error says about the window."""
