"""Store in which session of the agent a compacted ACP session continues, and choose the id of its mirror.

After a compaction, the session continues in another session of the agent. For each such session there is a
small file in `acp/` below the data folder, readable by its owner only.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Raw, Struct

from compactd.integrations.acp.acp_lines import decode_as, fields
from compactd.integrations.hooks.hook_state import mirror_id
from compactd.integrations.mcp.recall_sessions import stored_folder
from compactd.storage import files
from compactd.storage.paths import data_folder, file_stem, real_folder


class Link(Struct, frozen=True, kw_only=True):
    """What is known about a session that was compacted."""

    agent_id: str
    """The id of the agent's session in which the compacted session continues."""
    is_due: bool
    """Whether the summary must still be sent to the agent."""


def mirror_of(environ: Mapping[str, str], session_id: str, opened: Raw) -> str:
    """Return the id of the mirror, the copy of the agent's session in compactd. `opened`: the params of the
    request that opened the session.

    The agent chooses `session_id`, and many agents start with the same one in each process. If that id is
    already stored for another folder, the folder becomes part of the id, so that no project sees another
    project's text.
    """
    mirror = mirror_id("acp", session_id)
    sessions = data_folder(environ) / "sessions"
    if not (sessions / f"{file_stem(mirror)}.jsonl").exists():
        return mirror
    folder = real_folder(decode_as(fields(opened).get("cwd"), str))
    if stored_folder(sessions, mirror) == folder:
        return mirror
    return f"{mirror}@{sha256((folder or '').encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def read(environ: Mapping[str, str], mirror: str) -> Link | None:
    """Return the stored link of a session; None if the session was never compacted. `mirror`: the id that
    `mirror_of` returned.
    """
    try:
        return msgspec.json.decode(_file(environ, mirror).read_bytes(), type=Link)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def write(environ: Mapping[str, str], mirror: str, link: Link) -> None:
    """Store the link of a session. Raise `OSError` if it cannot be stored; an older link then stays
    unchanged.
    """
    path = _file(environ, mirror)
    files.make_folder(path.parent)
    files.replace_file(path, (msgspec.json.encode(link),), durable=False)


def _file(environ: Mapping[str, str], mirror: str) -> Path:
    return data_folder(environ) / "acp" / f"{file_stem(mirror.removeprefix('acp:'))}.json"
