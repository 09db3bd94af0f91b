"""What agents' own compactions keep, and what a hook puts back: `python -m benchmarks.agents`."""
