"""Session files of other agents: a reader and a writer for each agent."""
