"""Where sessions are kept: one append-only journal each."""
