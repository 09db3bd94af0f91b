"""The files that an agent's hook keeps about a session: clean them for `session/redact` and `session/delete`.

The hook reads and writes these files (`integrations/hooks/hook_state.py`). This module cleans them while it
holds the hook's lock.

It also keeps lists of redacted content, as hashes. With one list per session and one per agent, the hook does
not add redacted content again when it reads the agent's transcript again. With one list for all sessions, an
import can give a warning.
"""

from __future__ import annotations

import contextlib
import os
import time
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Raw, Struct

from compactd.storage import files
from compactd.storage.locks import Lock, take_lock
from compactd.storage.paths import file_stem

FOLDER: Final = "hooks"
REDACTIONS: Final = "redactions"
"""The folder below the data folder that contains the list of what was redacted in all sessions."""
ALL: Final = "all"
AGENTS: Final = ("claude-code", "codex", "gemini-cli")
"""Agents whose sessions a hook mirrors. The mirror's id begins with the agent's name and a colon."""
KEY: Final = "redacted.key"
"""The file with the random key of the keyed hashes. It is created once per folder of lists."""
KEY_BYTES: Final = 32
STATE, STRETCH, GONE, WAIT, IDS, REDACTED = ".json", ".stretch", ".gone", ".wait", ".ids", ".redacted"
MODULE, PAST, READY = ".module", ".past", ".ready"
SHOWN, SHOWN_LINES = ".shown", ".lines"
"""The endings of the files with what a context shows of tool outputs. Those of a sub-agent have a hash of its
id between the two."""
_NUMBERS: Final = (
    "v",
    "session_id",
    "place",
    "is_caught_up",
    "learn_from",
    "counts",
    "compactions",
    "reduced",
    "observed",
)
"""The fields of the hook's state that contain no text of the conversation, such as how far the transcript was
read."""
LOCK_S: Final = 10.0
"""The most seconds to wait for the hook's lock. A hook ends itself after two seconds."""
LOCK_STEP_S: Final = 0.01


class Redactions(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A list of redacted content that must not come back. It contains hashes, not the content."""

    keys: tuple[int, ...] = ()
    """Hashes (`message_key`) of the ids, bytes and contents of redacted messages and summaries. Only lists
    that earlier versions wrote have them."""
    keyed: tuple[int, ...] = ()
    """Keyed hashes (`with_key`) of the `message_key` hashes. Without the key, a short secret cannot be
    guessed from them."""
    transcript: str = ""
    """The path of the agent's transcript that the hook saw last."""


class Hashed(Struct, frozen=True):
    """The combined content of several lists of redactions, for quick look-ups. `secret` is the key of the
    hashes in `keyed`."""

    keys: frozenset[int] = frozenset()
    keyed: frozenset[int] = frozenset()
    secret: bytes = b""

    def contains(self, key: int) -> bool:
        """Return true if the content whose hash (`message_key`) is `key` was redacted. O(1)."""
        return key in self.keys or (bool(self.keyed) and with_key(key, self.secret) in self.keyed)

    def __bool__(self) -> bool:
        return bool(self.keys or self.keyed)


class _Place(Struct, frozen=True):
    path: str = ""


class _State(Struct, frozen=True):
    place: _Place = _Place()


class HookIsBusy(Exception):
    """Another process has held the hook's lock for longer than a hook may run."""


def message_key(of: str | bytes) -> int:
    """Return a 64-bit hash of some content, by which the content can be recognised without being stored."""
    data = of if isinstance(of, bytes) else of.encode("utf-8", "replace")
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little")


def with_key(key: int, secret: bytes) -> int:
    """Return the keyed hash of a `message_key` hash. `secret` is the folder's random key."""
    hashed = blake2b(key.to_bytes(8, "little"), digest_size=8, key=secret)
    return int.from_bytes(hashed.digest(), "little")


def is_mirror(session_id: str) -> bool:
    """Return true if this session mirrors an agent's session, so that a hook writes it."""
    return session_id.partition(":")[0] in AGENTS and ":" in session_id


class HookFiles:
    """The files that the hook keeps about one session, below the data folder `home`."""

    def __init__(self, home: Path, session_id: str) -> None:
        self._home = home
        self._folder = home / FOLDER
        self._stem = file_stem(session_id)
        self._agent = session_id.partition(":")[0]

    def path(self, ending: str) -> Path:
        """Return the path of the session's hook file with this ending. It need not exist."""
        return self._folder / (self._stem + ending)

    @property
    def journal_path(self) -> Path:
        """The path of the session's journal. It need not exist."""
        return self._home / "sessions" / f"{self._stem}.jsonl"

    @property
    def folder(self) -> Path:
        """The folder of the hooks' files. It need not exist."""
        return self._folder

    def shown_paths(self, agent_id: str) -> tuple[Path, Path]:
        """Return the two files of `shown_paths` for this session."""
        return shown_paths(self._folder, self._stem, agent_id)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the hook's lock in this context, so that no hook of the session runs. Blocks. Raises
        `HookIsBusy`, `OSError`.
        """
        files.make_folder(self._folder)
        with _lock(self.path(".lock")):
            yield

    def forget(self) -> None:
        """Remove the conversation's content from the hook's files, for `session/delete`. Call this inside
        `lock`. Raises `OSError`.

        Hashes and the position in the agent's transcript stay, so that the hook does not add the old content
        again when the agent goes on.
        """
        for ending in (STRETCH, GONE, MODULE, PAST, READY, WAIT, ".line"):
            self.path(ending).unlink(missing_ok=True)
        for ending in (STATE, MODULE, READY, WAIT, ".line"):
            self.path(ending + ".new").unlink(missing_ok=True)
        forget_shown(self._folder, self._stem)
        known = _ids_in(self.path(IDS))
        if known or self.path(REDACTED).exists():
            keys = known.difference(self.redactions().keyed)
            _add_to(self._folder, self.path(REDACTED), keys, self.transcript())
            self._key_ids(known)
        with contextlib.suppress(FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError):
            state = msgspec.json.decode(self.path(STATE).read_bytes(), type=dict[str, Raw])
            numbers = {name: value for name, value in state.items() if name in _NUMBERS}
            files.replace_file(self.path(STATE), (msgspec.json.encode(numbers),), durable=True)
        files.sync_folder(self._folder)

    def is_there(self) -> bool:
        """Return true if any hook has ever kept files in this data folder."""
        return self._folder.is_dir()

    def waiting_records(self) -> list[bytes]:
        """Return the records that wait to be written to the journal, oldest first."""
        try:
            return [line for line in self.path(WAIT).read_bytes().split(b"\n") if line]
        except OSError:
            return []

    def redactions(self) -> Redactions:
        """Return the session's list of redacted content."""
        return read_redactions(self.path(REDACTED))

    def other_journals(self, keys: Sequence[int]) -> list[Path]:
        """Return the journals of this agent's other sessions, for example of a fork, that still contain
        content with one of the hashes `keys`. O(bytes of the agent's lists of hashes).
        """
        found: list[Path] = []
        for path in sorted(self._folder.glob("*" + IDS)):
            journal = self._home / "sessions" / f"{path.stem}.jsonl"
            is_of_agent = path.stem.startswith(f"{self._agent}-") and path.stem != self._stem
            if is_of_agent and journal.exists():
                redacted = read_hashed(self._folder, path.with_suffix(REDACTED))
                if not _ids_in(path).isdisjoint(key for key in keys if not redacted.contains(key)):
                    found.append(journal)
        return found

    def transcript(self) -> str:
        """Return the path of the agent's transcript, or an empty string if the hook never saw one."""
        try:
            found = msgspec.json.decode(self.path(STATE).read_bytes(), type=_State).place.path
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            found = ""
        return found or self.redactions().transcript

    def redact(self, keys: Sequence[int], waiting: Mapping[int, bytes]) -> None:
        """Remove copies of messages from the hook's files, and make the hook ignore the content with the
        hashes `keys` later. The changes are on disk when this returns.

        `waiting` has the new bytes of records that wait to be written to the journal, by their position in
        `waiting_records`; the other records stay. At its next event, the hook reads the whole transcript
        again. Call this inside `lock`. Raises `OSError`, `HookIsBusy`.
        """
        # Do this first: no hook adds the content again after this, even if this process is killed.
        of_agent = of_all_sessions(self._folder, self._agent)
        with _lock(of_agent.with_suffix(".lock")):
            _add_to(self._folder, of_agent, keys, "")
        _add_to(self._folder, self.path(REDACTED), keys, self.transcript())
        self._key_ids(keys)
        if self.path(STATE).exists():
            files.replace_file(self.path(STATE), (b"{}",), durable=True)
        for ending in (STRETCH, GONE, MODULE, PAST, READY, STATE + ".new", MODULE + ".new", READY + ".new"):
            self.path(ending).unlink(missing_ok=True)
        forget_shown(self._folder, self._stem)
        if waiting:
            records = [waiting.get(at, record) for at, record in enumerate(self.waiting_records())]
            files.replace_file(self.path(WAIT), (record + b"\n" for record in records), durable=True)
        files.sync_folder(self._folder)

    def _key_ids(self, keys: Collection[int]) -> None:
        """Replace the hashes of redacted messages (`keys`) by keyed hashes, in the hook's list of the
        messages that it knows.
        """
        path, secret = self.path(IDS), _ensure_key(self._folder)
        known = _ids_in(path)
        wanted = {key for key in keys if key in known and key not in self.redactions().keyed}
        if wanted:
            ids = array("Q", [with_key(key, secret) if key in wanted else key for key in known])
            files.replace_file(path, (ids.tobytes(),), durable=True)


def shown_paths(folder: Path, stem: str, agent_id: str) -> tuple[Path, Path]:
    """Return the two files with what a context shows of tool outputs: that of the session, or of its
    sub-agent `agent_id`. `stem`: the beginning of the names of the session's files.
    """
    whose = f"-{message_key(agent_id):016x}" if agent_id else ""
    return folder / f"{stem}{SHOWN}{whose}", folder / f"{stem}{SHOWN}{whose}{SHOWN_LINES}"


def forget_shown(folder: Path, stem: str, agent_id: str | None = None) -> None:
    """Remove the files of `shown_paths`; with None, those of the session and of all its sub-agents. Raises
    `OSError`.
    """
    # A stem has no characters with a meaning in a pattern (`storage/paths.file_stem`).
    found = folder.glob(f"{stem}{SHOWN}*") if agent_id is None else shown_paths(folder, stem, agent_id)
    for path in list(found):
        path.unlink(missing_ok=True)


def remember_redacted(home: Path, keys: Collection[int]) -> None:
    """Add hashes of redacted content to the list for all sessions, so that an import of the same content
    gives a warning.

    Blocks. The list is on disk when this returns. Raises `HookIsBusy`, `OSError`.
    """
    folder = home / REDACTIONS
    files.make_folder(folder)
    with _lock(folder / (ALL + ".lock")):
        _add_to(folder, folder / (ALL + REDACTED), keys, "")


def read_redacted(home: Path) -> Hashed:
    """Return the list of what was redacted in any session of the data folder. Blocks.
    O(redacted messages).
    """
    folder = home / REDACTIONS
    return read_hashed(folder, folder / (ALL + REDACTED))


def read_hashed(folder: Path, *paths: Path) -> Hashed:
    """Read the lists of redactions at `paths`, and return their combined content. `folder` contains the key
    of their hashes.
    """
    lists = [read_redactions(path) for path in paths]
    keyed = frozenset(key for one in lists for key in one.keyed)
    secret = _key_in(folder) if keyed else b""
    return Hashed(
        frozenset(key for one in lists for key in one.keys), keyed if secret else frozenset(), secret
    )


def _add_to(folder: Path, path: Path, keys: Collection[int], transcript: str) -> None:
    """Add the hashes `keys` to the list of redactions at `path`, as keyed hashes, and set its `transcript`.
    Plain hashes that an earlier version wrote become keyed hashes too.
    """
    secret = _ensure_key(folder)
    before = read_redactions(path)
    added = (with_key(key, secret) for key in (*before.keys, *keys))
    all_ = Redactions(keyed=tuple(dict.fromkeys((*before.keyed, *added))), transcript=transcript)
    files.replace_file(path, (msgspec.json.encode(all_),), durable=True)


def _key_in(folder: Path) -> bytes:
    try:
        return (folder / KEY).read_bytes()[:KEY_BYTES]
    except OSError:
        return b""


def _ensure_key(folder: Path) -> bytes:
    """Return the random key in `folder`, and create it at the first use. Raises `HookIsBusy`, `OSError`."""
    if not _key_in(folder):
        with _lock((folder / KEY).with_suffix(".lock")):
            if not _key_in(folder):
                files.replace_file(folder / KEY, (os.urandom(KEY_BYTES),), durable=True)
                files.sync_folder(folder)
    return _key_in(folder)


def of_all_sessions(folder: Path, agent: str) -> Path:
    """Return the path of an agent's list of redactions: what was redacted in any of its sessions."""
    return folder / (agent + REDACTED)


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    end = time.monotonic() + LOCK_S
    while not isinstance(lock := take_lock(path), Lock):
        if time.monotonic() > end:
            raise HookIsBusy
        time.sleep(LOCK_STEP_S)
    try:
        yield
    finally:
        lock.release()


def _ids_in(path: Path) -> set[int]:
    known = array("Q")
    with contextlib.suppress(FileNotFoundError):
        data = path.read_bytes()
        known.frombytes(data[: len(data) // known.itemsize * known.itemsize])
    return set(known)


def read_redactions(path: Path) -> Redactions:
    """Read the list of redactions at `path`. Return an empty list if the file is missing or unreadable."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Redactions)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return Redactions()
