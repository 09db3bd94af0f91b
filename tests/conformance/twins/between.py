"""A proxy between a client and the real daemon that can change messages. It supports both framings."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import threading

Json = dict

SERVE = (sys.executable, "-m", "compactd", "serve")


class Twin:
    """Alters nothing. A twin overrides one of the first two."""

    def __init__(self) -> None:
        self._daemon = subprocess.Popen(SERVE, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._asked: dict[str, Json] = {}
        self._is_lines = True
        self._writing = threading.Lock()

    def to_daemon(self, message: Json) -> list[Json] | None:
        """Return what to send to the daemon for a client's message; None to send it unchanged."""
        return None

    def to_client(self, asked: Json, message: Json) -> list[Json] | None:
        """Return what to send to the client for a daemon's message; None to send it unchanged. For an answer,
        `asked` is its request."""
        return None

    def at_end(self) -> None:
        """The client has said all."""

    def vanished(self) -> None:
        """The client has closed our output. The daemon's is closed when this process ends."""
        os._exit(0)

    def forward(self, message: Json) -> None:
        """Sends the daemon a message."""
        self._send(self._framed(encoded(message)))

    def run(self) -> int:
        """Run until the daemon ends. Return its exit code."""
        threading.Thread(target=self._read_client, daemon=True).start()
        threading.Thread(target=self._watch_client, daemon=True).start()
        out = self._daemon.stdout
        while first := out.readline():
            body = first[:-1]
            if not self._is_lines:
                out.readline()
                body = out.read(int(first.partition(b":")[2]))
            message = json.loads(body)
            asked = {} if "method" in message else self._asked.get(encoded(message["id"]).decode(), {})
            made = self.to_client(asked, message)
            frames = [body] if made is None else [encoded(one) for one in made]
            sys.stdout.buffer.write(b"".join(self._framed(one) for one in frames))
            sys.stdout.buffer.flush()
        return self._daemon.wait()

    def _watch_client(self) -> None:
        watched = select.poll()
        watched.register(1, 0)  # only that its reader has gone
        watched.poll()
        self.vanished()

    def _framed(self, body: bytes) -> bytes:
        return body + b"\n" if self._is_lines else b"Content-Length: %d\r\n\r\n%b" % (len(body), body)

    def _send(self, data: bytes) -> None:
        with self._writing:
            self._daemon.stdin.write(data)
            self._daemon.stdin.flush()

    def _read_client(self) -> None:
        buffer = bytearray()
        while data := os.read(0, 1 << 20):
            if not buffer and not self._asked:
                self._is_lines = data[:1] in b"{[ \t\r\n\xef"
            buffer += data
            while (taken := self._next(buffer)) is not None:
                start, end = taken
                raw, body = bytes(buffer[:end]), bytes(buffer[start:end])
                del buffer[:end]
                self._pass_on(raw, body)
        self._send(bytes(buffer))
        self.at_end()
        self._daemon.stdin.close()

    def _next(self, buffer: bytearray) -> tuple[int, int] | None:
        """Return where the next message's body begins and ends. Bytes that are no frame are passed on
        unchanged as one message."""
        if self._is_lines:
            end = buffer.find(b"\n") + 1
            return (0, end) if end else None
        start = buffer.find(b"\r\n\r\n") + 4
        name, _, value = bytes(buffer[: max(0, start - 4)]).rpartition(b"\r\n")[2].partition(b":")
        if name.lower() != b"content-length" or not value.strip().isdigit():
            return (0, len(buffer)) if start > 3 or b"\n\n" in buffer else None
        end = start + int(value)
        return (start, end) if len(buffer) >= end else None

    def _pass_on(self, raw: bytes, body: bytes) -> None:
        try:
            message = json.loads(body)
        except ValueError:
            message = None
        made = None
        if isinstance(message, dict) and "method" in message:
            self._asked[encoded(message.get("id")).decode()] = message
            made = self.to_daemon(message)
        if made is None:
            self._send(raw)
        for one in made or ():
            self.forward(one)


def encoded(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
