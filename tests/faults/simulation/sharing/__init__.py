"""Several simulated clients on the real shared daemon. A seed decides everything."""
