"""Session files in general: detecting, reading, repairing and writing them."""
