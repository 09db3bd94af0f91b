"""Storage: one append-only journal file per session, locks, a search index, and settings files."""
