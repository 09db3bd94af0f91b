"""The requests with which a mirror appends messages to its session, and how much of a turn is sent early."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec
from msgspec import Raw, Struct

from compactd.client import Json
from compactd.client.blocking import Pending
from compactd.client.connection import Request
from compactd.integrations.frameworks.history import Encoded
from compactd.protocol.messages import TokenUsage

MAX_EARLY = 32_000
"""The most bytes of messages that are sent before a request needs them. The pipe to the daemon holds twice as
much, so writing them waits for nothing.
"""

AppendMethod = Literal["turn/end", "session/append"]
NewMessage = tuple[str, bytes, str, Json]
"""A message's id, its JSON without the id, its role, and the report on the request that it answers."""


class Appended(Struct, frozen=True):
    """What matters of the results of `session/append` and `turn/end`."""

    entry_ids: list[str]
    pending_calls: list[Raw] = []


@dataclass(frozen=True, slots=True)
class SentEarly:
    """A turn's answer and results that were sent with `turn/begin`, until somebody reads the answers."""

    pending: Pending
    messages: list[NewMessage]
    keys: list[Hashable]
    """Those of the history, the new messages included."""


def append_request(session_id: str | None, method: AppendMethod, messages: Sequence[NewMessage]) -> Request:
    """Return the request that appends `messages`. The report on the newest answer is a param of its own."""
    answers = [at for at, (_, _, role, _) in enumerate(messages) if role == "assistant"]
    last = answers[-1] if answers else None
    params: dict[str, object] = {
        "session_id": session_id,
        "messages": [
            _identified(id_, body, None if at == last else usage)
            for at, (id_, body, _, usage) in enumerate(messages)
        ],
    }
    if last is not None and messages[last][3]:
        params["usage"] = messages[last][3]
    return method, params


def _identified(id_: str, body: bytes, usage: Json) -> Raw:
    """Return an encoded message with its id, and with the report on the request that it answers."""
    report = b'"usage":%b,' % msgspec.json.encode(usage) if usage else b""
    return Raw(b'{"id":"%b",%b%b' % (id_.encode(), report, body[1:]))


def new_messages(new: Encoded) -> list[NewMessage]:
    """Return encoded messages one by one."""
    return list(zip(new.ids, new.messages, new.roles, new.usages, strict=True))


def early_bytes(usage: TokenUsage) -> int:
    """Return how many bytes of messages may be sent early after a request whose turn began like this: not so
    many that a compaction could be due. The request that makes one necessary may never come, or may be made
    with other settings.
    """
    if usage.decision != "fits":
        return 0
    if usage.threshold_tokens is None:
        return MAX_EARLY
    used = max(usage.current_context_tokens or 0, usage.compared_tokens or 0)
    # No tokenizer makes more than one token of a byte.
    return max(0, min(MAX_EARLY, usage.threshold_tokens - used))


def is_early(messages: Sequence[NewMessage], most_bytes: int) -> bool:
    """Return whether these are a model's answer and the results of its tools, and nothing else, in at most so
    many bytes. A last answer is not: no request comes after it.
    """
    roles = [role for _, _, role, _ in messages]
    is_turn = len(roles) > 1 and roles[0] == "assistant" and set(roles[1:]) == {"tool"}
    return is_turn and sum(len(body) for _, body, _, _ in messages) <= most_bytes
