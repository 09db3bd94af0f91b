"""What stands between agents and the daemon."""
