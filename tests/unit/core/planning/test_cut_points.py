"""Where a conversation may be cut."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from compactd.core.budget.rules import Move
from compactd.core.budget.settings import PROFILES
from compactd.core.history.entries import Item
from compactd.core.history.message_kinds import is_request, kind_of, newest_request
from compactd.core.history.tool_pairs import match
from compactd.core.planning.cut_points import move, walk_back
from compactd.protocol.messages import Image, Message, Meta, Text, ToolCall, ToolResult
from tests.support.cut_laws import (
    outline_of,
    safe_cuts,
    splits_no_open_call,
    splits_no_pair,
    starts_with_no_result,
)
from tests.support.dialogue import dialogue

OPAL = PROFILES["opal"].rules.moves
GO_AGENT = PROFILES["go-agent"].rules.moves
DEFAULT = PROFILES["default"].rules.moves


def cuts(law: object, notation: str) -> list[int]:
    items = dialogue(notation)
    return [cut for cut, allowed in enumerate(law(items, match(items))) if allowed]  # type: ignore[operator]


def moved(notation: str, stop: int, moves: tuple[Move, ...] = OPAL, start: int = 0) -> int | None:
    return move(outline_of(dialogue(notation)), stop, start, moves)


def user(*blocks: object, **meta: object) -> Message:
    return Message(role="user", content=blocks, meta=Meta(**meta) if meta else None)  # type: ignore[arg-type]


def test_no_cut_falls_between_a_call_and_its_results() -> None:
    assert cuts(splits_no_pair, "U9 A9 T9 T9 A9") == [0, 1, 4, 5]


def test_no_cut_starts_with_a_tool_result() -> None:
    assert cuts(starts_with_no_result, "U9 A9 T9 T9 A9") == [0, 1, 4, 5]


def test_an_open_call_stays_with_all_that_follows_even_at_the_end() -> None:
    assert cuts(splits_no_open_call, "U9 A9 U9 A9? T9") == [0, 1, 2, 3]
    assert cuts(splits_no_open_call, "U9 A9 U9 A9 T9") == [0, 1, 2, 3, 4, 5]


def test_a_call_that_a_later_message_closed_binds_no_cut() -> None:
    assert cuts(splits_no_open_call, "U9 A9? U9 A9") == [0, 1, 2, 3, 4]


def test_safe_cuts_are_those_that_all_laws_allow() -> None:
    assert safe_cuts(dialogue("U9 A9 T9 T9 A9 U9 A9? T9")) == (0, 1, 4, 5, 6)
    assert safe_cuts(()) == (0,)


def test_a_call_id_that_comes_again_is_a_new_call() -> None:
    first, second = dialogue("A9 T9"), dialogue("A9 T9")

    assert safe_cuts((*first, *second)) == (0, 2, 4)


def test_a_user_message_of_results_is_a_result_and_a_shell_command_is_told_apart() -> None:
    result = ToolResult(call_id="c", content="x")

    assert kind_of(user(result)) == "result"
    assert kind_of(user(result, Text(text="and go on"))) == "result"
    assert kind_of(user(Text(text="$ ls"), kind="bash_execution")) == "bash"
    assert kind_of(user(Text(text="reminder"), synthetic=True)) == "user"


@pytest.mark.parametrize(
    ("message", "asked"),
    [
        (user(Text(text="do it")), True),
        (user(Text(text="  \n")), False),
        (user(Image(data="")), False),
        (user(ToolResult(call_id="c", content="do it")), False),
        (user(ToolResult(call_id="c"), Text(text="do it")), True),
        (user(Text(text="do it"), synthetic=True), False),
        (user(Text(text="do it"), type="compaction_summary"), False),
        (user(Text(text="[Conversation summary of my holidays")), True),
        (Message(role="assistant", content=(Text(text="do it"),)), False),
    ],
)
def test_a_request_is_what_a_person_asked_in_words(message: Message, asked: bool) -> None:
    assert is_request(message) is asked


def test_the_newest_request_is_the_last_one_that_is_real() -> None:
    assert newest_request(dialogue("U9 A9 U9 A9 T9 Y9 A9")) == 2
    assert newest_request(dialogue("A9 T9 Y9")) is None


def test_the_walk_stops_where_the_total_exceeds_keep_or_reaches_it() -> None:
    items = outline_of(dialogue("U10 A10 U10 A10"))

    assert [walk_back(items, keep, 0, inclusive=False) for keep in (19, 20, 39, 40)] == [2, 1, 0, None]
    assert [walk_back(items, keep, 0, inclusive=True) for keep in (19, 20, 39, 40, 41)] == [2, 2, 0, 0, None]
    assert walk_back(items, 20, 2, inclusive=False) is None


def test_opal_moves_a_stop_forward_to_the_next_user_message() -> None:
    # docs/specs.md, "opal.md", "1. Find Cut Point": "the nearest user message boundary at or after that
    # point".
    assert moved("U9 A9 U9 A9 T9 U9 A9", 3) == 5
    assert moved("U9 A9 U9 A9 T9 U9 A9", 2) == 2
    assert moved("U9 A9 B9 A9", 1) == 2


def test_opal_moves_a_stop_back_to_the_assistant_where_no_user_message_follows() -> None:
    assert moved("U9 A9 T9 A9 T9 T9", 5) == 3
    assert moved("U9 A9 T9 A9 T9 T9", 3) == 3


def test_a_cut_that_removes_nothing_is_none() -> None:
    assert moved("U9 A9 T9", 0) is None
    assert moved("U9 A9 U9", 0) == 2, "the first conversation may be cut further on"


def test_where_the_last_compaction_cut_no_other_cut_is_looked_for() -> None:
    assert moved("U9 A9 U9 A9 T9", 3, start=3) is None
    assert moved("U9 A9 U9 U9 A9", 2, start=2) is None


def test_go_agent_moves_back_to_a_user_message_and_mid_turn_only_in_the_newest_turn() -> None:
    # docs/specs.md, "go-agent.md", "Cut Point Rules": user boundaries; mid-turn where the newest single turn
    # exceeds keep.
    assert moved("U9 A9 T9 U9 A9 T9 U9 A9", 5, GO_AGENT) == 3
    assert moved("U9 A9 U9 A9 T9 A9 T9", 6, GO_AGENT) == 5
    assert moved("U9 A9 T9 A9 T9 U9", 4, GO_AGENT) == 3, "no user message leaves anything: the assistant"


def test_klaude_moves_back_to_the_call() -> None:
    assert moved("U9 A9 T9 A9 T9 T9 U9", 5, PROFILES["klaude"].rules.moves) == 3


def test_a_late_result_binds_every_cut_up_to_it() -> None:
    call, result = dialogue("A9 T9")
    between = dialogue("U9 A9", first=5)
    answered = ToolResult(call_id="t1.0", content="late")
    late = Item(entry_id="e9", body=Message(role="tool", content=(answered,)), tokens=1)

    assert result.message.role == "tool"
    assert safe_cuts((call, *between, late)) == (0, 4)


def test_two_calls_of_one_id_in_one_message_are_both_open_until_answered() -> None:
    call = ToolCall(call_id="c", name="run")
    both = Item(entry_id="e1", body=Message(role="assistant", content=(call, call)), tokens=4)
    one = dialogue("A9 T9")[1]
    result = replace(one, body=Message(role="tool", content=(ToolResult(call_id="c", content="x"),)))

    assert safe_cuts((both, result)) == (0,)
    assert safe_cuts((both, result, result)) == (0, 3)


def test_by_default_a_new_request_after_one_long_turn_is_not_all_that_stays() -> None:
    # The walk stops at the result in the middle of the first turn.
    talk = "U9 A9 T90 A9 T90 A9 T90 A9 T90 A20 U9"

    assert moved(talk, 6, OPAL) == 10
    assert moved(talk, 6, DEFAULT) == 5


def test_by_default_a_cut_moves_forward_if_that_keeps_half() -> None:
    talk = "U9 A9 T90 A9 T90 U9 A9 T90 A9 T90"

    assert moved(talk, 4, DEFAULT) == moved(talk, 4, OPAL) == 5


def test_by_default_no_large_result_is_kept_for_a_small_rest() -> None:
    # Back at the call of the large result, ten times as much would stay as may.
    talk = "U9 A9 T2000 A9 T90 U9"

    assert moved(talk, 2, DEFAULT) == 1
    assert moved("U9 A2000 T90 A9 U9", 2, DEFAULT) == moved("U9 A2000 T90 A9 U9", 2, OPAL) == 4
