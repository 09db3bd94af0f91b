"""What a list shows of a session, kept beside its journal: derived, checked, and gone without harm.

compactd-info 1 <bytes of the journal it was made from> <crc32 of what follows>\\n<info>
"""

from __future__ import annotations

import zlib
from pathlib import Path

from compactd.storage import files
from compactd.storage.os_files import SYSTEM, Disk

_MAGIC = b"compactd-info 1 "


def save(path: Path, info: bytes, size_bytes: int, disk: Disk = SYSTEM) -> None:
    """Writes the sidecar, all or none. Not synced: one that is lost is made again."""
    header = b"%s%d %08x\n" % (_MAGIC, size_bytes, zlib.crc32(info))
    files.write_beside(path, (header, info), durable=False, disk=disk)


def load(path: Path, size_bytes: int, disk: Disk = SYSTEM) -> bytes | None:
    """The info, if there is one that was made from a journal of `size_bytes` bytes."""
    try:
        text = files.read_whole(path, disk)
    except OSError:
        return None
    header, _, info = text.partition(b"\n")
    return info if header == b"%s%d %08x" % (_MAGIC, size_bytes, zlib.crc32(info)) else None
