"""Opens session s1 and starts another program, which runs until it gets a line of input."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

from compactd.storage.folder import FolderStore

PROGRAM = "print('the grandchild runs', flush=True); input(); print('the grandchild ran until now')"


async def main(home: Path) -> None:
    journal = FolderStore(home).create("s1", b'{"type":"session","v":1,"id":"s1"}', "disk")
    await journal.durable(journal.last)
    subprocess.run([sys.executable, "-c", PROGRAM], close_fds=False, check=True)


asyncio.run(main(Path(sys.argv[1])))
