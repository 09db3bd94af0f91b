"""Who wrote each stretch of a message."""
