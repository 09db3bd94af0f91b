r"""The info file of a session, next to its journal, with what `session/list` shows. If the file is lost, it
is made again from the journal.

Format: compactd-info 1 <size in bytes of the journal from which it was made> <crc32 of info>\n<info>
"""

from __future__ import annotations

import zlib
from pathlib import Path

from compactd.storage import files
from compactd.storage.os_files import SYSTEM, Disk

_MAGIC = b"compactd-info 1 "


def save(path: Path, info: bytes, size_bytes: int, disk: Disk = SYSTEM) -> None:
    """Write the info file at `path` atomically. `size_bytes` is the size of the journal from which `info` was
    made. The file is not synced: if it is lost, it is made again.
    """
    header = b"%s%d %08x\n" % (_MAGIC, size_bytes, zlib.crc32(info))
    files.replace_file(path, (header, info), durable=False, disk=disk)


def load(path: Path, size_bytes: int, disk: Disk = SYSTEM) -> bytes | None:
    """Return the content of the info file if it was made from a journal of `size_bytes` bytes. Otherwise
    return None.
    """
    try:
        text = files.read_whole(path, disk)
    except OSError:
        return None
    header, _, info = text.partition(b"\n")
    return info if header == b"%s%d %08x" % (_MAGIC, size_bytes, zlib.crc32(info)) else None
