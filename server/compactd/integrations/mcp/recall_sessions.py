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

from compactd.protocol.wire import SessionInfo
from compactd.storage.paths import data_folder, file_stem, real_folder

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
    real_dir: str | None = None


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
        if stored_folder(sessions, one.session_id) == folder:
            yield one


def stored_folder(sessions: Path, session_id: str) -> str | None:
    """The folder that a stored session began in, with its links resolved, from its journal's first record.

    The links are those of the time when the session began: one may point elsewhere today. A journal of an
    older version has only the folder's name, which is resolved now. Blocks.
    """
    try:
        with (sessions / f"{file_stem(session_id)}.jsonl").open("rb") as journal:
            first = msgspec.json.decode(journal.readline(_HEADER_BYTES), type=_Header)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    if first.real_dir is not None or first.working_dir is None:
        return first.real_dir
    return real_folder(first.working_dir)
