"""Compare a request with the one that was handed out before: how much of its beginning is the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Raw, Struct

from compactd.formats.messages.rendering import Rendered


class SentRequest(Struct, frozen=True, kw_only=True):
    """What is remembered of the newest request that was handed out, to compare the next one with it."""

    system: int
    """The hash of the system prompt."""
    tools: int
    """The hash of the tools."""
    head_bytes: int
    messages: tuple[int, ...]
    """The hash of each message."""
    sizes: tuple[int, ...]
    """The bytes of each message."""
    tokens: int
    """The tokens of the whole request."""


def fingerprint(made: Rendered, tokens: int) -> SentRequest:
    """Return what is to be remembered of a request of so many tokens. O(bytes)."""
    tools: Sequence[Raw] = made.tools or ()
    return SentRequest(
        system=hash(made.system),
        tools=hash(tuple(hash(bytes(tool)) for tool in tools)),
        head_bytes=len((made.system or "").encode()) + sum(len(memoryview(tool)) for tool in tools),
        messages=tuple(hash(bytes(message)) for message in made.messages),
        sizes=tuple(len(memoryview(message)) for message in made.messages),
        tokens=tokens,
    )


def common_beginning(before: SentRequest | None, now: SentRequest) -> tuple[int, int, int]:
    """Return (messages, bytes, tokens) at the beginning of `now` that are the same in `before`.
    O(messages)."""
    if before is None or (before.system, before.tools) != (now.system, now.tools):
        return 0, 0, 0
    same = 0
    for one, other in zip(before.messages, now.messages, strict=False):
        if one != other:
            break
        same += 1
    stable_bytes = now.head_bytes + sum(now.sizes[:same])
    if same == len(before.messages):
        return same, stable_bytes, min(before.tokens, now.tokens)
    all_bytes = before.head_bytes + sum(before.sizes)
    return same, stable_bytes, before.tokens * stable_bytes // all_bytes if all_bytes else 0


def first_change(
    before: SentRequest | None, now: SentRequest
) -> Literal["tools", "system", "messages"] | None:
    """Return the first part of `now` that differs from `before`, in the order in which a provider reads them;
    None if only messages were added at the end. In formats whose system prompt is a message, it is one here
    too. O(messages)."""
    if before is None:
        return None
    if before.tools != now.tools:
        return "tools"
    if before.system != now.system:
        return "system"
    return None if now.messages[: len(before.messages)] == before.messages else "messages"
