"""Whoever sends something wants something: each line of docs/security.md, tried on the real daemon."""
