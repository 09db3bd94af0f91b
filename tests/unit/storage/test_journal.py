"""An open journal: awaited records are stored, failures are raised, and appending never waits for a disk."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from compactd.storage import files, locks
from compactd.storage.file_journal import FileJournal
from compactd.storage.folder import FolderStore
from compactd.storage.journal_file import JournalFile
from compactd.storage.journal_records import as_appended, encode_journal, encode_record, scan
from compactd.storage.memory_journal import MemoryJournal
from compactd.storage.protocols import RecordsLost

FIRST = b'{"type":"session","v":1,"id":"s1"}'


def record(number: int) -> bytes:
    return b'{"type":"message","number":%d}' % number


def only_file(home: Path) -> Path:
    (path,) = (home / "sessions").glob("*.jsonl")
    return path


def kept(path: Path) -> list[bytes]:
    return [as_appended(one) for one in scan(path.read_bytes()).records]


async def reopened(store: FolderStore) -> list[bytes]:
    journal, records = store.open("s1", durability="os")
    await journal.close()
    return [as_appended(one) for one in records]


def journal_with(tmp_path: Path, sync: Callable[[int], None]) -> FileJournal:
    """A journal whose disk is `sync`."""
    path = tmp_path / "one.jsonl"
    lock = locks.take_lock(tmp_path / "one.lock")
    assert isinstance(lock, locks.Lock)
    file = JournalFile(path, files.open_private(path, files.APPEND | os.O_CREAT), size_bytes=0, sync=sync)
    return FileJournal(file, lock, ThreadPoolExecutor(1), seq=0)


@pytest.mark.parametrize("durability", ["disk", "os"])
async def test_a_record_is_in_the_file_when_it_is_durable(
    store: FolderStore, tmp_path: Path, durability: str
) -> None:
    journal = store.create("s1", FIRST, durability)  # type: ignore[arg-type]
    await journal.durable(journal.last)

    for number in range(5):
        await journal.durable(journal.append([record(number)]))
        assert kept(only_file(tmp_path)) == [FIRST, *map(record, range(number + 1))]

    assert only_file(tmp_path).read_bytes() == b"".join(encode_journal([FIRST, *map(record, range(5))]))
    await journal.close()


async def test_numbers_rise_by_one_a_record_and_an_empty_append_waits_for_what_was_before(
    store: FolderStore, tmp_path: Path
) -> None:
    journal = store.create("s1", FIRST, "os")

    numbers = [journal.append([record(1)]), journal.append([record(2), record(3)]), journal.append([])]

    assert numbers == [2, 4, 4]
    assert journal.last == 4
    await journal.durable(journal.append([]))
    assert kept(only_file(tmp_path)) == [FIRST, record(1), record(2), record(3)]
    assert journal.size_bytes == only_file(tmp_path).stat().st_size
    await journal.close()


async def test_records_that_come_while_one_is_synced_share_the_next_sync(tmp_path: Path) -> None:
    first_sync, go_on = threading.Event(), threading.Event()
    syncs: list[int] = []

    def sync(fd: int) -> None:
        syncs.append(fd)
        first_sync.set()
        go_on.wait()

    journal = journal_with(tmp_path, sync)
    loop = asyncio.get_running_loop()
    waits = [loop.create_task(journal.durable(journal.append([FIRST])))]
    await asyncio.to_thread(first_sync.wait)

    waits += [loop.create_task(journal.durable(journal.append([record(number)]))) for number in range(100)]
    await asyncio.sleep(0)
    assert not any(wait.done() for wait in waits)
    assert journal.size_bytes is None
    go_on.set()
    await asyncio.gather(*waits)

    assert len(syncs) == 2
    assert kept(tmp_path / "one.jsonl") == [FIRST, *map(record, range(100))]
    await journal.close()


async def test_a_sync_that_fails_is_never_asked_again(tmp_path: Path) -> None:
    syncs: list[int] = []

    def sync(fd: int) -> None:
        syncs.append(fd)
        if len(syncs) == 2:
            raise OSError(errno.EIO, "the disk is dying")

    journal = journal_with(tmp_path, sync)
    await journal.durable(journal.append([FIRST]))
    numbers = [journal.append([record(1)]), journal.append([record(2)])]

    for number in numbers:
        with pytest.raises(RecordsLost) as told:
            await journal.durable(number)
        assert (told.value.code, told.value.lost_from, told.value.is_broken) == (1005, 1, True)
        assert str(tmp_path) not in told.value.message
    for refused in (lambda: journal.append([record(3)]), journal.resume):
        with pytest.raises(RecordsLost):
            refused()

    assert len(syncs) == 2
    assert kept(tmp_path / "one.jsonl") == [FIRST]
    assert not locks.is_held(tmp_path / "one.lock")
    await journal.close()


async def test_a_session_whose_first_record_could_not_be_stored_never_was(tmp_path: Path) -> None:
    def sync(fd: int) -> None:
        raise OSError(errno.ENOSPC, "no space")

    journal = journal_with(tmp_path, sync)

    with pytest.raises(RecordsLost) as told:
        await journal.durable(journal.append([FIRST]))

    assert told.value.lost_from == 0
    assert "the disk is full" in told.value.message
    await journal.close()
    assert list(tmp_path.iterdir()) == []


async def test_a_session_that_waits_for_its_disk_keeps_nobody_else_waiting(
    store: FolderStore, tmp_path: Path
) -> None:
    go_on = threading.Event()

    def sync(fd: int) -> None:
        go_on.wait()

    stuck = journal_with(tmp_path, sync)
    waiting = asyncio.get_running_loop().create_task(stuck.durable(stuck.append([FIRST])))

    other = store.create("s1", FIRST, "disk")
    await other.durable(other.append([record(1)]))

    assert not waiting.done()
    go_on.set()
    await waiting
    await stuck.close()
    await other.close()


async def test_a_failure_in_closing_is_told_to_who_closes(tmp_path: Path) -> None:
    syncs: list[int] = []

    def sync(fd: int) -> None:
        syncs.append(fd)
        if len(syncs) == 2:
            raise OSError(errno.EIO, "the disk is dying")

    journal = journal_with(tmp_path, sync)
    await journal.durable(journal.append([FIRST]))
    journal.append([record(1)])

    with pytest.raises(RecordsLost):
        await journal.close()

    assert not locks.is_held(tmp_path / "one.lock")


async def test_a_torn_tail_is_told_at_opening_and_cut_before_the_next_record(
    store: FolderStore, tmp_path: Path
) -> None:
    journal = store.create("s1", FIRST, "os")
    await journal.durable(journal.append([record(1)]))
    await journal.close()
    path = only_file(tmp_path)
    whole = path.read_bytes()
    for tail in (encode_record(2, record(2))[:-9], b"\0" * 5000, b"\xff\xfe garbage\nmore\n"):
        path.write_bytes(whole + tail)

        journal, records = store.open("s1", durability="disk")

        assert [as_appended(one) for one in records] == [FIRST, record(1)]
        assert journal.torn_bytes == len(tail)
        assert path.read_bytes() == whole + tail, "opening alone changes nothing"
        await journal.durable(journal.append([record(9)]))
        await journal.close()
        assert path.read_bytes() == whole + encode_record(2, record(9))


async def test_a_last_record_without_its_line_end_gets_it_before_the_next(
    store: FolderStore, tmp_path: Path
) -> None:
    journal = store.create("s1", FIRST, "os")
    await journal.durable(journal.append([record(1)]))
    await journal.close()
    path = only_file(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])

    journal, records = store.open("s1", durability="os")
    await journal.durable(journal.append([record(2)]))

    assert (len(records), journal.torn_bytes) == (2, 0)
    assert path.read_bytes() == whole + encode_record(2, record(2))
    assert journal.size_bytes == path.stat().st_size
    await journal.durable(journal.append([record(3)]))
    assert path.read_bytes() == whole + encode_record(2, record(2)) + encode_record(3, record(3))
    await journal.close()


async def test_a_replaced_record_leaves_the_folder_and_the_others_stay(
    store: FolderStore, tmp_path: Path
) -> None:
    journal = store.create("s1", FIRST, "disk")
    journal.append([b'{"type":"message","text":"hunter2"}', record(2)])
    await journal.durable(journal.last)
    await store.save_info("s1", b"about hunter2", size_bytes=journal.size_bytes or 0)

    replacing = asyncio.get_running_loop().create_task(journal.replace({1: b'{"type":"message"}'}))
    await asyncio.sleep(0)
    await journal.durable(journal.append([record(3)]))
    await replacing
    await journal.durable(journal.append([record(4)]))

    assert kept(only_file(tmp_path)) == [FIRST, b'{"type":"message"}', record(2), record(3), record(4)]
    assert not any(b"hunter2" in path.read_bytes() for path in (tmp_path / "sessions").iterdir())
    assert only_file(tmp_path).stat().st_mode & 0o777 == 0o600
    assert journal.size_bytes == only_file(tmp_path).stat().st_size
    await journal.close()
    assert (await reopened(store))[1] == b'{"type":"message"}'


async def test_what_is_appended_behind_a_replacement_that_waits_is_kept(tmp_path: Path) -> None:
    at_work, go_on = threading.Event(), threading.Event()

    def sync(fd: int) -> None:
        at_work.set()
        go_on.wait()

    journal = journal_with(tmp_path, sync)
    journal.append([FIRST, record(1)])
    await asyncio.to_thread(at_work.wait)
    journal.append([record(2)])
    replacing = asyncio.get_running_loop().create_task(journal.replace({2: record(7)}))
    await asyncio.sleep(0)
    number = journal.append([record(3)])

    go_on.set()
    await asyncio.gather(replacing, journal.durable(number))

    assert kept(tmp_path / "one.jsonl") == [FIRST, record(1), record(7), record(3)]
    await journal.close()


async def test_what_a_cut_off_replacement_left_is_removed(store: FolderStore, tmp_path: Path) -> None:
    journal = store.create("s1", FIRST, "os")
    await journal.close()
    path = only_file(tmp_path)
    beside = path.with_name(path.name + ".new")

    beside.write_bytes(b"half of it")
    assert await reopened(store) == [FIRST]
    assert not beside.exists()

    beside.write_bytes(b"half of it")
    await store.delete("s1")
    assert list(path.parent.iterdir()) == []


async def test_a_memory_journal_takes_records_and_refuses_what_is_none() -> None:
    journal = MemoryJournal()

    await journal.durable(journal.append([FIRST, record(1)]))
    await journal.replace({1: record(2)})

    assert (journal.last, journal.resume(), journal.torn_bytes, journal.size_bytes) == (2, None, 0, 0)
    with pytest.raises(ValueError, match="a record is"):
        journal.append([b"[]"])
    await journal.close()
