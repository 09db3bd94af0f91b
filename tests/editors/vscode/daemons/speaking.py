"""Reads and writes LSP frames, for the fake daemons in this folder."""

from __future__ import annotations

import json
import sys
import threading
from typing import Any

_writing = threading.Lock()


def read() -> dict[str, Any]:
    """Return the next message from stdin. Exit the program if there are no more."""
    length = 0
    while line := sys.stdin.buffer.readline().strip():
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    if not length:
        sys.exit()
    return dict(json.loads(sys.stdin.buffer.read(length)))


def write(message: dict[str, Any]) -> None:
    """Sends one."""
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    with _writing:
        sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        sys.stdout.buffer.flush()


def introduce(name: str, version: str, own: dict[str, Any] | None) -> None:
    """Answers `initialize`; `own` is what it says of our protocol."""
    asked = read()
    experimental = {} if own is None else {"experimental": {"compactd": own}}
    server = {"name": name, "version": version}
    write({"id": asked["id"], "result": {"capabilities": experimental, "serverInfo": server}})


def agree() -> None:
    """Answers whatever is asked with nothing, until the end."""
    while True:
        asked = read()
        if "id" in asked:
            write({"id": asked["id"], "result": None})
