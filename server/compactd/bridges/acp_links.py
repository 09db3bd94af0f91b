"""Which of the agent's sessions stands behind the one that the client knows: after a compaction, another one.

A small file for each such session below the data folder, in `acp/`, for the owner alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from compactd.store import files
from compactd.store.paths import data_folder, file_stem


class Link(Struct, frozen=True, kw_only=True):
    """What is known of a session that was compacted."""

    agent_id: str
    """The agent's session."""
    is_due: bool
    """The summary was not handed to it yet."""


def read(environ: Mapping[str, str], session_id: str) -> Link | None:
    """None where the session was never compacted."""
    try:
        return msgspec.json.decode(_file(environ, session_id).read_bytes(), type=Link)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def write(environ: Mapping[str, str], session_id: str, link: Link) -> None:
    """All or nothing. Raises `OSError`."""
    path = _file(environ, session_id)
    files.make_folder(path.parent)
    files.write_beside(path, (msgspec.json.encode(link),), durable=False)


def _file(environ: Mapping[str, str], session_id: str) -> Path:
    return data_folder(environ) / "acp" / f"{file_stem(session_id)}.json"
