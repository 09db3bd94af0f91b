"""Opens session s1 in the database argv[1] and stores two records. Appends one more per line of stdin."""

from __future__ import annotations

import asyncio
import sys

from compactd.storage.postgres.store import PostgresStore
from compactd.storage.protocols import RecordsLost


async def main(url: str) -> None:
    store = PostgresStore(url)
    journal = store.create("s1", b'{"type":"session","v":1,"id":"s1"}', "disk")
    await journal.durable(journal.append([b'{"type":"note","number":1}']))
    print("stored", flush=True)
    while await asyncio.to_thread(sys.stdin.readline):
        try:
            await journal.durable(journal.append([b'{"type":"note","number":666}']))
            print("appended", flush=True)
        except RecordsLost as lost:
            print(
                f"RecordsLost is_broken={lost.is_broken} lost_from={lost.lost_from} {lost.message}",
                flush=True,
            )


asyncio.run(main(sys.argv[1]))
