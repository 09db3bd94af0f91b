"""Token usage and cost of the agents' sessions: readers of the files, their cache, sums, and the table."""
