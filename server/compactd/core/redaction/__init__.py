"""Redaction: remove words from a session for good."""
