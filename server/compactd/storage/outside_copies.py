"""Copies of a session's messages in files outside the data folder. `session/redact` and `session/delete` only
name these files to the user and do not change them, because they belong to the user.

There are two kinds: files that `session/export` wrote, whose paths are listed in a file next to the journal,
and the transcript of an agent whose session a hook mirrors.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from compactd.storage import files
from compactd.storage.hook_files import HookFiles, is_mirror
from compactd.storage.paths import file_stem


class Copy(Struct, frozen=True):
    """A file outside the data folder that contains messages of a session."""

    kind: Literal["export", "transcript"]
    path: str

    @property
    def why(self) -> str:
        """The reason, for the user, why compactd does not clean this file."""
        if self.kind == "export":
            return "session/export wrote this file; compactd does not change it. Delete it yourself"
        return "the agent's own file, which it reads and may repeat: remove the text from it yourself"


def copies_of(home: Path, session_id: str) -> tuple[Copy, ...]:
    """Return the copies of a session that exist now, exports first. `home` is the data folder. Blocks.
    O(exports).
    """
    found = [Copy("export", path) for path in dict.fromkeys(_exports(_list(home, session_id)))]
    if is_mirror(session_id):
        transcript = HookFiles(home, session_id).transcript()
        found += [Copy("transcript", str(Path(transcript).expanduser()))] if transcript else []
    return tuple(copy for copy in found if os.path.lexists(copy.path))


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
