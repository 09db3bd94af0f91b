"""Detect, read, repair and write session files. The formats of single agents are in `formats.agents`."""
