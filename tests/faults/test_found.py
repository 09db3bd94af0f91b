"""Bugs that the simulation found, each reduced to a few steps."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import TypeVar

import pytest

from compactd.compaction.run import compact, require_stored
from compactd.core.planning.request import CompactRequest
from compactd.protocol.errors import StorageFailed
from compactd.protocol.messages import CompactionResult, Message, Role, Text
from compactd.session import undo
from compactd.session.manager import Sessions, Start
from compactd.storage import journal_records, locks
from compactd.storage.files import replace_file
from compactd.storage.folder import FolderStore
from compactd.storage.paths import INDEX, drop_index
from compactd.storage.protocols import RecordsLost
from tests.faults.simulation.history import NoTrees
from tests.faults.simulation.machine import Died, Machine
from tests.faults.simulation.platter import File, Folder, Platter
from tests.properties.life import Life, opened
from tests.support.quiet_world import Quiet, done

T = TypeVar("T")

HOME = Path("/there/home")
FIRST = b'{"type":"session","v":1,"id":"s1"}'


def record(number: int) -> bytes:
    return b'{"type":"message","number":%d}' % number


@pytest.fixture
def platter() -> Platter:
    disk = Platter()
    disk.root.change(("there", disk.folder()))
    disk.root.sync()
    return disk


@pytest.fixture
def workers() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


class Nothing(Random):
    """Keeps nothing that was not synced."""

    def random(self) -> float:
        return 0.0


def process(platter: Platter) -> Machine:
    return Machine(platter, Nothing(), lambda _: None)


async def test_what_was_there_already_is_synced_before_it_is_acknowledged_again(
    platter: Platter, workers: ThreadPoolExecutor
) -> None:
    killed = process(platter)
    journal = FolderStore(HOME, disk=killed, workers=workers).create("s1", FIRST, "os")
    await journal.durable(journal.append([record(1)]))
    killed.die("kill")

    second = process(platter)
    journal, _ = FolderStore(HOME, disk=second, workers=workers).open("s1", durability="disk")
    await journal.durable(journal.last)
    second.die("power")

    assert FolderStore(HOME, disk=process(platter), workers=workers).salvage("s1") == [FIRST, record(1)]


async def test_a_sync_that_is_refused_then_is_no_acknowledgement(
    platter: Platter, workers: ThreadPoolExecutor
) -> None:
    first = process(platter)
    journal = FolderStore(HOME, disk=first, workers=workers).create("s1", FIRST, "os")
    await journal.close()

    disk = process(platter)
    journal, _ = FolderStore(HOME, disk=disk, workers=workers).open("s1", durability="disk")
    disk.refuses_in = (1, 5)

    with pytest.raises(RecordsLost):
        await journal.durable(journal.last)


async def test_a_folder_that_another_made_is_synced_with_its_first_record(
    platter: Platter, workers: ThreadPoolExecutor
) -> None:
    disk = process(platter)
    store = FolderStore(HOME, disk=disk, workers=workers)
    fleeting = store.create("s2", b'{"type":"session","v":1,"id":"s2"}', "os")
    await fleeting.durable(fleeting.last)
    journal = store.create("s1", FIRST, "disk")
    await journal.durable(journal.last)
    disk.die("power")

    assert FolderStore(HOME, disk=process(platter), workers=workers).exists("s1")


async def test_an_index_that_a_redaction_dropped_does_not_come_back(
    platter: Platter, workers: ThreadPoolExecutor
) -> None:
    disk = process(platter)
    journal = FolderStore(HOME, disk=disk, workers=workers).create("s1", FIRST, "disk")
    await journal.durable(journal.append([record(1)]))
    home = platter.at(HOME)
    assert isinstance(home, Folder)
    home.change((INDEX, platter.file()))
    home.sync()

    await journal.replace({1: record(2)})
    disk.die("power")

    assert platter.at(HOME / INDEX) is None


async def test_an_index_that_a_refused_redaction_dropped_does_not_come_back_after_the_next_one(
    platter: Platter, workers: ThreadPoolExecutor
) -> None:
    disk = process(platter)
    journal = FolderStore(HOME, disk=disk, workers=workers).create("s1", FIRST, "disk")
    await journal.durable(journal.append([record(1)]))
    home = platter.at(HOME)
    assert isinstance(home, Folder)
    home.change((INDEX, platter.file()))
    home.sync()
    drop_index(HOME / "sessions", disk)  # by a redaction whose next call the disk refused

    await journal.replace({1: record(2)})
    disk.die("power")

    assert platter.at(HOME / INDEX) is None


async def test_a_redaction_takes_what_a_killed_process_left_of_the_list_of_sessions(
    platter: Platter, workers: ThreadPoolExecutor
) -> None:
    """The title was in a temporary file that was written but not yet renamed."""
    journal = FolderStore(HOME, disk=process(platter), workers=workers).create("s1", FIRST, "disk")
    await journal.durable(journal.append([record(1)]))
    folder = platter.at(HOME / "sessions")
    assert isinstance(folder, Folder)
    (name,) = (name for name in folder.names if name.endswith(".jsonl"))
    folder.change((name.replace(".jsonl", ".info.new"), platter.file()))

    await journal.replace({1: record(2)})

    assert not [name for name in folder.names if name.endswith((".info", ".new"))]


async def test_a_session_that_could_not_begin_is_not_locked_by_its_own_process(
    platter: Platter, workers: ThreadPoolExecutor
) -> None:
    disk = process(platter)
    sessions = Sessions(Quiet(), FolderStore(HOME, disk=disk, workers=workers), lambda _: NoTrees())  # type: ignore[arg-type, return-value]
    platter.room_bytes = 40
    with pytest.raises(StorageFailed):
        await sessions.start(Start(session_id="s1"))
    assert disk.open_files == 0
    platter.room_bytes = None

    started = await sessions.start(Start(session_id="s1"))

    assert not started.resumed
    await sessions.close_all()


async def test_a_new_session_that_could_not_be_opened_leaves_nothing(
    platter: Platter, workers: ThreadPoolExecutor
) -> None:
    """Its first record was stored when the journal was closed."""

    class Unreadable(Quiet):
        async def read_settings(self, working_dir: str | None) -> None:
            raise StorageFailed("the settings cannot be read")

    disk = process(platter)
    store = FolderStore(HOME, disk=disk, workers=workers)
    sessions = Sessions(Unreadable(), store, lambda _: NoTrees())  # type: ignore[arg-type, return-value]

    with pytest.raises(StorageFailed):
        await sessions.adopt(opened(Quiet(), "default"))

    assert store.list() == []
    assert disk.open_files == 0


async def test_at_the_end_a_session_that_the_disk_refused_does_not_keep_another_from_being_written(
    platter: Platter, workers: ThreadPoolExecutor
) -> None:
    disk = process(platter)
    sessions = Sessions(Quiet(), FolderStore(HOME, disk=disk, workers=workers), lambda _: NoTrees())  # type: ignore[arg-type, return-value]
    first, second = [(await sessions.start(Start(session_id=name))).session for name in ("s1", "s2")]
    assert first.journal is not None
    assert second.journal is not None
    disk.refuses_in = (0, 28)
    first.journal.append([record(1)])
    numbers = [second.journal.append([record(number)]) for number in (2, 3)]

    await sessions.close_all()

    await second.journal.durable(numbers[-1])
    assert disk.open_files == 0


def test_a_lock_is_let_go_of_where_its_file_cannot_be_removed(platter: Platter) -> None:
    disk = process(platter)
    lock = locks.take_lock(Path("/there/one.lock"), disk)
    assert isinstance(lock, locks.Lock)
    disk.refuses_in = (0, 13)

    with pytest.raises(PermissionError):
        lock.release(remove=True)

    assert disk.open_files == 0
    assert platter.locks == {}


def test_a_write_of_which_a_power_cut_kept_a_later_page_alone_is_torn() -> None:
    before = journal_records.encode_record(0, FIRST) + journal_records.encode_record(1, record(1))
    batch = [b'{"type":"message","text":"%s"}' % (b"x" * 3_000) for _ in range(4)]
    lines = [b"".join(journal_records.frame(2 + at, one, 2 if at else None)) for at, one in enumerate(batch)]
    whole = before + b"".join(lines)
    assert [journal_records.as_appended(one) for one in journal_records.scan(whole).records] == [
        FIRST,
        record(1),
        *batch,
    ]

    hole = bytearray(whole)
    hole[len(before) : 4096] = bytes(4096 - len(before))
    found = journal_records.scan(bytes(hole))

    assert found.damage is None
    assert (found.end, len(found.records)) == (len(before), 2)


def test_zeros_in_a_write_that_another_one_follows_are_damage() -> None:
    batch = [b'{"type":"message","text":"%s"}' % (b"x" * 3_000) for _ in range(4)]
    lines = [b"".join(journal_records.frame(1 + at, one, 1 if at else None)) for at, one in enumerate(batch)]
    whole = bytearray(
        journal_records.encode_record(0, FIRST)
        + b"".join(lines)
        + journal_records.encode_record(5, record(5))
    )
    whole[200:4096] = bytes(4096 - 200)

    damage = journal_records.scan(bytes(whole)).damage

    assert damage is not None
    assert damage.line == 2


def test_a_space_that_lost_its_bit_in_a_write_of_several_records_is_damage() -> None:
    """The space becomes a zero byte, which looked like a page that was never written: all records after it
    were dropped."""
    batch = [b'{"type":"message","text":"two words"}', record(2)]
    lines = [b"".join(journal_records.frame(1 + at, one, 1 if at else None)) for at, one in enumerate(batch)]
    whole = journal_records.encode_record(0, FIRST) + b"".join(lines)

    found = journal_records.scan(whole.replace(b"two words", b"two\0words"))

    assert found.damage is not None
    assert len(found.damage.after) == 1


def test_a_process_id_that_is_not_whole_is_none(platter: Platter) -> None:
    disk = process(platter)
    path = Path("/there/one.lock")
    held = locks.take_lock(path, disk)
    assert isinstance(held, locks.Lock)
    fd = disk.open(path, 2)
    disk.truncate(fd, 2)

    assert locks.take_lock(path, disk) == locks.LockHeld(None)


def test_a_compaction_of_messages_that_the_disk_refused_is_given_up() -> None:
    """Else it was a KeyError in the middle, or a summary of what was never stored."""
    session = opened(Quiet(), "default")
    planned = session.state
    require_stored(session, planned)
    session.reload()  # as after the journal gave records up

    with pytest.raises(StorageFailed, match="changed nothing"):
        require_stored(session, planned)


class Slow(Quiet):
    """A world whose workers take some turns of the event loop."""

    async def in_worker(self, work: Callable[[], T]) -> T:
        for _ in range(20):
            await asyncio.sleep(0)
        return work()


def test_a_message_that_comes_while_a_compaction_runs_stays_on_its_path() -> None:
    life = Life(opened(Slow(), "default"))
    said = [Text(text=f"word {number} " * 150) for number in range(12)]
    roles: tuple[Role, Role] = ("user", "assistant")
    life.append([Message(role=roles[at % 2], content=(text,)) for at, text in enumerate(said)])

    async def both() -> CompactionResult:
        running = asyncio.ensure_future(compact(life.session, CompactRequest(keep_recent=100)))
        for _ in range(5):
            await asyncio.sleep(0)
        life.append([Message(role="user", content=(Text(text="late"),))])
        return await running

    assert done(both()).compacted
    life.append([Message(role="assistant", content=(Text(text="after it"),))])
    undo.branch(life.session, list(life.said)[-1])  # the way back goes by the entries' parents
    path = [item.entry_id for item in life.session.state.path_items()]
    assert [entry_id for entry_id in path if entry_id in life.said] == list(life.said)


class AtRename(Machine):
    """The power goes as soon as a file has its new name, and that name is all that came to the disk."""

    def rename(self, old: Path, new: Path) -> None:
        super().rename(old, new)
        folder = self.platter.at(new.parent)
        assert isinstance(folder, Folder)
        folder.sync()
        self.die("power")


def test_a_file_that_has_its_new_name_has_its_bytes(platter: Platter) -> None:
    path = Path("/there/s1.jsonl")
    replace_file(path, [b"before"], durable=True, disk=process(platter))

    with contextlib.suppress(Died):
        replace_file(path, [b"after"], durable=True, disk=AtRename(platter, Nothing(), lambda _: None))

    file = platter.at(path)
    assert isinstance(file, File)
    assert bytes(file.data) == b"after"


def test_a_process_that_died_does_nothing_more(platter: Platter) -> None:
    disk = process(platter)
    disk.die("kill")

    with pytest.raises(Died):
        disk.open(Path("/there/x"), 0o102)
