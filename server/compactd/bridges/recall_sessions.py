"""Which stored session an agent means when it looks for what was said: one that is named, else the newest of
its kind and folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from compactd.rpc.wire import SessionInfo
from compactd.store.paths import data_folder, file_stem

SEARCHED = 500
"""Of the stored sessions, the newest: whether they belong to the folder."""
_HEADER_BYTES = 65_536


class Wanted(Struct, frozen=True, kw_only=True):
    """What is known of the session that is meant."""

    session_id: str | None = None
    agent: str | None = None
    """The mirrors of this one alone: `codex`, whose sessions are called `codex:…`."""
    folder: str | None = None
    """Where the agent works. With `agent`, another folder's will do; without, only this one's."""


class _Header(Struct, frozen=True):
    working_dir: str | None = None


def chosen(wanted: Wanted, stored: Sequence[SessionInfo], environ: Mapping[str, str]) -> SessionInfo | None:
    """The session that is meant; None where there is none. `stored` in any order. An id may be a part of one
    that no other session has. O(sessions); reads the first line of at most `SEARCHED` journals."""
    newest = sorted(stored, key=lambda one: one.updated_at, reverse=True)
    if wanted.session_id is not None:
        return _named(wanted.session_id, newest)
    if wanted.agent is not None:
        newest = [one for one in newest if one.session_id.startswith(f"{wanted.agent}:")]
    if wanted.folder is not None:
        sessions = data_folder(environ) / "sessions"
        folder = _real(wanted.folder)
        for one in newest[:SEARCHED]:
            found = working_dir(sessions, one.session_id)
            if found is not None and _real(found) == folder:
                return one
    if wanted.agent is None and wanted.folder is not None:
        return None
    return newest[0] if newest else None


def _named(name: str, newest: Sequence[SessionInfo]) -> SessionInfo | None:
    exact = next((one for one in newest if one.session_id == name), None)
    parts = [one for one in newest if name in one.session_id]
    return exact or (parts[0] if len(parts) == 1 else None)


def working_dir(sessions: Path, session_id: str) -> str | None:
    """The folder that a stored session was begun in, out of the first record of its journal."""
    try:
        with (sessions / f"{file_stem(session_id)}.jsonl").open("rb") as journal:
            return msgspec.json.decode(journal.readline(_HEADER_BYTES), type=_Header).working_dir
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def _real(folder: str) -> Path:
    try:
        return Path(folder).resolve()
    except (OSError, RuntimeError, ValueError):
        return Path(folder)
