"""The token budget: how full the context window is and when a compaction is due, with profiles, settings and
reports."""
