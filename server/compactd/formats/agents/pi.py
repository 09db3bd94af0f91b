"""Read session files of the pi coding agent: one JSON entry per line.

The format is described in pi's session documentation and seen in files of 2025-11 and 2025-12: a `session`
header, `message` entries of role user, assistant, toolResult or bashExecution, `compaction` entries with a
summary, `model_change`. Newer files link their entries by `parentId`; the conversation is then the path to
the last entry.

A message of role user is what was typed, with `<file>` and `<skill>` blocks before it, which `core/authors`
recognises (badlogic/pi-mono, `packages/coding-agent/src`: `cli/file-processor.ts`, `core/agent-session.ts`,
2026-11). What extensions add comes as a `custom_message` or with the role `custom`.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from compactd.core.authors.authors import HOOK, SUMMARY
from compactd.formats.files.json_lines import records
from compactd.formats.files.session_file import (
    FileRequest,
    SessionBuilder,
    SessionFile,
    branch_to,
    is_true,
    plain_content,
    text_field,
    unix_seconds,
)
from compactd.formats.messages.json_parts import elements, fields, first_byte, string
from compactd.formats.messages.lenient_json import cost_in, object_in, summary_meta, text_in
from compactd.formats.messages.neutral import keep_block
from compactd.protocol.errors import CompactdError
from compactd.protocol.messages import NULL, Block, Image, Meta, Text, Thinking, ToolCall, ToolResult

_Record = dict[str, Raw]

_INDEX_DIGITS = 9
"""The most digits of `firstKeptEntryIndex`. A longer number is ignored."""

_USAGE = (
    ("input", "input_tokens"),
    ("output", "output_tokens"),
    ("cacheRead", "cache_read_tokens"),
    ("cacheWrite", "cache_write_tokens"),
)


def read(data: bytes) -> SessionFile:
    """Return the session in `data`. An entry that cannot be read is skipped with a warning. O(bytes)."""
    reading = PiReader()
    entries = list(records(data, reading.session.warn))
    _read_requests(reading.session, entries)
    for number, record in _path(entries):
        with reading.session.skipping("line", number):
            reading.record(record, number)
    return reading.session.finish()


class BranchChanged(Exception):
    """A new line does not continue the entry before it, so the whole file must be read again."""


class PiReader:
    """A session that is being read entry by entry, along its path."""

    begun = None
    """See `IncrementalReader`. Each answer is in `session` at once."""

    def __init__(self) -> None:
        self.session = SessionBuilder("pi")
        self._starts: dict[str | int | None, int] = {}
        self._last: str | None = None
        """The id of the newest entry that `feed` read."""
        self._count = 0
        """The number of lines that `feed` read."""

    def feed(self, data: bytes) -> None:
        """Read the next complete lines of the file. O(bytes of `data`). Raise `BranchChanged` if an entry
        does not continue the one before it.
        """
        for number, record in records(data, self.session.warn):
            parent = text_field(record, "parentId")
            if parent is not None and self._last is not None and parent != self._last:
                raise BranchChanged
            with self.session.skipping("line", self._count + number):
                self.record(record, self._count + number)
            if "parentId" in record:
                self._last = text_field(record, "id")
        self._count += data.count(b"\n")

    def record(self, record: _Record, number: int) -> None:
        """Read the next entry, from line `number`. Raise `CompactdError` if it cannot be read."""
        session, starts = self.session, self._starts
        starts[number] = starts[text_field(record, "id")] = len(session.messages)
        kept = _first_kept(record, starts)
        if kept is not None:
            session.first_kept[len(session.messages)] = kept
        place = len(session.messages)
        _entry(session, record)
        request = session.requests.get(str(number))
        if request is not None:
            added = len(session.messages) > place and session.messages[place][0].usage is not None
            session.requests[str(number)] = replace(request, place=place, is_answer=added)


def _read_requests(session: SessionBuilder, entries: list[tuple[int, _Record]]) -> None:
    """Read all usage reports, also those of answers that are aborted, failed, or on a branch that was left.
    They were billed. A branch can repeat a request of another one. O(entries)."""
    seen: set[tuple[bytes, str, bytes]] = set()
    for number, record in entries:
        try:
            message = object_in(record, "message") if text_field(record, "type") == "message" else {}
            if text_field(message, "role") != "assistant":
                continue
            usage = _usage(message.get("usage", NULL))
            cost = cost_in(object_in(object_in(message, "usage"), "cost"), "total")
        except CompactdError:
            continue  # if the conversation needs it, reading it again adds a warning
        provider, model = text_in(message, "provider"), text_in(message, "model")
        began = bytes(message.get("timestamp", record.get("timestamp", NULL)))
        identity = (began, model, b"" if usage is None else bytes(usage))
        if usage is None or identity in seen:
            continue
        seen.add(identity)
        session.requests[str(number)] = FileRequest(
            usage=usage,
            model=f"{provider}/{model}" if provider and model else model,
            at=unix_seconds(text_field(record, "timestamp")),
            cost=cost,
        )


def _first_kept(record: _Record, starts: dict[str | int | None, int]) -> int | None:
    """Return the position of the first message that a compaction kept. The record names it by its id, before
    2026 by the index of its line. `starts`: position by id and by line number.
    """
    index = bytes(record.get("firstKeptEntryIndex", NULL))
    if index.isdigit() and len(index) <= _INDEX_DIGITS:
        return starts.get(int(index) + 1)
    kept = text_field(record, "firstKeptEntryId")
    return None if kept is None else starts.get(kept)


def _path(entries: list[tuple[int, _Record]]) -> list[tuple[int, _Record]]:
    """Return the branch that ends at the last entry, from its root to that entry, by following `parentId`. If
    no entry has a `parentId`, return all entries. Each has its line number."""
    by_id = {text_in(record, "id"): (number, record) for number, record in entries if "parentId" in record}
    if not by_id:
        return entries
    parents = {id: text_field(record, "parentId") for id, (_, record) in by_id.items()}
    headers = [(number, record) for number, record in entries if text_field(record, "type") == "session"]
    return headers + [by_id[id] for id in branch_to(text_in(entries[-1][1], "id"), parents)]


def _entry(session: SessionBuilder, record: _Record) -> None:
    created_at = unix_seconds(text_field(record, "timestamp"))
    entry_id = text_field(record, "id")
    match text_field(record, "type"):
        case "session":
            session.session_id = entry_id
            session.working_dir = text_field(record, "cwd")
            session.set_model(text_in(record, "modelId"), text_in(record, "provider"))
        case "model_change":
            session.set_model(text_in(record, "modelId"), text_in(record, "provider"))
        case "session_info":
            session.title = text_field(record, "name") or session.title
        case "compaction":
            session.compactions += 1
            meta = summary_meta(object_in(record, "details"), "readFiles", "modifiedFiles")
            _summary(session, record, entry_id, created_at, meta)
        case "branch_summary":
            _summary(session, record, entry_id, created_at, Meta(author=SUMMARY, synthetic=True))
        case "custom_message":
            blocks = _blocks(record.get("content", NULL), "$.content")
            meta = Meta(author=HOOK, synthetic=True)
            session.add("user", blocks, id=entry_id, created_at=created_at, meta=meta)
        case "message":
            message = fields(record.get("message", NULL), "$.message", "message")
            _message(session, message, entry_id, created_at)
        case _:
            pass


def _summary(
    session: SessionBuilder, record: _Record, entry_id: str | None, created_at: float | None, meta: Meta
) -> None:
    summary = Text(text=text_field(record, "summary") or "")
    session.add("user", (summary,), id=entry_id, created_at=created_at, meta=meta)


def _message(
    session: SessionBuilder, message: _Record, entry_id: str | None, created_at: float | None
) -> None:
    content = message.get("content", NULL)
    match text_field(message, "role"):
        case "user":
            session.add("user", _blocks(content, "$.message.content"), id=entry_id, created_at=created_at)
        case "assistant":
            is_anthropic = text_field(message, "api") == "anthropic-messages"
            stop_reason = text_field(message, "stopReason")
            session.add(
                "assistant",
                _blocks(content, "$.message.content", is_anthropic),
                id=entry_id,
                created_at=created_at,
                # The usage of an aborted or failed answer says nothing of the context's size.
                usage=None if stop_reason in ("aborted", "error") else _usage(message.get("usage", NULL)),
                stop_reason=stop_reason,
            )
        case "toolResult":
            result = ToolResult(
                call_id=text_field(message, "toolCallId") or "",
                content=plain_content(_blocks(content, "$.message.content")) or "",
                name=text_field(message, "toolName"),
                is_error=is_true(message, "isError"),
            )
            session.add("tool", (result,), id=entry_id, created_at=created_at)
        case "bashExecution":
            text = f"$ {text_field(message, 'command') or ''}\n{text_field(message, 'output') or ''}"
            meta = Meta(kind="bash_execution")
            session.add("user", (Text(text=text),), id=entry_id, created_at=created_at, meta=meta)
        case "custom":
            blocks = _blocks(content, "$.message.content")
            meta = Meta(author=HOOK, synthetic=True)
            session.add("user", blocks, id=entry_id, created_at=created_at, meta=meta)
        case _:
            pass


def _blocks(content: Raw, path: str, is_anthropic: bool = False) -> tuple[Block, ...]:
    match first_byte(content):
        case b'"':
            return (Text(text=string(content, path)),)
        case b"[":
            return tuple(
                _block(raw, f"{path}[{at}]", is_anthropic) for at, raw in enumerate(elements(content, path))
            )
        case _:
            return ()


def _block(raw: Raw, path: str, is_anthropic: bool) -> Block:
    given = fields(raw, path, "a block")
    tag = text_field(given, "type") or "block"
    match tag:
        case "text":
            return Text(text=text_field(given, "text") or "")
        case "thinking":
            # For other APIs, pi stores the provider's own record as signature, which no other provider can
            # use.
            signature = text_field(given, "thinkingSignature") if is_anthropic else None
            return Thinking(text=text_field(given, "thinking") or "", signature=signature or None)
        case "toolCall":
            return ToolCall(
                call_id=text_field(given, "id") or "",
                name=text_field(given, "name") or "",
                arguments=given.get("arguments", Raw(b"{}")),
            )
        case "image":
            media_type = text_field(given, "mimeType") or "image/png"
            return Image(media_type=media_type, data=text_field(given, "data"))
        case _:
            return keep_block(tag, raw, "pi")


def _usage(raw: Raw) -> Raw | None:
    """Convert pi's usage report to compactd's. In both, the input tokens do not include the cache."""
    if first_byte(raw) != b"{":
        return None
    given = fields(raw, "$.message.usage", "usage")
    counts = (given.get(name, NULL) for name in ("input", "output", "cacheRead", "cacheWrite"))
    if all(bytes(count) in (b"0", b"null") for count in counts):
        return None  # pi requires the field, so an answer without a report has zeros.
    return Raw(msgspec.json.encode({ours: given[name] for name, ours in _USAGE if name in given}))
