"""Real faults on the real process: killed, starved, refused, and files damaged under it."""
