"""How many tokens there are, and when a compaction is due: profiles, settings, reports."""
