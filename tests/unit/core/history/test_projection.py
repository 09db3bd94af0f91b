from __future__ import annotations

from msgspec import Raw

from compactd.core.history.projection import INTERRUPTED, Pending, Projected, Repair, project
from compactd.core.tokens.counting import message_tokens
from compactd.protocol.messages import Block, Document, Image, Message, Role, Text, ToolCall, ToolResult
from tests.support.conversations import LETTERS, items_of
from tests.support.cut_laws import open_calls, pairs


def says(role: Role, text: str) -> Message:
    return Message(role=role, content=(Text(text=text),))


def calls(*call_ids: str) -> Message:
    blocks = [ToolCall(call_id=call_id, name="read", arguments=Raw(b"{}")) for call_id in call_ids]
    return Message(role="assistant", content=tuple(blocks))


def result(call_id: str, text: str = "", role: Role = "tool") -> Message:
    return Message(role=role, content=(ToolResult(call_id=call_id, content=text or f"of {call_id}"),))


def shown(*messages: Message) -> tuple[list[str], list[tuple[str | None, ...]]]:
    """(each projected message as `entry role:blocks`, each repair as (kind, entry, call))."""
    projection = project(items_of(messages), LETTERS)
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


# --- what is well formed stays ----------------------------------------------------------------------


def test_a_conversation_whose_pairs_are_whole_is_projected_as_it_came() -> None:
    items = items_of(
        [says("user", "go"), calls("a", "b"), result("b"), result("a"), says("assistant", "done")]
    )

    projection = project(items, LETTERS)

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
    projection = project(items_of([says("user", "go"), calls("a", "b"), result("a")]), LETTERS)

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
    assert Pending(items_of(given[:2])).call_ids == ("a",)


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

    projection = project(items_of([calls("a"), both]), LETTERS)

    assert projection.messages[1].message.content == both.content[:1]
    assert projection.messages[1].source is None
    assert projection.tokens == len("read{}") + len("of a")


def test_pictures_and_documents_of_a_result_that_is_left_out_count_no_more_than_its_words() -> None:
    seen = (
        Text(text="seen"),
        Image(media_type="image/png", url="https://example.org/a.png", width=800, height=600),
        Document(media_type="application/pdf", pages=3, data="JVBERi0x"),
    )
    both = Message(role="user", content=(Text(text="and"), ToolResult(call_id="x", content=seen), *seen[1:]))

    projection = project(items_of([both]), LETTERS)

    assert [type(block) for block in projection.messages[0].message.content] == [Text, Image, Document]
    assert projection.tokens == message_tokens(projection.messages[0].message, LETTERS)


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


# --- pending, pairs -----------------------------------------------------------------------


def test_pending_calls_are_those_of_the_batch_that_is_half_done() -> None:
    assert Pending(items_of([calls("a", "b", "c"), result("b")])).call_ids == ("a", "c")
    assert Pending(items_of([calls("a", "b"), result("a"), says("user", "stop")])).call_ids == ()
    assert Pending(items_of([calls("a"), calls("b")])).call_ids == ("b",)
    assert Pending(items_of([calls("a", "a"), result("a")])).call_ids == ("a",)


def test_pairs_and_open_calls_name_messages_by_index() -> None:
    items = items_of([says("user", "go"), calls("a", "b"), result("b"), calls("c", "d"), result("d")])

    assert pairs(items) == ((1, 2), (3, 4))
    assert open_calls(items) == (3,)
