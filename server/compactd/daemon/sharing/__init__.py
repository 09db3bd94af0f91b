"""Several clients on one daemon: who has which session open, and how clients reach a shared daemon."""
