"""Snapshots of a user's work tree as git objects in compactd's folder, not in the user's repository."""
