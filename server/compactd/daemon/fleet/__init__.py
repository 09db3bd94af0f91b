"""Sessions in a database that several daemons share: the one that writes a session serves all others."""
