"""How much of what an agent needs later is kept by a compaction: `python -m benchmarks.retention`."""
