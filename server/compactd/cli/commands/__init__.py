"""The commands of `compactd`, one file per command."""
