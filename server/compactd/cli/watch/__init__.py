"""What `compactd watch` knows and shows of a running agent."""
