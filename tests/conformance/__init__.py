"""The conformance suite: on our own daemon, on thirty-six broken ones, and what it says of them."""
