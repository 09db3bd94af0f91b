"""Token counts and estimates, and providers' usage reports."""
