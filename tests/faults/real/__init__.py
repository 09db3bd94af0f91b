"""Real faults on the real process: kills, missing resources, refused system calls, damaged files."""
