"""Copies of a session's messages in files outside the data folder. `session/redact` and `session/delete` only
name these files to the user and do not change them, because they belong to the user.

There are two kinds: files that `session/export` wrote, whose paths are listed in a file next to the journal,
and the transcript of an agent whose session a hook mirrors or `compactd import` has imported.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from compactd.protocol.wire import Left
from compactd.storage import files
from compactd.storage.hook_files import HookFiles, is_mirror
from compactd.storage.imports import imported_from
from compactd.storage.paths import file_stem

_WHY_LEFT = {
    "export": "session/export wrote this file; compactd does not change it. Delete it yourself",
    "transcript": "the agent's own file, which it reads and may repeat: remove the text from it yourself",
}
"""By kind of copy, the reason, for the user, why compactd does not clean the file."""


def copies_of(home: Path, session_id: str) -> list[tuple[str, str]]:
    """Return (kind, path) of the copies of a session that exist now, exports first. `home` is the data
    folder. Blocks. O(exports).
    """
    found = [("export", path) for path in dict.fromkeys(_exports(_list(home, session_id)))]
    if is_mirror(session_id):
        transcript = HookFiles(home, session_id).transcript()
        found += [("transcript", str(Path(transcript).expanduser()))] if transcript else []
    found += [("transcript", path) for path in imported_from(home, session_id)]
    return [(kind, path) for kind, path in found if os.path.lexists(path)]


def left_outside(home: Path, session_id: str) -> tuple[Left, ...]:
    """Return what a redaction or deletion of a session leaves outside the data folder `home`. Blocks."""
    return tuple(
        Left(where=kind, why=_WHY_LEFT[kind], path=path) for kind, path in copies_of(home, session_id)
    )


def remember_export(home: Path, session_id: str, path: str) -> None:
    """Add the path of an export to the session's list of exports. Blocks. Raises `OSError`."""
    fd = files.open_private(_list(home, session_id), files.APPEND | os.O_CREAT)
    try:
        files.write_all(fd, (msgspec.json.encode(path) + b"\n",))
    finally:
        os.close(fd)


def _list(home: Path, session_id: str) -> Path:
    return home / "sessions" / f"{file_stem(session_id)}.exports"


def _exports(listed: Path) -> list[str]:
    try:
        lines = listed.read_bytes().split(b"\n")
    except OSError:
        return []
    found = []
    for line in lines:
        try:
            found.append(msgspec.json.decode(line, type=str))
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue  # cut off by a crash, or the empty text after the last line
    return found
