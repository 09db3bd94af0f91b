"""An HTTP client for providers, with limits on time and size. A cancelled request leaves nothing open.

Each httpx client serves one request at a time, and is reused only if that request ended well. httpx 0.28.1's
pool loses a connection for ever if a request is cancelled while it connects or closes (httpcore issue 1093;
tried 2026-10: after eight such requests every later one timed out). So the client of such a request is
discarded. Keep-alive connections still work.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from compactd.models.limits import ProviderLimits
from compactd.models.providers.decompress import NotUnpackable, Unpacker
from compactd.models.providers.network import (
    Address,
    address_of,
    context_without_certificates,
    proxy_for,
    trusted_certificates,
)
from compactd.models.providers.provider import Cause

if TYPE_CHECKING:
    import ssl

    import httpx

T = TypeVar("T")

_MAX_IDLE_CLIENTS = 4
"""The maximum number of idle clients that are kept per address. Up to this many simultaneous requests need
no new connection."""

_KEEP_ALIVE_S = 60.0
"""How long an idle connection stays open, in seconds."""
_ERROR_BYTES = 1024 * 1024
"""The maximum number of bytes that are read of an error's body."""
_CLOSING_S = 5.0
"""The maximum number of seconds for closing a client."""
_DRAIN_S = 0.05
"""How long to wait, in seconds, for the end of the stream after an answer's last event. If the stream goes
on, its connection is closed, not reused."""


class HttpRequest(Struct, frozen=True, kw_only=True):
    """One request that is ready to be sent. Its headers can contain a key, so it must not be printed."""

    url: str
    headers: Mapping[str, str]
    body: bytes

    def __repr__(self) -> str:
        return f"HttpRequest({len(self.body)} bytes)"


class ConnectionBroken(Exception):
    """The error that no answer came, or only a part of one. `sentence` describes the failure for a person and
    continues the provider's name: "sent nothing more"."""

    def __init__(self, cause: Cause, sentence: str) -> None:
        super().__init__(sentence)
        self.cause: Cause = cause
        self.sentence = sentence


class HttpResponse:
    """The answer to a request: its status and headers, and the body as it arrives."""

    def __init__(self, response: httpx.Response, limits: ProviderLimits, deadline: float) -> None:
        self._response = response
        self._limits = limits
        self._deadline = deadline
        self.is_whole = False
        """Whether the body was read to its end. Only then can the connection be reused."""
        self.unread = ""
        """Why an error's body could not be decompressed, for a person. Empty if it could."""

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self._response.status_code

    @property
    def headers(self) -> dict[str, str]:
        """The headers by lower-case name."""
        return {name.lower(): value for name, value in self._response.headers.items()}

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the decompressed pieces of the body as they arrive.

        Raises `ConnectionBroken` if the body breaks off, stalls, is too long, or has an encoding that is not
        accepted.
        """
        received, size = 0, 0
        try:
            unpacker = Unpacker(self.headers.get("content-encoding", ""))
            async with aclosing(_pieces(self._response)) as pieces:
                while True:
                    piece = await _run_within(
                        anext(pieces, None),
                        self._limits.idle_s,
                        self._deadline,
                        "stream",
                        "sent nothing more",
                    )
                    if piece is None:
                        self.is_whole = True
                        return
                    received += len(piece)
                    for step in unpacker.steps(piece):
                        size += len(step)
                        if max(received, size) > self._limits.body_bytes:
                            raise ConnectionBroken("limit", f"sent more than {self._limits.body_bytes} bytes")
                        yield step
                        if unpacker.is_packed:
                            # One compressed piece can become 64 MiB. Let other sessions run in between.
                            await asyncio.sleep(0)
                    if received > self._limits.body_bytes:
                        raise ConnectionBroken("limit", f"sent more than {self._limits.body_bytes} bytes")
        except NotUnpackable as refused:
            self.unread = str(refused)
            raise ConnectionBroken("answer", self.unread) from None

    def break_cycle(self) -> None:
        """Break the reference cycle between httpx's response and its stream (httpx 0.28.1,
        `BoundAsyncStream`).

        Otherwise the body of each request would stay in memory until a garbage collection.
        """
        import httpx

        self._response.stream = httpx.ByteStream(b"")

    async def drain(self, chunks: AsyncGenerator[bytes, None]) -> None:
        """Read and drop what follows the last event, for at most `_DRAIN_S` seconds, so that the
        connection can be reused."""
        with suppress(ConnectionBroken, StopAsyncIteration, TimeoutError):
            async with asyncio.timeout(_DRAIN_S):
                while True:
                    await chunks.__anext__()

    async def text(self) -> str:
        """Return the body of an error, up to about `_ERROR_BYTES`. If it breaks off or stalls, return what
        arrived."""
        parts: list[bytes] = []
        size = 0
        with suppress(ConnectionBroken):
            async with aclosing(self.chunks()) as chunks:
                async for piece in chunks:
                    parts.append(piece)
                    size += len(piece)
                    if size >= _ERROR_BYTES:
                        break
        return b"".join(parts).decode("utf-8", "replace")


class ConnectionPool:
    """The connections to all providers. Create one per process, and use it with one event loop only."""

    def __init__(self, environ: Mapping[str, str], limits: ProviderLimits | None = None) -> None:
        """Open no connection yet. `environ` is the environment when the daemon started; it names proxies
        and certificates."""
        self.limits = limits or ProviderLimits()
        self._environ = environ
        self._idle: dict[str, list[httpx.AsyncClient]] = {}
        self._lent = 0
        self._closing: set[asyncio.Task[None]] = set()
        self._contexts: dict[bool, ssl.SSLContext] = {}
        """The TLS contexts: with trusted certificates (key True) and without (False). All clients share
        them."""
        self._preparing = {believes: asyncio.Lock() for believes in (False, True)}

    @property
    def lent(self) -> int:
        """The number of clients that are serving a request."""
        return self._lent

    @property
    def idle(self) -> int:
        """The number of idle clients that are kept for later requests."""
        return sum(len(clients) for clients in self._idle.values())

    @asynccontextmanager
    async def send(self, sending: HttpRequest) -> AsyncIterator[HttpResponse]:
        """Send a request. The context value is the answer, as soon as its status and headers have arrived.
        Redirects are not followed.

        Leaving the block before the end of the body closes the connection. Raises `ConnectionBroken`.
        """
        address = address_of(sending.url)
        if address is None:
            raise ConnectionBroken("answer", "has no http or https URL")
        client = await self._client(address)
        self._lent += 1
        answer: HttpResponse | None = None
        try:
            deadline = asyncio.get_running_loop().time() + self.limits.total_s
            request = client.build_request(
                "POST", sending.url, headers=dict(sending.headers), content=sending.body
            )
            response = await _run_within(
                client.send(request, stream=True),
                self.limits.first_byte_s,
                deadline,
                "connection",
                "did not answer",
            )
            answer = HttpResponse(response, self.limits, deadline)
            yield answer
        finally:
            self._lent -= 1
            if answer is not None and answer.is_whole and not client.is_closed:
                self._keep(address, client)
            else:
                await self._close(client)
            if answer is not None:
                answer.break_cycle()

    async def close(self) -> None:
        """Close the idle clients. A client that serves a request is closed when the request ends."""
        clients = [client for kept in self._idle.values() for client in kept]
        self._idle.clear()
        for client in clients:
            await self._close(client)
        if self._closing:
            await asyncio.wait(self._closing, timeout=_CLOSING_S)

    async def _client(self, address: Address) -> httpx.AsyncClient:
        """Return a client for `address`: an idle one, or a new one."""
        proxy = proxy_for(address, self._environ)
        # For plain http no certificates are loaded.
        believes = address.scheme == "https" or (proxy or "").startswith("https")
        context = self._contexts.get(believes)
        if context is None:
            # Importing httpx takes 0.1 s and loading certificates 50 ms, so do it in a thread, and only once
            # for simultaneous callers: several threads would block the event loop.
            async with self._preparing[believes]:
                context = self._contexts.get(believes)
                if context is None:
                    context = self._contexts[believes] = await asyncio.to_thread(self._prepare, believes)
        kept = self._idle.get(address.place)
        if kept:
            return kept.pop()
        return self._make_client(context, proxy)

    def _prepare(self, believes: bool) -> ssl.SSLContext:
        """Import httpx and return a TLS context, with certificates if `believes`. Takes about 0.15 s, so
        call it in a thread."""
        import httpx  # noqa: F401

        preload()
        if not believes:
            return context_without_certificates()
        try:
            return trusted_certificates(self._environ)
        except OSError as error:
            raise ConnectionBroken(
                "answer", "cannot be verified: SSL_CERT_FILE or SSL_CERT_DIR contains no certificates"
            ) from error

    def _make_client(self, context: ssl.SSLContext, proxy: str | None) -> httpx.AsyncClient:
        """Create a client. Takes 0.03 ms."""
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
            raise ConnectionBroken(
                "answer",
                "is behind a SOCKS proxy, and `socksio` is not installed: install `httpx[socks]`, or unset "
                "ALL_PROXY",
            ) from error
        except (ValueError, httpx.InvalidURL) as error:
            raise ConnectionBroken("answer", "is behind a proxy whose URL is invalid") from error

    def _keep(self, address: Address, client: httpx.AsyncClient) -> None:
        """Keep a client for later requests, or close it if enough are kept."""
        kept = self._idle.setdefault(address.place, [])
        if len(kept) < _MAX_IDLE_CLIENTS:
            kept.append(client)
        else:
            self._forget(client)

    async def _close(self, client: httpx.AsyncClient) -> None:
        """Close `client`, even if the waiting task is cancelled meanwhile."""
        await asyncio.shield(self._forget(client))

    def _forget(self, client: httpx.AsyncClient) -> asyncio.Task[None]:
        """Close `client` in a task of its own, and return the task."""
        task = asyncio.create_task(_close(client))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        return task


async def _pieces(response: httpx.Response) -> AsyncGenerator[bytes, None]:
    # Not `aiter_bytes`, because httpx decompresses all layers, a whole piece at once.
    """Yield the pieces of a body as they arrive, still compressed."""
    async for piece in response.aiter_raw():
        yield piece


async def _close(client: httpx.AsyncClient) -> None:
    """Close a client. Wait for at most `_CLOSING_S` seconds."""
    import httpx

    # Errors do not matter here: the connection is being closed.
    with suppress(TimeoutError, OSError, RuntimeError, httpx.HTTPError):
        async with asyncio.timeout(_CLOSING_S):
            await client.aclose()


def preload() -> None:
    """Import what httpx would import on the event loop at its first request, and silence its logs."""
    import importlib
    import logging

    # httpx logs each URL at INFO, which can contain a password; httpcore logs all received headers.
    for name in ("httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.WARNING)
    for name in ("anyio._backends._asyncio", "httpcore._backends.anyio", "h11"):
        with suppress(ImportError):
            importlib.import_module(name)


async def _run_within(step: Awaitable[T], limit_s: float, deadline: float, phase: Cause, silence: str) -> T:
    """Return the result of `step`. Raises `ConnectionBroken` if `step` fails in any way, takes longer than
    `limit_s` seconds, or lasts beyond `deadline` (a time of the event loop).

    `phase` is the error's cause if the connection breaks. `silence` begins the error's sentence if `step`
    takes too long: "did not answer", to which "for 600 seconds" is added.
    """
    import httpx

    loop = asyncio.get_running_loop()
    until = loop.time() + limit_s
    try:
        async with asyncio.timeout_at(min(until, deadline)):
            return await step
    except TimeoutError:
        if deadline <= until:
            raise ConnectionBroken(
                "limit", "took longer than total_s, the time limit of a whole request"
            ) from None
        raise ConnectionBroken("timeout", f"{silence} for {limit_s:g} seconds") from None
    except (httpx.ConnectTimeout, httpx.WriteTimeout, httpx.PoolTimeout, httpx.ReadTimeout):
        raise ConnectionBroken("timeout", "could not be reached in time") from None
    except httpx.ProxyError:
        raise ConnectionBroken("connection", "could not be reached through the proxy") from None
    except httpx.ConnectError as error:
        raise ConnectionBroken("connection", f"could not be reached ({_kind(error)})") from None
    # The texts of these errors can contain a header, and with it a key.
    except (httpx.LocalProtocolError, httpx.UnsupportedProtocol, httpx.InvalidURL):
        raise ConnectionBroken("answer", "was not called: the request is not valid HTTP") from None
    except (httpx.HTTPError, httpx.StreamError, OSError):
        what = (
            "closed the connection without an answer"
            if phase == "connection"
            else "closed the connection before its answer was complete"
        )
        raise ConnectionBroken(phase, what) from None


def _kind(error: Exception) -> str:
    """Return why no connection was made, without quoting the library's error."""
    text = str(error).lower()
    for words, meaning in (
        ("certificate", "its certificate is not trusted; name the file of its CA in SSL_CERT_FILE"),
        ("ssl", "TLS failed"),
        ("name or service", "its host name cannot be resolved"),
        ("nodename", "its host name cannot be resolved"),
        ("getaddrinfo", "its host name cannot be resolved"),
        ("refused", "connection refused"),
    ):
        if words in text:
            return meaning
    return "no connection"
