"""What each kind of store does: files, and PostgreSQL (with `make test-system`)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from compactd.protocol.errors import SessionLocked, SessionNotFound
from compactd.session.search_all import search_everywhere
from compactd.storage.journal_records import as_appended, encode_journal
from compactd.storage.protocols import Follower, FollowerNews, Store

FIRST = b'{"type":"session","v":1,"id":"s1"}'


def record(number: int) -> bytes:
    return b'{"type":"message","number":%d}' % number


def message(entry_id: str, text: str) -> bytes:
    head = f'{{"type":"message","id":"{entry_id}","at":1763750001.0,"tokens":[1,"chars4"],'
    return (head + f'"message":{{"role":"user","content":"{text}"}}}}').encode()


def plain(records: Sequence[memoryview]) -> list[bytes]:
    return [as_appended(one) for one in records]


def news(follower: Follower) -> tuple[int, list[bytes]]:
    came: FollowerNews = follower.poll()
    return came.first_seq, plain(came.records)


async def reopened(store: Store) -> list[bytes]:
    journal, records = store.open("s1", durability="os")
    await journal.close()
    return plain(records)


async def test_closing_and_opening_gives_the_same_records_again_and_again(any_store: Store) -> None:
    journal = any_store.create("s1", FIRST, "os")
    await journal.close()

    for number in range(3):
        journal, records = any_store.open("s1", durability="disk")
        assert [as_appended(one) for one in records] == [FIRST, *map(record, range(number))]
        journal.append([record(number)])
        await journal.close()

    assert await reopened(any_store) == [FIRST, *map(record, range(3))]


async def test_bytes_that_are_no_record_are_refused_with_all_that_came_with_them(any_store: Store) -> None:
    journal = any_store.create("s1", FIRST, "os")

    with pytest.raises(ValueError, match="a record is"):
        journal.append([record(1), b"[]"])

    await journal.close()
    assert await reopened(any_store) == [FIRST]


async def test_one_that_no_longer_waits_stops_no_write(any_store: Store) -> None:
    journal = any_store.create("s1", FIRST, "disk")
    number = journal.append([record(1)])
    waiting = asyncio.get_running_loop().create_task(journal.durable(number))
    await asyncio.sleep(0)

    waiting.cancel()
    await journal.durable(number)

    assert waiting.cancelled() or waiting.cancelling()
    await journal.close()
    assert await reopened(any_store) == [FIRST, record(1)]


async def test_closing_waits_for_what_was_appended_and_can_be_done_twice(any_store: Store) -> None:
    journal = any_store.create("s1", FIRST, "disk")
    journal.append([record(number) for number in range(200)])

    await asyncio.gather(journal.close(), journal.close())
    await journal.close()

    with pytest.raises(RuntimeError):
        journal.append([record(1)])
    assert await reopened(any_store) == [FIRST, *map(record, range(200))]


async def test_a_close_that_was_given_up_still_lets_go(any_store: Store) -> None:
    journal = any_store.create("s1", FIRST, "disk")
    closing = asyncio.get_running_loop().create_task(journal.close())
    await asyncio.sleep(0)

    closing.cancel()
    await journal.close()

    assert await reopened(any_store) == [FIRST]


async def test_only_a_record_that_was_appended_can_be_replaced(any_store: Store) -> None:
    journal = any_store.create("s1", FIRST, "os")

    for changes in ({1: record(1)}, {-1: record(1)}, {0: b"secret"}):
        with pytest.raises(ValueError, match="record"):
            await journal.replace(changes)

    await journal.close()
    assert await reopened(any_store) == [FIRST]


async def test_a_follower_sees_what_the_owner_appends_once_each(any_store: Store) -> None:
    journal = any_store.create("s1", FIRST, "os")
    await journal.durable(journal.last)

    follower, records = any_store.read("s1")
    assert plain(records) == [FIRST]
    for number in range(1, 4):
        assert news(follower) == (number, [])
        await journal.durable(journal.append([record(number)]))
        assert news(follower) == (number, [record(number)])
        assert follower.size_bytes == journal.size_bytes

    await journal.close()
    follower.close()


async def test_a_replaced_record_is_replaced_here(any_store: Store) -> None:
    journal = any_store.create("s1", FIRST, "os")
    await journal.durable(journal.append([record(1)]))
    follower, _ = any_store.read("s1")

    await journal.replace({1: record(9)})
    await journal.durable(journal.append([record(2)]))

    assert news(follower) == (0, [FIRST, record(9), record(2)])
    await journal.close()
    follower.close()


async def test_a_session_that_is_deleted_under_a_follower_is_not_found(any_store: Store) -> None:
    journal = any_store.create("s1", FIRST, "os")
    await journal.close()
    follower, _ = any_store.read("s1")

    await any_store.delete("s1")

    with pytest.raises(SessionNotFound):
        follower.poll()
    again = any_store.create("s1", FIRST, "os")
    await again.durable(again.append([record(5)]))
    assert news(follower) == (0, [FIRST, record(5)])
    await again.close()
    follower.close()


async def test_nothing_is_stored_at_first(any_store: Store) -> None:
    assert any_store.list() == []
    assert not any_store.exists("s1")
    assert any_store.load_info("s1") is None
    for missing in (
        lambda: any_store.open("s1", durability="os"),
        lambda: any_store.read("s1"),
        lambda: any_store.salvage("s1"),
    ):
        with pytest.raises(SessionNotFound):
            missing()
    with pytest.raises(SessionNotFound):
        await any_store.delete("s1")


async def test_a_session_is_created_once_and_not_deleted_while_it_is_open(any_store: Store) -> None:
    journal = any_store.create("s1", FIRST, "os")
    await journal.durable(journal.append([record(1)]))
    with pytest.raises(SessionLocked):
        any_store.create("s1", FIRST, "os")
    with pytest.raises(SessionLocked):
        any_store.open("s1", durability="os")
    with pytest.raises(SessionLocked):
        await any_store.delete("s1")
    await journal.durable(journal.append([record(2)]))
    assert [one.is_locked for one in any_store.list()] == [True]
    await journal.close()

    with pytest.raises(FileExistsError):
        any_store.create("s1", FIRST, "os")
    assert any_store.salvage("s1") == [FIRST, record(1), record(2)]
    (stored,) = any_store.list()
    whole = b"".join(encode_journal([FIRST, record(1), record(2)]))
    assert (stored.session_id, stored.is_locked) == ("s1", False)
    assert len(whole) <= stored.size_bytes <= len(whole) + len('"with":0,')
    await any_store.delete("s1")
    assert any_store.list() == []
    await any_store.create("s1", FIRST, "os").close()


async def test_info_is_returned_until_the_session_changes(any_store: Store) -> None:
    journal = any_store.create("s1", FIRST, "os")
    await journal.durable(journal.append([record(1)]))
    info = b'{"title":"one\\ntwo"}\nmore'
    await any_store.save_info("s1", info, size_bytes=journal.size_bytes or 0)
    assert any_store.load_info("s1") == info
    await journal.close()
    journal, _ = any_store.open("s1", durability="os")
    assert any_store.load_info("s1") == info

    await journal.durable(journal.append([record(9)]))

    assert any_store.load_info("s1") is None
    await any_store.save_info("s1", b"{}", size_bytes=journal.size_bytes or 0)
    assert any_store.load_info("s1") == b"{}"
    await journal.close()


async def test_numbers_rise_by_one_per_record_and_the_size_is_that_of_the_journal(any_store: Store) -> None:
    journal = any_store.create("s1", FIRST, "os")
    numbers = [journal.append([record(1)]), journal.append([record(2), record(3)]), journal.append([])]
    assert (numbers, journal.last) == ([2, 4, 4], 4)
    await journal.durable(journal.append([]))
    assert journal.size_bytes == any_store.list()[0].size_bytes
    await journal.replace({2: b'{"type":"message","text":"a longer one than before"}'})
    assert journal.size_bytes == any_store.list()[0].size_bytes
    await journal.close()


@pytest.mark.parametrize(
    ("text", "query", "is_found"),
    [
        ("in src/core/loader.py:12 the max_tokens are wrong", "src/core/loader.py", True),
        ("in src/core/loader.py:12 the max_tokens are wrong", "core/loader.py:12", True),
        ("in src/core/loader.py:12 the max_tokens are wrong", "loader.py core", True),
        ("in src/core/loader.py:12 the max_tokens are wrong", "loader/core", False),
        ("in src/core/loader.py:12 the max_tokens are wrong", "WRONG max_tok", True),
        ("in src/core/loader.py:12 the max_tokens are wrong", "ax_tokens", False),
        ("in src/core/loader.py:12 the max_tokens are wrong", "max_tok wrong", False),
        ("it is wrong", "' OR 1=1 --", False),
        ("it is wrong", "wrong & !it | :*", True),
        ("请修复缓存加载器的错误", "缓存", True),
        ("请修复缓存加载器的错误", "存缓", False),
        ("أصلح المُخزّن المؤقت", "المؤقت", True),
        ("Größe prüfen", "grÖße", True),
        ("café au lait", "cafe", True),
    ],
)
async def test_a_query_is_words_in_any_script(
    any_store: Store, text: str, query: str, is_found: bool
) -> None:
    journal = any_store.create("s1", FIRST, "os")
    journal.append([message("e1", text), message("e2", "something else")])
    await journal.close()

    hits = search_everywhere(any_store.index, query, 5).hits

    assert [(hit.session_id, hit.entry_id, hit.snippet) for hit in hits] == (
        [("s1", "e1", text)] if is_found else []
    )


async def test_a_search_finds_what_was_appended_since_and_ranks_by_frequency(any_store: Store) -> None:
    journal = any_store.create("s1", FIRST, "os")
    await journal.durable(journal.append([message("e1", "the cache and many words about other things")]))
    assert [hit.entry_id for hit in search_everywhere(any_store.index, "cache", 5).hits] == ["e1"]

    await journal.durable(journal.append([message("e2", "cache cache")]))

    assert [hit.entry_id for hit in search_everywhere(any_store.index, "cache", 5).hits] == ["e2", "e1"]
    assert list(any_store.index.catch_up(lambda record: None)) == []
    await journal.close()
    await any_store.delete("s1")
    assert search_everywhere(any_store.index, "cache", 5).hits == ()
