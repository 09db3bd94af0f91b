"""Appends to session s1 until it is killed. Prints the number of each durable record."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from compactd.storage.folder import FolderStore


def record(number: int) -> bytes:
    return b'{"type":"message","number":%d,"text":"%s"}' % (number, b"x" * (number * 37 % 400))


async def main(home: Path, durability: str) -> None:
    store = FolderStore(home)
    journal = store.create(
        "s1", b'{"type":"session","v":1,"id":"s1"}', "disk" if durability == "disk" else "os"
    )

    async def acknowledge(number: int) -> None:
        # Several at a time, so that some share a sync and some wait for the next.
        for mine in range(number, 1_000_000, 3):
            await journal.durable(journal.append([record(mine)]))
            print(mine, flush=True)

    await asyncio.gather(*(acknowledge(number) for number in range(3)))


asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
