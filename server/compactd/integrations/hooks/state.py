"""What a hook knows of a session from its last run: a small file, beside it the messages that a compaction
would remove, each with what is known of it.

Below the data folder, in `hooks/`, for the owner alone. A session's id is never a path: it gives a name as a
journal's does.
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
"""Of what is kept: another release may part a message into other units."""
_ENDINGS: Final = (".json", ".stretch", ".gone", ".ids", ".wait", ".line", ".lock")
"""Of what is forgotten. What was redacted is not: the transcript may hold it still."""
FORGET_S: Final = 45 * 86_400
"""A session that told nothing for so long is forgotten; its journal stays."""

_LENGTH: Final = Packing("<I")


class Place(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far a transcript was read, and how it is known to be the same file still."""

    path: str = ""
    offset: int = 0
    """Bytes; always the beginning of a line, unless `inside`."""
    inside: bool = False
    """In the middle of a line that is too long to be taken in."""
    head: str = ""
    """Of the first bytes, and how many they are."""
    tail: str = ""
    """Of the last bytes before `offset`, and how many they are."""


Teller = Literal["record", "after", "start"]
"""Who tells of a compaction: the transcript, the event at its end, the start that follows it."""
TELLERS: Final[tuple[Teller, ...]] = ("record", "after", "start")


class Kept(Struct, frozen=True, array_like=True):
    """Shares of what was used again, 0 to 1."""

    summary: float
    """Of it in the agent's own summary."""
    together: float
    """In that and what was put back."""


class State(Struct, kw_only=True, omit_defaults=True):
    """What is known of one session of one agent."""

    v: str = VERSION
    session_id: str = ""
    place: Place = Place()
    is_caught_up: bool = False
    """All that was there when the session was first seen has been read."""
    learn_from: int = 0
    """What stands before it in the transcript was compacted away long ago: stored, not weighed."""
    folder: str = ""
    """The session's working directory, as the first event told it."""
    entries: int = 0
    """Entries in the mirror's journal."""
    epoch: int = 1
    journal_bytes: int = 0
    journal_records: int = 0
    counts: dict[str, int] = msgspec.field(default_factory=dict)
    """Compactions by who told of them: the same one is told of by up to three."""
    compactions: int = 0
    is_pending: bool = False
    """The last compaction's facts were not given back yet."""
    attempts: int = 0
    """How often it was begun to work them out: a run that takes too long is ended."""
    are_limits_given: bool = False
    """The user's constraints were given back by themselves, because the rest took too long."""
    is_told: bool = False
    """What the agent kept of it is known."""
    summary: str = ""
    stays: str = ""
    """What the agent kept beside its summary."""
    stayed: list[str] = msgspec.field(default_factory=list)
    """Those of the messages that are gone whose ids the agent says it kept."""
    kept: Kept | None = None
    """Of the last compaction whose facts were given back."""
    turns: int = 0
    """Prompts since the last compaction."""
    calls: dict[str, str] = msgspec.field(default_factory=dict)
    """Names of calls whose results did not come yet, by their ids."""
    between: Between | None = None
    """What is to be known of the part of the transcript that was read."""
    stretch_bytes: int = 0
    carried_bytes: int = 0
    """Of those, what stands there from before the last compaction."""
    gone_bytes: int = 0


class Held(Struct, frozen=True, array_like=True):
    """A message and what is known of it."""

    entry_id: str
    message: bytes
    """In neutral shape."""
    tokens: int
    client_id: str
    facts: Facts
    is_typed: bool
    """A person's words."""
    is_summary: bool


class Files:
    """The files of one session."""

    def __init__(self, folder: Path, stem: str) -> None:
        self.folder = folder
        self.stem = stem

    def path(self, ending: str) -> Path:
        return self.folder / (self.stem + ending)


def hooks_folder(environ: Mapping[str, str]) -> Path:
    """Where hooks keep what they know. It need not be there."""
    return data_folder(environ) / FOLDER


def mirror_id(agent: str, session_id: str) -> str:
    """The session under which the mirror of an agent's session is stored."""
    return f"{agent}:{session_id}"


def files_of(environ: Mapping[str, str], agent: str, session_id: str) -> Files:
    return Files(hooks_folder(environ), file_stem(mirror_id(agent, session_id)))


def load(files_: Files) -> State:
    """What was saved; a state that cannot be read is a new one."""
    try:
        found = msgspec.json.decode(files_.path(".json").read_bytes(), type=State)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return State()
    return found if found.v == VERSION else State()


def save(files_: Files, state: State) -> None:
    """All or nothing. Raises `OSError`."""
    files.write_beside(files_.path(".json"), (msgspec.json.encode(state),), durable=False)


def framed(held: Held) -> bytes:
    """As it stands in a file."""
    data = msgspec.msgpack.encode(held)
    return _LENGTH.pack(len(data)) + data


def read_held(path: Path, size_bytes: int) -> list[Held]:
    """The messages in the first `size_bytes` of a file; those up to the first that is not whole. O(bytes)."""
    try:
        with path.open("rb") as file:
            data = memoryview(file.read(size_bytes))
    except OSError:
        return []
    return list(_frames(data))


def by_client_id(held: Iterable[Held]) -> dict[str, Held]:
    """Those that the agent gave ids."""
    return {one.client_id: one for one in held if one.client_id}


def _frames(data: memoryview) -> Iterator[Held]:
    decode = msgspec.msgpack.Decoder(Held).decode
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
    """Puts `data` behind the first `size_bytes` of a file, whatever a run that was killed left there; the new
    size. Raises `OSError`."""
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
    """Removes what is known of sessions that told nothing for `FORGET_S`."""
    for path in folder.glob("*.json"):
        try:
            if now - path.stat().st_mtime > FORGET_S:
                for ending in _ENDINGS:
                    path.with_suffix(ending).unlink(missing_ok=True)
        except OSError:
            continue
