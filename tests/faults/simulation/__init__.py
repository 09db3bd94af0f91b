"""The daemon's own sessions on a simulated disk, clock, workers and client. A seed decides everything."""
