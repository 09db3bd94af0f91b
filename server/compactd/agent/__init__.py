"""The agent's loop: prompts, model requests, tool calls, recovery from failed requests, model switches."""
