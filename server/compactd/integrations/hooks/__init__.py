"""Hooks for agents that compact by themselves: they restore facts that the agent's summary lost."""
