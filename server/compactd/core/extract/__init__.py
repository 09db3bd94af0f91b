"""Write a summary without a model: find facts, score them, and choose the lines to quote within a budget of
tokens."""
