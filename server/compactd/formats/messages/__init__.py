"""Message formats of the providers' APIs: reading messages, and rendering requests."""
