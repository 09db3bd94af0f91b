"""The benchmark's side of a contender's child process: sends it a row and a session, and reads its times."""

from __future__ import annotations

import os
import select
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from time import perf_counter

import msgspec
from msgspec import Struct

_READ_BYTES = 1 << 16
_TOLD_CHARS = 300


class CannotDo(Exception):
    """A peer did not do what it was asked. The text says why, for the table."""


class Answer(Struct, frozen=True):
    """One line of a peer's output."""

    version: str = ""
    s: float = 0.0
    core_s: float = 0.0
    """CPU time in seconds, of all threads together: a busy machine changes it least."""
    told: dict[str, int | float | str | None] = {}
    rss: int = 0
    rss_before: int = 0
    error: str = ""


_decode = msgspec.json.Decoder(Answer).decode


class Child:
    """One peer's process. Use it in a `with` block: at its end the process is killed if it still runs."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], patience_s: float) -> None:
        self.patience_s = patience_s
        """How many seconds one answer may take."""
        self._buffer = b""
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed in __exit__
        began = perf_counter()
        try:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                env=dict(env),
                bufsize=0,
            )
        except OSError as error:
            raise CannotDo(f"does not start: {error}") from None
        self.greeting = self._receive()
        self.start_s = perf_counter() - began
        """Seconds from its spawn until its imports were done."""

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def is_running(self) -> bool:
        """False after the process has ended."""
        return self._process.poll() is None

    def kill(self) -> None:
        """Kill the process."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._log):
            if pipe is not None:
                pipe.close()

    def ask(self, **request: str) -> Answer:
        """Return the peer's answer. Raises `CannotDo` if none comes in time or the peer refuses."""
        if self._process.stdin is None or self._process.stdin.closed:
            raise CannotDo("it has no input, or took too long before")
        try:
            self._process.stdin.write(msgspec.json.encode(request) + b"\n")
        except OSError:
            raise CannotDo(f"it ended: {self._last_words()}") from None
        answer = self._receive()
        if answer.error:
            raise CannotDo(answer.error)
        return answer

    def _receive(self) -> Answer:
        pipe = self._process.stdout
        if pipe is None:
            raise CannotDo("it has no output")
        until = perf_counter() + self.patience_s
        while b"\n" not in self._buffer:
            left = max(0.0, until - perf_counter())
            if not select.select([pipe], [], [], left)[0]:
                self.kill()
                raise CannotDo(f"took longer than {self.patience_s:.0f} s")
            data = os.read(pipe.fileno(), _READ_BYTES)
            if not data:
                raise CannotDo(f"it ended: {self._last_words()}")
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return _decode(line)

    def _last_words(self) -> str:
        self._process.wait()
        self._log.seek(0)
        lines = self._log.read().decode("utf-8", "replace").strip().splitlines()
        return (lines[-1] if lines else "without a word")[:_TOLD_CHARS]
