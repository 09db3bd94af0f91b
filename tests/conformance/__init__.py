"""The conformance suite: on our own daemon, on twenty broken ones, and what it says of them."""
