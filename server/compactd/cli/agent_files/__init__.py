"""The session files that coding agents keep on this machine: where they are, and which one is meant."""
