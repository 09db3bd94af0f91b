"""Make the summary of a compaction: the prompts for a model, its answers, and the checks of what they say."""
