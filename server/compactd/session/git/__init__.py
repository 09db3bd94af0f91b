"""Trees of files that git makes for us, of a user's work tree that it never writes to."""
