"""A session: its state, journal, queue, search, undo, import and export, and who may use it."""
