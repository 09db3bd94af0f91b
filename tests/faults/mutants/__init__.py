"""Mutants: small wrong edits of the source, and whether the tests that cover them fail."""
