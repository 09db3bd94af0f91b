"""compactd: a context engine for conversations with language models, run as a JSON-RPC daemon on stdio.

`protocol.md` describes its methods, `README.md` its use. This module imports nothing, so that `compactd
serve` starts fast.
"""

__version__ = "0.1.0"
PROTOCOL_VERSION = "1.0"
"""The version of the protocol. It rises when a change can break a client that was correct before."""
