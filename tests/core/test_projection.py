from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from compactd.core.entries import Item
from compactd.core.projection import (
    INTERRUPTED,
    Pending,
    Projected,
    Repair,
    open_call_barriers,
    open_calls,
    pairs,
    pending_calls,
    project,
)
from compactd.messages import Block, Message, Role, Text, ToolCall, ToolResult
from validators.conversations import again, conversations, count, items_of, tokens_of


def says(role: Role, text: str) -> Message:
    return Message(role=role, content=(Text(text=text),))


def calls(*call_ids: str) -> Message:
    blocks = [ToolCall(call_id=call_id, name="read", arguments=Raw(b"{}")) for call_id in call_ids]
    return Message(role="assistant", content=tuple(blocks))


def result(call_id: str, text: str = "", role: Role = "tool") -> Message:
    return Message(role=role, content=(ToolResult(call_id=call_id, content=text or f"of {call_id}"),))


def shown(*messages: Message) -> tuple[list[str], list[tuple[str | None, ...]]]:
    """(each projected message as `entry role:blocks`, each repair as (kind, entry, call))."""
    projection = project(items_of(messages), count)
    return (
        [f"{each.entry_id or '-'} {each.message.role}:{_brief(each)}" for each in projection.messages],
        [(repair.kind, repair.entry_id, repair.call_id) for repair in projection.repairs],
    )


def _brief(projected: Projected) -> str:
    return ",".join(_brief_block(block) for block in projected.message.content)


def _brief_block(block: Block) -> str:
    match block:
        case Text():
            return block.text
        case ToolCall():
            return f"{block.call_id}?"
        case ToolResult():
            return f"{block.call_id}=" + ("!" if block.content == INTERRUPTED else str(block.content))
        case _:
            return type(block).__name__


def is_blank(block: Block) -> bool:
    return isinstance(block, Text) and not block.text.strip()


def has_more_than_results(message: Message) -> bool:
    return not all(isinstance(block, ToolResult) or is_blank(block) for block in message.content)


# --- what is well formed stays ----------------------------------------------------------------------


def test_a_conversation_whose_pairs_are_whole_is_projected_as_it_came() -> None:
    items = items_of(
        [says("user", "go"), calls("a", "b"), result("b"), result("a"), says("assistant", "done")]
    )

    projection = project(items, count)

    assert [each.message for each in projection.messages] == [item.message for item in items]
    assert [each.source for each in projection.messages] == [item.source for item in items]
    assert projection.repairs == ()
    assert projection.tokens == sum(item.tokens for item in items)


def test_results_in_user_messages_need_no_repair() -> None:
    mixed = Message(role="user", content=(Text(text="and"), ToolResult(call_id="b", content="of b")))

    messages, repairs = shown(
        says("user", "go"), calls("a", "b"), result("a", role="user"), mixed, says("assistant", "ok")
    )

    assert messages == [
        "e1 user:go",
        "e2 assistant:a?,b?",
        "e3 user:a=of a",
        "e4 user:and,b=of b",
        "e5 assistant:ok",
    ]
    assert repairs == []


# --- calls without results --------------------------------------------------------------------------


def test_an_open_call_gets_an_error_result_without_entry_id_right_after_it() -> None:
    projection = project(items_of([says("user", "go"), calls("a", "b"), result("a")]), count)

    written = projection.messages[2]
    assert written == Projected(
        message=Message(
            role="tool",
            content=(ToolResult(call_id="b", name="read", content=INTERRUPTED, is_error=True),),
        )
    )
    assert [each.entry_id for each in projection.messages] == ["e1", "e2", None, "e3"]
    assert projection.repairs == (Repair(kind="missing_result", entry_id="e2", call_id="b"),)


def test_a_call_that_a_later_message_closed_gets_the_same_error_result() -> None:
    messages, repairs = shown(calls("a"), says("user", "stop"), says("assistant", "ok"))

    assert messages == ["e1 assistant:a?", "- tool:a=!", "e2 user:stop", "e3 assistant:ok"]
    assert repairs == [("missing_result", "e1", "a")]


def test_the_real_result_replaces_the_error_result_when_it_comes() -> None:
    half = shown(calls("a", "b"), result("a"))
    whole = shown(calls("a", "b"), result("a"), result("b"))

    assert half[0] == ["e1 assistant:a?,b?", "- tool:b=!", "e2 tool:a=of a"]
    assert whole == (["e1 assistant:a?,b?", "e2 tool:a=of a", "e3 tool:b=of b"], [])


def test_a_result_that_comes_after_its_call_was_closed_moves_next_to_it() -> None:
    messages, repairs = shown(calls("a"), says("user", "stop"), result("a"))

    assert messages == ["e1 assistant:a?", "e3 tool:a=of a", "e2 user:stop"]
    assert repairs == [("moved_result", "e3", "a")]


def test_a_moved_result_leaves_the_rest_of_its_message_where_it_was() -> None:
    late = Message(role="user", content=(ToolResult(call_id="a", content="of a"), Text(text="and")))

    messages, repairs = shown(calls("a"), says("user", "stop"), says("assistant", "ok"), late)

    assert messages == [
        "e1 assistant:a?",
        "e4 tool:a=of a",
        "e2 user:stop",
        "e3 assistant:ok",
        "e4 user:and",
    ]
    assert repairs == [("moved_result", "e4", "a")]


def test_a_system_message_between_call_and_result_closes_nothing_but_stands_after_the_result() -> None:
    given = (calls("a"), says("system", "note"), result("a"))

    assert shown(*given)[0] == ["e1 assistant:a?", "e3 tool:a=of a", "e2 system:note"]
    assert pending_calls(items_of(given[:2])) == ("a",)


# --- results without calls --------------------------------------------------------------------------


def test_a_result_whose_call_is_not_there_is_left_out_and_reported() -> None:
    messages, repairs = shown(result("x"), says("user", "go"))

    assert messages == ["e2 user:go"]
    assert repairs == [("orphan_result", "e1", "x")]


def test_a_result_before_its_call_is_an_orphan() -> None:
    messages, repairs = shown(result("a"), calls("a"))

    assert messages == ["e2 assistant:a?", "- tool:a=!"]
    assert repairs == [("orphan_result", "e1", "a"), ("missing_result", "e2", "a")]


def test_of_two_results_of_one_call_the_first_stays_and_the_other_is_reported() -> None:
    messages, repairs = shown(calls("a"), result("a", "first"), result("a", "second"))

    assert messages == ["e1 assistant:a?", "e2 tool:a=first"]
    assert repairs == [("duplicate_result", "e3", "a")]


def test_only_the_orphan_is_left_out_of_a_message_that_holds_more() -> None:
    both = Message(
        role="tool",
        content=(ToolResult(call_id="a", content="of a"), ToolResult(call_id="x", content="nobody's")),
    )

    projection = project(items_of([calls("a"), both]), count)

    assert projection.messages[1].message.content == both.content[:1]
    assert projection.messages[1].source is None
    assert projection.tokens == len("read{}") + len("of a")


# --- ids that come again ----------------------------------------------------------------------------


def test_a_call_id_that_comes_again_is_a_new_call_with_a_suffix() -> None:
    messages, repairs = shown(
        calls("a"), result("a", "one"), calls("a"), result("a", "two"), calls("a"), result("a", "three")
    )

    assert messages == [
        "e1 assistant:a?",
        "e2 tool:a=one",
        "e3 assistant:a-2?",
        "e4 tool:a-2=two",
        "e5 assistant:a-3?",
        "e6 tool:a-3=three",
    ]
    assert repairs == [("renamed_call", "e3", "a"), ("renamed_call", "e5", "a")]


def test_a_suffix_never_meets_an_id_that_is_in_use() -> None:
    messages, _ = shown(calls("a-2"), result("a-2"), calls("a"), result("a"), calls("a"), result("a"))

    assert messages[4:] == ["e5 assistant:a-3?", "e6 tool:a-3=of a"]


def test_parallel_calls_with_one_id_are_answered_in_their_order() -> None:
    messages, _ = shown(calls("a", "a"), result("a", "one"), result("a", "two"))

    assert messages == ["e1 assistant:a?,a-2?", "e2 tool:a=one", "e3 tool:a-2=two"]


def test_a_result_answers_the_newest_call_with_its_id() -> None:
    messages, _ = shown(calls("a"), says("user", "stop"), calls("a"), result("a", "new"))

    assert messages == [
        "e1 assistant:a?",
        "- tool:a=!",
        "e2 user:stop",
        "e3 assistant:a-2?",
        "e4 tool:a-2=new",
    ]


def test_a_call_without_an_id_gets_one() -> None:
    assert shown(calls(""), result("", "one"))[0] == ["e1 assistant:call?", "e2 tool:call=one"]


# --- empty messages ---------------------------------------------------------------------------------


def test_an_empty_message_is_left_out_and_reported_and_closes_nothing() -> None:
    blank = Message(role="user", content=(Text(text=" \n"),))
    empty = Message(role="assistant", content=())

    messages, repairs = shown(calls("a"), blank, empty, result("a"))

    assert messages == ["e1 assistant:a?", "e4 tool:a=of a"]
    assert repairs == [("empty_message", "e2", None), ("empty_message", "e3", None)]


def test_an_empty_result_is_a_result() -> None:
    empty = Message(role="tool", content=(ToolResult(call_id="a", content=""),))

    assert shown(calls("a"), empty)[0] == ["e1 assistant:a?", "e2 tool:a="]


# --- pending, pairs, barriers -----------------------------------------------------------------------


def test_pending_calls_are_those_of_the_batch_that_is_half_done() -> None:
    assert pending_calls(items_of([calls("a", "b", "c"), result("b")])) == ("a", "c")
    assert pending_calls(items_of([calls("a", "b"), result("a"), says("user", "stop")])) == ()
    assert pending_calls(items_of([calls("a"), calls("b")])) == ("b",)
    assert pending_calls(items_of([calls("a", "a"), result("a")])) == ("a",)


def test_pairs_and_open_calls_name_messages_by_index() -> None:
    items = items_of([says("user", "go"), calls("a", "b"), result("b"), calls("c", "d"), result("d")])

    assert pairs(items) == ((1, 2), (3, 4))
    assert open_calls(items) == (3,)


def test_no_cut_may_stand_between_a_call_and_its_result_or_after_an_open_call() -> None:
    items = items_of(
        [
            says("user", "go"),
            calls("a"),
            result("a"),
            says("assistant", "ok"),
            calls("b"),
            says("system", "n"),
        ]
    )

    assert open_call_barriers(items) == (False, False, True, False, False, True)


# --- laws -------------------------------------------------------------------------------------------


@given(conversations())
def test_calls_are_followed_by_their_results_and_ids_are_unique(messages: list[Message]) -> None:
    projected = [each.message for each in project(items_of(messages), count).messages]

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
    once = project(items_of(messages), count)

    twice = project(items_of([each.message for each in once.messages]), count)

    assert twice.repairs == ()
    assert [each.message for each in twice.messages] == [each.message for each in once.messages]
    assert twice.tokens == once.tokens


@given(conversations())
def test_the_tokens_are_those_of_the_projected_messages(messages: list[Message]) -> None:
    # A result's documents and unknown blocks count nothing here, as in `tokens_of`.
    projection = project(items_of(messages), count)

    assert projection.tokens == sum(tokens_of(each.message) for each in projection.messages)


@given(conversations())
def test_nothing_is_lost_but_what_the_repairs_name(messages: list[Message]) -> None:
    projection = project(items_of(messages), count)

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
        assert pending.call_ids == pending_calls(items[:end])
        indices = set(open_calls(items[:end]))
        assert bool(indices) == bool(pending.call_ids)
        ids = [b.call_id for i in indices for b in messages[i].content if isinstance(b, ToolCall)]
        assert set(pending.call_ids) <= set(ids)


@given(conversations())
def test_a_cut_where_no_barrier_is_orphans_nothing(messages: list[Message]) -> None:
    items = items_of(messages)
    whole = project(items, count)
    orphans = {r.entry_id for r in whole.repairs if r.kind in ("orphan_result", "duplicate_result")}

    for at, barred in enumerate(open_call_barriers(items)):
        if not barred:
            tail = project(items[at:], count)
            cut_off = {r.entry_id for r in tail.repairs if r.kind in ("orphan_result", "duplicate_result")}
            assert cut_off <= orphans


@given(conversations())
def test_messages_read_back_from_their_bytes_project_alike(messages: list[Message]) -> None:
    once = again(messages)

    here = project(items_of(once), count)
    there = project(items_of(again(once)), count)

    assert there == here


@given(st.integers(0, 3))
def test_a_message_that_was_shortened_is_not_projected_from_its_old_bytes(at: int) -> None:
    items = items_of([says("user", "go"), calls("a"), result("a"), says("assistant", "ok")])
    items[at] = msgspec.structs.replace(items[at], source=None)

    assert [each.source is None for each in project(items, count).messages] == [n == at for n in range(4)]


def test_ten_thousand_messages_with_one_call_id_cost_no_more_than_linear_work() -> None:
    messages: list[Message] = []
    for _ in range(10_000):
        messages += [calls("a"), result("a")]
    counted: list[int] = []
    items: list[Item] = items_of(messages)

    projection = project(items, lambda text: counted.append(1) or len(text))

    assert len(projection.messages) == 20_000
    assert projection.messages[-1].message.content[0].call_id == "a-10000"
    assert counted == []
