"""The server: asyncio in its own thread. It plays one script step per request and records each request."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from tests.support.loopback.player import Player
from tests.support.loopback.script import Answer, Overflow, Step
from tests.support.loopback.seen import Seen, count_chars, wire_of
from tests.support.loopback.writing import Json, line

CERTIFICATE = Path(__file__).parent / "certificate.pem"


class Loopback:
    """The provider. Use it with `with`, or `start` and `stop`."""

    def __init__(
        self,
        script: Iterable[Step] = (),
        *,
        then: Step | None = None,
        window: int | None = None,
        count: Callable[[Json], int] = count_chars,
        reply: Callable[[Seen], Step] | None = None,
        port: int = 0,
        tls: bool = False,
    ) -> None:
        """Each request takes the next step of `script`; after the last, `then` (an answer "ok").

        With `window`, a request of more tokens than that is refused in the provider's own words and takes no
        step. `reply` decides by the request instead of a script. `tls`: with the certificate of these tests.
        """
        self.requests: list[Seen] = []
        self.window = window
        self._script = deque(script)
        self._then = then or Answer(text="ok")
        self._count = count
        self._reply = reply
        self._port = port
        self._tls: ssl.SSLContext | None = None
        if tls:
            self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._tls.load_cert_chain(CERTIFICATE)
        self._connections = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="loopback-provider", daemon=True)
        self._ready = threading.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self.base_url = ""

    def __enter__(self) -> Loopback:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> Loopback:
        """Listens; `base_url` is set when it comes back."""
        self._thread.start()
        if not self._ready.wait(10):
            raise RuntimeError("the loopback provider did not start")
        return self

    def stop(self) -> None:
        """Closes every connection."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(10)

    def play(self, *steps: Step) -> None:
        """More steps, after those that are left."""
        self._script.extend(steps)

    def forget(self) -> None:
        """No steps are left and no requests known: for the next test."""
        self._script.clear()
        self.requests.clear()

    @property
    def accepted(self) -> list[Seen]:
        """The requests that were not above the window."""
        return [seen for seen in self.requests if seen.accepted]

    @property
    def connections(self) -> int:
        """Return how many connections were opened."""
        return self._connections

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(
            asyncio.start_server(self._connected, "127.0.0.1", self._port, limit=2**26, ssl=self._tls)
        )
        self._port = server.sockets[0].getsockname()[1]
        self.base_url = f"{'https' if self._tls else 'http'}://127.0.0.1:{self._port}"
        self._ready.set()
        self._loop.run_forever()
        server.close()
        for task in self._tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*self._tasks, return_exceptions=True))
        self._loop.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._connections += 1
        number = self._connections
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                while await self._one(reader, writer, number):
                    pass
        finally:
            self._tasks.discard(task)
            with suppress(Exception):
                writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> bool:
        """One request; True if another may follow."""
        head = await reader.readuntil(b"\r\n\r\n")
        request, *lines = head.decode("latin-1").split("\r\n")[:-2]
        method, path, _ = request.split(" ", 2)
        headers = {}
        for each in lines:
            name, _, value = each.partition(":")
            headers[name.strip().lower()] = value.strip()
        raw = await reader.readexactly(int(headers.get("content-length", "0")))
        try:
            body = json.loads(raw) if raw else {}
        except ValueError:
            body = {}
        seen = Seen(
            wire=wire_of(path) if method == "POST" else "",
            path=path,
            headers=headers,
            body=body,
            raw=raw,
            tokens=self._count(body),
            connection=number,
        )
        player = Player(seen, reader, writer)
        if not seen.wire:
            self.requests.append(seen)
            seen.over.set()
            return await player.whole(404, line({"error": {"message": f"no such path: {path}"}}))
        step = self._next(seen)
        self.requests.append(seen)
        try:
            return await player.play(step)
        finally:
            seen.over.set()

    def _next(self, seen: Seen) -> Step:
        if self.window is not None and seen.tokens > self.window:
            seen.accepted = False
            return Overflow(requested=seen.tokens, limit=self.window)
        if self._reply is not None:
            return self._reply(seen)
        return self._script.popleft() if self._script else self._then
