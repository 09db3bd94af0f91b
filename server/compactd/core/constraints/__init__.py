"""Limits that the user set, in 25 languages."""
