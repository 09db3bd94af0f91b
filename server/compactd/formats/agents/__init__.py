"""Session files of other agents: a reader and a writer per agent."""
