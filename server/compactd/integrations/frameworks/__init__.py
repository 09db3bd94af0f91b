"""Adapters for frameworks that people build agents with. Each sub-package is for one framework, and needs it
installed: `pip install 'compactd[langchain]'`.

All of them share one daemon a process (`engine`). A session of the daemon follows each conversation of the
framework (`mirror`): only new messages are sent to it, and before each model request it says which messages
the request shall contain. If the daemon is missing or broken, the agent goes on with its own messages.
"""
