"""Read the usage reports in the pi coding agent's session files.

Fields (badlogic/pi-mono, packages/ai/src/types.ts, `Usage` and `AssistantMessage`, and
packages/coding-agent/docs/session.md, read 2026-11): an assistant message has `provider`, `model`,
`timestamp` in milliseconds, and `usage` with `input`, which excludes the cache, `output`, `cacheRead`,
`cacheWrite` and `cost.total` in US dollars. A branched session repeats messages in a new file with the same
timestamps. A cost of 0 for a request with tokens means that pi knew no price.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from compactd.cli.usage.requests import FileUsage, Request, count, dollars, key_of, seconds

MARKS = (b'"usage"', b'"session"')

_Number = int | float | None


class _Cost(Struct):
    total: _Number = None


class _Usage(Struct, rename="camel"):
    input: _Number = None
    output: _Number = None
    cache_read: _Number = None
    cache_write: _Number = None
    cost: _Cost | None = None


class _Message(Struct):
    role: str = ""
    provider: str | None = None
    model: str | None = None
    timestamp: str | int | float | None = None
    usage: _Usage | None = None


class _Record(Struct):
    type: str = ""
    id: str | None = None
    cwd: str | None = None
    timestamp: str | int | float | None = None
    message: Raw = Raw()


_record = msgspec.json.Decoder(_Record).decode
_message = msgspec.json.Decoder(_Message).decode


class Reader:
    """Adds the requests of a pi file to `usage`, line by line."""

    def __init__(self, usage: FileUsage) -> None:
        self._usage = usage
        self._keys = {request.key for request in usage.requests}

    def line(self, line: bytes) -> None:
        """Read one line. Raise `msgspec.MsgspecError` if it is damaged."""
        record = _record(line)
        usage = self._usage
        if record.type == "session":
            usage.session_id = record.id or usage.session_id
            usage.project = record.cwd or usage.project
            return
        if record.type != "message" or not record.message:
            return
        message = _message(record.message)
        reported = message.usage
        if message.role != "assistant" or reported is None:
            return
        tokens = (
            count(reported.input),
            count(reported.output),
            count(reported.cache_write),
            count(reported.cache_read),
        )
        key = key_of(f"{message.timestamp or record.timestamp}:{message.model}:{tokens}")
        if not any(tokens) or key in self._keys:
            return
        self._keys.add(key)
        usage.requests.append(
            Request(
                key=key,
                at=seconds(message.timestamp) or seconds(record.timestamp),
                model=usage.model_index(message.provider or "", message.model or ""),
                input=tokens[0],
                output=tokens[1],
                cache_write=tokens[2],
                cache_write_1h=0,
                cache_read=tokens[3],
                cost=(dollars(reported.cost.total) or None) if reported.cost else None,
            )
        )
