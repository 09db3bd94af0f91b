"""A folder of sessions: its files, their permissions, their names."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactd.protocol.errors import SessionCorrupt, SessionLocked, SessionNotFound
from compactd.storage.folder import FolderStore
from compactd.storage.journal_records import as_appended, encode_journal, encode_record
from compactd.storage.paths import file_stem
from tests.support.examples import examples

Spawn = Callable[..., "subprocess.Popen[str]"]


def first(session_id: str) -> bytes:
    return b'{"type":"session","v":1,"id":%s}' % json.dumps(session_id).encode()


def record(number: int) -> bytes:
    return b'{"type":"message","number":%d}' % number


def path_of(home: Path, session_id: str) -> Path:
    return home / "sessions" / f"{file_stem(session_id)}.jsonl"


async def create(store: FolderStore, home: Path, session_id: str, records: int = 0) -> Path:
    """A stored session that is closed again; gives back its file."""
    journal = store.create(session_id, first(session_id), "os")
    journal.append([record(number) for number in range(records)])
    await journal.close()
    return path_of(home, session_id)


async def test_a_store_makes_nothing_before_the_first_session(store: FolderStore, tmp_path: Path) -> None:
    assert store.list() == []
    assert not store.exists("s1")
    assert store.load_info("s1") is None
    with pytest.raises(SessionNotFound):
        store.open("s1", durability="os")
    with pytest.raises(SessionNotFound):
        store.read("s1")
    with pytest.raises(SessionNotFound):
        store.salvage("s1")
    with pytest.raises(SessionNotFound):
        await store.delete("s1")

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("umask", ["000", "022", "777"])
def test_only_the_owner_sees_the_files_whatever_the_umask(tmp_path: Path, spawn: Spawn, umask: str) -> None:
    child = spawn("umask.py", tmp_path / "home", umask)
    assert child.wait() == 0

    modes = {path.suffix: oct(path.stat().st_mode & 0o777) for path in (tmp_path / "home").rglob("*")}

    assert oct((tmp_path / "home").stat().st_mode & 0o777) == "0o700"
    assert modes == {"": "0o700", ".jsonl": "0o600", ".lock": "0o600", ".info": "0o600"}


@given(st.text(min_size=1, max_size=80))
@settings(max_examples=examples(60), deadline=None)
def test_any_id_is_a_name_in_the_folder_and_comes_back_from_the_list(session_id: str) -> None:
    async def kept(home: Path) -> list[str]:
        store = FolderStore(home)
        path = await create(store, home, session_id)
        assert path.exists()
        assert len(path.stem) <= 40 + 1 + 16
        assert set(path.stem) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
        assert store.exists(session_id)
        ids = [stored.session_id for stored in store.list()]
        await store.close()
        return ids

    with tempfile.TemporaryDirectory() as home:
        assert asyncio.run(kept(Path(home))) == [session_id]


async def test_ids_that_read_alike_are_different_sessions(store: FolderStore, tmp_path: Path) -> None:
    ids = ["../a", "a", "A", "/a", "a ", "ä"]

    paths = {await create(store, tmp_path, session_id) for session_id in ids}

    assert len(paths) == len(ids)
    assert {stored.session_id for stored in store.list()} == set(ids)


async def test_a_session_is_created_once(store: FolderStore, tmp_path: Path) -> None:
    path = await create(store, tmp_path, "s1", records=2)
    before = path.read_bytes()

    with pytest.raises(FileExistsError):
        store.create("s1", first("s1"), "os")

    assert path.read_bytes() == before
    journal, _ = store.open("s1", durability="os")
    await journal.close()


async def test_a_creation_that_was_cut_off_is_no_session_and_stands_in_nobodys_way(
    store: FolderStore, tmp_path: Path
) -> None:
    path = await create(store, tmp_path, "s1")
    path.write_bytes(path.read_bytes()[:20])

    assert not store.exists("s1")
    assert store.list() == []
    with pytest.raises(SessionNotFound):
        store.open("s1", durability="os")
    journal = store.create("s1", first("s1"), "disk")
    await journal.close()

    assert path.read_bytes() == encode_record(0, first("s1"))


async def test_damage_in_the_middle_is_told_with_what_can_be_saved_and_changes_nothing(
    store: FolderStore, tmp_path: Path
) -> None:
    path = await create(store, tmp_path, "s1", records=5)
    damaged = path.read_bytes().replace(b'"number":2', b'"number":7')
    path.write_bytes(damaged)

    for opening in (lambda: store.open("s1", durability="os"), lambda: store.read("s1")):
        with pytest.raises(SessionCorrupt) as told:
            opening()
        assert told.value.data == {"line": 4, "readable_before": 3, "readable_after": 2}

    assert store.salvage("s1") == [first("s1"), record(0), record(1), record(3), record(4)]
    assert path.read_bytes() == damaged
    assert store.exists("s1")
    await store.delete("s1")
    assert not store.exists("s1")


async def test_what_was_salvaged_makes_a_new_session(store: FolderStore, tmp_path: Path) -> None:
    path = await create(store, tmp_path, "s1", records=5)
    path.write_bytes(path.read_bytes().replace(b'"number":2', b'"number":7'))
    head, *rest = store.salvage("s1")

    journal = store.create("s2", head.replace(b"s1", b"s2"), "os")
    journal.append(rest)
    await journal.close()

    journal, records = store.open("s2", durability="os")
    assert [as_appended(one) for one in records[1:]] == rest
    await journal.close()


async def test_a_session_of_a_file_that_was_renamed_is_not_taken_for_another(
    store: FolderStore, tmp_path: Path
) -> None:
    path = await create(store, tmp_path, "s1")
    other = await create(store, tmp_path, "s2")
    path.replace(other)

    with pytest.raises(SessionCorrupt, match="another session"):
        store.open("s2", durability="os")

    assert store.list() == []


async def test_the_list_is_newest_first_and_leaves_out_what_is_no_session(
    store: FolderStore, tmp_path: Path
) -> None:
    paths = [await create(store, tmp_path, f"s{number}", records=number) for number in range(3)]
    for age, path in enumerate(paths):
        os.utime(path, (1_700_000_000 - age, 1_700_000_000 - age))
    (tmp_path / "sessions" / "notes.jsonl").write_text("mine\n")
    journal, _ = store.open("s1", durability="os")

    seen = [(one.session_id, one.size_bytes, one.updated_at, one.is_locked) for one in store.list()]

    sizes = [path.stat().st_size for path in paths]
    assert seen == [
        ("s0", sizes[0], 1_700_000_000.0, False),
        ("s1", sizes[1], 1_699_999_999.0, True),
        ("s2", sizes[2], 1_699_999_998.0, False),
    ]
    await journal.close()


async def test_a_deleted_session_leaves_nothing(store: FolderStore, tmp_path: Path) -> None:
    path = await create(store, tmp_path, "s1")
    await store.save_info("s1", b"{}", size_bytes=path.stat().st_size)

    await store.delete("s1")

    assert list((tmp_path / "sessions").iterdir()) == []
    journal = store.create("s1", first("s1"), "os")
    await journal.close()


async def test_a_session_that_is_open_is_not_deleted(store: FolderStore, tmp_path: Path) -> None:
    journal = store.create("s1", first("s1"), "os")
    await journal.durable(journal.last)

    with pytest.raises(SessionLocked):
        await store.delete("s1")

    await journal.durable(journal.append([record(1)]))
    await journal.close()
    assert store.salvage("s1") == [first("s1"), record(1)]


async def test_info_is_given_back_until_the_session_changes(store: FolderStore, tmp_path: Path) -> None:
    path = await create(store, tmp_path, "s1", records=1)
    size = path.stat().st_size
    info = b'{"title":"one\\ntwo"}\nmore'

    await store.save_info("s1", info, size_bytes=size)
    assert store.load_info("s1") == info

    journal, _ = store.open("s1", durability="os")
    assert store.load_info("s1") == info
    await journal.durable(journal.append([record(9)]))
    assert store.load_info("s1") is None
    await store.save_info("s1", b"{}", size_bytes=journal.size_bytes or 0)
    await journal.close()
    assert store.load_info("s1") == b"{}"


async def test_info_that_was_torn_is_none(store: FolderStore, tmp_path: Path) -> None:
    path = await create(store, tmp_path, "s1")
    await store.save_info("s1", b'{"title":"abc"}', size_bytes=path.stat().st_size)
    info_path = path.with_suffix(".info")
    whole = info_path.read_bytes()

    for cut in range(len(whole)):
        info_path.write_bytes(whole[:cut])
        assert store.load_info("s1") is None


async def test_a_journal_is_portable_as_one_file(store: FolderStore, tmp_path: Path) -> None:
    path = await create(store, tmp_path, "s1", records=3)
    there = tmp_path / "elsewhere" / "sessions"
    there.mkdir(parents=True)
    (there / path.name).write_bytes(path.read_bytes())
    other = FolderStore(tmp_path / "elsewhere")

    journal, records = other.open("s1", durability="os")

    assert [as_appended(one) for one in records] == [first("s1"), *map(record, range(3))]
    await journal.close()
    await other.close()


@given(st.lists(st.integers(0, 99), max_size=6), st.lists(st.integers(0, 99), max_size=3), st.data())
@settings(max_examples=examples(40), deadline=None)
def test_a_session_cut_at_any_byte_opens_to_a_prefix_and_goes_on_from_there(
    before: list[int], after: list[int], data: st.DataObject
) -> None:
    written = [first("s1"), *map(record, before)]
    whole = b"".join(encode_journal(written))
    cut = data.draw(st.integers(len(encode_record(0, first("s1"))) - 1, len(whole)))

    async def go_on(home: Path) -> tuple[list[bytes], list[bytes]]:
        store = FolderStore(home)
        path = await create(store, home, "s1")
        path.write_bytes(whole[:cut])
        journal, found = store.open("s1", durability="os")
        journal.append([record(number) for number in after])
        await journal.close()
        journal, again = store.open("s1", durability="os")
        await journal.close()
        await store.close()
        return [as_appended(one) for one in found], [as_appended(one) for one in again]

    with tempfile.TemporaryDirectory() as home:
        found, again = asyncio.run(go_on(Path(home)))
    assert found == written[: len(found)]
    assert len(b"".join(encode_journal(written[: len(found) + 1]))) > cut + 1 or found == written
    assert again == [*found, *map(record, after)]
