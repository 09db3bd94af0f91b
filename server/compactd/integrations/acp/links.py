"""Under which id a session of an ACP agent is stored, and which of the agent's sessions it goes on in.

After a compaction that is another one of the agent's: a small file for each such session below the data
folder, in `acp/`, for the owner alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Raw, Struct

from compactd.integrations.hooks.state import mirror_id
from compactd.integrations.mcp.recall_sessions import stored_folder
from compactd.storage import files
from compactd.storage.paths import data_folder, file_stem, real_folder


class Link(Struct, frozen=True, kw_only=True):
    """What is known of a session that was compacted."""

    agent_id: str
    """The agent's session."""
    is_due: bool
    """The summary was not handed to it yet."""


class _Opening(Struct, frozen=True):
    cwd: str | None = None


def mirror_of(environ: Mapping[str, str], session_id: str, opened: Raw) -> str:
    """The id under which the agent's session is stored. `opened`: the params of the request that opened it.

    The agent chooses `session_id`, and many agents begin with the same one in each process. If it is stored
    already for another folder, the folder becomes a part of the id: nobody is handed another project's words.
    """
    mirror = mirror_id("acp", session_id)
    sessions = data_folder(environ) / "sessions"
    if not (sessions / f"{file_stem(mirror)}.jsonl").exists():
        return mirror
    folder = _folder_of(opened)
    if stored_folder(sessions, mirror) == folder:
        return mirror
    return f"{mirror}@{sha256((folder or '').encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def _folder_of(opened: Raw) -> str | None:
    try:
        given = msgspec.json.decode(opened, type=_Opening).cwd
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return real_folder(given)


def read(environ: Mapping[str, str], mirror: str) -> Link | None:
    """None if the session was never compacted. `mirror`: as `mirror_of` gives it."""
    try:
        return msgspec.json.decode(_file(environ, mirror).read_bytes(), type=Link)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def write(environ: Mapping[str, str], mirror: str, link: Link) -> None:
    """All or nothing. Raises `OSError`."""
    path = _file(environ, mirror)
    files.make_folder(path.parent)
    files.write_beside(path, (msgspec.json.encode(link),), durable=False)


def _file(environ: Mapping[str, str], mirror: str) -> Path:
    return data_folder(environ) / "acp" / f"{file_stem(mirror.removeprefix('acp:'))}.json"
