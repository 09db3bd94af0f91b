"""What is known about models, access to them, and their windows."""
