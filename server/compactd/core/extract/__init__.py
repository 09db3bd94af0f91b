"""The summary without a model: facts, their worth, and the choice within a budget."""
