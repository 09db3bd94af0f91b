"""How much agents' own compactions keep, and how much the hook adds: `python -m benchmarks.agents`."""
