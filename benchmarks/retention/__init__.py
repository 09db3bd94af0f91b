"""How much of what an agent needs later is there after a compaction: `python -m benchmarks.retention`."""
