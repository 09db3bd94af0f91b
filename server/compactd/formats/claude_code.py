"""Claude Code's session files: one JSON record a line (`~/.claude/projects/<folder>/<session id>.jsonl`).

As seen in files of versions 1.0 to 2.1 (2025-09 to 2026-02): a model's answer is written block by block, as
records that share the answer's `message.id`; tool results stand in user records; `isSidechain` marks the
messages of sub-agents, which are no part of this conversation; after a compaction a user record with
`isCompactSummary` follows. Other record types (progress, snapshots, hooks) hold no messages.
"""

from __future__ import annotations

from msgspec import Raw, Struct

from compactd.errors import CompactdError
from compactd.formats.anthropic import read_content
from compactd.formats.lines import records
from compactd.formats.parts import NULL, fields
from compactd.formats.session_file import Collected, SessionFile, is_true, numbered, text_field, unix_seconds
from compactd.messages import Block, Message, Meta, Text, ToolCall, ToolResult

_BY_PROGRAM = ("<command-", "<local-command", "Caveat: The messages below")
"""How user records begin that the program wrote around a slash command."""


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
            return
        self.session.model = model or self.session.model
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
        rest = [block for block in blocks if not isinstance(block, ToolResult)]
        for at, result in enumerate(results):
            self.end_answer()
            self.session.add("tool", (self._named(result),), id=numbered(uuid, at), created_at=created_at)
        if not any(not isinstance(block, Text) or block.text for block in rest):
            return
        self.end_answer()
        meta: Meta | None = None
        if is_true(record, "isCompactSummary"):
            meta = Meta(type="compaction_summary")
            self.session.compactions += 1
        elif is_true(record, "isMeta") or _is_by_program(rest[0]):
            meta = Meta(synthetic=True)
        self.session.add("user", rest, id=numbered(uuid, len(results)), created_at=created_at, meta=meta)

    def _named(self, result: ToolResult) -> ToolResult:
        return ToolResult(
            call_id=result.call_id,
            content=result.content,
            name=self._names.get(result.call_id),
            is_error=result.is_error,
        )


def _is_by_program(block: Block) -> bool:
    return isinstance(block, Text) and block.text.startswith(_BY_PROGRAM)
