"""The state of the work of a session: only new messages are read, and another branch from its root."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from compactd.core.constraints.constraints import constraints_of
from compactd.core.history.append import AppendRequest
from compactd.core.history.entries import Item, Opened
from compactd.core.history.lazy_message import LazyMessage
from compactd.core.work.state import WorkReader, WorkState
from compactd.formats.messages.neutral import decode_message, read_messages
from compactd.formats.messages.neutral_out import encode_message
from compactd.protocol.messages import Message
from compactd.protocol.work import StatedConstraint, Work
from compactd.session.session import Session
from compactd.session.work import SessionWork
from compactd.storage.memory_journal import MemoryJournal
from tests.support.agent_work import AgentWork
from tests.support.examples import examples
from tests.support.quiet_world import Quiet


class Path:
    """Messages that stay bytes. It notes each that was decoded, which reading does every time."""

    def __init__(self, items: Sequence[Item]) -> None:
        self.read: list[str] = []
        self.items = [self._lazy(item) for item in items]

    def _lazy(self, item: Item) -> Item:
        def decode(source: Raw) -> Message:
            self.read.append(item.entry_id)
            return decode_message(source)

        body = LazyMessage(Raw(encode_message(item.message)), decode)
        return msgspec.structs.replace(item, body=body, tokens=10)


def conversation() -> list[Item]:
    agent = AgentWork()
    agent.asks("Fix the loader. Never touch c.py.")
    agent.edits("a.py")
    agent.runs("pytest -q", "a.py:1: KeyError\n1 failed", failed=True)
    agent.says("The etag is missing in the fixture. Let me now add it to the fixture.")
    agent.edits("b.py")
    agent.asks("Now do it again. Always run the tests.")
    agent.runs("pytest -q", "3 passed in 0.10s")
    agent.runs("git add a.py && git commit -m x", "[main 1a2b3c4] x")
    return agent.items


ITEMS = conversation()


def fresh(items: Sequence[Item]) -> WorkState:
    reader = WorkReader()
    for item in items:
        reader.add(item)
    return reader.state(constraints_of(items))


def test_only_new_messages_are_read() -> None:
    path = Path(ITEMS)
    work = SessionWork()
    work.after(path.items[:4])
    first = list(path.read)
    path.read.clear()

    unread = work.unread_tokens(path.items)
    result = work.after(path.items)

    assert first == [item.entry_id for item in ITEMS[:4]]
    assert path.read == [item.entry_id for item in ITEMS[4:]]
    assert unread == 10 * (len(ITEMS) - 4)
    assert result == fresh(ITEMS)


def test_asking_again_reads_nothing_and_gives_the_same() -> None:
    path = Path(ITEMS)
    work = SessionWork()
    first = work.after(path.items)
    path.read.clear()

    again = work.after(path.items)

    assert (again, path.read, work.unread_tokens(path.items)) == (first, [], 0)


def test_the_constraints_of_all_messages_are_in_force() -> None:
    work = SessionWork()
    for size in range(1, len(ITEMS) + 1):
        result = work.after(ITEMS[:size])

    assert result.work.constraints == (
        StatedConstraint(text="Never touch c.py.", entry_id=ITEMS[0].entry_id),
        StatedConstraint(text="Always run the tests.", entry_id=result.work.constraints[-1].entry_id),
    )


def test_another_branch_is_read_from_its_root() -> None:
    other = [*ITEMS[:3], *(msgspec.structs.replace(item, entry_id=f"{item.entry_id}0") for item in ITEMS[5:])]
    path = Path(other)
    work = SessionWork()
    work.after(ITEMS)

    result = work.after(path.items)

    assert path.read == [item.entry_id for item in other]
    assert result == fresh(other)


def test_a_shorter_path_is_another_branch() -> None:
    work = SessionWork()
    work.after(ITEMS)

    assert work.after(ITEMS[:3]) == fresh(ITEMS[:3])
    assert work.after(()).work == Work()


@given(st.lists(st.tuples(st.booleans(), st.integers(0, len(ITEMS))), max_size=6))
@settings(max_examples=examples(60))
def test_any_steps_between_branches_give_what_a_fresh_reader_gives(steps: list[tuple[bool, int]]) -> None:
    other = [*ITEMS[:2], *(msgspec.structs.replace(item, entry_id=f"{item.entry_id}0") for item in ITEMS[4:])]
    work = SessionWork()

    for is_other, size in steps:
        path = (other if is_other else ITEMS)[:size]
        assert work.after(path) == fresh(path)


def test_a_session_keeps_its_state_until_it_drops_the_facts() -> None:
    opened = Opened(v=1, id="a", at=0.0)
    journal = MemoryJournal()
    journal.append([msgspec.json.encode(opened)])
    session = Session(Quiet(), "a", journal, (opened,), persistent=False)
    read = tuple(read_messages([Raw(encode_message(item.message)) for item in ITEMS]))
    session.append(AppendRequest(read=read, tokens=(10,) * len(read)))
    path = session.state.path_items()

    kept = session.work()
    first = kept.after(path)
    same = session.work()
    session.drop_facts()
    again = session.work()

    assert same is kept
    assert again is not kept
    assert first == again.after(path) == fresh(path)
    assert first.work.plan == fresh(ITEMS).work.plan
    assert [file.path for file in first.work.changes] == ["a.py", "b.py"]


def test_reading_ahead_goes_on_after_the_last_message_and_gives_the_same() -> None:
    path = Path(ITEMS)
    work = SessionWork()

    names = [None, *(item.entry_id for item in path.items)]
    while not work.read_ahead(path.items[names.index(work.last_read) :], work.last_read, until=0.0):
        pass

    assert path.read == [item.entry_id for item in ITEMS], "each message is read once"
    assert work.after(path.items) == fresh(ITEMS)


def test_reading_ahead_leaves_messages_that_follow_another_one() -> None:
    work = SessionWork()
    work.after(ITEMS[:3])

    assert work.read_ahead(ITEMS[5:], after=ITEMS[4].entry_id, until=float("inf"))
    assert work.last_read == ITEMS[2].entry_id


def test_the_messages_after_an_entry_are_those_of_its_path() -> None:
    opened = Opened(v=1, id="a", at=0.0)
    journal = MemoryJournal()
    journal.append([msgspec.json.encode(opened)])
    session = Session(Quiet(), "a", journal, (opened,), persistent=False)
    read = tuple(read_messages([Raw(encode_message(item.message)) for item in ITEMS]))
    session.append(AppendRequest(read=read, tokens=(10,) * len(read)))
    state, path = session.state, session.state.path_items()

    assert state.path_items_after(None) == path
    assert state.path_items_after(path[3].entry_id) == path[4:]
    assert state.path_items_after(path[-1].entry_id) == []
    assert state.path_items_after("another") is None
