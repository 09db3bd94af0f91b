"""Plans a compaction: what is cut, kept and pinned, before anything is summarised."""
