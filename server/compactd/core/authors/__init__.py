"""Authorship: who wrote each stretch of a message."""
