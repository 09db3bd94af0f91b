"""A typical server for comparison: pygls as its tutorial shows it, with two features.

python benchmarks/stock_pygls.py
"""

from __future__ import annotations

from pygls.lsp.server import LanguageServer

server = LanguageServer("stock-pygls", "1")
messages: list[object] = []


@server.feature("daemon/ping")
def ping(ls: LanguageServer, params: object) -> dict[str, int]:
    """Answers."""
    return {}


@server.feature("session/append")
def append(ls: LanguageServer, params: object) -> dict[str, int]:
    """Keeps what it is given, in memory, and says how much that is."""
    messages.append(params)
    return {"message_count": len(messages)}


if __name__ == "__main__":
    server.start_io()
