"""compactd: a context daemon for conversations with language models.

Speaks JSON-RPC 2.0 on stdio. `protocol.md` is its contract, `README.md` its front door.
Nothing is imported here, so that `compactd serve` starts with no more than it needs.
"""

__version__ = "0.1.0"
PROTOCOL_VERSION = "1.0"
"""Rises when a client that was right yesterday could be wrong today."""
