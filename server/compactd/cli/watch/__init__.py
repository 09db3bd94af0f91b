"""Follow a running agent's session file, for `compactd watch`."""
