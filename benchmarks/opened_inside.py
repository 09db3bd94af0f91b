"""Opens a stored session repeatedly in one process, alternating with msgspec's decoding of the same journal.

    python benchmarks/opened_inside.py SESSION_ID RUNS      (the data folder: COMPACTD_HOME)

Prints a JSON object: seconds of each step, for each run.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from time import perf_counter

import msgspec
from msgspec import Raw, Struct

from compactd._runtime.interpreter import GC_THRESHOLDS
from compactd.daemon.app import Daemon
from compactd.session.follower import decode_entries
from compactd.session.session import Session
from compactd.storage.folder import FolderStore


class Block(Struct):
    """A block of a message, every field typed but the user's own JSON."""

    type: str
    text: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: Raw = Raw(b"null")
    content: str | list[Block] | None = None
    is_error: bool | None = None


class Message(Struct):
    """A message of the journal."""

    role: str
    content: str | list[Block]


class Record(Struct):
    """A line of the journal, whole."""

    seq: int
    type: str
    crc: str
    id: str | None = None
    parent: str | None = None
    at: float | None = None
    tokens: tuple[int, str] | None = None
    message: Message | None = None


async def opened(daemon: Daemon, store: FolderStore, session_id: str) -> dict[str, float]:
    """Return the seconds of each step of an opening, and of the whole."""
    gc.collect()
    began = perf_counter()
    journal, records = store.open(session_id, durability="os")
    read = perf_counter()
    entries = decode_entries(records)
    decoded = perf_counter()
    session = Session(daemon, session_id, journal, entries)
    ended = perf_counter()
    if not session.state.items:
        raise SystemExit("the session is empty")
    await journal.close()
    return {
        "read": read - began,
        "entries": decoded - read,
        "session": ended - decoded,
        "opening": ended - began,
    }


def decoded(data: bytes) -> float:
    """Return the seconds that msgspec needs to decode all lines of the journal."""
    gc.collect()
    decode = msgspec.json.Decoder(Record).decode_lines
    began = perf_counter()
    records = decode(data)
    took = perf_counter() - began
    if len(records) < 100:
        raise SystemExit("the journal is empty")
    return took


async def main(session_id: str, runs: int) -> None:
    """Measures, one after the other, the first of each uncounted."""
    daemon = Daemon(dict(os.environ))
    store = FolderStore(daemon.home)
    path = next(
        path for path in (daemon.home / "sessions").glob("*.jsonl") if path.name.startswith(f"{session_id}-")
    )
    data = path.read_bytes()
    steps: list[dict[str, float]] = []
    for run in range(runs + 1):
        taken = await opened(daemon, store, session_id)
        taken["decode"] = decoded(data)
        if run:
            steps.append(taken)
    sys.stdout.write(msgspec.json.encode(steps).decode())


if __name__ == "__main__":
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
