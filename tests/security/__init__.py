"""Attacks on the real daemon, one for each promise in docs/security.md."""
