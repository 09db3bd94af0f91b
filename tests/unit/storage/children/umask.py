"""Stores a session and all files that belong to it, under the given umask."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from compactd.storage.folder import FolderStore


async def main(home: Path) -> None:
    store = FolderStore(home)
    journal = store.create("", b'{"type":"session","v":1,"id":""}', "disk")
    await journal.close()
    await store.save_info("", b"{}", size_bytes=journal.size_bytes or 0)
    await store.close()


os.umask(int(sys.argv[2], 8))
asyncio.run(main(Path(sys.argv[1])))
