"""Follow the conversations in a Claude Code file: sub-agents, compactions, and rewinds.

Fields, seen in files of versions 1.0 to 2.1 (2025-09 to 2026-11): each record has `uuid`, `parentUuid` and
`timestamp`. A sub-agent's records have `isSidechain`, newer ones also `agentId`; or they are inside records
of type `progress`, whose `data.agentId` names the sub-agent. A `system` record with `subtype`
`compact_boundary` or `microcompact_boundary` records a compaction or a prune; `compactMetadata` or
`microcompactMetadata` has `trigger` and `preTokens`. If the user rewinds, the next record's parent is an
earlier one than the last.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from compactd.cli.audit.trail import AFTER_A_PROMPT, MAIN, Place, TrailBuilder, seconds_of

_Number = int | float | None

_INTERRUPTED = b'"[Request interrupted by user]"'
"""The text of a user record that follows a request which the user interrupted."""
_AGENT_TEXTS = ("<local-command", "<task-notification", "<bash-")
"""How texts of the agent begin that it writes instead of a prompt."""
_RESUMED = b'"SessionStart:resume"'
"""The name of the hooks that run when a session is resumed, in the records of these hooks."""


class _Creation(Struct):
    ephemeral_5m_input_tokens: _Number = None
    ephemeral_1h_input_tokens: _Number = None


class _Block(Struct):
    type: str = ""


class _Usage(Struct):
    cache_creation_input_tokens: _Number = None
    cache_creation: _Creation | None = None


class _Message(Struct):
    id: str | None = None
    usage: _Usage | None = None


class _UserMessage(Struct):
    content: str | list[_Block] = ""


class _Record(Struct, rename="camel"):
    type: str = ""
    subtype: str | None = None
    uuid: str | None = None
    parent_uuid: str | None = None
    timestamp: str | None = None
    version: str | None = None
    is_sidechain: bool | None = None
    is_compact_summary: bool | None = None
    is_meta: bool | None = None
    agent_id: str | None = None
    message: Raw = Raw()
    data: Raw = Raw()
    compact_metadata: Raw = Raw()
    microcompact_metadata: Raw = Raw()
    parent_tool_use_id: str | None = msgspec.field(default=None, name="parentToolUseID")


class _Progress(Struct, rename="camel"):
    message: _Record | None = None
    agent_id: str | None = None


class _Metadata(Struct, rename="camel"):
    trigger: str | None = None
    pre_tokens: _Number = None


_record = msgspec.json.Decoder(_Record).decode
_message = msgspec.json.Decoder(_Message).decode
_user_message = msgspec.json.Decoder(_UserMessage).decode
_progress = msgspec.json.Decoder(_Progress).decode
_metadata = msgspec.json.Decoder(_Metadata).decode


class ClaudeCodeFollower:
    """Finds the conversation of each request, and what changed before it. O(1) per record."""

    marks: tuple[bytes, ...] = ()

    def __init__(self, builder: TrailBuilder) -> None:
        self._builder = builder
        self._roots: dict[str, str] = {}
        """Record of a sub-agent without `agentId` -> the first record of its conversation."""
        self._above: dict[str, int] = {}
        """Record -> the position of the nearest request at or above it."""
        self._positions: dict[str, int] = {}
        """Id of an answer -> the position of its request."""
        self._last: dict[str, int] = {}
        """Conversation -> the position of its last request."""
        self._version = ""
        self._is_compacted: set[str] = set()
        """Conversations in which a boundary was read and its summary was not yet."""

    def line(self, number: int, line: bytes) -> None:
        """Read a line. Raise `msgspec.MsgspecError` if it is damaged."""
        record = _record(line)
        if record.version and record.version != self._version:
            if self._version:
                self._builder.see(MAIN, "new version")
            self._version = record.version
        if _RESUMED in line and record.type in ("progress", "attachment"):
            self._builder.see(MAIN, "resumed")
        if record.type == "progress" and b'"message"' in line:
            inner = _progress(record.data) if record.data else _Progress()
            if inner.message is not None:
                chain = inner.agent_id or record.parent_tool_use_id or "sub-agent"
                self._read(number, inner.message, chain)
                return
        self._read(number, record, self._chain_of(record))

    def _chain_of(self, record: _Record) -> str:
        if not record.is_sidechain:
            return MAIN
        if record.agent_id:
            return record.agent_id
        parent = record.parent_uuid or ""
        root = self._roots.get(parent, record.uuid or parent or "sub-agent")
        if record.uuid:
            self._roots[record.uuid] = root
        return root

    def _read(self, number: int, record: _Record, chain: str) -> None:
        above = self._above.get(record.parent_uuid or "")
        if record.type == "assistant" and record.message:
            above = self._answer(number, record, chain, above)
        elif record.type == "user" and bytes(record.message).find(_INTERRUPTED) >= 0:
            self._builder.touch(chain, seconds_of(record.timestamp))
        elif record.type == "system":
            self._boundary(number, record, chain)
        elif record.type == "user" and record.message and _is_prompt(record):
            self._builder.see(chain, AFTER_A_PROMPT)
        if record.is_compact_summary:
            if chain not in self._is_compacted:
                # Versions before 1.0.50 or so wrote no boundary.
                self._builder.add_boundary(
                    "compaction", chain=chain, at=seconds_of(record.timestamp), line=number
                )
            self._is_compacted.discard(chain)
        if record.uuid and above is not None:
            self._above[record.uuid] = above

    def _answer(self, number: int, record: _Record, chain: str, above: int | None) -> int | None:
        """Place the request of an answer. Return its position, or `above` if the record has no request."""
        builder = self._builder
        place = Place(chain=chain, at=seconds_of(record.timestamp), line=number, entry_id=record.uuid or None)
        last = self._last.get(chain)
        if above is not None and last is not None and above != last and chain not in self._is_compacted:
            place.changes = {"messages"}
        new = builder.place_requests(place)
        message = _message(record.message)
        if not new:
            return self._positions.get(message.id or "", above)
        if message.usage is not None and _contradicts(message.usage):
            builder.contradictions += 1
        self._is_compacted.discard(chain)
        self._last[chain] = new[-1]
        if message.id:
            self._positions[message.id] = new[-1]
        return new[-1]

    def _boundary(self, number: int, record: _Record, chain: str) -> None:
        kind = record.subtype
        if kind not in ("compact_boundary", "microcompact_boundary"):
            return
        raw = record.compact_metadata or record.microcompact_metadata
        about = _metadata(raw) if raw else _Metadata()
        before = about.pre_tokens
        self._builder.add_boundary(
            "compaction" if kind == "compact_boundary" else "prune",
            chain=chain,
            at=seconds_of(record.timestamp),
            line=number,
            trigger=about.trigger or "",
            tokens_before=int(before) if before is not None and 0 < before < 1e12 else None,
        )
        if kind == "compact_boundary":
            self._is_compacted.add(chain)


def _is_prompt(record: _Record) -> bool:
    """Return whether a record of a user has a prompt, and not the results of tools or a text of the agent."""
    if record.is_meta or record.is_compact_summary:
        return False
    content = _user_message(record.message).content
    if isinstance(content, str):
        return not content.startswith(_AGENT_TEXTS)
    return bool(content) and all(block.type in ("text", "image", "document") for block in content)


def _contradicts(usage: _Usage) -> bool:
    """Return whether the parts of what was written to the cache are not what the report says of the whole."""
    parts = usage.cache_creation
    if parts is None or usage.cache_creation_input_tokens is None:
        return False
    five, hour = parts.ephemeral_5m_input_tokens, parts.ephemeral_1h_input_tokens
    return (five or 0) + (hour or 0) != usage.cache_creation_input_tokens
