"""Other programs' protocols, as clients of the daemon."""
