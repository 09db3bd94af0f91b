"""Select which stored session a model may read: by default only sessions of its own project.

A session belongs to the project of the folder in which it was started (`working_dir`) and to no other. Two
folders are the same if they are equal after resolving links. Parent folders, subfolders and other folders of
the same git work tree are other projects, so no file in a repository can widen what is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from compactd.integrations.outputs.references import PREFIX
from compactd.protocol.wire import SessionInfo
from compactd.storage.paths import data_folder, file_stem, real_folder

_HEADER_BYTES = 65_536


class SessionChoice(Struct, frozen=True, kw_only=True):
    """What the user chose when the server was started."""

    folder: str
    """The folder in which the agent works, as `real_folder` returns it."""
    session_id: str | None = None
    """The id of the session to read. A whole id may name a session of any project. A part of an id must match
    exactly one session, of this project or, with `all_projects`, of any.
    """
    agent: str | None = None
    """The agent whose mirrored sessions may be read, for example `codex`; their ids begin with `codex:`. None
    for all sessions.
    """
    all_projects: bool = False
    """Whether sessions of every project may be read, and the model may choose one."""


class _Header(Struct, frozen=True):
    working_dir: str | None = None
    real_dir: str | None = None


def choose_session(
    wanted: SessionChoice, stored: Sequence[SessionInfo], environ: Mapping[str, str]
) -> SessionInfo | None:
    """Return the session to read, one of `stored`; None if there is none that may be read.

    Without `session_id`, return the newest session of the folder. If the folder has none and `all_projects`
    is true, return the newest session of all. O(sessions): reads the first line of each journal, newest
    first, until a session belongs to the folder.
    """
    newest = sorted(stored, key=lambda one: one.updated_at, reverse=True)
    if wanted.session_id is None:
        # Outputs of pipes and of wrapped servers are nobody's conversation.
        newest = [one for one in newest if not one.session_id.startswith(PREFIX)]
    if wanted.agent is not None:
        newest = [one for one in newest if one.session_id.startswith(f"{wanted.agent}:")]
    if wanted.session_id is not None:
        return _named(wanted.session_id, wanted, newest, environ)
    own = next(_of_folder(wanted.folder, newest, environ), None)
    if own is None and wanted.all_projects:
        return newest[0] if newest else None
    return own


def _named(
    name: str, wanted: SessionChoice, newest: Sequence[SessionInfo], environ: Mapping[str, str]
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
    """Return the folder in which a stored session was started, with links resolved, from its journal's first
    record.

    Links were resolved when the session was started; they may point elsewhere today. A journal of an older
    version only has the folder's name, which is resolved now. The call blocks while it reads the file.
    """
    try:
        with (sessions / f"{file_stem(session_id)}.jsonl").open("rb") as journal:
            first = msgspec.json.decode(journal.readline(_HEADER_BYTES), type=_Header)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    if first.real_dir is not None or first.working_dir is None:
        return first.real_dir
    return real_folder(first.working_dir)
