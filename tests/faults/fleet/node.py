"""A daemon of the fleet, and its client."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import subprocess
from pathlib import Path

import msgspec
from msgspec import Raw, Struct

from tests.support.client import SERVE, environment

PATIENCE_S = 90.0
"""When an answer is given up. A node may be frozen, then wait for the database and for the end of a lease."""
_LINE_BYTES = 1 << 26
_DUMPING = Path(__file__).parent / "dumping"


class Gone(Exception):
    """The node ended before it answered."""


class Refused(Exception):
    """An error answer."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


class Unanswered(AssertionError):
    """A request got no answer, although its node lives."""


class _Error(Struct):
    code: int
    message: str


class _Message(Struct):
    """What a daemon sends."""

    id: int | str | None = None
    method: str | None = None
    result: Raw = Raw(b"null")
    error: _Error | None = None


_decode = msgspec.json.Decoder(_Message).decode


class Node:
    """One of the fleet's daemons. It may be killed and started again."""

    def __init__(self, number: int, folder: Path, urls: tuple[str, ...]) -> None:
        """`urls`: the values of COMPACTD_STORE, of which each start uses the next one."""
        self.number = number
        self.starts = 0
        self.is_ready = asyncio.Event()
        """Set while it runs and has the sessions open."""
        self._folder = folder
        self._urls = urls
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Raw]] = {}
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        folder.mkdir()

    @property
    def name(self) -> str:
        """The name of its connections, which no other node and no earlier process has."""
        return f"node{self.number}.{self.starts}"

    @property
    def log(self) -> Path:
        """What it wrote to stderr."""
        return self._folder / "stderr"

    async def start(self) -> None:
        """Start the process. It has no session open."""
        self.starts += 1
        url = self._urls[self.starts % len(self._urls)].replace("NAME", self.name)
        # `SIGUSR1` writes the stacks of all tasks to its log, and `SIGABRT` those of all threads.
        path = os.pathsep.join(filter(None, (str(_DUMPING), os.environ.get("PYTHONPATH"))))
        env = environment(
            self._folder / "home",
            {"COMPACTD_STORE": url, "PYTHONFAULTHANDLER": "1", "PYTHONPATH": path},
        )
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *SERVE,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=env,
                limit=_LINE_BYTES,
            )
        assert self._process.stdout is not None
        self._reader = asyncio.ensure_future(self._read(self._process.stdout))

    async def call(self, method: str, **params: object) -> Raw:
        """Return a request's result. Raises `Refused`, and `Gone` if the daemon ends before it answers."""
        process, number = self._process, next(self._ids)
        if process is None or process.stdin is None or process.returncode is not None:
            raise Gone
        if self._reader is None or self._reader.done():  # it has ended, but was not waited for yet
            raise Gone
        waiter = self._waiting[number] = asyncio.get_running_loop().create_future()
        body = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        process.stdin.write(msgspec.json.encode(body) + b"\n")
        try:
            return await asyncio.wait_for(waiter, PATIENCE_S)
        except TimeoutError:
            self._signal(signal.SIGUSR1)
            await asyncio.sleep(1)
            self._signal(signal.SIGABRT)
            await process.wait()
            raise Unanswered(f"{self.name}: {method}, {PATIENCE_S:g} seconds") from None
        finally:
            self._waiting.pop(number, None)

    def kill(self) -> None:
        """SIGKILL, wherever it stands."""
        self._signal(signal.SIGKILL)

    def freeze(self) -> None:
        """Stop the process, until `go_on`."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let a stopped process go on."""
        self._signal(signal.SIGCONT)

    async def end(self) -> int:
        """End its input, and return its exit code."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.close()
        return await self.ended()

    async def ended(self) -> int:
        """Wait until it has ended, and return its exit code."""
        assert self._process is not None
        assert self._reader is not None
        code = await self._process.wait()
        await self._reader
        return code

    def _signal(self, number: int) -> None:
        if self._process is not None and self._process.returncode is None:
            os.kill(self._process.pid, number)

    async def _read(self, stream: asyncio.StreamReader) -> None:
        while line := await stream.readline():
            message = _decode(line)
            if message.method is None and isinstance(message.id, int):
                self._answer(message.id, message)
        for waiter in self._waiting.values():
            if not waiter.done():
                waiter.set_exception(Gone())

    def _answer(self, number: int, message: _Message) -> None:
        waiter = self._waiting.get(number)
        if waiter is None or waiter.done():
            return
        if message.error is None:
            waiter.set_result(message.result)
        else:
            waiter.set_exception(Refused(message.error.code, message.error.message))
