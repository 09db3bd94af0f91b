"""Read Codex CLI's sessions: one JSON record per line
(`~/.codex/sessions/<y>/<m>/<d>/rollout-<time>-<id>.jsonl`).

The format is defined by openai/codex, `codex-rs/protocol/src/protocol.rs` (`RolloutLine`, `RolloutItem`,
`CompactedItem`, `TokenCountEvent`) and `models.rs` (`ResponseItem`), read 2026-11. A record is `{timestamp,
type, payload}` with type `session_meta`, `turn_context`, `response_item` (what the model sees), `event_msg`
(what the screen shows; only token counts and rollbacks are used) or `compacted`. Files from 2025 before
September contain the items directly, one per line, after a header.

A user item is a prompt unless its parts are fragments that Codex wrote. Codex recognises them by their marks
(`core/src/context/contextual_user_message.rs`, read 2026-11), and so does `_author_of`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from compactd.core.authors.authors import (
    FILE,
    NOTIFICATION,
    REMINDER,
    SKILL,
    SUBAGENT,
    SUMMARY,
    author_of_wrapped,
)
from compactd.core.text.message_text import join_text_blocks
from compactd.formats.files.json_lines import records
from compactd.formats.files.session_file import (
    SessionBuilder,
    SessionFile,
    has_content,
    text_field,
    unix_seconds,
)
from compactd.formats.messages.json_parts import fields, first_byte, json_object, string
from compactd.formats.messages.lenient_json import Given, count_in, object_in, objects_in, text_in
from compactd.formats.messages.openai_responses import read_message
from compactd.protocol.messages import (
    NULL,
    Author,
    Block,
    BlockMeta,
    Message,
    Meta,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)

_ENCRYPTED = "[The summary is encrypted: only OpenAI can read it.]"

_FRAGMENTS: Final[tuple[tuple[str, Author], ...]] = (
    ("<environment_context>", REMINDER),
    ("<permissions instructions>", REMINDER),
    ("<user_instructions>", FILE),
    ("# AGENTS.md instructions for", FILE),
    ("<turn_aborted>", NOTIFICATION),
    ("<subagent_notification>", SUBAGENT),
    ("<skill>", SKILL),
    ("Warning: apply_patch was requested via", REMINDER),
    ("Warning: Your account was flagged", REMINDER),
    ("Warning: The maximum number of unified exec processes", REMINDER),
    ("Another language model started to solve this problem", SUMMARY),
)
"""The beginnings of parts that Codex wrote, and the author of each (openai/codex,
codex-rs/core/src/context/*.rs, read 2026-11). Codex also wrote each part that consists of one tagged block,
whatever its tag. Examples are a shell command of the user with its output (`<user_shell_command>`), a hook's
output, another program's context (`<external_ci>`) and a review's findings.
"""

_AROUND_PROMPTS: Final = (REMINDER, FILE, NOTIFICATION, SUBAGENT, SKILL)
"""Authors of what Codex adds to prompts by itself, without an action of the user."""

_CALLS = ("function_call", "custom_tool_call", "local_shell_call")
_OUTPUTS = ("function_call_output", "custom_tool_call_output", "mcp_tool_call_output")
_SILENT = ("ghost_snapshot", "compaction", "compaction_summary", "context_compaction", "compaction_trigger")
"""The types of items that are ignored. `ghost_snapshot` is a commit of the user's files. The contents of the
others are also in the record `compacted`.
"""


def read(data: bytes) -> SessionFile:
    """Return the session in `data`. A record that cannot be read is skipped with a warning. O(bytes)."""
    reading = CodexReader()
    reading.feed(data)
    reading.end()
    return reading.session.finish()


class _Answer:
    """The model's answer while its parts are read. The answer is encoded only once, after its last part."""

    def __init__(self, message: Message, blocks: Iterable[Block]) -> None:
        self.message = message
        """The message without its content."""
        self.blocks = list(blocks)


class CodexReader:
    """A session that is being read record by record."""

    begun = None
    """See `IncrementalReader`. Each answer is in `session` at once."""

    def __init__(self) -> None:
        self.session = SessionBuilder("codex")
        self._provider = ""
        self._names: dict[str, str] = {}
        self._is_subagents = False
        """Whether the prompts were written by another agent."""
        self._message_id: str | None = None
        """The id of the message that the current record is part of; None if compactd did not
        write the file.
        """
        self._unspoken: list[Block] = []
        """Encrypted reasoning, and calls of OpenAI's own tools. They belong to the item that follows."""
        self._answer: _Answer | None = None
        """The answer whose parts are still being read. `close` adds it to `session`."""
        self._closed_at = -1
        """The position of the answer that was closed last, if more of it may follow; otherwise -1."""
        self._indexed = 0
        """The number of messages that `_places` and `_asked` cover."""
        self._places: dict[str, list[int]] = {}
        """Key of a message (`_keys`) -> the positions of the messages with this key."""
        self._asked: list[int] = []
        """Positions of the prompts."""

    def feed(self, data: bytes) -> None:
        """Read the next complete lines of the file. O(bytes of `data`)."""
        for number, record in records(data, self.session.warn):
            with self.session.skipping("line", number):
                self.record(record)
        self.close()

    def record(self, record: Given) -> None:
        """Read the next record. Raise `CompactdError` if it cannot be read."""
        kind = text_in(record, "type")
        at = unix_seconds(text_field(record, "timestamp"))
        payload = object_in(record, "payload")
        self._message_id = text_field(record, "message_id")
        match kind:
            case "session_meta":
                self._header(payload)
            case "turn_context":
                self.session.working_dir = self.session.working_dir or text_field(payload, "cwd")
                self.session.set_model(text_in(payload, "model"), self._provider)
            case "response_item":
                self._item(record.get("payload", NULL), payload, at)
            case "event_msg":
                self._event(payload)
            case "compacted":
                self._add_compaction(payload, at)
            case "" if "id" in record and "timestamp" in record:
                self._header(record)
            case "" if "record_type" in record:
                pass
            case "world_state" | "token_usage_record":
                pass  # settings and usage that other records have too (0.169.0, 2026-11)
            case _ if kind and "payload" not in record:
                self._item(Raw(msgspec.json.encode(record)), record, None)
            case _:
                self.session.count_skipped(f"record of the unknown type {kind!r}")

    def _header(self, meta: Given) -> None:
        session = self.session
        if session.session_id is None:
            # A fork begins with its own header; the header of the copied session follows.
            session.session_id = text_field(meta, "id")
            session.working_dir = text_field(meta, "cwd")
            self._provider = text_in(meta, "model_provider")
            base = text_field(object_in(meta, "base_instructions"), "text")
            session.system_prompt = base or text_field(meta, "instructions")
            source = object_in(meta, "source")
            if source and "custom" not in source:
                # `{"custom": "…"}` is a person's session in another program (protocol.rs, SessionSource).
                self._is_subagents = True
                session.warn(
                    "this is the session of a sub-agent; the main agent's session is in another file"
                )

    def _event(self, event: Given) -> None:
        match text_in(event, "type"):
            case "token_count":
                info = object_in(event, "info")
                self.session.add_window_evidence("limit", count_in(info, "model_context_window"))
                report = info.get("last_token_usage", NULL)
                if first_byte(report) == b"{":
                    self._report(report)
            case "task_started" | "turn_started":
                self.session.add_window_evidence("limit", count_in(event, "model_context_window"))
            case "thread_rolled_back":
                self._roll_back(count_in(event, "num_turns"))
            case _:
                pass

    def _report(self, usage: Raw) -> None:
        answer = self._answer
        if answer is None:
            self.session.report(usage)
        elif answer.message.usage is None:
            answer.message = replace(answer.message, usage=usage)

    def _roll_back(self, turns: int) -> None:
        if not turns:
            return
        self.close()
        self._index()
        if self._asked:
            start = self._asked[max(0, len(self._asked) - turns)]
            self._forget_from(start)
            self.session.take_back(start, "rollback")
            self._closed_at = -1

    def _index(self) -> None:
        """Add the messages that were closed since the last call to `_places` and `_asked`."""
        messages = self.session.messages
        for at in range(self._indexed, len(messages)):
            message = messages[at][0]
            if message.role == "user" and (message.meta is None or not message.meta.synthetic):
                self._asked.append(at)
            for key in _keys(message.content):
                self._places.setdefault(key, []).append(at)
        self._indexed = len(messages)

    def _forget_from(self, start: int) -> None:
        """Remove the messages from position `start` on from `_places` and `_asked`."""
        for message, _ in self.session.messages[start : self._indexed]:
            for key in _keys(message.content):
                places = self._places[key]
                places.pop()
                if not places:
                    del self._places[key]
        while self._asked and self._asked[-1] >= start:
            self._asked.pop()
        self._indexed = min(self._indexed, start)

    def _item(self, raw: Raw, item: Given, at: float | None) -> None:
        kind = text_in(item, "type")
        if kind == "message":
            self._message(raw, item, at)
        elif kind in _CALLS:
            self._add_text([self._call(kind, item)], at, joins=True)
        elif kind in _OUTPUTS:
            self._flush_reasoning()
            call_id = text_in(item, "call_id")
            content, is_error = _output(item.get("output", item.get("result", NULL)))
            name = self._names.get(call_id)
            result = ToolResult(call_id=call_id, name=name, content=content, is_error=is_error)
            self.close()
            self.session.add("tool", (result,), id=self._message_id, created_at=at)
        elif kind == "reasoning":
            message = read_message(raw, "$.payload")
            told: list[Block] = [block for block in message.content if isinstance(block, Thinking)]
            self._unspoken += [block for block in message.content if not isinstance(block, Thinking)]
            if told:
                self._add_text(told, at)
        elif kind not in _SILENT:
            self._unspoken += read_message(raw, "$.payload").content

    def _message(self, raw: Raw, item: Given, at: float | None) -> None:
        role = text_in(item, "role")
        blocks = read_message(raw, "$.payload").content
        if role == "assistant":
            self._add_text(list(blocks), at, id=text_field(item, "id"))
            return
        this = self._message_id
        self._flush_reasoning()
        self._message_id = this
        meta: Meta | None = None
        if role == "developer":
            meta = Meta(kind="developer", synthetic=True)
        elif role == "user":
            meta, blocks = _with_authors(blocks, SUBAGENT if self._is_subagents else None)
        if has_content(blocks):
            self.close()
        self.session.add(
            "system" if role == "system" else "user",
            blocks,
            id=self._message_id or text_field(item, "id"),
            created_at=at,
            meta=meta,
        )

    def _add_text(
        self, blocks: list[Block], at: float | None, *, id: str | None = None, joins: bool = False
    ) -> None:
        """Add blocks of the model: to its last answer if `joins`, otherwise as a new answer.

        A tool call joins the answer that it came with. If compactd wrote the file, the message id in the
        record decides instead of `joins`.
        """
        unspoken, self._unspoken = self._unspoken, []
        id = self._message_id or id
        last = self._last()
        if last is not None and self._message_id is not None:
            joins = last.id == self._message_id
        if joins and last is not None and last.role == "assistant":
            answer = self._answer or self._reopen()
            answer.blocks += unspoken
            answer.blocks += blocks
            if last.id is None or last.created_at is None:
                answer.message = replace(last, id=last.id or id, created_at=last.created_at or at)
        elif has_content((*unspoken, *blocks)):
            self.close()
            message = Message(role="assistant", content=(), id=id, created_at=at)
            self._answer = _Answer(message, (*unspoken, *blocks))

    def _last(self) -> Message | None:
        """Return the newest message if more blocks may be added to it; otherwise None. If it is the open
        answer, it is returned without its content.
        """
        if self._answer is not None:
            return self._answer.message
        at = len(self.session.messages) - 1
        # After a rollback, the newest message is an older one, which is complete.
        return self.session.messages[at][0] if at >= 0 and at == self._closed_at else None

    def _reopen(self) -> _Answer:
        """Make the last message the open answer again, because more of its blocks follow in the file."""
        message, _ = self.session.messages.pop()
        self._indexed = min(self._indexed, len(self.session.messages))
        self._answer = _Answer(replace(message, content=()), message.content)
        return self._answer

    def close(self) -> None:
        """Add the open answer to `session`. If more of it follows later, it is opened again."""
        answer, self._answer = self._answer, None
        if answer is not None:
            self._closed_at = len(self.session.messages)
            self.session.take(replace(answer.message, content=tuple(answer.blocks)))

    def _flush_reasoning(self) -> None:
        """Add the waiting reasoning, which no answer followed, to the answer before it. If there is no such
        answer, drop the reasoning.
        """
        if self._unspoken:
            if (last := self._last()) is not None and last.role == "assistant":
                self._message_id = None
                self._add_text([], None, joins=True)
            else:
                self.session.count_skipped("reasoning item without an answer")
                self._unspoken = []

    def end(self) -> None:
        """End the session: the whole file was read."""
        self._flush_reasoning()
        self.close()

    def _call(self, kind: str, item: Given) -> ToolCall:
        call_id = text_in(item, "call_id") or text_in(item, "id")
        name = text_in(item, "name") or kind
        field = {"function_call": "arguments", "custom_tool_call": "input"}.get(kind, "action")
        self._names[call_id] = name
        return ToolCall(call_id=call_id, name=name, arguments=item.get(field, Raw(b"{}")))

    def _add_compaction(self, payload: Given, at: float | None) -> None:
        self._flush_reasoning()
        self.close()
        self._index()
        session = self.session
        kept = {_key_of(item) for item in objects_in(payload, "replacement_history")}
        places = sorted({self._places[key][-1] for key in kept if key in self._places})
        tail = len(session.messages)
        while places and places[-1] == tail - 1:
            tail = places.pop()
        place = len(session.messages)
        if tail < place:
            session.first_kept[place] = tail
        if places:
            session.pinned[place] = tuple(places)
        session.summary(text_in(payload, "message") or _ENCRYPTED, created_at=at)


def _with_authors(
    blocks: tuple[Block, ...], otherwise: Author | None
) -> tuple[Meta | None, tuple[Block, ...]]:
    """Return (meta of a user item, its blocks). If a person typed none of its texts, the meta contains the
    author; otherwise each block that a program wrote has its author. `otherwise` is the author of the texts
    that Codex did not write; None for a person.
    """
    authors = [_author_of(block.text) or otherwise for block in blocks if isinstance(block, Text)]
    first = authors[0] if authors else otherwise
    if first is not None and None not in authors:
        return Meta(author=first, synthetic=first in _AROUND_PROMPTS and otherwise is None), blocks
    if first is None and not any(authors):
        return None, blocks
    marked = iter(authors)
    return None, tuple(
        Text(text=block.text, meta=BlockMeta(author=author))
        if isinstance(block, Text) and (author := next(marked)) is not None
        else block
        for block in blocks
    )


def _author_of(text: str) -> Author | None:
    """Return the author of a fragment; None for what a person typed."""
    begin = text[:200].lstrip()
    for form, author in _FRAGMENTS:
        if begin.startswith(form):
            return author
    return author_of_wrapped(text)


def _key_of(item: Given) -> str:
    """Return what identifies an item of the history after a compaction: its text or its call."""
    kind = text_in(item, "type")
    if kind in _CALLS or kind in _OUTPUTS:
        return f"{'call' if kind in _CALLS else 'output'} {text_in(item, 'call_id')}"
    return "\n".join(text_in(part, "text") for part in objects_in(item, "content") if "text" in part)


def _keys(content: tuple[Block, ...]) -> list[str]:
    """Return what identifies a message, in the same form as `_key_of`."""
    keys = [f"call {block.call_id}" for block in content if isinstance(block, ToolCall)]
    keys += [f"output {block.call_id}" for block in content if isinstance(block, ToolResult)]
    text = join_text_blocks(content)
    return [*keys, text] if text else keys


def _output(raw: Raw) -> tuple[str | tuple[Block, ...], bool]:
    """Return (the result of a call, whether the call failed). In the file, a result is text, a list of parts
    or an object; until 2025-11 also a text that contains JSON.
    """
    match first_byte(raw):
        case b'"':
            text = string(raw, "$.payload.output")
            if text.startswith('{"output":'):
                return _unwrap_output(text)
            return text, False
        case b"[":
            item = b'{"type":"function_call_output","call_id":"","output":%b}' % bytes(raw)
            block = read_message(item, "$.payload").content[0]
            return (block.content if isinstance(block, ToolResult) else ""), False
        case b"{":
            given = fields(raw, "$.payload.output", "output")
            is_error = given.get("success") == Raw(b"false") or "Err" in given
            return (text_in(given, "content") or bytes(raw).decode()), is_error
        case _:
            return "", False


def _unwrap_output(text: str) -> tuple[str, bool]:
    """Return the output in a text such as `{"output":"…","metadata":{"exit_code":1}}`."""
    given = json_object(text)
    if given is None or first_byte(given.get("output", NULL)) != b'"':
        return text, False
    return text_in(given, "output"), count_in(object_in(given, "metadata"), "exit_code") != 0
