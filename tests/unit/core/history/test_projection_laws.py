from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from compactd.core.history.entries import Item
from compactd.core.history.projection import INTERRUPTED, Pending, project, projected_tokens
from compactd.core.tokens.counting import message_tokens
from compactd.protocol.messages import Block, Message, Text, ToolCall, ToolResult
from tests.support.conversations import LETTERS, again, conversations, items_of
from tests.support.cut_laws import open_calls, outline_of, safe_cuts

PAIR = (
    Message(role="assistant", content=(ToolCall(call_id="a", name="read", arguments=Raw(b"{}")),)),
    Message(role="tool", content=(ToolResult(call_id="a", content="out"),)),
)


def is_blank(block: Block) -> bool:
    return isinstance(block, Text) and not block.text.strip()


def has_more_than_results(message: Message) -> bool:
    return not all(isinstance(block, ToolResult) or is_blank(block) for block in message.content)


@given(conversations())
def test_calls_are_followed_by_their_results_and_ids_are_unique(messages: list[Message]) -> None:
    projected = [each.message for each in project(items_of(messages), LETTERS).messages]

    ids = [b.call_id for message in projected for b in message.content if isinstance(b, ToolCall)]
    assert len(ids) == len(set(ids))
    waiting: set[str] = set()
    for message in projected:
        for block in message.content:
            if isinstance(block, ToolResult):
                assert block.call_id in waiting
                waiting.remove(block.call_id)
        if has_more_than_results(message):
            assert not waiting
        waiting |= {b.call_id for b in message.content if isinstance(b, ToolCall)}
    assert not waiting


@given(conversations())
def test_a_projection_projected_again_needs_no_repair(messages: list[Message]) -> None:
    once = project(items_of(messages), LETTERS)

    twice = project(items_of([each.message for each in once.messages]), LETTERS)

    assert twice.repairs == ()
    assert [each.message for each in twice.messages] == [each.message for each in once.messages]
    assert twice.tokens == once.tokens


@given(conversations())
def test_the_tokens_are_those_of_the_projected_messages(messages: list[Message]) -> None:
    projection = project(items_of(messages), LETTERS)

    assert projection.tokens == sum(message_tokens(each.message, LETTERS) for each in projection.messages)


@given(conversations())
def test_the_tokens_alone_are_the_same_as_those_of_the_whole_projection(messages: list[Message]) -> None:
    items = items_of(messages)

    alone = projected_tokens(items, outline_of(items), LETTERS)

    assert alone == project(items, LETTERS).tokens


@given(conversations())
def test_nothing_is_lost_but_what_the_repairs_name(messages: list[Message]) -> None:
    projection = project(items_of(messages), LETTERS)

    def blocks(all_of: list[Message]) -> list[Block]:
        return [b for message in all_of for b in message.content if not is_blank(b)]

    before = blocks(messages)
    after = [
        b
        for b in blocks([each.message for each in projection.messages])
        if not (isinstance(b, ToolResult) and b.content == INTERRUPTED)
    ]
    kinds = [repair.kind for repair in projection.repairs]
    left_out = kinds.count("orphan_result") + kinds.count("duplicate_result")
    assert len(after) == len(before) - left_out
    assert sum(isinstance(b, ToolCall) for b in after) == sum(isinstance(b, ToolCall) for b in before)


@given(conversations())
def test_pending_kept_up_message_by_message_equals_the_rescan(messages: list[Message]) -> None:
    items = items_of(messages)
    pending = Pending()
    for end, message in enumerate(messages, start=1):
        pending.add(message)
        assert pending.call_ids == Pending(items[:end]).call_ids
        indices = set(open_calls(items[:end]))
        assert bool(indices) == bool(pending.call_ids)
        ids = [b.call_id for i in indices for b in messages[i].content if isinstance(b, ToolCall)]
        assert set(pending.call_ids) <= set(ids)


@given(conversations())
def test_a_safe_cut_orphans_nothing(messages: list[Message]) -> None:
    items = items_of(messages)
    whole = project(items, LETTERS)
    orphans = {r.entry_id for r in whole.repairs if r.kind in ("orphan_result", "duplicate_result")}

    for at in safe_cuts(items):
        tail = project(items[at:], LETTERS)
        cut_off = {r.entry_id for r in tail.repairs if r.kind in ("orphan_result", "duplicate_result")}
        assert cut_off <= orphans


@given(conversations())
def test_messages_read_back_from_their_bytes_project_alike(messages: list[Message]) -> None:
    once = again(messages)

    here = project(items_of(once), LETTERS)
    there = project(items_of(again(once)), LETTERS)

    assert there == here


@given(st.integers(0, 3))
def test_a_message_that_was_shortened_is_not_projected_from_its_old_bytes(at: int) -> None:
    says = [Message(role=role, content=(Text(text="go"),)) for role in ("user", "assistant")]
    items = items_of([says[0], *PAIR, says[1]])
    items[at] = msgspec.structs.replace(items[at], source=None)

    assert [each.source is None for each in project(items, LETTERS).messages] == [n == at for n in range(4)]


class Noting:
    """Counts letters, and how often it was asked to."""

    name, exact = "noting", True

    def __init__(self) -> None:
        self.asked = 0

    def count(self, text: str) -> int:
        """The characters of `text`."""
        self.asked += 1
        return len(text)


def test_ten_thousand_messages_with_one_call_id_cost_no_more_than_linear_work() -> None:
    messages = PAIR * 10_000
    items: list[Item] = items_of(messages)
    counting = Noting()

    projection = project(items, counting)

    assert len(projection.messages) == 20_000
    assert projection.messages[-1].message.content[0].call_id == "a-10000"
    assert counting.asked == 0
