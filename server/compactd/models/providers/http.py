"""HTTP to providers: bounded in time and size, and nothing left behind by a request that was cancelled.

A client is lent to one request at a time and kept for the next only if that one ended well. httpx 0.28.1's
pool loses a connection for ever where a request is cancelled while it connects or closes (httpcore issue
1093; tried 2026-10: after eight such requests every later one timed out); here such a client is thrown away.
A keep-alive connection serves request after request all the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from compactd._runtime.lazy_imports import breathing_imports
from compactd.models.providers.decompress import NotUnpackable, Unpacker
from compactd.models.providers.network import Address, address_of, proxy_for, trusted, trusting_nobody
from compactd.models.providers.protocol import Cause

if TYPE_CHECKING:
    import ssl

    import httpx

T = TypeVar("T")

_KEPT_CLIENTS = 4
"""Idle, for each place: as many requests side by side find a connection open."""

_KEEP_ALIVE_S = 60.0
_CLOSING_S = 5.0
_DRAIN_S = 0.05
"""Between "[DONE]" and the end of the stream, which comes with it."""


class Limits(Struct, frozen=True, kw_only=True):
    """Seconds and bytes that one request may take."""

    connect_s: float = 15.0
    first_byte_s: float = 600.0
    """Until the answer's head: a local server reads the whole prompt first (OpenAI's SDKs wait as long)."""
    idle_s: float = 300.0
    """Between two pieces; a server's comments and pings count. Codex waits as long for one that thinks."""
    total_s: float = 3600.0
    """From the first byte sent to the last received, of one request."""
    body_bytes: int = 100 * 1024 * 1024
    """Of an answer, packed and unpacked: a model that never ends is cut off here."""
    line_bytes: int = 16 * 1024 * 1024
    """Of one line or event."""
    error_bytes: int = 1024 * 1024
    """Read of an error's body."""


class Sending(Struct, frozen=True, kw_only=True):
    """One request, ready. Its headers may hold a key: it is never printed."""

    url: str
    headers: Mapping[str, str]
    body: bytes

    def __repr__(self) -> str:
        return f"Sending({len(self.body)} bytes)"


class Broken(Exception):
    """The request failed on its way. `sentence` says how, for a person."""

    def __init__(self, cause: Cause, sentence: str) -> None:
        super().__init__(sentence)
        self.cause: Cause = cause
        self.sentence = sentence


class Answer:
    """An answer's head, and its body to come."""

    def __init__(self, response: httpx.Response, limits: Limits, deadline: float) -> None:
        self._response = response
        self._limits = limits
        self._deadline = deadline
        self.is_whole = False
        """The body was read to its end: the connection can serve another request."""
        self.unread = ""
        """Why `text` could not unpack an error's body, for a person; empty if it could."""

    @property
    def status(self) -> int:
        """Of HTTP."""
        return self._response.status_code

    @property
    def headers(self) -> dict[str, str]:
        """By lower-case names."""
        return {name.lower(): value for name, value in self._response.headers.items()}

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The body's pieces as they arrive, unpacked. Raises `Broken`, also for one that stalls or is too
        long, and for one that is compressed in a way that is not accepted."""
        received, size = 0, 0
        try:
            unpacker = Unpacker(self.headers.get("content-encoding", ""))
            async with aclosing(_pieces(self._response)) as pieces:
                while True:
                    piece = await _within(
                        _next(pieces), self._limits.idle_s, self._deadline, "stream", "sent nothing more"
                    )
                    if piece is None:
                        self.is_whole = True
                        return
                    received += len(piece)
                    for step in unpacker.steps(piece):
                        size += len(step)
                        if max(received, size) > self._limits.body_bytes:
                            raise Broken("limit", f"sent more than {self._limits.body_bytes} bytes")
                        yield step
                        if unpacker.is_packed:
                            # One packed piece makes up to 64 MiB: the other sessions go on in between.
                            await asyncio.sleep(0)
                    if received > self._limits.body_bytes:
                        raise Broken("limit", f"sent more than {self._limits.body_bytes} bytes")
        except NotUnpackable as refused:
            self.unread = str(refused)
            raise Broken("answer", self.unread) from None

    def let_go(self) -> None:
        """Parts httpx's response from its stream, which hold each other (httpx 0.28.1, `BoundAsyncStream`):
        else every request's body stays in memory until the collector comes by."""
        import httpx

        self._response.stream = httpx.ByteStream(b"")

    async def drain(self, chunks: AsyncGenerator[bytes, None]) -> None:
        """Reads what follows the last word, for a moment, so that the connection can be used again."""
        with suppress(Broken, StopAsyncIteration, TimeoutError):
            async with asyncio.timeout(_DRAIN_S):
                while True:
                    await chunks.__anext__()

    async def text(self) -> str:
        """An error's body, up to `error_bytes`. One that breaks off or stalls is taken as it is."""
        parts: list[bytes] = []
        size = 0
        with suppress(Broken):
            async with aclosing(self.chunks()) as chunks:
                async for piece in chunks:
                    parts.append(piece)
                    size += len(piece)
                    if size >= self._limits.error_bytes:
                        break
        return b"".join(parts).decode("utf-8", "replace")


class Links:
    """The connections to every provider. One for the process; belongs to one event loop."""

    def __init__(self, environ: Mapping[str, str], limits: Limits | None = None) -> None:
        """`environ`: for proxies and certificates, as it was at the start."""
        self.limits = limits or Limits()
        self._environ = environ
        self._idle: dict[str, list[httpx.AsyncClient]] = {}
        self._lent = 0
        self._closing: set[asyncio.Task[None]] = set()
        self._contexts: dict[bool, ssl.SSLContext] = {}
        """By whether certificates are believed in it; one serves every client."""
        self._preparing = {believes: asyncio.Lock() for believes in (False, True)}

    @property
    def lent(self) -> int:
        """Clients that serve a request now."""
        return self._lent

    @property
    def idle(self) -> int:
        """Clients that are kept open for the next request."""
        return sum(len(clients) for clients in self._idle.values())

    @asynccontextmanager
    async def send(self, sending: Sending) -> AsyncIterator[Answer]:
        """Sends, and gives back the answer once its head is there; redirects are not followed.

        Leaving the block before the body's end closes the connection. Raises `Broken`.
        """
        address = address_of(sending.url)
        if address is None:
            raise Broken("answer", "has no http or https URL")
        client = await self._client(address)
        self._lent += 1
        answer: Answer | None = None
        try:
            deadline = asyncio.get_running_loop().time() + self.limits.total_s
            request = client.build_request(
                "POST", sending.url, headers=dict(sending.headers), content=sending.body
            )
            response = await _within(
                client.send(request, stream=True),
                self.limits.first_byte_s,
                deadline,
                "connection",
                "did not answer",
            )
            answer = Answer(response, self.limits, deadline)
            yield answer
        finally:
            self._lent -= 1
            if answer is not None and answer.is_whole and not client.is_closed:
                self._keep(address, client)
            else:
                await self._close(client)
            if answer is not None:
                answer.let_go()

    async def close(self) -> None:
        """Closes what is kept. Requests that still run close their own."""
        clients = [client for kept in self._idle.values() for client in kept]
        self._idle.clear()
        for client in clients:
            await self._close(client)
        if self._closing:
            await asyncio.wait(self._closing, timeout=_CLOSING_S)

    async def _client(self, address: Address) -> httpx.AsyncClient:
        proxy = proxy_for(address, self._environ)
        # Without TLS httpx would load every certificate for nothing.
        believes = address.scheme == "https" or (proxy or "").startswith("https")
        context = self._contexts.get(believes)
        if context is None:
            # The import takes 0.1 s, the certificates 50 ms: the loop goes on meanwhile. Once for all who ask
            # at the same time: six threads that load them keep the interpreter from the loop for 30 ms.
            async with self._preparing[believes]:
                context = self._contexts.get(believes)
                if context is None:
                    context = self._contexts[believes] = await asyncio.to_thread(self._prepared, believes)
        kept = self._idle.get(address.place)
        if kept:
            return kept.pop()
        return self._made(context, proxy)

    def _prepared(self, believes: bool) -> ssl.SSLContext:
        """What clients need that takes long."""
        with breathing_imports():
            import httpx  # noqa: F401

            _preload()
        if not believes:
            return trusting_nobody()
        try:
            return trusted(self._environ)
        except OSError as error:
            raise Broken(
                "answer", "cannot be trusted: SSL_CERT_FILE or SSL_CERT_DIR holds no certificates"
            ) from error

    def _made(self, context: ssl.SSLContext, proxy: str | None) -> httpx.AsyncClient:
        """A client, in 0.03 ms."""
        import httpx

        try:
            return httpx.AsyncClient(
                verify=context,
                proxy=proxy,
                trust_env=False,
                follow_redirects=False,
                timeout=httpx.Timeout(
                    connect=self.limits.connect_s, read=None, write=self.limits.idle_s, pool=None
                ),
                limits=httpx.Limits(
                    max_connections=1, max_keepalive_connections=1, keepalive_expiry=_KEEP_ALIVE_S
                ),
            )
        except ImportError as error:
            raise Broken(
                "answer",
                "is behind a SOCKS proxy, and `socksio` is not installed: install `httpx[socks]`, or unset "
                "ALL_PROXY",
            ) from error
        except (ValueError, httpx.InvalidURL) as error:
            raise Broken("answer", "is behind a proxy whose URL makes no sense") from error

    def _keep(self, address: Address, client: httpx.AsyncClient) -> None:
        kept = self._idle.setdefault(address.place, [])
        if len(kept) < _KEPT_CLIENTS:
            kept.append(client)
        else:
            self._forget(client)

    async def _close(self, client: httpx.AsyncClient) -> None:
        """Closes `client`, also where the task that waits for it is cancelled a second time."""
        await asyncio.shield(self._forget(client))

    def _forget(self, client: httpx.AsyncClient) -> asyncio.Task[None]:
        task = asyncio.create_task(_closed(client))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        return task


async def _pieces(response: httpx.Response) -> AsyncGenerator[bytes, None]:
    # Not `aiter_bytes`: httpx unpacks every layer that the head names, a whole piece at once.
    async for piece in response.aiter_raw():
        yield piece


async def _next(pieces: AsyncGenerator[bytes, None]) -> bytes | None:
    try:
        return await pieces.__anext__()
    except StopAsyncIteration:
        return None


async def _closed(client: httpx.AsyncClient) -> None:
    import httpx

    # What fails here has failed already: the connection is gone.
    with suppress(TimeoutError, OSError, RuntimeError, httpx.HTTPError):
        async with asyncio.timeout(_CLOSING_S):
            await client.aclose()


def _preload() -> None:
    """What httpx would import at its first request, in the middle of the loop; and its logs silenced."""
    import importlib
    import logging

    # At INFO httpx writes each URL, which may hold a password; httpcore writes every header that comes.
    for name in ("httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.WARNING)
    for name in ("anyio._backends._asyncio", "httpcore._backends.anyio", "h11"):
        with suppress(ImportError):
            importlib.import_module(name)


async def _within(step: Awaitable[T], limit_s: float, deadline: float, phase: Cause, silence: str) -> T:
    """`step`'s result. Raises `Broken` for every way in which httpx fails, and where it takes too long."""
    import httpx

    loop = asyncio.get_running_loop()
    until = loop.time() + limit_s
    try:
        async with asyncio.timeout_at(min(until, deadline)):
            return await step
    except TimeoutError:
        if deadline <= until:
            raise Broken("limit", "took longer in all than a request may") from None
        raise Broken("timeout", f"{silence} for {limit_s:g} seconds") from None
    except (httpx.ConnectTimeout, httpx.WriteTimeout, httpx.PoolTimeout, httpx.ReadTimeout):
        raise Broken("timeout", "could not be reached in time") from None
    except httpx.ProxyError:
        raise Broken("connection", "could not be reached through the proxy") from None
    except httpx.ConnectError as error:
        raise Broken("connection", f"could not be reached ({_kind(error)})") from None
    # Their texts may quote a header, and with it a key.
    except (httpx.LocalProtocolError, httpx.UnsupportedProtocol, httpx.InvalidURL):
        raise Broken("answer", "cannot be asked: the request is not valid HTTP") from None
    except (httpx.HTTPError, httpx.StreamError, OSError):
        what = "closed the connection without an answer" if phase == "connection" else "broke off its answer"
        raise Broken(phase, what) from None


def _kind(error: Exception) -> str:
    """Why no connection came about, without the library's words."""
    text = str(error).lower()
    for words, meaning in (
        ("certificate", "its certificate is not trusted: see SSL_CERT_FILE"),
        ("ssl", "TLS failed"),
        ("name or service", "its name is not known"),
        ("nodename", "its name is not known"),
        ("getaddrinfo", "its name is not known"),
        ("refused", "connection refused"),
    ):
        if words in text:
            return meaning
    return "no connection"
