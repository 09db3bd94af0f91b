"""Files in which a hook keeps what it knows about a session between runs: its state, and the messages that a
compaction would remove.

The files are in `hooks/` below the data folder, readable by the owner only. A session's id is never used as a
path: the file name is computed as for journals.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from struct import Struct as Packing
from typing import Final, Literal

import msgspec
from msgspec import Struct

from compactd import __version__
from compactd.core.extract.facts import Facts
from compactd.formats.agents.claude_code_queue import Between
from compactd.storage import files
from compactd.storage.hook_files import FOLDER
from compactd.storage.paths import data_folder, file_stem

VERSION: Final = f"2 {__version__}"
"""The version of the stored data. Data of another release is not used, because that release may split
messages into lines in another way.
"""
_ENDINGS: Final = (".json", ".stretch", ".gone", ".ids", ".wait", ".line", ".lock")
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
    """How many bytes were read. It is the beginning of a line, unless `inside` is set."""
    inside: bool = False
    """Whether the position is in the middle of a line that is too long to read."""
    head: str = ""
    """A checksum of the first bytes."""
    tail: str = ""
    """A checksum of the last bytes before `offset`."""


CompactionReporter = Literal["record", "after", "start"]
"""What reports a compaction: a record of the transcript, the event after it, or the start of the session that
follows it.
"""
REPORTERS: Final[tuple[CompactionReporter, ...]] = ("record", "after", "start")


class RetentionShares(Struct, frozen=True, array_like=True):
    """Shares of the details that were used again, 0 to 1."""

    summary: float
    """The share that the agent's own summary contains."""
    together: float
    """The share that the summary and the restored text contain together."""


class HookState(Struct, kw_only=True, omit_defaults=True):
    """The state of one session of one agent."""

    v: str = VERSION
    session_id: str = ""
    place: ReadPosition = ReadPosition()
    is_caught_up: bool = False
    """Whether everything that existed when the session was first seen has been read."""
    learn_from: int = 0
    """An offset in the transcript. Messages before it were compacted away long ago: they are stored, but
    their facts are not collected.
    """
    folder: str = ""
    """The session's working directory, from its first event."""
    entries: int = 0
    """The number of entries in the mirror's journal."""
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
    """How many runs tried to restore them. A run that takes too long is ended."""
    are_limits_given: bool = False
    """Whether the user's constraints were restored alone, because finding the other facts took too long."""
    is_told: bool = False
    """Whether `summary` and `stays`, which the agent kept at the last compaction, are known."""
    summary: str = ""
    stays: str = ""
    """What the agent kept in addition to its summary."""
    stayed: list[str] = msgspec.field(default_factory=list)
    """Entry ids of the removed messages that the agent says it kept."""
    kept: RetentionShares | None = None
    """How much of the details the last compaction kept whose facts were restored."""
    turns: int = 0
    """The number of prompts since the last compaction."""
    calls: dict[str, str] = msgspec.field(default_factory=dict)
    """Call id -> name of calls whose results have not arrived."""
    between: Between | None = None
    """What the next piece of the transcript needs to know about the part that was read."""
    stretch_bytes: int = 0
    carried_bytes: int = 0
    """How many bytes at the beginning of the stretch (see `mirror.py`) are from before the last
    compaction.
    """
    gone_bytes: int = 0


class MirroredMessage(Struct, frozen=True, array_like=True):
    """A message of the agent's session and its facts, as stored in the stretch and in *gone*
    (`mirror.py`).
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
    """Write `data` after the first `size_bytes` of a file and discard what a killed run left there.

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
    """Remove the files of sessions without events for `FORGET_S`."""
    for path in folder.glob("*.json"):
        try:
            if now - path.stat().st_mtime > FORGET_S:
                for ending in _ENDINGS:
                    path.with_suffix(ending).unlink(missing_ok=True)
        except OSError:
            continue
