"""Load tests of the daemon: many sessions, much traffic, misbehaving clients, an hour with kills."""
