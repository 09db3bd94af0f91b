"""Hooks of agents that compact by themselves: what was lost is given back."""
