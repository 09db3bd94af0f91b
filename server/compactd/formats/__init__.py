"""Readers and writers of other agents' session files and of providers' message formats, one module per
format."""
