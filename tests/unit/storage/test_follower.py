"""A follower reads a session while another process writes it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from compactd.protocol.errors import SessionCorrupt
from compactd.storage.folder import FolderStore
from compactd.storage.journal_records import as_appended, encode_journal, encode_record
from compactd.storage.protocols import Follower, FollowerNews

Spawn = Callable[..., "subprocess.Popen[str]"]
FIRST = b'{"type":"session","v":1,"id":"s1"}'


def record(number: int) -> bytes:
    return b'{"type":"message","number":%d}' % number


def only_file(home: Path) -> Path:
    (path,) = (home / "sessions").glob("*.jsonl")
    return path


def plain(records: Sequence[memoryview]) -> list[bytes]:
    return [as_appended(one) for one in records]


def news(follower: Follower) -> tuple[int, list[bytes]]:
    came: FollowerNews = follower.poll()
    return came.first_seq, plain(came.records)


async def test_a_follower_tells_whether_the_owner_lives(
    store: FolderStore, tmp_path: Path, spawn: Spawn
) -> None:
    owner = spawn("writer.py", tmp_path, "os")
    assert owner.stdout is not None
    owner.stdout.readline()
    follower, records = store.read("s1")
    assert len(records) >= 2
    assert follower.is_owned()

    owner.kill()
    owner.wait()

    assert not follower.is_owned()
    journal, _ = store.open("s1", durability="os")
    assert follower.is_owned()
    await journal.close()
    assert not follower.is_owned()
    follower.close()


async def test_a_record_is_seen_when_its_line_is_whole(store: FolderStore, tmp_path: Path) -> None:
    journal = store.create("s1", FIRST, "os")
    await journal.close()
    follower, _ = store.read("s1")
    path = only_file(tmp_path)
    whole = encode_record(1, record(1))

    for cut in range(len(whole) - 1):
        path.write_bytes(encode_record(0, FIRST) + whole[:cut])
        assert news(follower) == (1, [])
    path.write_bytes(encode_record(0, FIRST) + whole[:-1])
    assert news(follower) == (1, [record(1)])
    path.write_bytes(encode_record(0, FIRST) + whole)
    assert news(follower) == (2, [])
    path.write_bytes(encode_record(0, FIRST) + whole + encode_record(2, record(2)))
    assert news(follower) == (2, [record(2)])
    follower.close()


async def test_what_the_owner_takes_back_is_taken_back_here(store: FolderStore, tmp_path: Path) -> None:
    journal = store.create("s1", FIRST, "os")
    journal.append([record(1), record(2)])
    await journal.close()
    follower, _ = store.read("s1")
    path = only_file(tmp_path)

    path.write_bytes(b"".join(encode_journal([FIRST, record(1)])))
    assert news(follower) == (0, [FIRST, record(1)])
    path.write_bytes(b"".join(encode_journal([FIRST, record(7)])))
    assert news(follower) == (0, [FIRST, record(7)])
    path.write_bytes(b"".join(encode_journal([FIRST, record(7), record(8)])))
    assert news(follower) == (2, [record(8)])
    follower.close()


async def test_damage_under_a_follower_is_told_and_mended_damage_is_forgotten(
    store: FolderStore, tmp_path: Path
) -> None:
    journal = store.create("s1", FIRST, "os")
    journal.append([record(1)])
    await journal.close()
    follower, _ = store.read("s1")
    path = only_file(tmp_path)
    whole = b"".join(encode_journal([FIRST, *map(record, range(1, 5))]))

    path.write_bytes(whole.replace(b'"number":3', b'"number":4'))
    with pytest.raises(SessionCorrupt) as told:
        follower.poll()
    path.write_bytes(whole)

    assert told.value.data == {"line": 4, "readable_before": 3, "readable_after": 1}
    assert news(follower) == (0, [FIRST, *map(record, range(1, 5))])
    follower.close()


async def test_following_changes_nothing_on_the_disk(store: FolderStore, tmp_path: Path) -> None:
    journal = store.create("s1", FIRST, "os")
    await journal.close()
    path = only_file(tmp_path)
    path.write_bytes(path.read_bytes() + b"torn")
    path.with_suffix(".lock").unlink()

    follower, records = store.read("s1")
    follower.poll()
    follower.is_owned()
    follower.close()

    assert plain(records) == [FIRST]
    assert [one.name for one in path.parent.iterdir()] == [path.name]
    assert path.read_bytes() == encode_record(0, FIRST) + b"torn"
