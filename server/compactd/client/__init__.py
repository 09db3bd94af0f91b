"""The Python client: starts the daemon, calls it over its pipes, and restarts it if it dies.

    with Client() as client:
        started = client.session_start(model="anthropic/claude-sonnet-4-5")
        client.session_append(session_id=started.session_id, messages=[{"role": "user", "content": "Hi."}])

    async with AsyncClient() as client:
        started = await client.session_start()
        async for event in client.events():
            ...

Each method of the protocol is a method of the client. Its params are keyword arguments, and its result is the
struct of `protocol/wire.py`. The types of messages can be imported from here, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compactd.client.blocking import Client
from compactd.client.events import (
    EVENTS_KEPT,
    STDERR_LINES,
    TIMEOUT_S,
    DaemonGone,
    Event,
    Interrupted,
    Params,
    RpcError,
)
from compactd.client.frames import Json
from compactd.protocol.messages import (
    CompactionResult,
    ContextUsage,
    Document,
    Image,
    Message,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolResult,
    Usage,
)

if TYPE_CHECKING:
    from compactd.client.asynchronous import AsyncClient

__all__ = [
    "EVENTS_KEPT",
    "STDERR_LINES",
    "TIMEOUT_S",
    "AsyncClient",
    "Client",
    "CompactionResult",
    "ContextUsage",
    "DaemonGone",
    "Document",
    "Event",
    "Image",
    "Interrupted",
    "Json",
    "Message",
    "Params",
    "RpcError",
    "Text",
    "Thinking",
    "Tool",
    "ToolCall",
    "ToolResult",
    "Usage",
]


def __getattr__(name: str) -> object:
    # Importing asyncio takes 30 ms, which scripts that do not use it should not pay for.
    if name == "AsyncClient":
        from compactd.client.asynchronous import AsyncClient

        return AsyncClient
    raise AttributeError(name)
