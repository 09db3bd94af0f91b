"""Session files in general: detection, reading, repair, writing."""
