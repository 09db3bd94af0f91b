"""Follow the sessions of agents that write one record per line, apart from Claude Code.

- Codex writes a record of type `compacted` for a compaction (openai/codex,
  codex-rs/protocol/src/protocol.rs, `CompactedItem`, read 2026-11).
- pi writes an entry of type `compaction` with `tokensBefore`, one of type `branch_summary` if the user goes
  to another branch, and one of type `thinking_level_change`; the header has `thinkingLevel` too
  (badlogic/pi-mono, packages/coding-agent/docs/session.md, read 2026-11).
- Gemini CLI repeats the history in a `$set` record; after a compaction it begins with a `<state_snapshot>`.
  `$rewindTo` takes messages back (google-gemini/gemini-cli, packages/core/src/services/chatRecordingTypes.ts,
  read 2026-11).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
from msgspec import Raw, Struct, field

from compactd.cli.audit.trail import AFTER_A_PROMPT, MAIN, Follower, Place, TrailBuilder, seconds_of

_Time = str | int | float | None


class _Codex(Struct):
    type: str = ""
    timestamp: _Time = None


class _PiMessage(Struct):
    role: str = ""
    timestamp: _Time = None


class _Pi(Struct, rename={"tokens_before": "tokensBefore", "thinking_level": "thinkingLevel"}):
    type: str = ""
    id: str | None = None
    timestamp: _Time = None
    tokens_before: int | float | None = None
    thinking_level: str | None = None
    message: Raw = Raw()


class _Gemini(Struct, rename={"rewind_to": "$rewindTo", "change": "$set"}):
    id: str | None = None
    type: str = ""
    timestamp: _Time = None
    change: Raw = Raw()
    rewind_to: Raw = field(default=Raw())


_codex = msgspec.json.Decoder(_Codex).decode
_pi = msgspec.json.Decoder(_Pi).decode
_pi_message = msgspec.json.Decoder(_PiMessage).decode
_gemini = msgspec.json.Decoder(_Gemini).decode


class CodexFollower:
    """Finds the compactions in a Codex file."""

    marks: tuple[bytes, ...] = (b'"compacted"',)

    def __init__(self, builder: TrailBuilder) -> None:
        self._builder = builder

    def line(self, number: int, line: bytes) -> None:
        """Read a line. Raise `msgspec.MsgspecError` if it is damaged."""
        record = _codex(line)
        at = seconds_of(record.timestamp)
        self._builder.place_requests(Place(at=at, line=number))
        if record.type == "compacted":
            self._builder.add_boundary("compaction", at=at, line=number)


class PiFollower:
    """Finds the compactions and branches in a pi file."""

    marks: tuple[bytes, ...] = ()

    def __init__(self, builder: TrailBuilder) -> None:
        self._builder = builder
        self._level = ""
        self._asked_at = ""
        """The thinking level when the newest message was sent to the model."""
        self._answered_at = ""
        """The thinking level of the last request."""

    def line(self, number: int, line: bytes) -> None:
        """Read a line. Raise `msgspec.MsgspecError` if it is damaged."""
        record = _pi(line)
        at = seconds_of(record.timestamp)
        if record.thinking_level is not None:
            self._level = record.thinking_level
        if record.type == "compaction":
            before = record.tokens_before
            self._builder.add_boundary(
                "compaction",
                at=at,
                line=number,
                tokens_before=int(before) if before is not None and 0 < before < 1e12 else None,
            )
        elif record.type == "branch_summary":
            self._builder.change(MAIN, "messages")
        elif record.type == "message" and record.message:
            message = _pi_message(record.message)
            own = seconds_of(message.timestamp)
            place = Place(at=at if own is None else own, line=number, entry_id=record.id)
            if message.role == "user":
                self._builder.see(MAIN, AFTER_A_PROMPT)
            if message.role != "assistant":
                self._asked_at = self._level
                return
            if self._answered_at and self._answered_at != self._asked_at:
                self._builder.see(MAIN, "thinking changed")
            self._answered_at = self._asked_at
            if not self._builder.place_requests(place):
                # An answer without tokens was interrupted.
                self._builder.touch(MAIN, place.at)


class GeminiFollower:
    """Finds the compactions and rewinds in a Gemini CLI file."""

    marks: tuple[bytes, ...] = (b"<state_snapshot>", b"$rewindTo")

    def __init__(self, builder: TrailBuilder) -> None:
        self._builder = builder
        self._snapshots: set[bytes] = set()

    def line(self, number: int, line: bytes) -> None:
        """Read a line. Raise `msgspec.MsgspecError` if it is damaged."""
        record = _gemini(line)
        at = seconds_of(record.timestamp)
        self._builder.place_requests(Place(at=at, line=number, entry_id=record.id))
        change = bytes(record.change)
        if b"<state_snapshot>" in change:
            # Later records repeat the snapshot.
            _, _, text = change.partition(b"<state_snapshot>")
            snapshot = text.partition(b"</state_snapshot>")[0]
            if snapshot not in self._snapshots:
                self._snapshots.add(snapshot)
                self._builder.add_boundary("compaction", at=at, line=number)
        if record.rewind_to:
            self._builder.change(MAIN, "messages")


FOLLOWERS: Mapping[str, Callable[[TrailBuilder], Follower]] = {
    "codex": CodexFollower,
    "pi": PiFollower,
    "gemini-cli": GeminiFollower,
}
"""Agent -> what follows its files."""
