"""Words that are taken out of a session for good."""
