"""What requests cost."""
