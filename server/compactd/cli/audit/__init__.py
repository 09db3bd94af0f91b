"""What an agent's session cost, why its prompt cache was built again, and what its compactions lost."""
