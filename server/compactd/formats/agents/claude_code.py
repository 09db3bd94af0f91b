"""Read Claude Code's session files: one JSON record per line (`~/.claude/projects/<folder>/<session
id>.jsonl`).

The format was seen in files of versions 1.0 to 2.1 (2025-09 to 2026-02). A model's answer is written block by
block, as records that share the answer's `message.id`. Tool results are in user records. `isSidechain` marks
the messages of sub-agents, which are not part of this conversation. After a compaction, a user record with
`isCompactSummary` follows. A message that was typed while Claude Code worked has no user record: records of
its queue and an attachment contain it (`claude_code_queue`). Other record types (progress, snapshots, hooks)
contain no messages.

Most user records were not written by a person; `author_of_row` returns who wrote one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Raw, Struct
from msgspec.structs import replace

from compactd.core.authors.authors import (
    FILE,
    HOOK,
    NOTIFICATION,
    REMINDER,
    SKILL,
    SUBAGENT,
    SUMMARY,
    TOOL,
    UNKNOWN,
)
from compactd.core.text.lazy_patterns import LazyPattern
from compactd.formats.agents.claude_code_queue import Between, Delivered, Queue
from compactd.formats.files.json_lines import records
from compactd.formats.files.session_file import (
    FileRequest,
    SessionBuilder,
    SessionFile,
    is_true,
    message_id,
    text_field,
    unix_seconds,
)
from compactd.formats.messages.anthropic import read_content
from compactd.formats.messages.json_parts import fields
from compactd.formats.messages.lenient_json import count_in, object_in, text_in, texts_in
from compactd.protocol.messages import (
    NULL,
    Author,
    Block,
    BlockMeta,
    Message,
    Meta,
    Text,
    ToolCall,
    ToolResult,
)

_TYPED_SOURCES: Final = ("typed", "queued", "suggestion_accepted", "sdk")
"""`promptSource` of a prompt that counts as typed: entered, entered while the agent was busy, a suggestion
that the user sent, or sent by the program that runs Claude Code for the user (`claude -p`, the SDK). Other
sources, such as `system`, are the program itself (2.1.197, 2.1.240, 2.1.330; seen 2026-11).
"""

_BY_ORIGIN: Final[dict[str, Author]] = {
    "task-notification": NOTIFICATION,
    "peer": SUBAGENT,
    "coordinator": SUBAGENT,
    "auto-continuation": REMINDER,
}
"""`origin.kind` of a record that no person typed -> its author. Every other kind except `human` has an
unknown author: `channel` is a message of a chat server, `observer` and `unclassified` do not say who wrote
the text, and newer versions may add kinds.
"""

_NAMES_SOURCE_FROM: Final = (2, 1, 197)
"""From this version at the latest, each prompt's record has a `promptSource` (35 of 35 prompts of 2.1.197 to
2.1.330, 2026-11). A record without `promptSource` is no prompt; for example, a plugin added it.
"""

_USUAL_WINDOWS: Final[Mapping[str, int]] = dict.fromkeys(
    (
        *("claude-opus-4-6", "claude-opus-4-5", "claude-haiku-4-5"),
        *("claude-sonnet-4-6", "claude-sonnet-4-5", "claude-sonnet-4"),
    ),
    200_000,
)
"""The window with which Claude Code runs a model unless the user chooses the model with `[1m]`, which the
file does not show (2.1.197, 2.1.240 and 2.1.330, `contextWindow` of `claude -p`, run 2026-11). The windows of
newer models differ between versions.
"""
_DATE: Final = LazyPattern(r"-20\d{6}$")
"""A pattern for the date at the end of a model's name."""

_EMBEDDED: Final = ("sdk-", "claude-vscode", "claude-desktop")
"""The beginnings of `entrypoint` if a program runs Claude Code for the user. What that program sends in the
middle of a turn has no `origin`; every other message in the middle of a turn has an `origin` (2.1.197,
2.1.330, run 2026-11).
"""

_ATTACHES_FROM: Final = (2, 1, 110)
"""From this version at the latest, an attachment contains what was typed in the middle of a turn (run
2026-11).
"""

SIDE_CHAIN: Final = "sub-agent"
"""What a sub-agent is called whose records do not say which one it is."""

_DELIVERED_REASONS: Final = (None, "absorbed_mid_turn")
"""Reasons of a `remove` record that say that the model got the message. With other reasons, the message was
dropped or given to a sub-agent (`cleared_on_cancel`, `dropped_by_hook`, `delivered_to_agent` and more;
2.1.330, names seen 2026-11).
"""

_FORMS: Final[tuple[tuple[str, Author], ...]] = (
    ("<bash-", TOOL),
    ("<local-command-caveat", REMINDER),
    ("<local-command", TOOL),
    ("<command-", TOOL),
    ("<system-reminder", REMINDER),
    ("<task-notification", NOTIFICATION),
    ("<scheduled-task", NOTIFICATION),
    ("<<autonomous-loop", NOTIFICATION),
    ("<channel ", UNKNOWN),
    ("[SYSTEM NOTIFICATION", NOTIFICATION),
    ("[Request interrupted", NOTIFICATION),
    ("<teammate-message", SUBAGENT),
    ("<cross-session-message", SUBAGENT),
    ("Another Claude session sent", SUBAGENT),
    ("Base directory for this skill:", SKILL),
    ("Caveat: The messages below", REMINDER),
    ("This session is being continued from a previous conversation", SUMMARY),
)
"""The beginnings of records that a program wrote completely, and the author of each (1.0 to 2.1.330, seen
2026-11). Text after the closing tag of such a beginning is the program's too.
"""

MAX_ERROR: Final = 4_096
"""How many characters of the note about a failed request are read."""

_HOOK: Final = LazyPattern(
    r"\w+(?:\[[^\]\n]*\])? hook (?:feedback|additional context|blocking error|stopped)\b"
)
_ARGUMENTS: Final = LazyPattern(r"<command-(?:name|message)>.*<command-args>\s*[^\s<]", re.DOTALL)
_SDK: Final = Raw(b'"sdk"')
_IDE: Final = LazyPattern(r"\s*<(ide_[a-z_]+)>.*</\1>\s*", re.DOTALL)
"""A pattern for a block that an editor's extension put before the prompt in the same record."""


def author_of_row(row: dict[str, Raw], text: str, *, after_result: bool = False) -> Author | None:
    """Return the author of a record of type `user` whose text begins with `text`; None for a person.

    None means that the record is a prompt; `authors.spans` finds what a program put *inside* the prompt. Do
    not call this for a record with tool results. `after_result` says whether the record directly follows a
    tool result; then the model ran a slash command in it, not the user. O(1); O(characters) for a slash
    command.
    """
    if is_true(row, "isCompactSummary"):
        return SUMMARY
    named = row.get("origin", NULL) != NULL
    if named and (kind := text_in(object_in(row, "origin"), "kind")) != "human":
        return _BY_ORIGIN.get(kind, UNKNOWN)
    by_form = _author_of_form(text)
    if is_true(row, "isMeta"):
        return by_form or UNKNOWN
    if "sourceToolUseID" in row:
        return by_form or SKILL
    if "scheduledTaskId" in row:
        return by_form or NOTIFICATION
    if by_form is not None:
        is_typed = by_form == TOOL and not after_result and _ARGUMENTS.match(text.lstrip()) is not None
        return None if is_typed else by_form
    if "promptSource" in row:
        return None if text_field(row, "promptSource") in _TYPED_SOURCES else UNKNOWN
    return None if named or _version_of(row) < _NAMES_SOURCE_FROM else UNKNOWN


def _author_of_attachment(row: dict[str, Raw], attachment: dict[str, Raw], text: str) -> Author | None:
    """Return who wrote a message in an attachment `queued_command`; None for a person. O(1)."""
    mode = text_in(attachment, "commandMode")
    named: dict[str, Raw] = {name: attachment[name] for name in ("origin", "isMeta") if name in attachment}
    if mode == "task-notification" and "origin" not in named:
        return _author_of_form(text) or NOTIFICATION
    if mode not in ("", "prompt", "task-notification"):
        return _author_of_form(text) or UNKNOWN
    if text_in(row, "entrypoint").startswith(_EMBEDDED):
        named["promptSource"] = _SDK
    if "version" in row:
        named["version"] = row["version"]
    return author_of_row(named, text, after_result=True)


def is_by_program(text: str) -> bool:
    """Return whether a program wrote the whole message that begins with `text`, by its form. O(1)."""
    return _author_of_form(text) is not None


def _author_of_form(text: str) -> Author | None:
    begin = text[:200].lstrip()
    for form, author in _FORMS:
        if begin.startswith(form):
            return author
    return HOOK if _HOOK.match(begin) is not None else None


def _version_of(row: dict[str, Raw]) -> tuple[int, ...]:
    return _numbers(text_field(row, "version") or "")


def _numbers(version: str) -> tuple[int, ...]:
    parts = version.split(".")[:3]
    return tuple(int(part) if part.isdecimal() and len(part) < 9 else 0 for part in parts)


class _Answer(Struct, kw_only=True):
    """A model's answer whose blocks are still being read."""

    answer_id: str | None
    uuid: str | None
    created_at: float | None
    blocks: list[Block]
    usage: Raw | None = None
    stop_reason: str | None = None
    request: str = ""
    """What identifies the request; empty if nothing does."""


def _identity(record: dict[str, Raw], answer_id: str | None) -> str:
    """Return what identifies the request of an answer; empty if nothing does."""
    if answer_id:
        return f"{answer_id}:{text_field(record, 'requestId') or ''}"
    return text_field(record, "uuid") or ""


def read(data: bytes) -> SessionFile:
    """Return the session in `data`. A record that cannot be read is skipped with a warning. O(bytes)."""
    reading = ClaudeCodeReader(reads_requests=True)
    reading.feed(data)
    reading.close()
    return reading.session.finish()


def read_piece(data: bytes, between: Between | None, *, is_last: bool) -> tuple[SessionFile, Between]:
    """Read a piece of a file. Return (the session in this piece, what reading the next piece needs).
    O(bytes).

    `between` is what reading the previous piece returned. `is_last` says whether the turn is over. Then a
    message whose position is not certain yet is put at the end.
    """
    reading = ClaudeCodeReader(between)
    reading.feed(data)
    reading.end_answer()
    between = reading.between(is_last=is_last)
    return reading.session.finish(), between


class _RewrittenContext(Struct):
    """A compaction that a plugin made or changed (2.1.330, run 2026-11). The record of the boundary is
    followed by the summary, which is not marked as one if the plugin wrote it. Then the messages that stay
    are written once more: with new ids, and with their old times.
    """

    boundary: str = ""
    """The id of the boundary's record, until the next message has been read."""
    at: float = 0.0
    """The time of the boundary."""
    place: int | None = None
    """The position of the newest summary; None if there is none."""


class ClaudeCodeReader:
    """A session that is being read record by record."""

    def __init__(self, between: Between | None = None, *, reads_requests: bool = False) -> None:
        """`reads_requests`: whether `SessionFile.requests` is needed, which has those of sub-agents too."""
        self._reads_requests = reads_requests
        between = between or Between()
        self.session = SessionBuilder("claude-code")
        self._seen: set[str] = set()
        self._roots: dict[str, str] = {}
        """The id of a sub-agent's record -> the id of its first record."""
        self._names: dict[str, str] = {}
        self._answers: dict[str, str] = {}
        """The id of a further record of an answer -> the id of its first record."""
        self._first_ids: dict[str, str] = {}
        """The provider's id of an answer -> the id of its first record."""
        self._preserved: dict[str, Raw] = {}
        """The metadata of the compaction whose summary has not been read yet."""
        self._by_plugin = _RewrittenContext()
        self._billed: set[str] = set()
        self._answer: _Answer | None = None
        self._queue = Queue(is_by_program, between.queue)
        self._has_waited = False
        """Whether an answer was already added before the messages that still wait for their place."""
        self._is_after_result = False
        self._version = between.version
        self._last_at = between.last_at
        """The time of the newest message."""

    @property
    def begun(self) -> Message | None:
        """The answer whose blocks are still being read; None if there is none."""
        answer = self._answer
        if answer is None or not answer.blocks:
            return None
        usage = None if answer.answer_id in self._billed else answer.usage
        return Message(role="assistant", content=tuple(answer.blocks), id=answer.uuid, usage=usage)

    def feed(self, data: bytes) -> None:
        """Read the next complete lines of the file. O(bytes of `data`)."""
        for number, record in records(data, self.session.warn):
            with self.session.skipping("line", number):
                self.record(record)

    def record(self, record: dict[str, Raw]) -> None:
        """Read the next record. Raise `CompactdError` if it cannot be read."""
        kind = text_field(record, "type")
        if self._reads_requests:
            if kind in ("assistant", "progress"):
                self._request(record)
            elif is_true(record, "isSidechain"):
                self._chain_of(record)
        if kind == "queue-operation":
            self._queue_operation(record)
        if kind in ("summary", "custom-title", "ai-title"):
            for name in ("customTitle", "aiTitle", "title", "summary"):
                self.session.title = text_field(record, name) or self.session.title
        if kind == "system":
            self._boundary(record)
        attachment = object_in(record, "attachment") if kind == "attachment" else {}
        if kind not in ("user", "assistant") and text_field(attachment, "type") != "queued_command":
            return
        if is_true(record, "isSidechain"):
            self.session.count_skipped("message of a sub-agent")
            return
        uuid = text_field(record, "uuid")
        if uuid is not None:
            if uuid in self._seen:
                return
            self._seen.add(uuid)
        self.session.session_id = self.session.session_id or text_field(record, "sessionId")
        self.session.working_dir = self.session.working_dir or text_field(record, "cwd")
        self._version = text_field(record, "version") or self._version
        if attachment:
            self._attachment(record, attachment, uuid)
            return
        message = fields(record.get("message", NULL), "$.message", "message")
        content = message.get("content", NULL)
        blocks = () if content == NULL else read_content(content, "$.message.content")
        if self._reads_requests and self._is_written_again(record, message, blocks):
            return
        if kind == "assistant":
            self._assistant(record, message, uuid, blocks)
        else:
            self._user(record, uuid, blocks)

    def close(self) -> None:
        """End the session: no more records follow."""
        self.end_answer()
        self._place(self._queue.take_delivered())

    def between(self, *, is_last: bool) -> Between:
        """Return what the next piece of the file needs.

        `is_last` says whether the turn is over. Then messages that the model got in the middle of its work
        are added at the end, although a tool result may still follow. Only if this version of Claude Code
        writes attachments, such a message waits for its attachment.
        """
        has_attachments = _numbers(self._version) >= _ATTACHES_FROM
        if (is_last and not has_attachments) or self._queue.is_full:
            self._place(self._queue.take_delivered_early())
        return Between(queue=self._queue.state(), version=self._version, last_at=self._last_at)

    # --- messages that were typed while the model worked ----------------------------------------------

    def _queue_operation(self, record: dict[str, Raw]) -> None:
        text = text_field(record, "content")
        match text_field(record, "operation"):
            case "enqueue":
                self._queue.enter(text)
            case "dequeue":
                self._queue.leave(text)
            case "popAll":
                for _ in range(self._queue.take_back(text)):
                    self.session.count_skipped("message that the user took back before it was sent")
            case "remove" if text_field(record, "reason") in _DELIVERED_REASONS:
                self._queue.remove(text, unix_seconds(text_field(record, "timestamp")))
            case "remove":
                self._queue.leave(text)
                self.session.count_skipped("queued message that the model was never given")
            case _:
                pass

    def _attachment(self, record: dict[str, Raw], attachment: dict[str, Raw], uuid: str | None) -> None:
        blocks = read_content(attachment.get("prompt", NULL), "$.attachment.prompt")
        text = _first_text(blocks)
        if not self._queue.attach(text):
            return
        self.end_answer()
        author = _author_of_attachment(record, attachment, text)
        # The attachment's own time is when the message was typed. The model got it later, after the message
        # before it.
        times = (unix_seconds(text_field(record, "timestamp")), self._last_at)
        at = max((time for time in times if time is not None), default=None)
        self._add_queued(list(blocks), uuid, at, author)

    def _place_delivered(self, at: float | None, *, is_answer: bool) -> None:
        """Add the messages that the model got before the next record, whose time is `at`.

        An answer may follow such a message in the file and still be older than the message. This can happen
        with only one answer, because the model got the message with its next request.
        """
        due = self._queue.take_delivered(None if is_answer and self._has_waited else at)
        if due:
            self.end_answer()
            self._place(due)
        self._has_waited = self._queue.has_delivered and (is_answer or self._has_waited)

    def _place(self, delivered: list[Delivered]) -> None:
        for one in delivered:
            if one.text is None:
                self.session.count_skipped(
                    "message that the model was given, but whose text is not in the file"
                )
                continue
            author = _author_of_form(one.text)
            names_source = _numbers(self._version) >= _NAMES_SOURCE_FROM
            if author is None and (not one.was_waiting or names_source):
                # If a person had typed it, an attachment would say so.
                author = UNKNOWN
            self._add_queued([Text(text=one.text)], None, one.at, author)

    def _add_queued(
        self, blocks: list[Block], uuid: str | None, at: float | None, author: Author | None
    ) -> None:
        meta = None if author is None else Meta(author=author, synthetic=True)
        if author is None and len(blocks) > 1:
            blocks = [_of_editor(block) for block in blocks]
        self.session.add("user", blocks, id=uuid, created_at=at, meta=meta)

    # --- answers and prompts --------------------------------------------------------------------------

    def _assistant(
        self, record: dict[str, Raw], message: dict[str, Raw], uuid: str | None, blocks: tuple[Block, ...]
    ) -> None:
        model = text_field(message, "model")
        if model == "<synthetic>":
            # This is the program's own note of a failed request, not an answer of the model.
            if is_true(record, "isApiErrorMessage"):
                self._read_refusal(blocks)
            return
        if model and model != self.session.model:
            self.session.set_model(model)
            self.session.add_window_evidence("usual", _USUAL_WINDOWS.get(_DATE.sub("", model), 0))
        answer_id = text_field(message, "id")
        answer = self._answer
        if answer is None or answer.answer_id != answer_id:
            self.end_answer()
            at = self._last_at = unix_seconds(text_field(record, "timestamp"))
            if self._queue.has_delivered:
                self._place_delivered(at, is_answer=True)
            self._queue.answer_began()
            self._is_after_result = False
            answer = self._answer = _Answer(
                answer_id=answer_id,
                uuid=uuid,
                created_at=at,
                blocks=[],
                request=_identity(record, answer_id),
            )
            if answer_id and uuid:
                self._first_ids.setdefault(answer_id, uuid)
        elif uuid is not None and answer.uuid is not None:
            self._answers[uuid] = answer.uuid
        answer.blocks.extend(blocks)
        answer.usage = message.get("usage", answer.usage)
        answer.stop_reason = text_field(message, "stop_reason") or answer.stop_reason
        self._names.update((block.call_id, block.name) for block in blocks if isinstance(block, ToolCall))

    def _request(self, record: dict[str, Raw]) -> None:
        """Read the usage report of an answer, in the conversation or in a sub-agent's. A later record of the
        same request has the final numbers (`cli/usage/claude_code.py`)."""
        inner, chain = record, ""
        if text_field(record, "type") == "progress":
            data = object_in(record, "data")
            inner = object_in(data, "message")
            chain = text_field(data, "agentId") or text_field(record, "parentToolUseID") or SIDE_CHAIN
        elif is_true(record, "isSidechain"):
            chain = self._chain_of(record)
        message = object_in(inner, "message")
        model, usage = text_field(message, "model") or "", message.get("usage", NULL)
        if usage == NULL or model == "<synthetic>":
            return
        requests = self.session.requests
        identity = _identity(inner, text_field(message, "id")) or f"#{len(requests)}"
        at = unix_seconds(text_field(inner, "timestamp"))
        known = requests.get(identity)
        if known is None:
            place = len(self.session.messages)
            requests[identity] = FileRequest(usage=usage, model=model, at=at, chain=chain, place=place)
        else:
            requests[identity] = replace(known, usage=usage, model=model, at=at)

    def _chain_of(self, record: dict[str, Raw]) -> str:
        """Return which sub-agent a record of a sub-agent belongs to: its id, or the first record's."""
        agent, uuid = text_field(record, "agentId"), text_field(record, "uuid")
        if agent:
            return agent
        parent = text_field(record, "parentUuid") or ""
        root = self._roots.get(parent, uuid or parent or SIDE_CHAIN)
        if uuid:
            self._roots[uuid] = root
        return root

    def _boundary(self, record: dict[str, Raw]) -> None:
        """Read the record of a compaction. It names the messages that stay, and it contains the size of the
        conversation, which says something about the window if the compaction was automatic.
        """
        if text_field(record, "subtype") == "compact_boundary" and not is_true(record, "isSidechain"):
            metadata = self._preserved = object_in(record, "compactMetadata")
            at = unix_seconds(text_field(record, "timestamp")) or 0.0
            self._by_plugin = _RewrittenContext(text_field(record, "uuid") or "", at)
            if text_in(metadata, "trigger") == "auto":
                self.session.add_window_evidence("compaction", count_in(metadata, "preTokens"))

    def _note_summary_place(self, record: dict[str, Raw], author: Author | None) -> bool:
        """If this record of type `user` is the first one after a plugin's compaction, note the place of its
        summary. Return whether the plugin wrote the record itself. Of a file that is read in pieces, the
        caller finds these summaries (`transcript_steps`).
        """
        found, boundary = self._by_plugin, self._by_plugin.boundary
        found.boundary = ""
        is_first = bool(boundary) and text_field(record, "parentUuid") == boundary
        if not self._reads_requests or not is_first:
            return False
        is_plugins = author not in (None, SUMMARY)
        if is_plugins or is_true(record, "isCompactSummary"):
            found.place = len(self.session.messages)
        return is_plugins

    def _is_written_again(
        self, record: dict[str, Raw], message: dict[str, Raw], blocks: tuple[Block, ...]
    ) -> bool:
        """Return whether the record repeats a message that the newest compaction kept. Then the older message
        stays in the context. O(messages) for a record older than that compaction.
        """
        found = self._by_plugin
        at = unix_seconds(text_field(record, "timestamp"))
        if found.place is None or at is None or at > found.at:
            return False
        answer = self._first_ids.get(text_field(message, "id") or "")
        calls = {block.call_id for block in blocks if isinstance(block, ToolResult)}
        places = [
            place
            for place, (old, _) in enumerate(self.session.messages[: found.place])
            if (answer is not None and old.id == answer)
            or (calls and any(isinstance(one, ToolResult) and one.call_id in calls for one in old.content))
            or (answer is None and not calls and old.created_at == at and old.content == blocks)
        ]
        if not places:
            return False
        stayed = self.session.pinned.get(found.place, ())
        self.session.pinned[found.place] = (*stayed, *(place for place in places if place not in stayed))
        return True

    def _stayed(self) -> tuple[int, ...]:
        """Return the positions of the messages that the last compaction kept word for word. The record names
        all of them, or the first and the last (2.1.205: meawoppl/rust-code-agent-sdks issue 188; all
        of them in 2.1.197 to 2.1.330, seen 2026-11). O(messages).
        """
        preserved, self._preserved = self._preserved, {}
        named = texts_in(object_in(preserved, "preservedMessages"), "uuids")
        segment = object_in(preserved, "preservedSegment")
        ends = (text_in(segment, "headUuid"), text_in(segment, "tailUuid"))
        ids = {self._answers.get(uuid, uuid) for uuid in named or ends if uuid}
        if not ids:
            return ()
        places = [at for at, (message, _) in enumerate(self.session.messages) if _record_id(message.id, ids)]
        return tuple(places if named or not places else range(places[0], places[-1] + 1))

    def _read_refusal(self, blocks: tuple[Block, ...]) -> None:
        """Read the note about a failed request, which may contain the size of the context window.

        Example: "API Error: 400 {…"prompt is too long: 213462 tokens > 200000 maximum"…}" (2.1, seen
        2026-02). Newer versions name no number.
        """
        from compactd.core.overflow.classify import FailureReport, classify

        for block in blocks:
            if isinstance(block, Text) and "too long" in block.text[:MAX_ERROR]:
                verdict = classify(FailureReport(text=block.text[:MAX_ERROR], provider="anthropic"))
                if verdict.teaches and verdict.limit is not None:
                    self.session.add_window_evidence("refusal", verdict.limit)

    def end_answer(self) -> None:
        """End the answer whose blocks have been read so far."""
        answer, self._answer = self._answer, None
        if answer is not None:
            if answer.answer_id in self._billed:
                # One answer can be read in several parts, with results of parallel calls between them. Its
                # usage is counted once.
                answer.usage = None
            elif answer.answer_id is not None and answer.usage is not None:
                self._billed.add(answer.answer_id)
            request = self.session.requests.get(answer.request)
            if request is not None and answer.usage is not None and answer.blocks:
                mine = replace(request, chain="", place=len(self.session.messages), is_answer=True)
                self.session.requests[answer.request] = mine
            self.session.add(
                "assistant",
                answer.blocks,
                id=answer.uuid,
                created_at=answer.created_at,
                usage=answer.usage,
                stop_reason=answer.stop_reason,
            )

    def _user(self, record: dict[str, Raw], uuid: str | None, blocks: tuple[Block, ...]) -> None:
        created_at = self._last_at = unix_seconds(text_field(record, "timestamp"))
        results = [block for block in blocks if isinstance(block, ToolResult)]
        rest: list[Block] = [block for block in blocks if not isinstance(block, ToolResult)]
        for at, result in enumerate(results):
            self.end_answer()
            named = replace(result, name=self._names.get(result.call_id))
            self.session.add("tool", (named,), id=message_id(uuid, at), created_at=created_at)
            self._is_after_result = True
        if not any(not isinstance(block, Text) or block.text for block in rest):
            return
        self.end_answer()
        if self._queue.has_delivered and not results:
            self._place_delivered(created_at, is_answer=False)
        text = _first_text(rest)
        self._queue.drop_notice(text)
        author = author_of_row(record, text, after_result=self._is_after_result)
        self._is_after_result = False
        meta: Meta | None = None
        is_plugins = self._note_summary_place(record, author) and not results
        if is_plugins or is_true(record, "isCompactSummary"):
            meta = Meta(type="compaction_summary")
            self.session.compactions += 1
            if stayed := self._stayed():
                self.session.pinned[len(self.session.messages)] = stayed
        elif author is not None:
            # A shell command that the user ran, and its output, are not synthetic: the user caused them.
            meta = Meta(author=author, synthetic=not text.lstrip().startswith("<bash-"))
        else:
            rest = [_of_editor(block) if len(rest) > 1 else block for block in rest]
        self.session.add("user", rest, id=message_id(uuid, len(results)), created_at=created_at, meta=meta)


def _record_id(id: str | None, records: set[str]) -> str:
    """Return the one of `records` to which the message `id` belongs (see `message_id`); empty if none."""
    if id is None:
        return ""
    return next((one for one in (id, id.rpartition("-")[0]) if one in records), "")


def _first_text(blocks: Sequence[Block]) -> str:
    return next((block.text for block in blocks if isinstance(block, Text)), "")


def _of_editor(block: Block) -> Block:
    if isinstance(block, Text) and _IDE.fullmatch(block.text) is not None:
        return Text(text=block.text, meta=BlockMeta(author=FILE))
    return block
