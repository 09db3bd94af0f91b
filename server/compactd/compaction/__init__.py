"""Runs a compaction of a session: asks the client and the model, carries the plan out, journals it."""
