"""The files that the hook of an agent keeps of a session, as `session/redact` and `session/delete` see them.

The hook itself reads and writes them (`integrations/hooks/state.py`). Here they are cleaned under the hook's
lock, and a list of what was redacted is kept, so that a transcript that is read again brings nothing back.
The list of all sessions, hook or not, lets an import say what it brings back.
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
from compactd.storage.locks import Lock, take
from compactd.storage.paths import file_stem

FOLDER: Final = "hooks"
REDACTIONS: Final = "redactions"
"""Below the data folder: what was redacted in any session."""
ALL: Final = "all"
AGENTS: Final = ("claude-code", "codex", "gemini-cli")
"""Whose sessions a hook mirrors: the mirror's id begins with the name and a colon."""
KEY: Final = "redacted.key"
"""Random bytes, made once for a data folder."""
KEY_BYTES: Final = 32
STATE, STRETCH, GONE, WAIT, IDS, REDACTED = ".json", ".stretch", ".gone", ".wait", ".ids", ".redacted"
_NUMBERS: Final = ("v", "session_id", "place", "is_caught_up", "learn_from", "counts", "compactions")
"""Of the hook's state: what holds no words, and tells how far the transcript was read."""
LOCK_S: Final = 10.0
"""How long the hook's lock is waited for: a hook ends itself after two seconds."""
LOCK_STEP_S: Final = 0.01


class Redactions(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What must not come back: hashes, no words."""

    keys: tuple[int, ...] = ()
    """`key_of` ids, bytes and contents of messages, and of summaries: in lists of an earlier version."""
    keyed: tuple[int, ...] = ()
    """The same, each hashed once more with the data folder's own key: a short secret cannot be guessed from
    the list alone."""
    transcript: str = ""
    """The agent's transcript, as the hook saw it last."""


class Hashed(Struct, frozen=True):
    """What must not come back, to be asked for one message after the other."""

    keys: frozenset[int] = frozenset()
    keyed: frozenset[int] = frozenset()
    secret: bytes = b""

    def holds(self, key: int) -> bool:
        """Whether what has this `key_of` was redacted. O(1)."""
        return key in self.keys or (bool(self.keyed) and with_key(key, self.secret) in self.keyed)

    def __bool__(self) -> bool:
        return bool(self.keys or self.keyed)


class _Place(Struct, frozen=True):
    path: str = ""


class _State(Struct, frozen=True):
    place: _Place = _Place()


class HookIsBusy(Exception):
    """The hook holds its lock for longer than it ever runs."""


def key_of(of: str | bytes) -> int:
    """By which a message is known again, without its words."""
    data = of if isinstance(of, bytes) else of.encode("utf-8", "replace")
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little")


def with_key(key: int, secret: bytes) -> int:
    """A `key_of`, hashed with the data folder's own key."""
    hashed = blake2b(key.to_bytes(8, "little"), digest_size=8, key=secret)
    return int.from_bytes(hashed.digest(), "little")


def is_mirror(session_id: str) -> bool:
    """Whether a hook writes this session."""
    return session_id.partition(":")[0] in AGENTS and ":" in session_id


class HookFiles:
    """What the hook keeps of one session below the data folder `home`."""

    def __init__(self, home: Path, session_id: str) -> None:
        self._home = home
        self._folder = home / FOLDER
        self._stem = file_stem(session_id)
        self._agent = session_id.partition(":")[0]

    def path(self, ending: str) -> Path:
        return self._folder / (self._stem + ending)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """While inside, no hook of the session runs. Blocks. Raises `HookIsBusy`, `OSError`."""
        files.make_folder(self._folder)
        with _locked(self.path(".lock")):
            yield

    def forget(self) -> None:
        """Removes every word. In `locked`. Raises `OSError`.

        Hashes and the place in the transcript stay: nothing comes back when the agent goes on.
        """
        for ending in (STRETCH, GONE, WAIT, ".line", STATE + ".new", WAIT + ".new", ".line.new"):
            self.path(ending).unlink(missing_ok=True)
        known = _ids_in(self.path(IDS))
        if known or self.path(REDACTED).exists():
            self._add(self.path(REDACTED), known.difference(self.redacted().keyed), self.transcript())
            self._key_ids(known)
        with contextlib.suppress(FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError):
            state = msgspec.json.decode(self.path(STATE).read_bytes(), type=dict[str, Raw])
            numbers = {name: value for name, value in state.items() if name in _NUMBERS}
            files.write_beside(self.path(STATE), (msgspec.json.encode(numbers),), durable=True)
        files.sync_folder(self._folder)

    def is_there(self) -> bool:
        """Whether a hook ever kept anything here."""
        return self._folder.is_dir()

    def waiting(self) -> list[bytes]:
        """The records that wait for the journal, oldest first."""
        try:
            return [line for line in self.path(WAIT).read_bytes().split(b"\n") if line]
        except OSError:
            return []

    def redacted(self) -> Redactions:
        """What was redacted so far."""
        return read_redactions(self.path(REDACTED))

    def others(self, keys: Sequence[int]) -> list[Path]:
        """Journals of other sessions of this agent that took in what `keys` name, as a fork does, and did not
        redact it.
        O(bytes of the agent's hashes)."""
        found: list[Path] = []
        for path in sorted(self._folder.glob("*" + IDS)):
            journal = self._home / "sessions" / f"{path.stem}.jsonl"
            is_of_agent = path.stem.startswith(f"{self._agent}-") and path.stem != self._stem
            if is_of_agent and journal.exists():
                redacted = hashed(self._folder, path.with_suffix(REDACTED))
                if not _ids_in(path).isdisjoint(key for key in keys if not redacted.holds(key)):
                    found.append(journal)
        return found

    def transcript(self) -> str:
        """The agent's own file; empty where the hook never saw one."""
        try:
            found = msgspec.json.decode(self.path(STATE).read_bytes(), type=_State).place.path
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            found = ""
        return found or self.redacted().transcript

    def redact(self, keys: Sequence[int], waiting: Mapping[int, bytes]) -> None:
        """Forgets what the hook holds, but for what `keys` name never to take in again, and the records that
        wait, those at the places in `waiting` written anew. In `locked`. Durable. Raises `OSError`.

        The hook reads the transcript anew at its next event, as after an upgrade.
        """
        # First: from here on no hook takes the words in, wherever we are killed.
        of_agent = of_all_sessions(self._folder, self._agent)
        with _locked(of_agent.with_suffix(".lock")):
            self._add(of_agent, keys, "")
        self._add(self.path(REDACTED), keys, self.transcript())
        self._key_ids(keys)
        if self.path(STATE).exists():
            files.write_beside(self.path(STATE), (b"{}",), durable=True)
        for ending in (STRETCH, GONE, STATE + ".new"):
            self.path(ending).unlink(missing_ok=True)
        if waiting:
            records = [waiting.get(at, record) for at, record in enumerate(self.waiting())]
            files.write_beside(self.path(WAIT), (record + b"\n" for record in records), durable=True)
        files.sync_folder(self._folder)

    def _add(self, path: Path, keys: Collection[int], transcript: str) -> None:
        _add_to(self._folder, path, keys, transcript)

    def _key_ids(self, keys: Collection[int]) -> None:
        """Keys the hashes of what was redacted where the hook knows its messages by them, each once."""
        path, secret = self.path(IDS), _made_key(self._folder)
        known = _ids_in(path)
        wanted = {key for key in keys if key in known and key not in self.redacted().keyed}
        if wanted:
            ids = array("Q", [with_key(key, secret) if key in wanted else key for key in known])
            files.write_beside(path, (ids.tobytes(),), durable=True)


def remember_redacted(home: Path, keys: Collection[int]) -> None:
    """Keeps what was redacted in any session of the data folder, as hashes, so that an import can tell that a
    file brings it back. Blocks. Durable. Raises `HookIsBusy`, `OSError`."""
    folder = home / REDACTIONS
    files.make_folder(folder)
    with _locked(folder / (ALL + ".lock")):
        _add_to(folder, folder / (ALL + REDACTED), keys, "")


def redacted_here(home: Path) -> Hashed:
    """What was redacted in any session of the data folder. Blocks. O(redacted messages)."""
    folder = home / REDACTIONS
    return hashed(folder, folder / (ALL + REDACTED))


def hashed(folder: Path, *paths: Path) -> Hashed:
    """What the lists at `paths` below the hooks' `folder` hold, to be asked for one message."""
    lists = [read_redactions(path) for path in paths]
    keyed = frozenset(key for one in lists for key in one.keyed)
    secret = _key_in(folder) if keyed else b""
    return Hashed(
        frozenset(key for one in lists for key in one.keys), keyed if secret else frozenset(), secret
    )


def _add_to(folder: Path, path: Path, keys: Collection[int], transcript: str) -> None:
    """Adds to a list of what must not come back; what an earlier version wrote there is keyed too."""
    secret = _made_key(folder)
    before = read_redactions(path)
    added = (with_key(key, secret) for key in (*before.keys, *keys))
    all_ = Redactions(keyed=tuple(dict.fromkeys((*before.keyed, *added))), transcript=transcript)
    files.write_beside(path, (msgspec.json.encode(all_),), durable=True)


def _key_in(folder: Path) -> bytes:
    try:
        return (folder / KEY).read_bytes()[:KEY_BYTES]
    except OSError:
        return b""


def _made_key(folder: Path) -> bytes:
    """The key of the data folder, made at the first use. Raises `HookIsBusy`, `OSError`."""
    if not _key_in(folder):
        with _locked((folder / KEY).with_suffix(".lock")):
            if not _key_in(folder):
                files.write_beside(folder / KEY, (os.urandom(KEY_BYTES),), durable=True)
                files.sync_folder(folder)
    return _key_in(folder)


def of_all_sessions(folder: Path, agent: str) -> Path:
    """The list of what was redacted in any session of an agent."""
    return folder / (agent + REDACTED)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    end = time.monotonic() + LOCK_S
    while not isinstance(lock := take(path), Lock):
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
    """What stands in a list of redactions; nothing where there is none."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Redactions)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return Redactions()
