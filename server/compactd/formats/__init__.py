"""Session files and message shapes of other agents, in and out: one file a format."""
