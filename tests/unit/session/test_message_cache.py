"""The newest messages stay decoded within a memory limit; older ones are kept as bytes and read the same."""

from __future__ import annotations

import asyncio

import msgspec
from msgspec import Raw

from compactd.core.history.append import AppendRequest
from compactd.core.history.entries import Opened
from compactd.formats.messages.neutral import read_messages
from compactd.protocol.methods import METHODS
from compactd.session.message_cache import PIECE, DecodedMessageCache
from compactd.session.session import Session
from compactd.storage.memory_journal import MemoryJournal
from tests.support.quiet_world import Quiet, done

COUNT = 2 * PIECE + 7


def session(name: str, count: int = COUNT) -> Session:
    first = Opened(v=1, id=name, at=0.0)
    journal = MemoryJournal()
    journal.append([msgspec.json.encode(first)])
    one = Session(Quiet(), name, journal, (first,), persistent=False)
    append(one, count)
    return one


def append(to: Session, count: int) -> None:
    said = [{"role": "user", "content": f"Look at item_{n} in list_{n % 7}."} for n in range(count)]
    read = tuple(read_messages([Raw(msgspec.json.encode(message)) for message in said]))
    to.append(AppendRequest(read=read, tokens=(10,) * count))


async def asked(cooler: DecodedMessageCache, *requests: tuple[str, str]) -> None:
    for method, session_id in requests:
        cooler.note_request(METHODS[method], session_id)
        await cooler.wait_idle()
        await asyncio.sleep(0)


def decoded(of: Session) -> list[bool]:
    return [item.is_decoded for item in of.state.view().items]


def test_below_the_limit_nothing_is_let_go() -> None:
    one = session("a")

    done(asked(DecodedMessageCache({"a": one}, 10 * COUNT), ("session/append", "a")))

    assert all(decoded(one))


def test_the_newest_messages_stay_and_all_say_what_they_said() -> None:
    one = session("a")
    before = [item.message for item in one.state.view().items]
    sources = [item.source for item in one.state.view().items]

    done(asked(DecodedMessageCache({"a": one}, 2_000), ("session/append", "a")))

    assert decoded(one) == [False] * (COUNT - 100) + [True] * 100
    assert [item.message for item in one.state.view().items] == before
    assert [item.source for item in one.state.view().items] == sources


def test_the_view_and_the_originals_hold_the_same_message() -> None:
    one = session("a")

    done(asked(DecodedMessageCache({"a": one}, 2_000), ("session/append", "a")))

    assert all(one.state.originals[item.entry_id] is item for item in one.state.view().items)


def test_who_holds_a_view_goes_on_with_what_it_holds() -> None:
    one = session("a")
    held = one.state.view().items
    messages = [item.message for item in held]

    done(asked(DecodedMessageCache({"a": one}, 2_000), ("session/append", "a")))

    assert all(item.message is message for item, message in zip(held, messages, strict=True))


def test_the_session_that_was_asked_about_longest_ago_goes_first() -> None:
    old, new = session("old", 100), session("new", 100)
    cooler = DecodedMessageCache({"old": old, "new": new}, 1_900)

    done(asked(cooler, ("session/append", "old"), ("session/append", "new")))

    assert not any(decoded(old))
    assert decoded(new) == [False] * 5 + [True] * 95


def test_a_view_that_was_looked_at_is_let_go_again() -> None:
    one = session("a")
    cooler = DecodedMessageCache({"a": one}, 2_000)
    done(asked(cooler, ("session/append", "a")))
    for item in one.state.view().items:
        _ = item.message

    done(asked(cooler, ("session/context", "a")))

    assert sum(decoded(one)) == 100


def test_what_is_appended_later_is_let_go_in_its_turn() -> None:
    one = session("a", 150)
    cooler = DecodedMessageCache({"a": one}, 2_000)
    done(asked(cooler, ("session/append", "a")))
    assert all(decoded(one))
    append(one, 100)

    done(asked(cooler, ("session/append", "a")))

    assert decoded(one) == [False] * 150 + [True] * 100


def test_a_session_that_ends_counts_no_more() -> None:
    old, new = session("old", 100), session("new", 100)
    cooler = DecodedMessageCache({"old": old, "new": new}, 1_900)

    done(asked(cooler, ("session/append", "old"), ("session/close", "old"), ("session/append", "new")))

    assert all(decoded(new))
