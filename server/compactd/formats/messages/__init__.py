"""Message shapes of the providers' APIs, in and out, and requests in those shapes."""
