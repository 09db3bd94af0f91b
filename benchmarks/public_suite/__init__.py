"""What `extract` keeps in a public suite for compactors: `python -m benchmarks.public_suite`."""

COMPACTD = "compactd"
"""The name of compactd among the suite's compactors."""
