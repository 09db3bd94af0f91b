"""Mark in a request to Anthropic up to where the provider may cache it.

A provider that has cached the beginning of a request reads it for a tenth of the price. Anthropic caches only
up to the blocks that carry a `cache_control`, at most four of them. It then finds an earlier end if that is
among the 20 blocks before such a block (platform.claude.com, "Prompt caching", read 2026-11). So the markers
are:

- `tools`: on the last tool. The tools survive a compaction.
- `system`: on the system prompt, if it may be sent as a list of blocks.
- `summary`: at the end of the first message, if that is the summary of a compaction.
- `messages`: at the end of the last message. Also at the end of the message that was last in the request
  before, if more than 20 blocks follow it.

All markers of a request have the same lifetime. (Anthropic rejects one for an hour after one for 5 minutes.)
A marker is no part of what the provider compares, so it may move from request to request.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from compactd.core.cost.lifetime import Lifetime
from compactd.formats.messages.rendering import Rendered

Place = Literal["tools", "system", "summary", "messages"]

MAX_MARKERS = 4
"""A request with more is rejected."""
LOOKBACK_BLOCKS = 20
"""How many blocks before a marker the provider looks for the end of what it has cached."""

_MARKERS: dict[Lifetime, bytes] = {
    "5m": b'"cache_control":{"type":"ephemeral"}',
    "1h": b'"cache_control":{"type":"ephemeral","ttl":"1h"}',
}
_NAME = b'"cache_control"'
_MESSAGE_END = b"}]}"
"""The last bytes of a message that ends with a block."""


class CacheMarker(Struct, frozen=True, kw_only=True):
    """A place up to which the provider may cache the request."""

    at: Place
    ttl: Literal["5m", "30m", "1h"]
    """How long the provider keeps it from the last time it was read: 30 minutes at OpenAI."""


class _Content(Struct):
    """The blocks of a message."""

    content: list[Raw]


def mark_anthropic(
    made: Rendered,
    *,
    starts_with_summary: bool,
    last_sent: int,
    lifetime: Lifetime = "5m",
    marks_system: bool = False,
) -> tuple[Rendered, Raw | None, tuple[CacheMarker, ...]]:
    """Return the request with markers, its system prompt as a list of blocks with a marker (None if it has no
    system prompt or `marks_system` is false), and the markers.

    `starts_with_summary`: whether the first message is the summary of a compaction. `last_sent`: how many of
    the messages were in the request before. A message that already has a marker, which the client gave it,
    keeps its own. O(tools + blocks since the request before).
    """
    marker = _MARKERS[lifetime]
    tools, messages = list(made.tools or ()), list(made.messages)
    places: dict[int, Place] = {}
    if messages and starts_with_summary:
        places[0] = "summary"
    if messages:
        places.setdefault(len(messages) - 1, "messages")
    if 0 < last_sent < len(messages) and _count_blocks(messages[last_sent - 1 :]) > LOOKBACK_BLOCKS:
        places.setdefault(last_sent - 1, "messages")
    has_system = marks_system and bool(made.system)
    markers: list[CacheMarker] = []
    # The marker of the system prompt also covers the tools, so theirs comes last if there are too many.
    if tools and _NAME not in bytes(tools[-1]) and len(places) + has_system < MAX_MARKERS:
        tools[-1] = Raw(bytes(tools[-1])[:-1] + b"," + marker + b"}")
        markers.append(CacheMarker(at="tools", ttl=lifetime))
    system: Raw | None = None
    if has_system:
        block = msgspec.json.encode({"type": "text", "text": made.system})
        system = Raw(b"[" + block[:-1] + b"," + marker + b"}]")
        markers.append(CacheMarker(at="system", ttl=lifetime))
    for at in sorted(places):
        marked = _marked(bytes(messages[at]), marker)
        if marked is not None:
            messages[at] = Raw(marked)
            markers.append(CacheMarker(at=places[at], ttl=lifetime))
    return replace(made, tools=tools or made.tools, messages=messages), system, tuple(markers)


def _marked(message: bytes, marker: bytes) -> bytes | None:
    """Return the message with a marker on its last block; None if that block cannot have one."""
    if not message.endswith(_MESSAGE_END) or _NAME in message:
        return None
    return message[: -len(_MESSAGE_END)] + b"," + marker + _MESSAGE_END


def _count_blocks(messages: Sequence[Raw]) -> int:
    """Return the number of blocks in the messages."""
    return sum(len(msgspec.json.decode(message, type=_Content).content) for message in messages)
