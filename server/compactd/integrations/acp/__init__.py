"""A proxy between an ACP client and an ACP agent that adds the daemon's context."""
