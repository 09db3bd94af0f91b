"""The history of a session as values: entries, state, view, undo, projection."""
