"""What the daemon does under load: many sessions, much traffic, clients that misbehave, an hour of kills."""
