"""Read the usage reports in Gemini CLI's session files.

Fields (google-gemini/gemini-cli, packages/core/src/services/chatRecordingTypes.ts, `TokensSummary` and
`MessageRecord`, read 2026-11): a record of type `gemini` has `model`, `timestamp` and `tokens` with `input`,
which includes `cached`; `output`; `thoughts`, which are output that `output` does not include; and `tool`,
the input of the provider's own tools, which `input` does not include. Cache writes are not reported.

A record with a known id replaces the earlier one. `$set` repeats all messages with their ids. A record that
`$rewindTo` takes back was a request all the same.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct, field

from compactd.cli.usage.requests import FileUsage, Request, count, key_of, seconds

MARKS = (b'"tokens"', b'"sessionId"')
NOT_REPORTED = ("cache_write",)

_Number = int | float | None


class _Tokens(Struct):
    input: _Number = None
    output: _Number = None
    cached: _Number = None
    thoughts: _Number = None
    tool: _Number = None


class _Message(Struct):
    id: str | None = None
    type: str = ""
    timestamp: str | None = None
    model: str | None = None
    tokens: _Tokens | None = None


class _Change(Struct):
    messages: list[_Message] | None = None


class _Record(_Message, rename={"session_id": "sessionId"}):
    session_id: str | None = None
    messages: list[_Message] | None = None
    change: _Change | None = field(default=None, name="$set")


_record = msgspec.json.Decoder(_Record).decode


class Reader:
    """Adds the requests of a Gemini CLI file to `usage`: line by line, or all of a `.json` file at once."""

    def __init__(self, usage: FileUsage) -> None:
        self._usage = usage
        self._places = {request.key: place for place, request in enumerate(usage.requests)}
        usage.not_reported = NOT_REPORTED

    def line(self, line: bytes | Raw) -> None:
        """Read one line, or a whole document. Raise `msgspec.MsgspecError` if it is damaged."""
        record = _record(line)
        if record.session_id:
            self._usage.session_id = record.session_id
        self._add(record)
        for message in record.messages or ():
            self._add(message)
        for message in (record.change.messages if record.change else None) or ():
            self._add(message)

    def _add(self, message: _Message) -> None:
        tokens = message.tokens
        if message.type != "gemini" or tokens is None:
            return
        usage = self._usage
        whole = count(tokens.input) + count(tokens.tool)
        cached = min(whole, count(tokens.cached))
        request = Request(
            key=key_of(message.id) if message.id else 0,
            at=seconds(message.timestamp),
            model=usage.model_index("google", message.model or ""),
            input=whole - cached,
            output=count(tokens.output) + count(tokens.thoughts),
            cache_write=0,
            cache_write_1h=0,
            cache_read=cached,
        )
        place = self._places.get(request.key) if request.key else None
        if place is not None:
            usage.requests[place] = request
            return
        self._places[request.key] = len(usage.requests)
        usage.requests.append(request)
