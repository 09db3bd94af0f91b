"""Models: their names, windows and prices."""
