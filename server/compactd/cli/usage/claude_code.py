"""Read the usage reports in Claude Code's session files.

Fields, seen in files of versions 1.0 to 2.1 (2025-09 to 2026-11): a record of type `assistant` has
`message.usage` in the form of Anthropic's Messages API (platform.claude.com/docs, "Messages", `usage`,
2026-11). `input_tokens` excludes the cache; `cache_creation_input_tokens` is the sum of
`cache_creation.ephemeral_5m_input_tokens` and `ephemeral_1h_input_tokens`.

- Claude Code writes one record per block of an answer. They share `message.id` and `requestId`, and all have
  a usage report. Early ones were written while the answer still streamed, so only the last one counts.
- Records of sub-agents are in the session's file (`isSidechain`), in a file of their own with the session's
  `sessionId`, or inside a record of type `progress` (`data.message`). All are counted, each request once.
- A resumed or forked session repeats records with the same ids in a new file; `forkedFrom` then names the
  first session.
- `<synthetic>` is the model of messages that Claude Code wrote itself. They were no requests.
- `toolUseResult.usage` repeats a sub-agent's report and is not counted.
- Versions before 1.0.9 wrote `costUSD`.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct, field

from compactd.cli.usage.requests import FileUsage, Request, count, dollars, key_of, seconds

MARKS = (b'"usage"',)

_Number = int | float | None


class _CacheCreation(Struct):
    ephemeral_1h_input_tokens: _Number = None


class _Usage(Struct):
    type: str = ""
    input_tokens: _Number = None
    output_tokens: _Number = None
    cache_creation_input_tokens: _Number = None
    cache_read_input_tokens: _Number = None
    cache_creation: _CacheCreation | None = None
    iterations: list[_Usage] | None = None


class _Message(Struct):
    id: str | None = None
    model: str | None = None
    usage: _Usage | None = None


class _Fork(Struct, rename="camel"):
    session_id: str = ""


class _Record(Struct, rename="camel"):
    type: str = ""
    timestamp: str | None = None
    session_id: str | None = None
    request_id: str | None = None
    uuid: str | None = None
    cwd: str | None = None
    message: Raw = Raw()
    data: Raw = Raw()
    cost_usd: _Number = field(default=None, name="costUSD")
    forked_from: Raw = Raw()


class _Progress(Struct):
    message: _Record | None = None


_record = msgspec.json.Decoder(_Record).decode
_message = msgspec.json.Decoder(_Message).decode
_progress = msgspec.json.Decoder(_Progress).decode
_fork = msgspec.json.Decoder(_Fork).decode


def _written_for_an_hour(usage: _Usage) -> int:
    written, lasting = count(usage.cache_creation_input_tokens), usage.cache_creation
    return min(written, count(lasting.ephemeral_1h_input_tokens)) if lasting else 0


class Reader:
    """Adds the requests of a Claude Code file to `usage`, line by line."""

    def __init__(self, usage: FileUsage) -> None:
        self._usage = usage
        self._places = {request.key: place for place, request in enumerate(usage.requests)}

    def line(self, line: bytes) -> None:
        """Read one line. Raise `msgspec.MsgspecError` if it is damaged."""
        record = _record(line)
        if record.type == "progress":
            inner = _progress(record.data).message if record.data else None
            if inner is None:
                return
            self._add(inner, record)
        elif record.type == "assistant":
            self._add(record, record)

    def _add(self, record: _Record, outer: _Record) -> None:
        """Count the answer in `record`. `outer` is the record of the line, which names session and folder."""
        message = _message(record.message) if record.message else None
        if message is None or message.usage is None or message.model == "<synthetic>":
            return
        usage, reported = self._usage, message.usage
        if not usage.project and outer.cwd:
            usage.project = outer.cwd
        if outer.session_id:
            usage.session_id = outer.session_id
        if outer.forked_from and not usage.parent_id:
            usage.parent_id = _fork(outer.forked_from).session_id
        identity = f"{message.id}:{record.request_id or ''}" if message.id else record.uuid or ""
        # The provider's own compactions are not in the other numbers.
        parts = [reported, *(part for part in reported.iterations or () if part.type == "compaction")]
        request = Request(
            key=key_of(identity) if identity else 0,
            at=seconds(record.timestamp),
            model=usage.model_index("", message.model or ""),
            input=sum(count(part.input_tokens) for part in parts),
            output=sum(count(part.output_tokens) for part in parts),
            cache_write=sum(count(part.cache_creation_input_tokens) for part in parts),
            cache_write_1h=sum(_written_for_an_hour(part) for part in parts),
            cache_read=sum(count(part.cache_read_input_tokens) for part in parts),
            cost=dollars(record.cost_usd),
        )
        place = self._places.get(request.key) if request.key else None
        if place is not None:
            usage.requests[place] = request
            return
        self._places[request.key] = len(usage.requests)
        usage.requests.append(request)
