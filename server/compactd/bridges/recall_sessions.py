"""Which stored sessions an agent may read, and which of them it means: those of its own project.

A session belongs to the project of the folder that it was begun in, its `working_dir`, and to no other.
Folders are the same if they are the same after links are resolved. A folder below, a folder above and another
folder of the same git work tree are other projects: no file in a repository can widen what is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from compactd.rpc.wire import SessionInfo
from compactd.store.paths import data_folder, file_stem

_HEADER_BYTES = 65_536


class Wanted(Struct, frozen=True, kw_only=True):
    """What the user chose when the server was started."""

    folder: str
    """Where the agent works; as `real_folder` gives it."""
    session_id: str | None = None
    """This session, whatever its project. A part of an id counts only among the sessions that may be read."""
    agent: str | None = None
    """Only the mirrors of this agent: `codex`, whose sessions are called `codex:…`."""
    all_projects: bool = False
    """Every project's sessions may be read, and the model may choose one."""


class _Header(Struct, frozen=True):
    working_dir: str | None = None


def chosen(wanted: Wanted, stored: Sequence[SessionInfo], environ: Mapping[str, str]) -> SessionInfo | None:
    """The session that is meant; None if there is none that may be read. `stored` in any order.

    Without `session_id` it is the newest of the folder; with `all_projects`, the newest of all if the folder
    has none. O(sessions); reads the first line of their journals until one is of the folder.
    """
    newest = sorted(stored, key=lambda one: one.updated_at, reverse=True)
    if wanted.agent is not None:
        newest = [one for one in newest if one.session_id.startswith(f"{wanted.agent}:")]
    if wanted.session_id is not None:
        return _named(wanted.session_id, wanted, newest, environ)
    own = next(_of_folder(wanted.folder, newest, environ), None)
    if own is None and wanted.all_projects:
        return newest[0] if newest else None
    return own


def _named(
    name: str, wanted: Wanted, newest: Sequence[SessionInfo], environ: Mapping[str, str]
) -> SessionInfo | None:
    exact = next((one for one in newest if one.session_id == name), None)
    if exact is not None or not name:
        return exact
    holding = [one for one in newest if name in one.session_id]
    parts = holding if wanted.all_projects else list(_of_folder(wanted.folder, holding, environ))
    return parts[0] if len(parts) == 1 else None


def _of_folder(
    folder: str, newest: Sequence[SessionInfo], environ: Mapping[str, str]
) -> Iterator[SessionInfo]:
    sessions = data_folder(environ) / "sessions"
    for one in newest:
        found = working_dir(sessions, one.session_id)
        if found is not None and real_folder(found) == folder:
            yield one


def working_dir(sessions: Path, session_id: str) -> str | None:
    """The folder that a stored session was begun in, from the first record of its journal."""
    try:
        with (sessions / f"{file_stem(session_id)}.jsonl").open("rb") as journal:
            return msgspec.json.decode(journal.readline(_HEADER_BYTES), type=_Header).working_dir
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def real_folder(folder: str) -> str | None:
    """The folder with its links resolved; None for a path that is not absolute: it would mean another folder
    in each process."""
    path = Path(folder)
    try:
        return str(path.resolve()) if path.is_absolute() else None
    except (OSError, RuntimeError, ValueError):
        return None
