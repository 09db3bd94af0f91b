"""The daemon's agent loop: prompts, model requests, tool calls, recovery from failed requests, model
switches.
"""
