"""Facts from outside, as rows: what others publish, and what the daemon must say about it."""
