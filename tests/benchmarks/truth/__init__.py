"""Facts from other sources, as rows: what they publish, and what the daemon must say about it."""
