"""After a kill at any moment, every acknowledged record is there."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from compactd.storage.folder import FolderStore
from compactd.storage.journal_records import as_appended

Spawn = Callable[..., "subprocess.Popen[str]"]


@pytest.mark.parametrize("durability", ["disk", "os"])
def test_every_acknowledged_record_survives_a_kill(tmp_path: Path, spawn: Spawn, durability: str) -> None:
    moments = random.Random(f"kill {durability}")
    for run in range(10):
        home = tmp_path / str(run)
        writer = spawn("writer.py", home, durability)
        assert writer.stdout is not None
        acknowledged = [int(writer.stdout.readline()) for _ in range(moments.randrange(1, 80))]
        writer.kill()
        acknowledged += [int(one) for one in writer.stdout.read().split("\n")[:-1]]

        stored = asyncio.run(numbers_in(home))

        assert set(acknowledged) <= set(stored)
        assert len(stored) == len(set(stored))


async def numbers_in(home: Path) -> list[int]:
    store = FolderStore(home)
    journal, records = store.open("s1", durability="disk")
    journal.append([b'{"type":"message","number":-1}'])
    await journal.close()
    journal, again = store.open("s1", durability="os")
    await journal.close()
    await store.close()
    assert [as_appended(one) for one in again[:-1]] == [as_appended(one) for one in records]
    return [json.loads(as_appended(one))["number"] for one in records[1:]]
