"""Read Gemini CLI's chats: `~/.gemini/tmp/<project>/chats/session-<time>-<id>.jsonl`, until 2026 one `.json`.

The format is defined by google-gemini/gemini-cli, `packages/core/src/services/chatRecordingTypes.ts` and
`chatRecordingService.ts`, read 2026-11. A header (`sessionId`, `projectHash`) is followed by records `user`
and `gemini`; the latter contain tool calls, their results, thoughts and tokens. A record with a known id
replaces the earlier one. `$set` changes the header, or all messages after a compression. `$rewindTo` takes
back everything from a record on. A compression's summary is a user record with `<state_snapshot>`
(`chatCompressionService.ts`).

A user record is a prompt and what Gemini CLI added to it. The contents of what the prompt refers to with `@`
follow it, after `--- Content from referenced files ---` (`packages/cli/src/ui/hooks/atCommandProcessor.ts`).
Output of hooks and notes are separate parts. If the program sent something other than what was typed,
`displayContent` contains what was typed (`packages/core/src/core/geminiChat.ts`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Raw

from compactd.core.authors.authors import FILE, REMINDER, SUBAGENT, UNKNOWN, author_of_wrapped
from compactd.core.text.lazy_patterns import LazyPattern
from compactd.core.text.message_text import join_text_blocks
from compactd.formats.files.json_lines import Warn, records, repair_surrogates, utf8
from compactd.formats.files.session_file import SessionBuilder, SessionFile, text_field, unix_seconds
from compactd.formats.messages.gemini import read_message
from compactd.formats.messages.json_parts import first_byte, json_object, string
from compactd.formats.messages.lenient_json import (
    Given,
    count_in,
    is_list,
    is_text,
    object_in,
    objects_in,
    read_usage,
    text_in,
    texts_in,
)
from compactd.protocol.errors import CompactdError
from compactd.protocol.messages import NULL, Author, Block, BlockMeta, Text, Thinking, ToolCall, ToolResult

SNAPSHOT = "<state_snapshot>"
_SHOWN = ("info", "error", "warning")
"""Records that were shown on the screen and never sent to a model."""
_REFERENCED: Final = ("--- Content from referenced files ---", "Content from @")
"""The beginnings of the first part that contains a file's text. Nobody typed this part or any later part."""
_CONTINUE_PROMPTS: Final = ("Please continue.", "System: Please continue.")
"""Prompts that Gemini CLI itself sends to the model."""
_REFERENCE: Final = LazyPattern(r"@\S+")


def read(data: bytes) -> SessionFile:
    """Return the session in `data`. A record that cannot be read is skipped with a warning. O(bytes)."""
    session = SessionBuilder("gemini-cli")
    log = _Log()
    for record in _records(data, session.warn):
        log.take(record)
    session.session_id = text_field(log.about, "sessionId")
    session.title = text_field(log.about, "summary")
    session.working_dir = next(iter(texts_in(log.about, "directories")), None)
    if text_in(log.about, "kind") == "subagent":
        session.warn("this is the session of a sub-agent; the main agent's session is in another file")
    if log.taken_back:
        session.warn(f"{log.taken_back} messages were taken back by a rewind")
    starts: dict[str, int] = {}
    reader = _Reader(session, is_subagents=text_in(log.about, "kind") == "subagent")
    for record_id in log.order:
        starts[record_id] = len(session.messages)
        kept = starts.get(log.first_kept.get(record_id, ""))
        if kept is not None:
            session.first_kept[len(session.messages)] = kept
        try:
            reader.record(log.records[record_id], record_id)
        except CompactdError as error:
            session.warn(f"message {record_id} was left out: {error.message}")
    return session.finish()


def _records(data: bytes, warn: Warn) -> list[Given]:
    """Return the records of a file, the header first. The file is one JSON document or has one record per
    line.
    """
    text = utf8(data.removeprefix(b"\xef\xbb\xbf").strip(), "the file", warn)
    for attempt in (text, repair_surrogates(text)):
        try:
            about = msgspec.json.decode(attempt, type=dict[str, Raw])
        except (msgspec.DecodeError, RecursionError):
            continue
        if "messages" in about:
            messages = objects_in(about, "messages")
            return [{name: raw for name, raw in about.items() if name != "messages"}, *messages]
    return [record for _, record in records(data, warn)]


class _Log:
    """The records that are valid at the end of the file, after all replacements and rewinds in it."""

    def __init__(self) -> None:
        self.about: Given = {}
        self.records: dict[str, Given] = {}
        self.order: list[str] = []
        self.first_kept: dict[str, str] = {}
        """Summary id -> the first record before it that stayed in the context."""
        self.taken_back = 0
        self._on_path: set[str] = set()

    def take(self, record: Given) -> None:
        if "$rewindTo" in record:
            at = text_in(record, "$rewindTo")
            start = self.order.index(at) if at in self.order else 0
            self.taken_back += len(self.order) - start
            self._on_path.difference_update(self.order[start:])
            del self.order[start:]
        elif "$set" in record:
            changed = object_in(record, "$set")
            self.about.update((name, raw) for name, raw in changed.items() if name != "messages")
            if is_list(changed.get("messages", NULL)):
                self._replace_all(objects_in(changed, "messages"))
        elif is_text(record.get("id", NULL)):
            self._put(record)
        else:
            self.about.update(record)

    def _put(self, record: Given) -> None:
        record_id = text_in(record, "id")
        if record_id not in self._on_path:
            self._on_path.add(record_id)
            self.order.append(record_id)
        self.records[record_id] = record

    def _replace_all(self, messages: list[Given]) -> None:
        """Replace all messages by the new list `messages`. If the list contains a new summary, a compression
        made it; then the older messages stay before it as history.
        """
        ids = [text_in(message, "id") for message in messages]
        new = [message for message in messages if text_in(message, "id") not in self.records]
        summaries = (one for one in new if SNAPSHOT in join_text_blocks(_blocks(one, "user")))
        snapshot = next((text_in(message, "id") for message in summaries), None)
        if snapshot is not None:
            # Gemini CLI 0.61 puts `<session_context>` at the beginning of every context, before the snapshot.
            after = ids[ids.index(snapshot) + 1 :]
            kept = next((i for i in after if i in self.records), None)
            if kept is not None:
                self.first_kept[snapshot] = kept
            for message in new:
                self._put(message)
            return
        for message in new:
            self.records[text_in(message, "id")] = message
        self.order = [i for i in ids if i]
        self._on_path = set(self.order)


class _Reader:
    def __init__(self, session: SessionBuilder, *, is_subagents: bool = False) -> None:
        self._session = session
        self._is_subagents = is_subagents
        """Whether the prompts were written by another agent."""
        self._answered: set[str] = set()

    def record(self, record: Given, record_id: str) -> None:
        at = unix_seconds(text_field(record, "timestamp"))
        match text_in(record, "type"):
            case "user":
                self._user(record, record_id, at)
            case "gemini":
                self._answer(record, record_id, at)
            case kind if kind not in _SHOWN:
                self._session.count_skipped(f"record of the unknown type {kind!r}")

    def _user(self, record: Given, record_id: str, at: float | None) -> None:
        blocks = _blocks(record, "user")
        text = join_text_blocks(blocks)
        if text.lstrip().startswith(SNAPSHOT):
            summary = text.strip().removeprefix(SNAPSHOT).removesuffix("</state_snapshot>").strip("\n")
            self._session.summary(summary, id=record_id, created_at=at)
            return
        results = [block for block in blocks if isinstance(block, ToolResult)]
        for block in results:
            self._result(block, None, at)
        # Other blocks next to a function's result came with it: Gemini CLI sends a user's text alone.
        rest = [block for block in blocks if not isinstance(block, ToolResult)]
        shown = join_text_blocks(_blocks({"content": record.get("displayContent", NULL)}, "user"))
        self._session.add("user", self._with_authors(rest, shown), id=record_id, created_at=at)

    def _with_authors(self, blocks: Sequence[Block], shown: str) -> list[Block]:
        """Return the blocks of a user record, with the author of each text that no person typed.

        `shown`: what was typed, if the record contains it.
        """
        told: list[Block] = []
        is_referenced = False
        for block in blocks:
            if isinstance(block, Text):
                is_referenced = is_referenced or block.text.lstrip().startswith(_REFERENCED)
                given = None if block.meta is None else block.meta.author
                author = given or (FILE if is_referenced else _author_of(block.text, shown))
                if author is None and self._is_subagents:
                    author = SUBAGENT
                if author is not None:
                    told.append(Text(text=block.text, meta=BlockMeta(author=author)))
                    continue
            told.append(block)
        return told

    def _answer(self, record: Given, record_id: str, at: float | None) -> None:
        model = text_in(record, "model")
        self._session.set_model(model, "google" if model.startswith(("gemini", "gemma")) else "")
        blocks: list[Block] = [Thinking(text=_thought(one)) for one in objects_in(record, "thoughts")]
        calls = objects_in(record, "toolCalls")
        ids = {text_in(call, "id") for call in calls}
        self._answered -= ids  # An id may be reused for another call.
        blocks += [
            block
            for block in _blocks(record, "model")
            if not (isinstance(block, ToolCall) and block.call_id in ids)
        ]
        blocks += [
            ToolCall(
                call_id=text_in(call, "id"),
                name=text_in(call, "name"),
                arguments=call.get("args", Raw(b"{}")),
            )
            for call in calls
        ]
        usage = _usage(object_in(record, "tokens"))
        self._session.add("assistant", blocks, id=record_id, created_at=at, usage=usage)
        for call in calls:
            done = unix_seconds(text_field(call, "timestamp")) or at
            for block in _results(call):
                self._result(block, text_in(call, "id"), done)

    def _result(self, block: ToolResult, call_id: str | None, at: float | None) -> None:
        named = call_id or block.call_id
        if named in self._answered:
            return
        self._answered.add(named)
        whole = msgspec.structs.replace(block, call_id=named)
        self._session.add("tool", (whole,), created_at=at)


def _author_of(text: str, shown: str) -> Author | None:
    """Return the author of the part `text`; None if it contains what the user typed. `authors.spans` finds
    what Gemini CLI added inside such a part. `shown` is what was typed; empty if the record does not say so.
    """
    if text.strip() in _CONTINUE_PROMPTS:
        return REMINDER
    wrapped = author_of_wrapped(text)
    if wrapped is not None or not shown.strip():
        return wrapped
    is_shown = text.startswith(shown) or _without_paths(text) == _without_paths(shown)
    return None if is_shown else UNKNOWN


def _without_paths(text: str) -> list[str]:
    """Return the words of a prompt without its `@` paths, which may be spelled differently in
    `displayContent`.
    """
    return _REFERENCE.sub("@", text).split()


def _blocks(record: Given, role: str) -> list[Block]:
    """Return a record's content, which may be a string, a part, or a list of both."""
    raw = record.get("content", NULL)
    match first_byte(raw):
        case b'"':
            text = string(raw, "$.content")
            return [Text(text=text)] if text else []
        case b"{":
            parts = [raw]
        case b"[":
            parts = list(msgspec.json.decode(raw, type=list[Raw]))
        case _:
            return []
    whole = [part if not is_text(part) else Raw(b'{"text":%b}' % bytes(part)) for part in parts]
    message = read_message(msgspec.json.encode({"role": role, "parts": whole}), "$.content")
    return list(message.content)


def _thought(thought: Given) -> str:
    return "\n".join(text for text in (text_in(thought, "subject"), text_in(thought, "description")) if text)


def _results(call: Given) -> list[ToolResult]:
    """Return a list with the result of a call, or an empty list if the call has none. A response that has
    only `output` or `error` becomes that text; any other response is kept as JSON.
    """
    is_error = text_in(call, "status") in ("error", "cancelled")
    raw = call.get("result", NULL)
    if is_text(raw):
        text = string(raw, "$.result")
        return [ToolResult(call_id="", name=text_in(call, "name"), content=text, is_error=is_error)]
    blocks = _blocks({"content": raw}, "user")
    found = [block for block in blocks if isinstance(block, ToolResult)][:1]
    beside = [block for block in blocks if not isinstance(block, ToolResult)]
    if not found and beside:
        found = [ToolResult(call_id="", name=text_in(call, "name"))]
    return [
        ToolResult(
            call_id="",
            name=text_in(call, "name"),
            content=_content(one, beside),
            is_error=is_error or one.is_error,
        )
        for one in found
    ]


def _content(result: ToolResult, beside: Sequence[Block]) -> str | tuple[Block, ...]:
    inner = result.content if isinstance(result.content, tuple) else (Text(text=result.content),)
    blocks = [_unwrap(block) for block in inner] + list(beside)
    if len(blocks) == 1 and isinstance(blocks[0], Text):
        return blocks[0].text
    return tuple(block for block in blocks if not isinstance(block, Text) or block.text)


def _unwrap(block: Block) -> Block:
    """Return a text such as `{"output": "…"}` or `{"error": "…"}` as the text inside it. Return any other
    block unchanged."""
    given = json_object(block.text) if isinstance(block, Text) and block.text.startswith("{") else None
    for name in ("output", "error"):
        if given is not None and given.keys() == {name} and is_text(given[name]):
            return Text(text=text_in(given, name))
    return block


def _usage(tokens: Given) -> Raw | None:
    """Convert Gemini CLI's token counts to a usage report; None if there are none. In these counts, `input`
    includes the cache, and `output` does not include the thoughts (`TokensSummary`).
    """
    read, thoughts = count_in(tokens, "cached"), count_in(tokens, "thoughts")
    fresh = max(0, count_in(tokens, "input") + count_in(tokens, "tool") - read)
    return read_usage(fresh, count_in(tokens, "output") + thoughts, read=read, reasoning=thoughts)
