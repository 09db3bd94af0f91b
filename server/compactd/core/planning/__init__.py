"""Plan a compaction: decide what is cut, kept and pinned before anything is summarised."""
