"""Store what Claude Code's plugin module and the hooks tell each other about one session.

The plugin's module handles Claude Code's event `session.compact`; the hooks run at the events around it. The
file `.module` says what the module did last, and the file `.past` contains the messages that earlier
compactions by the module removed, with their facts.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec
from msgspec import Struct

from compactd.core.text.message_text import join_text_blocks
from compactd.integrations.hooks.hook_state import (
    HookStateFiles,
    MirroredMessage,
    RetentionShares,
    append,
    frame_message,
    read_messages_file,
)
from compactd.protocol.messages import Message, ToolCall, ToolResult
from compactd.storage import files
from compactd.storage.hook_files import MODULE, PAST, READY, REDACTED, of_all_sessions

COMPLETING_S: Final = 900.0
"""For this many seconds after the module said that it will add the lost facts, no hook adds them. Claude
Code's own compaction takes up to a few minutes."""
REPLACING_S: Final = 120.0
"""A compaction by the module is reported by an event of Claude Code within this many seconds; otherwise it
did not happen."""
KEY_CHARS: Final = 200
MAX_PAST_TOKENS: Final = 400_000
"""The most tokens of messages in the file `.past`. What a person typed is kept beyond that."""


class ModuleAction(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the module did last."""

    step: Literal["replace", "complete"]
    """`replace`: it answered Claude Code with compactd's summary. `complete`: it waits for Claude Code's own
    compaction, to add what the summary lost."""
    at: float
    summary: str = ""
    kept: tuple[str, ...] = ()
    """Keys (`message_keys`) of the messages that stayed next to `summary`."""
    shares: RetentionShares | None = None


class PreparedSummary(Struct, frozen=True, kw_only=True):
    """A summary that was written before the compaction, of all messages before `first_kept`."""

    summary: str
    first_kept: tuple[str, ...]
    """The keys (`message_keys`) of the first message that the summary is not about."""
    compactions: int
    """How many compactions the session had. After another one, the summary is of no use."""
    shares: RetentionShares | None = None


class _Stored(Struct, kw_only=True, omit_defaults=True):
    action: ModuleAction | None = None
    copies: tuple[str, ...] = ()


def message_keys(message: Message) -> tuple[str, ...]:
    """Return the keys by which a mirrored message and the module's message are recognised as the same one:
    the ids of its calls and results; the beginning of its text if it has none. O(blocks)."""
    ids = [
        f"call:{block.call_id}" if isinstance(block, ToolCall) else f"result:{block.call_id}"
        for block in message.content
        if isinstance(block, (ToolCall, ToolResult))
    ]
    return tuple(ids) or text_keys(message.role, join_text_blocks(message.content))


def text_keys(role: str, text: str) -> tuple[str, ...]:
    """Return the key of a message without calls and results."""
    head = text.lstrip().partition("\n")[0][:KEY_CHARS].rstrip()
    return (f"{role}:{head}",) if head else ()


def _load(files_: HookStateFiles) -> _Stored:
    try:
        return msgspec.json.decode(files_.path(MODULE).read_bytes(), type=_Stored)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return _Stored()


def _save(files_: HookStateFiles, stored: _Stored) -> None:
    if stored == _Stored():
        files_.path(MODULE).unlink(missing_ok=True)
    else:
        files.replace_file(files_.path(MODULE), (msgspec.json.encode(stored),), durable=False)


def read_action(files_: HookStateFiles, now: float) -> ModuleAction | None:
    """Return what the module did last; None if it did nothing, or if that was too long before `now`."""
    action = _load(files_).action
    if action is None:
        return None
    most = REPLACING_S if action.step == "replace" else COMPLETING_S
    return action if 0 <= now - action.at < most else None


def write_action(files_: HookStateFiles, action: ModuleAction | None) -> None:
    """Store what the module did; None to forget it. A prepared summary is forgotten too if the module used
    it."""
    stored = _load(files_)
    if stored.action != action:
        stored.action = action
        _save(files_, stored)


def read_prepared(files_: HookStateFiles, compactions: int) -> PreparedSummary | None:
    """Return the summary that was prepared after `compactions` compactions; None if there is none."""
    try:
        found = msgspec.json.decode(files_.path(READY).read_bytes(), type=PreparedSummary)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    return found if found.compactions == compactions else None


def write_prepared(files_: HookStateFiles, prepared: PreparedSummary) -> None:
    """Store a prepared summary. Raise `OSError`."""
    files.replace_file(files_.path(READY), (msgspec.json.encode(prepared),), durable=False)


def redactions_mark(files_: HookStateFiles, agent: str) -> tuple[float, ...]:
    """Return numbers that change when something is redacted in a session of this agent."""
    paths = (files_.path(REDACTED), of_all_sessions(files_.folder, agent))
    return tuple(path.stat().st_mtime if path.exists() else 0.0 for path in paths)


def write_copies(files_: HookStateFiles, keys: tuple[str, ...]) -> None:
    """Store the keys (`message_keys`) of messages that stayed. Claude Code writes them to the transcript
    again, with new ids, after the record of the compaction (2.1.290 to 2.1.332, run 2026-11)."""
    stored = _load(files_)
    if stored.copies != keys:
        stored.copies = keys
        _save(files_, stored)


def take_copies(files_: HookStateFiles) -> dict[str, int]:
    """Return the keys that `write_copies` stored, with how many of each, and forget them."""
    stored = _load(files_).copies
    found = dict.fromkeys(stored, 0)
    for key in stored:
        found[key] += 1
    if found:
        write_copies(files_, ())
    return found


def read_past(files_: HookStateFiles) -> list[MirroredMessage]:
    """Return the messages that earlier compactions by the module removed, oldest first. O(bytes)."""
    try:
        size = files_.path(PAST).stat().st_size
    except OSError:
        return []
    return read_messages_file(files_.path(PAST), size)


def add_past(files_: HookStateFiles, removed: list[MirroredMessage]) -> None:
    """Add messages that a compaction by the module removed to the file `.past`, and drop the oldest ones
    beyond `MAX_PAST_TOKENS`. Raise `OSError`. O(bytes)."""
    known = {one.entry_id: one for one in read_past(files_)}
    known.update((one.entry_id, one) for one in removed if not one.is_summary)
    left = MAX_PAST_TOKENS
    chosen: list[MirroredMessage] = []
    for one in reversed(known.values()):
        left -= one.tokens
        if left >= 0 or one.is_typed:
            chosen.append(one)
    append(files_.path(PAST), 0, b"".join(frame_message(one) for one in reversed(chosen)))
