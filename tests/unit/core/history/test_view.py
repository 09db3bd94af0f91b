"""The position of an entry on a path from the root, and the messages on that path."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from compactd.core.history.entries import Appended, Branched
from compactd.core.history.state import SessionState
from compactd.core.history.view import entry_index
from compactd.formats.messages.neutral import decode_message
from compactd.protocol.messages import Message

PATH = [f"e{number}" for number in range(300)]


@given(st.integers(0, len(PATH) - 1))
def test_an_entry_is_found_where_it_stands(at: int) -> None:
    assert entry_index(PATH, PATH[at]) == at


@pytest.mark.parametrize("path", [[], PATH])
def test_an_entry_that_is_not_on_the_path_is_told(path: list[str]) -> None:
    with pytest.raises(ValueError, match="e-1"):
        entry_index(path, "e-1")


@given(st.lists(st.integers(0, 9), max_size=12))
def test_the_messages_of_a_path_are_those_its_entries_name_branched_or_not(steps: list[int]) -> None:
    """0 branches to the first message, any other number appends."""
    state = SessionState(decode_message)
    for number, step in enumerate(steps):
        if step == 0 and state.path:
            state.apply(Branched(at=0.0, epoch=state.epoch + 1, entry_id=state.path[0]))
        else:
            state.apply(_message(state.next_id, state.leaf, number))

    for start in range(len(state.path) + 1):
        found = [item.entry_id for item in state.path_items(start)]
        assert found == state.path[start:]
        assert all(state.originals[item.entry_id] is item for item in state.path_items(start))


def test_what_was_counted_by_another_is_counted_again_and_what_was_not_is_left() -> None:
    state = SessionState(decode_message)
    for number in range(3):
        state.apply(_message(state.next_id, state.leaf, number))
    asked: list[Message] = []

    def count(message: Message) -> int:
        asked.append(message)
        return 7

    seen = []
    for estimator in ("chars4", "another", "another", "a third"):
        state.recount(estimator, count)
        seen.append((len(asked), state.items_tokens))

    assert seen == [(0, 3), (3, 21), (3, 21), (6, 21)]


def _message(entry_id: str, parent: str | None, number: int) -> Appended:
    body = {"role": "user", "content": f"{number}"}
    return Appended(
        id=entry_id, at=0.0, parent=parent, message=Raw(msgspec.json.encode(body)), tokens=(1, "chars4")
    )
