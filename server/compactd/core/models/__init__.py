"""Names and windows of models."""
