"""The daemon's own sessions over a simulated disk, clock, workers and client, driven by a seed."""
