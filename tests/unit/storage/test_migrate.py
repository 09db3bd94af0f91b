"""Journals of other versions. A file in tests/support/journals is never edited: add one."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from compactd.core.history.entries import Entry
from compactd.protocol.errors import FormatNotSupported
from compactd.storage.folder import FolderStore
from compactd.storage.journal_records import as_appended, encode_journal, scan
from compactd.storage.migrate import FORMAT, JournalFormat, upgrade
from compactd.storage.paths import file_stem

JOURNALS = Path(__file__).parents[2] / "support" / "journals"
ID = "fix-the-loader"
NEXT = JournalFormat(
    version=2, steps={1: lambda record: record.replace(b'"v":1', b'"v":2').replace(b"user", b"person")}
)
"""A version as it may come: another number, and another word for a role."""

ADDED = b'{"type":"pin","at":1763750099.0,"entry_ids":["e8"],"pinned":true}'


def put(home: Path, version: str, name: str = "every_kind") -> Path:
    """An old journal in the folder of `home`."""
    path = home / "sessions" / f"{file_stem(ID)}.jsonl"
    path.parent.mkdir()
    path.write_bytes((JOURNALS / version / f"{name}.jsonl").read_bytes())
    return path


def old(version: str, name: str = "every_kind") -> list[bytes]:
    return [as_appended(one) for one in scan((JOURNALS / version / f"{name}.jsonl").read_bytes()).records]


KINDS_OF_V1 = ("every_kind", "later_kinds", "named_estimators", "reduced")
"""The files that hold every kind of record together, those of the first day and the later ones; one with
fields that came later; and one with reduced tool outputs."""


def test_every_kind_of_record_stands_in_a_journal() -> None:
    kept = {
        type(msgspec.json.decode(one, type=Entry)).__name__ for name in KINDS_OF_V1 for one in old("v1", name)
    }

    assert kept == {kind.__name__ for kind in Entry.__args__}


@pytest.mark.parametrize("name", KINDS_OF_V1)
async def test_a_journal_of_version_1_opens_with_every_record_as_it_was(
    store: FolderStore, tmp_path: Path, name: str
) -> None:
    path = put(tmp_path, "v1", name)
    before = path.read_bytes()

    journal, records = store.open(ID, durability="os")

    assert b"".join(encode_journal([as_appended(one) for one in records])) == before
    assert upgrade(old("v1", name), FORMAT.steps_from(1)) == old("v1", name)
    await journal.durable(journal.append([ADDED]))
    await journal.close()
    assert path.read_bytes()[: len(before)] == before


async def test_an_older_journal_is_read_as_ours_and_written_as_ours_with_the_first_record_added(
    tmp_path: Path,
) -> None:
    path = put(tmp_path, "v1")
    before = path.read_bytes()
    store = FolderStore(tmp_path, NEXT)
    expected = upgrade(old("v1"), NEXT.steps_from(1))

    journal, records = store.open(ID, durability="disk")
    assert [as_appended(one) for one in records] == expected
    assert any(b'"role":"person"' in one for one in expected)
    assert path.read_bytes() == before, "opening alone changes nothing"
    await journal.durable(journal.append([ADDED]))
    await journal.durable(journal.append([ADDED]))
    await journal.close()

    assert path.read_bytes() == b"".join(encode_journal([*expected, ADDED, ADDED]))
    journal, records = store.open(ID, durability="disk")
    assert [as_appended(one) for one in records] == [*expected, ADDED, ADDED]
    await journal.close()
    await store.close()


async def test_a_record_of_an_older_journal_can_be_replaced_before_anything_is_added(tmp_path: Path) -> None:
    path = put(tmp_path, "v1")
    store = FolderStore(tmp_path, NEXT)
    expected = upgrade(old("v1"), NEXT.steps_from(1))

    journal, _ = store.open(ID, durability="disk")
    await journal.replace({3: ADDED})
    await journal.close()

    assert path.read_bytes() == b"".join(encode_journal([*expected[:3], ADDED, *expected[4:]]))
    await store.close()


async def test_a_follower_reads_an_older_journal_as_ours(tmp_path: Path) -> None:
    path = put(tmp_path, "v1")
    store = FolderStore(tmp_path, NEXT)
    more = b'{"type":"message","role":"user"}'

    follower, records = store.read(ID)
    with path.open("ab") as owner:
        owner.write(list(encode_journal([*old("v1"), more]))[-1])

    assert [as_appended(one) for one in records] == upgrade(old("v1"), NEXT.steps_from(1))
    assert [as_appended(one) for one in follower.poll().records] == [b'{"type":"message","role":"person"}']
    follower.close()
    await store.close()


async def test_a_journal_of_a_newer_version_says_so_and_stays_as_it_is(
    store: FolderStore, tmp_path: Path
) -> None:
    path = put(tmp_path, "v1")
    newer = b"".join(encode_journal(upgrade(old("v1"), NEXT.steps_from(1))))
    path.write_bytes(newer)

    for opening in (lambda: store.open(ID, durability="os"), lambda: store.read(ID)):
        with pytest.raises(FormatNotSupported, match="newer version of compactd") as told:
            opening()
        assert told.value.data == {"format": 2, "supported": [1]}

    assert path.read_bytes() == newer
    assert [one.session_id for one in store.list()] == [ID]


async def test_a_newer_journal_that_looks_damaged_is_newer_first(store: FolderStore, tmp_path: Path) -> None:
    path = put(tmp_path, "v1")
    first, *rest = upgrade(old("v1"), NEXT.steps_from(1))
    (line_0,) = encode_journal([first])
    path.write_bytes(line_0 + b"#2 another frame\n" + list(encode_journal([first, *rest]))[1])

    with pytest.raises(FormatNotSupported):
        store.open(ID, durability="os")


def test_steps_are_taken_in_their_order() -> None:
    def bump(record: bytes) -> bytes:
        version = json.loads(record)["v"]
        return record.replace(b'"v":%d' % version, b'"v":%d' % (version + 1)).replace(
            b"}", b',"was_%d":1}' % version
        )

    three = JournalFormat(version=3, steps={1: bump, 2: bump})

    assert upgrade([b'{"v":1}'], three.steps_from(1)) == [b'{"v":3,"was_1":1,"was_2":1}']
    assert upgrade([b'{"v":2}'], three.steps_from(2)) == [b'{"v":3,"was_2":1}']
    assert three.steps_from(3) == ()
    for never in (0, -1, 4):
        with pytest.raises(FormatNotSupported):
            three.steps_from(never)
