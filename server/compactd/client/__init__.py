"""The Python client: spawns the daemon and speaks to it over its pipes; starts it again where it died.

    with Client() as client:
        started = client.session_start(model="anthropic/claude-sonnet-4-5")
        client.session_append(session_id=started.session_id, messages=[{"role": "user", "content": "Hi."}])

    async with AsyncClient() as client:
        started = await client.session_start()
        async for event in client.events():
            ...

Every method of the protocol is a method here, with its params by name and its result as the wire's struct.
The types of messages can be imported from here, too.
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
    # asyncio costs a script that does not use it 30 ms.
    if name == "AsyncClient":
        from compactd.client.asynchronous import AsyncClient

        return AsyncClient
    raise AttributeError(name)
