"""A local model server whose answers a check can delay. So a compaction runs as long as the check wants.

It speaks OpenAI's chat completions as a stream (API reference, "Create chat completion", seen 2026-10).
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

import msgspec

SUMMARY = """## Goal
- Keep the loader as it is.
## Constraints & Preferences
- None.
## Progress
### Done
- [x] The loader was read.
### In Progress
(none)
### Blocked
(none)
## Key Decisions
- **Cache**: it stays.
## Next Steps
1. Look once more.
## Critical Context
- Nothing else.
"""

MAX_HOLD_S = 120.0
"""The most seconds that a request waits for `release`, so that no thread waits forever."""


class HeldModel:
    """A model that does not answer between `hold` and `release`. Call `close` at the end."""

    def __init__(self) -> None:
        self._text = SUMMARY
        self._may_answer = threading.Event()
        self._server = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def environ(self) -> dict[str, str]:
        """Environment variables that direct a program's OpenAI provider to this server."""
        url = f"http://127.0.0.1:{self._server.getsockname()[1]}/v1"
        return {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "none-is-needed"}

    def hold(self) -> None:
        """Let all further requests wait until `release` is called."""
        self._may_answer.clear()

    def release(self, text: str = SUMMARY) -> None:
        """Answer the waiting requests and all later ones with `text`."""
        self._text = text
        self._may_answer.set()

    def close(self) -> None:
        """Close the server."""
        self._may_answer.set()
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError, ValueError):
            connection.settimeout(MAX_HOLD_S)
            with connection.makefile("rb") as asked:
                length = 0
                while (line := asked.readline()).strip():
                    name, _, value = line.partition(b":")
                    if name.strip().lower() == b"content-length":
                        length = int(value)
                asked.read(length)
            self._may_answer.wait(MAX_HOLD_S)
            connection.sendall(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
                + b"".join(b"data: %b\n\n" % data for data in self._stream())
            )

    def _stream(self) -> Iterator[bytes]:
        head = {"id": "c1", "object": "chat.completion.chunk", "created": 0, "model": "held"}
        for delta, finish in (({"role": "assistant", "content": self._text}, None), ({}, "stop")):
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            yield msgspec.json.encode({**head, "choices": [choice]})
        usage = {"prompt_tokens": 900, "completion_tokens": 90, "total_tokens": 990}
        yield msgspec.json.encode({**head, "choices": [], "usage": usage})
        yield b"[DONE]"
