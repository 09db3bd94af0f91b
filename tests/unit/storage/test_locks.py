"""One writer per session, whatever happens to other processes."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from compactd.protocol.errors import SessionLocked
from compactd.storage.folder import FolderStore
from compactd.storage.locks import Lock, LockHeld, is_held, take_lock

Spawn = Callable[..., "subprocess.Popen[str]"]
FIRST = b'{"type":"session","v":1,"id":"s1"}'


def taken(path: Path) -> Lock:
    lock = take_lock(path)
    assert isinstance(lock, Lock)
    return lock


async def test_the_second_to_open_a_session_is_told_who_has_it(store: FolderStore, tmp_path: Path) -> None:
    journal = store.create("s1", FIRST, "os")
    await journal.durable(journal.last)
    other = FolderStore(tmp_path)

    for writing in (
        lambda: other.open("s1", durability="os"),
        lambda: other.create("s1", FIRST, "os"),
        lambda: store.open("s1", durability="os"),
    ):
        with pytest.raises(SessionLocked) as told:
            writing()
        assert told.value.data["pid"] == os.getpid()

    await journal.close()
    journal, _ = other.open("s1", durability="os")
    await journal.close()
    await other.close()


async def test_a_killed_owner_leaves_a_session_that_can_be_opened(
    store: FolderStore, tmp_path: Path, spawn: Spawn
) -> None:
    owner = spawn("writer.py", tmp_path, "os")
    assert owner.stdout is not None
    owner.stdout.readline()
    with pytest.raises(SessionLocked) as told:
        store.open("s1", durability="os")
    assert told.value.data["pid"] == owner.pid

    owner.kill()
    owner.wait()

    assert next((tmp_path / "sessions").glob("*.lock")).read_text() == f"{owner.pid}\n"
    assert [one.is_locked for one in store.list()] == [False]
    journal, records = store.open("s1", durability="os")
    assert len(records) >= 2
    await journal.close()


async def test_a_program_that_a_killed_owner_started_does_not_keep_the_session(
    store: FolderStore, tmp_path: Path, spawn: Spawn
) -> None:
    owner = spawn("parent.py", tmp_path)
    assert owner.stdin is not None
    assert owner.stdout is not None
    assert owner.stdout.readline() == "the grandchild runs\n"

    owner.kill()
    owner.wait()

    journal, _ = store.open("s1", durability="os")
    await journal.close()
    print("end", file=owner.stdin, flush=True)
    assert owner.stdout.read() == "the grandchild ran until now\n"


def test_a_lock_that_was_let_go_is_free_whoever_has_a_copy_of_its_descriptor(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    lock = taken(path)
    # As a program that is being started has, between fork and exec.
    (held,) = [fd for fd in range(3, 256) if is_open_at(fd, path)]
    copy = os.dup(held)

    lock.release()

    taken(path).release()
    os.close(copy)


def is_open_at(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), path.stat())
    except OSError:
        return False


def test_a_lock_file_that_is_there_means_nothing_by_itself(tmp_path: Path) -> None:
    for content in (b"", b"1\n", b"999999999\n", b"no pid"):
        (tmp_path / "a.lock").write_bytes(content)
        assert not is_held(tmp_path / "a.lock")
        lock = taken(tmp_path / "a.lock")
        assert is_held(tmp_path / "a.lock")
        assert take_lock(tmp_path / "a.lock") == LockHeld(os.getpid())
        lock.release()


def test_nothing_is_held_where_there_is_no_file(tmp_path: Path) -> None:
    assert not is_held(tmp_path / "a.lock")
    assert list(tmp_path.iterdir()) == []


def test_a_lock_that_is_removed_while_others_try_is_never_held_twice(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    at_once: list[int] = []
    rounds: list[int] = []
    holders: set[int] = set()

    def contend(name: int) -> None:
        while len(rounds) < 400:
            lock = take_lock(path)
            if isinstance(lock, Lock):
                holders.add(name)
                for _ in range(5):
                    path.exists()  # gives the others a turn
                    at_once.append(len(holders))
                rounds.append(name)
                holders.discard(name)
                lock.release(remove=True)

    threads = [threading.Thread(target=contend, args=(name,)) for name in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert set(at_once) == {1}
    assert not path.exists()


def test_looking_whether_a_lock_is_held_never_keeps_anyone_from_taking_it(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    taken(path).release()
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            is_held(path)

    lookers = [threading.Thread(target=look) for _ in range(2)]
    for looker in lookers:
        looker.start()
    refused = 0
    for _ in range(400):
        lock = take_lock(path)
        if isinstance(lock, Lock):
            lock.release()
        else:
            refused += 1
    done.set()
    for looker in lookers:
        looker.join()

    assert refused == 0
