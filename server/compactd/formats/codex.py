"""Codex CLI's rollouts: one JSON record a line (`~/.codex/sessions/<y>/<m>/<d>/rollout-<time>-<id>.jsonl`).

As openai/codex writes them, `codex-rs/protocol/src/protocol.rs` (`RolloutLine`, `RolloutItem`,
`CompactedItem`, `TokenCountEvent`) and `models.rs` (`ResponseItem`), read 2026-11: `{timestamp, type,
payload}` with type `session_meta`, `turn_context`, `response_item` (what the model sees), `event_msg` (what
the screen shows: only its token counts and rollbacks matter here) and `compacted`. The rollouts of 2025
before September hold the items bare, one a line, after a header.

A user item is a person's prompt unless its parts are fragments that Codex wrote: it tells them by their marks
itself (`core/src/context/contextual_user_message.rs`, read 2026-11), and so does `_author_of`.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw

from compactd.core.authors import (
    FILE,
    NOTIFICATION,
    REMINDER,
    SKILL,
    SUBAGENT,
    SUMMARY,
    author_of_wrapped,
)
from compactd.errors import CompactdError
from compactd.formats.lines import records
from compactd.formats.loose import Given, count_in, object_in, objects_in, text_in
from compactd.formats.openai_responses import read_message
from compactd.formats.parts import NULL, fields, first_byte, string
from compactd.formats.session_file import Collected, SessionFile, text_field, unix_seconds
from compactd.messages import Author, Block, BlockMeta, Meta, Text, Thinking, ToolCall, ToolResult

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
"""How the parts begin that Codex wrote (openai/codex, codex-rs/core/src/context/*.rs, read 2026-11). A part
that is one tagged block is a fragment too, whatever its tag: a shell command that the user ran and its output
(`<user_shell_command>`), a hook's words, another program's context (`<external_ci>`), a review's findings."""

_AROUND_PROMPTS: Final = (REMINDER, FILE, NOTIFICATION, SUBAGENT, SKILL)
"""Authors of what Codex puts around the prompts by itself, without a person doing anything for it."""

_CALLS = ("function_call", "custom_tool_call", "local_shell_call")
_OUTPUTS = ("function_call_output", "custom_tool_call_output", "mcp_tool_call_output")
_SILENT = ("ghost_snapshot", "compaction", "compaction_summary", "context_compaction", "compaction_trigger")
"""Items without words: the first is a commit of the user's files; the others stand in `compacted` too."""
_RECORDS = ("session_meta", "turn_context", "response_item", "event_msg", "compacted")


def read(data: bytes) -> SessionFile:
    """The session in `data`. A record that cannot be read is left out with a warning. Cost: O(bytes)."""
    reading = Reading()
    for number, record in records(data, reading.session.warn):
        try:
            reading.record(record)
        except CompactdError as error:
            reading.session.warn(f"line {number} was left out: {error.message}")
    reading.end()
    return reading.session.finished()


class Reading:
    """A session while its records come in."""

    def __init__(self) -> None:
        self.session = Collected("codex")
        self._provider = ""
        self._names: dict[str, str] = {}
        self._is_subagents = False
        """Whether the prompts are another agent's."""
        self._message_id: str | None = None
        """Which message a record is part of, where our own writer says it."""
        self._unspoken: list[Block] = []
        """Reasoning that only OpenAI can read, and calls of its own tools: part of what comes next."""

    def record(self, record: Given) -> None:
        """Takes in the next one. Raises `CompactdError` where it cannot be read."""
        kind = text_in(record, "type")
        at = unix_seconds(text_field(record, "timestamp"))
        payload = object_in(record, "payload")
        self._message_id = text_field(record, "message_id")
        match kind:
            case "session_meta":
                self._header(payload)
            case "turn_context":
                self.session.working_dir = self.session.working_dir or text_field(payload, "cwd")
                self._model(text_in(payload, "model"))
            case "response_item":
                self._item(record.get("payload", NULL), payload, at)
            case "event_msg":
                self._event(payload)
            case "compacted":
                self._compacted(payload, at)
            case "" if "id" in record and "timestamp" in record:
                self._header(record)
            case "" if "record_type" in record:
                pass
            case _ if kind and "payload" not in record:
                self._item(Raw(_json(record)), record, None)
            case _:
                self.session.pass_over(f"record of the unknown type {kind!r}")

    def _header(self, meta: Given) -> None:
        session = self.session
        if session.session_id is None:
            # A fork begins with its own header; the one that it copied follows.
            session.session_id = text_field(meta, "id")
            session.working_dir = text_field(meta, "cwd")
            self._provider = text_in(meta, "model_provider")
            base = text_field(object_in(meta, "base_instructions"), "text")
            session.system_prompt = base or text_field(meta, "instructions")
            source = object_in(meta, "source")
            if source and "custom" not in source:
                # `{"custom": "…"}` is a person's session in another program (protocol.rs, SessionSource).
                self._is_subagents = True
                session.warn("this is a sub-agent's session; the one it worked for is in another file")

    def _model(self, model: str) -> None:
        if model:
            self.session.model = f"{self._provider}/{model}" if self._provider else model

    def _event(self, event: Given) -> None:
        match text_in(event, "type"):
            case "token_count":
                info = object_in(event, "info")
                report = info.get("last_token_usage", NULL)
                if first_byte(report) == b"{":
                    self.session.report(report)
            case "thread_rolled_back":
                self._roll_back(count_in(event, "num_turns"))
            case _:
                pass

    def _roll_back(self, turns: int) -> None:
        messages = self.session.messages
        asked = [
            at
            for at, (message, _) in enumerate(messages)
            if message.role == "user" and (message.meta is None or not message.meta.synthetic)
        ]
        if turns and asked:
            self.session.take_back(asked[max(0, len(asked) - turns)], "rollback")

    def _item(self, raw: Raw, item: Given, at: float | None) -> None:
        kind = text_in(item, "type")
        if kind == "message":
            self._message(raw, item, at)
        elif kind in _CALLS:
            self._say([self._call(kind, item)], at, joins=True)
        elif kind in _OUTPUTS:
            self._unheard()
            call_id = text_in(item, "call_id")
            content, is_error = _output(item.get("output", item.get("result", NULL)))
            name = self._names.get(call_id)
            result = ToolResult(call_id=call_id, name=name, content=content, is_error=is_error)
            self.session.add("tool", (result,), id=self._message_id, created_at=at)
        elif kind == "reasoning":
            message = read_message(raw, "$.payload")
            told: list[Block] = [block for block in message.content if isinstance(block, Thinking)]
            self._unspoken += [block for block in message.content if not isinstance(block, Thinking)]
            if told:
                self._say(told, at)
        elif kind not in _SILENT:
            self._unspoken += read_message(raw, "$.payload").content

    def _message(self, raw: Raw, item: Given, at: float | None) -> None:
        role = text_in(item, "role")
        blocks = read_message(raw, "$.payload").content
        if role == "assistant":
            self._say(list(blocks), at, id=text_field(item, "id"))
            return
        this = self._message_id
        self._unheard()
        self._message_id = this
        meta: Meta | None = None
        if role == "developer":
            meta = Meta(kind="developer", synthetic=True)
        elif role == "user":
            meta, blocks = _told_apart(blocks, SUBAGENT if self._is_subagents else None)
        self.session.add(
            "system" if role == "system" else "user",
            blocks,
            id=self._message_id or text_field(item, "id"),
            created_at=at,
            meta=meta,
        )

    def _say(
        self, blocks: list[Block], at: float | None, *, id: str | None = None, joins: bool = False
    ) -> None:
        """The model's words; a call joins the answer that it came with."""
        messages, unspoken = self.session.messages, self._unspoken
        self._unspoken = []
        id = self._message_id or id
        last = messages[-1][0] if messages else None
        if last is not None and self._message_id is not None:
            joins = last.id == self._message_id
        if joins and last is not None and last.role == "assistant":
            messages.pop()
            whole = (*last.content, *unspoken, *blocks)
            self.session.add(
                "assistant", whole, id=last.id or id, created_at=last.created_at or at, usage=last.usage
            )
        else:
            self.session.add("assistant", (*unspoken, *blocks), id=id, created_at=at)

    def _unheard(self) -> None:
        """Reasoning that no answer followed belongs to the answer before it, or to none."""
        if self._unspoken:
            if self.session.messages and self.session.messages[-1][0].role == "assistant":
                self._message_id = None
                self._say([], None, joins=True)
            else:
                self.session.pass_over("reasoning item of an answer that never came")
                self._unspoken = []

    def end(self) -> None:
        """The file is read to its end."""
        self._unheard()

    def _call(self, kind: str, item: Given) -> ToolCall:
        call_id = text_in(item, "call_id") or text_in(item, "id")
        name = text_in(item, "name") or kind
        field = {"function_call": "arguments", "custom_tool_call": "input"}.get(kind, "action")
        self._names[call_id] = name
        return ToolCall(call_id=call_id, name=name, arguments=item.get(field, Raw(b"{}")))

    def _compacted(self, payload: Given, at: float | None) -> None:
        self._unheard()
        session = self.session
        known = {
            key: place
            for place, (message, _) in enumerate(session.messages)
            for key in _keys(message.content)
        }
        kept = [_key_of(item) for item in objects_in(payload, "replacement_history")]
        places = sorted({known[key] for key in kept if key in known})
        tail = len(session.messages)
        while places and places[-1] == tail - 1:
            tail = places.pop()
        place = len(session.messages)
        if tail < place:
            session.first_kept[place] = tail
        if places:
            session.pinned[place] = tuple(places)
        session.summary(text_in(payload, "message") or _ENCRYPTED, created_at=at)


def _told_apart(blocks: tuple[Block, ...], otherwise: Author | None) -> tuple[Meta | None, tuple[Block, ...]]:
    """(marks of a user item, its blocks): one author for all of its texts, or one for each."""
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
    """The author of a fragment; none for what a person typed."""
    begin = text[:200].lstrip()
    for form, author in _FRAGMENTS:
        if begin.startswith(form):
            return author
    return author_of_wrapped(text)


def _key_of(item: Given) -> str:
    """What an item of the history after a compaction is known by: its words, or its call."""
    kind = text_in(item, "type")
    if kind in _CALLS or kind in _OUTPUTS:
        return f"{'call' if kind in _CALLS else 'output'} {text_in(item, 'call_id')}"
    return "\n".join(text_in(part, "text") for part in objects_in(item, "content") if "text" in part)


def _keys(content: tuple[Block, ...]) -> list[str]:
    """The same of a message."""
    keys = [f"call {block.call_id}" for block in content if isinstance(block, ToolCall)]
    keys += [f"output {block.call_id}" for block in content if isinstance(block, ToolResult)]
    text = "\n".join(block.text for block in content if isinstance(block, Text))
    return [*keys, text] if text else keys


def _output(raw: Raw) -> tuple[str | tuple[Block, ...], bool]:
    """(what a call gave back, whether it failed): a text, parts, or until 2025-11 JSON in a text."""
    match first_byte(raw):
        case b'"':
            text = string(raw, "$.payload.output")
            if text.startswith('{"output":'):
                return _wrapped(text)
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


def _wrapped(text: str) -> tuple[str, bool]:
    """The output in a text such as `{"output":"…","metadata":{"exit_code":1}}`."""
    try:
        given = fields(text.encode(), "$.payload.output", "output")
    except CompactdError:
        return text, False
    if "output" not in given or first_byte(given["output"]) != b'"':
        return text, False
    return text_in(given, "output"), count_in(object_in(given, "metadata"), "exit_code") != 0


def _json(record: Given) -> bytes:
    return msgspec.json.encode(record)
