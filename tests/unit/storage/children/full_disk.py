"""Simulates a full disk with a limit on file size, and raises the limit later."""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from pathlib import Path

from compactd.protocol.errors import StorageFailed
from compactd.storage.folder import FolderStore
from compactd.storage.journal_records import as_appended
from compactd.storage.protocols import Journal, RecordsLost

UNLIMITED = resource.getrlimit(resource.RLIMIT_FSIZE)


def room(size_bytes: int | None) -> None:
    """Lets no file grow above this size."""
    sys.dont_write_bytecode = True  # it would be cut off at the limit, and stay
    limit = UNLIMITED if size_bytes is None else (size_bytes, UNLIMITED[1])
    resource.setrlimit(resource.RLIMIT_FSIZE, limit)


def record(name: str, size: int = 0) -> bytes:
    return b'{"type":"message","name":"%s","text":"%s"}' % (name.encode(), b"x" * size)


def facts(lost: BaseException | None) -> list[object]:
    assert isinstance(lost, RecordsLost), lost
    return [type(lost).__name__, lost.code, lost.lost_from, lost.is_broken]


async def lost_by(journal: Journal, number: int) -> RecordsLost | None:
    try:
        await journal.durable(number)
    except RecordsLost as lost:
        return lost
    return None


async def main(home: Path) -> dict[str, object]:
    seen: dict[str, object] = {}
    store = FolderStore(home)

    room(10)
    never = store.create("never", b'{"type":"session","v":1,"id":"never"}', "disk")
    why = facts(await lost_by(never, never.last))
    await never.close()
    left = [path.name for path in (home / "sessions").iterdir()]
    seen["never"] = [why, store.exists("never"), left]
    room(None)

    journal = store.create("s1", b'{"type":"session","v":1,"id":"s1","name":"first"}', "disk")
    await journal.durable(journal.append([record("kept")]))
    (path,) = (home / "sessions").glob("*.jsonl")
    seen["file_before"] = path.read_text()

    room(path.stat().st_size + 50)
    numbers = [journal.append([record(name, 200)]) for name in ("a", "b", "c")]
    told = await asyncio.gather(*(journal.durable(number) for number in numbers), return_exceptions=True)
    seen["waiters"] = [facts(one) for one in told]
    seen["message"] = str(told[0])
    seen["file_after_failure"] = path.read_text()
    try:
        journal.append([record("too soon")])
    except RecordsLost as lost:
        seen["before_resume"] = facts(lost)
    in_doubt = journal.size_bytes
    seen["resumed"] = [journal.resume(), journal.resume()]
    seen["size_bytes"] = [in_doubt, journal.size_bytes]

    room(path.stat().st_size - 10)
    try:
        await journal.replace({1: record("replaced", 500)})
    except StorageFailed as failed:
        seen["replaced"] = [type(failed).__name__, failed.code]
    seen["file_after_replace"] = path.read_text()
    seen["beside"] = [one.name for one in path.parent.glob("*.new")]

    room(None)
    number = journal.append([record("after")])
    await journal.durable(number)
    await journal.durable(journal.append([record("more")]))
    seen["old_number"] = facts(await lost_by(journal, numbers[1]))
    await journal.close()

    journal, records = store.open("s1", durability="os")
    seen["stored"] = [json.loads(as_appended(one))["name"] for one in records]
    await journal.close()
    await store.close()
    return seen


print(json.dumps(asyncio.run(main(Path(sys.argv[1])))))
