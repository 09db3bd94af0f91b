"""Sends requests to the loopback provider; shared by the tests of all wire formats."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from msgspec import Raw

from compactd.models.limits import ProviderLimits
from compactd.models.providers.factory import provider_for
from compactd.models.providers.http import ConnectionPool
from compactd.models.providers.http_provider import HttpProvider
from compactd.models.providers.keys import Keyring
from compactd.models.providers.provider import (
    Finished,
    ModelFailed,
    ModelRequest,
    Retrying,
    StreamEvent,
    TextChunk,
    ThinkingChunk,
    ToolCallReady,
)
from compactd.models.providers.response import ResponseReader
from compactd.models.providers.retries import RetryPolicy
from tests.support.loopback import Loopback, Wire

WIRES: tuple[Wire, ...] = ("openai", "openai_responses", "anthropic", "gemini", "ollama")

PROVIDERS = {
    "openai": "openai",
    "openai_responses": "openai",
    "anthropic": "anthropic",
    "gemini": "google",
    "ollama": "ollama",
}

NO_RETRIES = RetryPolicy(requests=1)
QUICK = ProviderLimits(connect_s=2.0, first_byte_s=2.0, idle_s=2.0, total_s=10.0)
"""Short timeouts, so that a failing test ends soon."""

NOW = 1_760_000_000.0


class StillClock:
    """A clock that stands still, and remembers for how long it was asked to wait."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def now(self) -> float:
        return NOW

    async def sleep(self, delay_s: float) -> None:
        self.slept.append(delay_s)

    def random(self) -> float:
        return 0.0


class Heard:
    """The result of one request: its events, or its failure."""

    def __init__(self) -> None:
        self.events: list[StreamEvent] = []
        self.failed: ModelFailed | None = None

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, TextChunk))

    @property
    def thinking(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, ThinkingChunk))

    @property
    def calls(self) -> list[ToolCallReady]:
        return [event for event in self.events if isinstance(event, ToolCallReady)]

    @property
    def retries(self) -> list[Retrying]:
        return [event for event in self.events if isinstance(event, Retrying)]

    @property
    def finished(self) -> Finished:
        """The last event, of a request that went well."""
        assert self.failed is None, self.failed
        last = self.events[-1]
        assert isinstance(last, Finished)
        return last

    @property
    def failure(self) -> ModelFailed:
        """Why there is no answer."""
        assert self.failed is not None, self.events[-1]
        return self.failed


@asynccontextmanager
async def linked(
    limits: ProviderLimits = QUICK, environ: Mapping[str, str] | None = None
) -> AsyncIterator[ConnectionPool]:
    """Connections that are closed afterwards."""
    links = ConnectionPool(environ or {}, limits)
    try:
        yield links
    finally:
        await links.close()


def provider_of(
    server: Loopback,
    wire: Wire,
    links: ConnectionPool,
    *,
    retries: RetryPolicy = NO_RETRIES,
    clock: StillClock | None = None,
    environ: Mapping[str, str] | None = None,
) -> HttpProvider:
    """A provider whose address is the server's. Keys in `environ` are named for it, as a user would."""
    keys = environ or {}
    urls = {name.replace("_API_KEY", "_BASE_URL"): server.base_url for name in keys if "_API_KEY" in name}
    hosts = {"OLLAMA_HOST": server.base_url} if "OLLAMA_API_KEY" in keys else {}
    found, _ = provider_for(
        "loopback-1",
        provider=PROVIDERS[wire],
        base_url=server.base_url,
        keyring=Keyring({**urls, **hosts, **keys}, None),
        links=links,
        clock=clock or StillClock(),
        wire=wire,
        retries=retries,
    )
    return found


def request_of(wire: Wire, text: str = "hi", **more: Any) -> ModelRequest:
    """One user message, in the wire's shape."""
    message: dict[str, object] = {"role": "user", "content": text}
    if wire == "gemini":
        message = {"role": "user", "parts": [{"text": text}]}
    return ModelRequest(model="loopback-1", messages=(Raw(json.dumps(message)),), **more)


async def hear(provider: HttpProvider, request: ModelRequest) -> Heard:
    """The whole answer, or the failure and what came before it."""
    heard = Heard()
    try:
        async for event in provider.stream(request):
            heard.events.append(event)
    except ModelFailed as failed:
        heard.failed = failed
    return heard


def read(reader: ResponseReader, *events: object) -> tuple[list[StreamEvent], Finished]:
    """The events of a stream, and the last of them."""
    seen = [
        each
        for event in events
        for each in reader.take("", event if isinstance(event, bytes) else json.dumps(event).encode())
    ]
    seen += reader.finish()
    last = seen[-1]
    assert isinstance(last, Finished)
    return seen, last


async def ask(
    wire: Wire,
    *script: Any,
    retries: RetryPolicy = NO_RETRIES,
    limits: ProviderLimits = QUICK,
    clock: StillClock | None = None,
    **more: Any,
) -> tuple[Heard, Loopback]:
    """One request to a server that plays `script`."""
    with Loopback(script) as server:
        async with linked(limits) as links:
            provider = provider_of(server, wire, links, retries=retries, clock=clock)
            heard = await hear(provider, request_of(wire, **more))
            assert links.lent == 0
            for seen in server.requests:
                assert await asyncio.to_thread(seen.over.wait, 5)
    return heard, server
