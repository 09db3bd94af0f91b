"""Measures what the reduction of tool output saves and what it loses, on recorded sessions."""
