"""Carry out a compaction of a session: ask the client and the model, execute the plan, and write the
result to the journal."""
