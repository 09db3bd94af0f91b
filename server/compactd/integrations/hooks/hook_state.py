"""Files in which a hook keeps what it knows about a session between runs: its state, and the messages that a
compaction would remove.

The files are in `hooks/` below the data folder, readable by the owner only. A session's id is never used as a
path: the file name is computed as for journals.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from struct import Struct as Packing
from typing import Final, Literal

import msgspec
from msgspec import Struct

from compactd import __version__
from compactd.core.extract.facts import Facts
from compactd.formats.agents.claude_code_queue import Between
from compactd.integrations.hooks.compaction_mark import CompactionMark
from compactd.integrations.hooks.output_counts import OutputCounts
from compactd.integrations.hooks.reduced_notes import OutputNote
from compactd.storage import files
from compactd.storage.hook_files import FOLDER, forget_shown
from compactd.storage.paths import data_folder, file_stem

VERSION: Final = f"2 {__version__}"
"""The version of the stored data. Data of another release is not used, because that release may split
messages into lines in another way.
"""
_ENDINGS: Final = (
    ".json",
    ".stretch",
    ".gone",
    ".past",
    ".module",
    ".ready",
    ".ids",
    ".wait",
    ".line",
    ".lock",
)
"""Endings of the files that `forget_old` removes. The list of redacted messages is kept, because the
transcript may still contain them.
"""
FORGET_S: Final = 45 * 86_400
"""A session without events for this many seconds is forgotten. Its journal stays."""

_LENGTH: Final = Packing("<I")


class ReadPosition(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far a transcript was read, and how to recognise that it is still the same file."""

    path: str = ""
    offset: int = 0
    """How many bytes were read. The next byte begins a line, unless `inside` is true."""
    inside: bool = False
    """Whether the position is in the middle of a line that is too long to read."""
    head: str = ""
    """A checksum of the first bytes."""
    tail: str = ""
    """A checksum of the last bytes before `offset`."""


CompactionReporter = Literal["record", "after", "start"]
"""What reports a compaction: a `record` in the transcript, the agent's event `after` the compaction, or the
session's `start` event, which an agent sends again after a compaction.
"""
REPORTERS: Final[tuple[CompactionReporter, ...]] = ("record", "after", "start")


class RetentionShares(Struct, frozen=True, array_like=True):
    """Shares, from 0 to 1, of the atoms in the removed messages that are in the context after a compaction.
    Only atoms count that occurred in at least two messages or that the user wrote.
    """

    summary: float
    """The share that is in what the agent kept: its summary, and messages next to it."""
    together: float
    """The share that is in what the agent kept or in the text that the hook restored."""


class HookState(Struct, kw_only=True, omit_defaults=True):
    """The state of one session of one agent."""

    v: str = VERSION
    session_id: str = ""
    place: ReadPosition = ReadPosition()
    is_caught_up: bool = False
    """Whether the hook has read the transcript to its end at least once."""
    learn_from: int = 0
    """An offset in the transcript. Messages before it were compacted away long ago: they are stored, but
    their facts are not collected.
    """
    folder: str = ""
    """The session's working directory, from its first event."""
    entries: int = 0
    """The number of entries in the mirror's journal."""
    newest: str | None = None
    """The id of the newest entry that is a message or a compaction; empty if there is none. None in a state
    of an earlier version, whose entries all are.
    """
    epoch: int = 1
    journal_bytes: int = 0
    journal_records: int = 0
    counts: dict[str, int] = msgspec.field(default_factory=dict)
    """How many compactions each `CompactionReporter` has reported. Up to three of them report the same
    compaction."""
    compactions: int = 0
    is_pending: bool = False
    """Whether the facts that the last compaction removed must still be restored."""
    attempts: int = 0
    """How many runs have tried to restore the facts of the last compaction. A run that takes too long is
    ended, and the next run tries again.
    """
    are_limits_given: bool = False
    """Whether a run has prepared an answer with the user's constraints alone, to be given if finding the
    other facts takes too long. No later run prepares such an answer for the same compaction.
    """
    is_told: bool = False
    """Whether `summary` and `stays`, which the agent kept at the last compaction, are known."""
    summary: str = ""
    stays: str = ""
    """What the agent kept in addition to its summary."""
    stayed: list[str] = msgspec.field(default_factory=list)
    """Entry ids of messages from before the last compaction that the agent says it kept."""
    kept: RetentionShares | None = None
    """The shares measured when facts were last restored; None if there is no measurement."""
    turns: int = 0
    """The number of prompts since the last compaction."""
    calls: dict[str, str] = msgspec.field(default_factory=dict)
    """Call id -> name of calls whose results have not arrived."""
    outputs: dict[str, list[OutputNote]] = msgspec.field(default_factory=dict)
    """Call id -> reduced outputs whose messages have not arrived."""
    reduced: OutputCounts = OutputCounts()
    """What was left out of tool outputs."""
    observed: OutputCounts = OutputCounts()
    """What would have been left out of tool outputs."""
    ignored: int = 0
    """How often, one after the other, the agent has shown an original instead of the reduced text."""
    between: Between | None = None
    """What the next piece of the transcript needs to know about the part that was read."""
    stretch_bytes: int = 0
    carried_bytes: int = 0
    """How many bytes at the beginning of the file `.stretch` (the messages in the agent's context) come from
    before the last compaction or contain its summary.
    """
    gone_bytes: int = 0
    mark: CompactionMark | None = None
    is_inner_compaction: bool = False
    """Whether the compaction that the events are about is that of a sub-agent's own conversation."""
    """The compaction that has begun, if the agent says so before it is done."""
    inner: dict[str, float] = msgspec.field(default_factory=dict)
    """Sub-agent -> the Unix time at which it began to compact its own conversation, until that is done."""


class MirroredMessage(Struct, frozen=True, array_like=True):
    """A message of the agent's session and its facts, as stored in the files `.stretch` (the messages in the
    agent's context) and `.gone` (the messages that the last compaction removed).
    """

    entry_id: str
    message: bytes
    """The message in neutral form."""
    tokens: int
    client_id: str
    facts: Facts
    is_typed: bool
    """Whether a person typed the message."""
    is_summary: bool


class HookStateFiles:
    """The paths of the files that belong to one session of an agent."""

    def __init__(self, folder: Path, stem: str) -> None:
        self.folder = folder
        self.stem = stem

    def path(self, ending: str) -> Path:
        """Return the path of the session's file with this ending."""
        return self.folder / (self.stem + ending)

    @property
    def socket_path(self) -> Path:
        """The socket of the process that reads the session ahead (`ahead.py`). Its name is short, because the
        system limits the length of the path to about 100 bytes.
        """
        return self.folder / f"{zlib.crc32(self.stem.encode()):08x}.ahead"


def hooks_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder of the hooks' files. It need not exist."""
    return data_folder(environ) / FOLDER


def mirror_id(agent: str, session_id: str) -> str:
    """Return the id of the compactd session that mirrors an agent's session."""
    return f"{agent}:{session_id}"


def files_of(environ: Mapping[str, str], agent: str, session_id: str) -> HookStateFiles:
    """Return the files of an agent's session."""
    return HookStateFiles(hooks_folder(environ), file_stem(mirror_id(agent, session_id)))


def load(files_: HookStateFiles) -> HookState:
    """Return the saved state of a session; a new state if there is none that this release can read."""
    try:
        found = msgspec.json.decode(files_.path(".json").read_bytes(), type=HookState)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return HookState()
    return found if found.v == VERSION else HookState()


def save(files_: HookStateFiles, state: HookState) -> None:
    """Save the state completely or not at all. Raise `OSError`."""
    files.replace_file(files_.path(".json"), (msgspec.json.encode(state),), durable=False)


def frame_message(held: MirroredMessage) -> bytes:
    """Encode a message for a file, with its length in front."""
    data = msgspec.msgpack.encode(held)
    return _LENGTH.pack(len(data)) + data


def read_messages_file(path: Path, size_bytes: int) -> list[MirroredMessage]:
    """Read the messages in the first `size_bytes` of a file, up to the first incomplete one. O(bytes)."""
    try:
        with path.open("rb") as file:
            data = memoryview(file.read(size_bytes))
    except OSError:
        return []
    return list(_frames(data))


def by_client_id(held: Iterable[MirroredMessage]) -> dict[str, MirroredMessage]:
    """Return the messages to which the agent gave an id, by that id."""
    return {one.client_id: one for one in held if one.client_id}


def _frames(data: memoryview) -> Iterator[MirroredMessage]:
    decode = msgspec.msgpack.Decoder(MirroredMessage).decode
    at = 0
    while at + _LENGTH.size <= len(data):
        (length,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size
        if at + length > len(data):
            return
        try:
            yield decode(data[at : at + length])
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return
        at += length


def append(path: Path, size_bytes: int, data: bytes) -> int:
    """Write `data` after the first `size_bytes` of a file, and discard what a killed run left after them. If
    the file is shorter than that, discard all of it.

    Return the new size. Raise `OSError`.
    """
    fd = files.open_private(path, os.O_RDWR | os.O_CREAT)
    try:
        if os.fstat(fd).st_size < size_bytes:
            size_bytes = 0
        os.ftruncate(fd, size_bytes)
        os.lseek(fd, size_bytes, os.SEEK_SET)
        files.write_all(fd, (data,))
    finally:
        os.close(fd)
    return size_bytes + len(data)


def forget_old(folder: Path, now: float) -> None:
    """Remove the files in `folder` of sessions without events in the `FORGET_S` seconds before `now`."""
    for path in folder.glob("*.json"):
        try:
            if now - path.stat().st_mtime > FORGET_S:
                forget_shown(folder, path.stem)
                for ending in _ENDINGS:
                    path.with_suffix(ending).unlink(missing_ok=True)
        except OSError:
            continue
