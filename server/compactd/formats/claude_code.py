"""Claude Code's session files: one JSON record a line (`~/.claude/projects/<folder>/<session id>.jsonl`).

As seen in files of versions 1.0 to 2.1 (2025-09 to 2026-02): a model's answer is written block by block, as
records that share the answer's `message.id`; tool results stand in user records; `isSidechain` marks the
messages of sub-agents, which are no part of this conversation; after a compaction a user record with
`isCompactSummary` follows. Other record types (progress, snapshots, hooks) hold no messages.

Most user records are no person's: `author_of_row` says who wrote one.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Raw, Struct

from compactd.core.authors import FILE, HOOK, NOTIFICATION, REMINDER, SKILL, SUBAGENT, SUMMARY, TOOL, UNKNOWN
from compactd.errors import CompactdError
from compactd.formats.anthropic import read_content
from compactd.formats.lines import records
from compactd.formats.loose import count_in, object_in, text_in
from compactd.formats.parts import NULL, fields
from compactd.formats.session_file import Collected, SessionFile, is_true, numbered, text_field, unix_seconds
from compactd.messages import Author, Block, BlockMeta, Message, Meta, Text, ToolCall, ToolResult

_TYPED_SOURCES: Final = ("typed", "queued", "suggestion_accepted", "sdk")
"""`promptSource` of a prompt: entered, entered while the agent was busy, a suggestion that the person sent,
or given by the program that runs Claude Code in the person's place (`claude -p`, the SDK). Other sources,
such as `system`, are the program's (2.1.197, 2.1.240, 2.1.330; seen 2026-11)."""

_BY_ORIGIN: Final[dict[str, Author]] = {
    "task-notification": NOTIFICATION,
    "peer": SUBAGENT,
    "coordinator": SUBAGENT,
    "auto-continuation": REMINDER,
}
"""`origin.kind` of what no person typed. All other kinds but `human` are nobody's we know: `channel` is
a chat server's message, `observer` and `unclassified` say no more, and newer versions may add to them."""

_NAMES_SOURCE_FROM: Final = (2, 1, 197)
"""From this version at the latest each prompt's row names its `promptSource` (35 of 35 prompts of 2.1.197 to
2.1.330, 2026-11). A row of theirs without one was put there by something else, a plugin for instance."""

_FORMS: Final[tuple[tuple[str, Author], ...]] = (
    ("<bash-", TOOL),
    ("<local-command-caveat", REMINDER),
    ("<local-command", TOOL),
    ("<command-", TOOL),
    ("<system-reminder", REMINDER),
    ("<task-notification", NOTIFICATION),
    ("<scheduled-task", NOTIFICATION),
    ("<<autonomous-loop", NOTIFICATION),
    ("[SYSTEM NOTIFICATION", NOTIFICATION),
    ("[Request interrupted", NOTIFICATION),
    ("<teammate-message", SUBAGENT),
    ("<cross-session-message", SUBAGENT),
    ("Another Claude session sent", SUBAGENT),
    ("Base directory for this skill:", SKILL),
    ("Caveat: The messages below", REMINDER),
    ("This session is being continued from a previous conversation", SUMMARY),
)
"""How rows begin that the program wrote as a whole (1.0 to 2.1.330, seen 2026-11). What stands behind their
closing tags is theirs too: the program puts nothing of the person's there."""

MAX_ERROR: Final = 4_096
"""Characters of a failed request's note that are read."""

_HOOK: Final = re.compile(
    r"\w+(?:\[[^\]\n]*\])? hook (?:feedback|additional context|blocking error|stopped)\b"
)
_ARGUMENTS: Final = re.compile(r"<command-(?:name|message)>.*<command-args>\s*[^\s<]", re.DOTALL)
_IDE: Final = re.compile(r"\s*<(ide_[a-z_]+)>.*</\1>\s*", re.DOTALL)
"""A block that an editor's extension put before the prompt, in a row with the prompt."""


def author_of_row(row: dict[str, Raw], text: str, *, after_result: bool = False) -> Author | None:
    """Who wrote the text of a row of type `user`, which begins with `text`; none for a person.

    None says that the row is a prompt: what a program put *inside* it is for `authors.spans` to find. Rows of
    tool results are not asked about. `after_result` is true directly after one: there, the model ran a slash
    command. O(1); for a slash command O(characters).
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


def _author_of_form(text: str) -> Author | None:
    begin = text[:200].lstrip()
    for form, author in _FORMS:
        if begin.startswith(form):
            return author
    return HOOK if _HOOK.match(begin) is not None else None


def _version_of(row: dict[str, Raw]) -> tuple[int, ...]:
    parts = (text_field(row, "version") or "").split(".")[:3]
    return tuple(int(part) if part.isdecimal() and len(part) < 9 else 0 for part in parts)


class _Answer(Struct, kw_only=True):
    """A model's answer while its blocks come in."""

    answer_id: str | None
    uuid: str | None
    created_at: float | None
    blocks: list[Block]
    usage: Raw | None = None
    stop_reason: str | None = None


def read(data: bytes) -> SessionFile:
    """The session in `data`. A record that cannot be read is left out with a warning. Cost: O(bytes)."""
    reading = Reading()
    for number, record in records(data, reading.session.warn):
        try:
            reading.record(record)
        except CompactdError as error:
            reading.session.warn(f"line {number} was left out: {error.message}")
    reading.end_answer()
    return reading.session.finished()


class Reading:
    """A session while its records come in."""

    def __init__(self) -> None:
        self.session = Collected("claude-code")
        self._seen: set[str] = set()
        self._names: dict[str, str] = {}
        self._billed: set[str] = set()
        self._answer: _Answer | None = None

    @property
    def begun(self) -> Message | None:
        """The answer whose blocks are still coming in."""
        answer = self._answer
        if answer is None or not answer.blocks:
            return None
        usage = None if answer.answer_id in self._billed else answer.usage
        return Message(role="assistant", content=tuple(answer.blocks), id=answer.uuid, usage=usage)

    def record(self, record: dict[str, Raw]) -> None:
        """Takes in the next one. Raises `CompactdError` where it cannot be read."""
        kind = text_field(record, "type")
        if kind in ("summary", "custom-title", "ai-title"):
            for name in ("customTitle", "aiTitle", "title", "summary"):
                self.session.title = text_field(record, name) or self.session.title
        if kind == "system":
            self._boundary(record)
        if kind not in ("user", "assistant"):
            return
        if is_true(record, "isSidechain"):
            self.session.pass_over("message of a sub-agent")
            return
        uuid = text_field(record, "uuid")
        if uuid is not None:
            if uuid in self._seen:
                return
            self._seen.add(uuid)
        self.session.session_id = self.session.session_id or text_field(record, "sessionId")
        self.session.working_dir = self.session.working_dir or text_field(record, "cwd")
        message = fields(record.get("message", NULL), "$.message", "message")
        content = message.get("content", NULL)
        blocks = () if content == NULL else read_content(content, "$.message.content")
        if kind == "assistant":
            self._assistant(record, message, uuid, blocks)
        else:
            self._user(record, uuid, blocks)

    def _assistant(
        self, record: dict[str, Raw], message: dict[str, Raw], uuid: str | None, blocks: tuple[Block, ...]
    ) -> None:
        model = text_field(message, "model")
        if model == "<synthetic>":
            # The program's own note of a failed request: no model said it.
            if is_true(record, "isApiErrorMessage"):
                self._refused(blocks)
            return
        if model is not None:
            self.session.names_model(model)
        answer_id = text_field(message, "id")
        answer = self._answer
        if answer is None or answer.answer_id != answer_id:
            self.end_answer()
            answer = self._answer = _Answer(
                answer_id=answer_id,
                uuid=uuid,
                created_at=unix_seconds(text_field(record, "timestamp")),
                blocks=[],
            )
        answer.blocks.extend(blocks)
        answer.usage = message.get("usage", answer.usage)
        answer.stop_reason = text_field(message, "stop_reason") or answer.stop_reason
        self._names.update((block.call_id, block.name) for block in blocks if isinstance(block, ToolCall))

    def _boundary(self, record: dict[str, Raw]) -> None:
        """An automatic compaction of this conversation: Claude Code writes down how large it was."""
        if text_field(record, "subtype") == "compact_boundary" and not is_true(record, "isSidechain"):
            metadata = object_in(record, "compactMetadata")
            if text_in(metadata, "trigger") == "auto":
                self.session.tells_window("compaction", count_in(metadata, "preTokens"))

    def _refused(self, blocks: tuple[Block, ...]) -> None:
        """A request that failed. "API Error: 400 {…"prompt is too long: 213462 tokens > 200000 maximum"…}"
        (2.1, seen 2026-02); newer versions name no number."""
        from compactd.core.overflow import Failure, classify

        for block in blocks:
            if isinstance(block, Text) and "too long" in block.text[:MAX_ERROR]:
                verdict = classify(Failure(text=block.text[:MAX_ERROR], provider="anthropic"))
                if verdict.teaches and verdict.limit is not None:
                    self.session.tells_window("refusal", verdict.limit)

    def end_answer(self) -> None:
        """The answer whose blocks came in so far is whole."""
        answer, self._answer = self._answer, None
        if answer is not None:
            if answer.answer_id in self._billed:
                # The results of calls made side by side stand between the blocks of one answer: one report.
                answer.usage = None
            elif answer.answer_id is not None and answer.usage is not None:
                self._billed.add(answer.answer_id)
            self.session.add(
                "assistant",
                answer.blocks,
                id=answer.uuid,
                created_at=answer.created_at,
                usage=answer.usage,
                stop_reason=answer.stop_reason,
            )

    def _user(self, record: dict[str, Raw], uuid: str | None, blocks: tuple[Block, ...]) -> None:
        created_at = unix_seconds(text_field(record, "timestamp"))
        results = [block for block in blocks if isinstance(block, ToolResult)]
        rest: list[Block] = [block for block in blocks if not isinstance(block, ToolResult)]
        for at, result in enumerate(results):
            self.end_answer()
            self.session.add("tool", (self._named(result),), id=numbered(uuid, at), created_at=created_at)
        if not any(not isinstance(block, Text) or block.text for block in rest):
            return
        self.end_answer()
        text = next((block.text for block in rest if isinstance(block, Text)), "")
        author = author_of_row(record, text, after_result=self._is_after_result())
        meta: Meta | None = None
        if is_true(record, "isCompactSummary"):
            meta = Meta(type="compaction_summary")
            self.session.compactions += 1
        elif author is not None:
            # The person ran a shell command, and the program wrote down what came of it.
            meta = Meta(author=author, synthetic=not text.lstrip().startswith("<bash-"))
        elif len(rest) > 1:
            rest = [_of_editor(block) for block in rest]
        self.session.add("user", rest, id=numbered(uuid, len(results)), created_at=created_at, meta=meta)

    def _is_after_result(self) -> bool:
        return bool(self.session.messages) and self.session.messages[-1][0].role == "tool"

    def _named(self, result: ToolResult) -> ToolResult:
        return ToolResult(
            call_id=result.call_id,
            content=result.content,
            name=self._names.get(result.call_id),
            is_error=result.is_error,
        )


def _of_editor(block: Block) -> Block:
    if isinstance(block, Text) and _IDE.fullmatch(block.text) is not None:
        return Text(text=block.text, meta=BlockMeta(author=FILE))
    return block
