"""Plans: what is removed, kept, pinned, split or shortened; and why nothing is done.

Longer than other files: every row of the rules for a plan has its test here, in their order.
"""

from __future__ import annotations

import pytest
from msgspec import Raw
from msgspec.structs import replace

from compactd.core.history.entries import Item, View
from compactd.core.planning.plan import CompactRequest, Fixed, NotCompacted, Plan, expected_result, plan
from compactd.protocol.errors import CannotFit, InvalidParams
from compactd.protocol.messages import Message, Meta, Text, ToolCall, ToolResult
from tests.support.dialogue import dialogue, filler, ids, inputs_of, view_of

AUTO = CompactRequest(trigger="threshold")
FORCED = CompactRequest(force=True)

EXAMPLE = "U40 A60 T200 A50 U30 A20 T90 A20 T70 A20 T140 A30"
"""docs/dev/behaviour.md, "Worked example": window 1000, system and tools 100, keep 250."""


def planned(notation: str, request: CompactRequest = AUTO, **given: object) -> Plan:
    made = outcome(notation, request, **given)
    assert isinstance(made, Plan), made
    return made


def reason(notation: str, request: CompactRequest = AUTO, **given: object) -> str:
    made = outcome(notation, request, **given)
    assert isinstance(made, NotCompacted), made
    return made.reason


def outcome(notation: str, request: CompactRequest = AUTO, **given: object) -> Plan | NotCompacted:
    return plan(inputs_of(view_of(dialogue(notation)), request=request, **given))  # type: ignore[arg-type]


def keep(tokens: int, **more: object) -> CompactRequest:
    return replace(CompactRequest(keep_recent=tokens), **more)


def messages(count: int, **more: object) -> CompactRequest:
    return replace(CompactRequest(keep_messages=count), **more)


def target(tokens: int, **more: object) -> CompactRequest:
    return replace(CompactRequest(target_tokens=tokens), **more)


def summary(tokens: int) -> Item:
    message = Message(role="user", content=(Text(text=filler(tokens)),), meta=Meta(type="compaction_summary"))
    return Item(entry_id="s1", body=message, tokens=tokens, kind="summary")


# --- the worked example -----------------------------------------------------------------------------


def test_the_worked_example_to_the_digit() -> None:
    made = planned(EXAMPLE, context_window=1000, fixed=Fixed(system=60, tools=40))

    assert made.removed == ("e1", "e2", "e3", "e4", "e6", "e7")
    assert made.pinned == ("e5",)
    assert made.kept == ("e8", "e9", "e10", "e11", "e12")
    assert made.first_kept == "e8"
    assert not made.is_split
    assert (made.messages_before, made.messages_removed, made.messages_after) == (12, 6, 7)
    assert made.tokens_before == 870
    assert made.tokens_expected - made.summary_budget == 100 + 30 + 280
    assert made.summary_budget < 460


def test_the_same_view_gives_the_same_plan() -> None:
    given = inputs_of(view_of(dialogue(EXAMPLE)), request=AUTO, context_window=1000)

    assert plan(given) == plan(given)


# --- cut and keep -----------------------------------------------------------------------------------


def test_a_manual_compaction_of_opal_keeps_20000_tokens() -> None:
    # docs/specs.md, "opal.md", "1. Find Cut Point": default keep_recent_tokens 20,000; the total must exceed
    # it.
    exactly, above = "U90 A900 U100 A9900 U100 A9900", "U90 A900 U100 A9901 U100 A9900"

    assert planned(exactly, CompactRequest(), profile="opal").first_kept == "e3"
    assert planned(above, CompactRequest(), profile="opal").first_kept == "e3", "passed by e3 itself"
    assert planned("U90 A900 U100 A9900 A1 U100 A9900", CompactRequest(), profile="opal").first_kept == "e3"
    assert planned("U90 A900 U99 A9900 A101 U100 A9900", CompactRequest(), profile="opal").first_kept == "e6"


def test_an_automatic_compaction_of_opal_keeps_a_quarter_of_the_window() -> None:
    made = planned("U100 A100 U100 A100 U100 A100 U100 A100", profile="opal", context_window=1000)

    assert made.kept == ("e7", "e8"), "250 is passed by e6; the next user message is e7"


def test_one_token_more_to_keep_moves_the_cut_one_turn_back() -> None:
    notation = "U100 A100 U100 A100 U100 A100"

    assert [planned(notation, keep(n)).first_kept for n in (100, 199, 200, 299, 300, 399, 400, 499)] == [
        "e5", "e5", "e5", "e5", "e3", "e3", "e3", "e3",
    ]  # fmt: skip


def test_keep_messages_keeps_the_last_n_moved_back_so_that_no_pair_breaks() -> None:
    notation = "U90 A90 T90 A90 T90 T90 U90"

    assert [planned(notation, messages(n)).first_kept for n in (1, 2, 3, 4, 5)] == [
        "e7", "e4", "e4", "e4", "e2",
    ]  # fmt: skip


def test_everything_within_the_budget_is_nothing_to_compact() -> None:
    nine = "U9 A9 U9 A9 U9 A9 U9 A9 U9"

    assert reason(nine, CompactRequest()) == (
        "nothing to compact: all 9 messages are within the 20,000 tokens to keep"
    )
    assert reason(nine, messages(9)) == "nothing to compact: all 9 messages are within the 9 messages to keep"
    assert reason("U9", CompactRequest()).startswith("nothing to compact: 1 message is within")
    assert reason("", CompactRequest()).startswith("nothing to compact: there are no messages")


def test_evmts_says_in_its_specs_words_that_a_conversation_is_too_short() -> None:
    # docs/specs-evmts-opencode.md, "evmts-32.md", "compaction-algorithm": len(messages) <= preserve_count +
    # 1.
    six, seven = "U99 A99 U99 A99 U99 A99", "U99 A99 U99 A99 U99 A99 U99"

    assert reason(six, CompactRequest(), profile="evmts") == "Not enough messages to compact"
    assert planned(seven, CompactRequest(), profile="evmts").removed == ("e1", "e2")


def test_opencode_keeps_nothing_but_the_newest_request() -> None:
    made = planned("U99 A99 T99 U99 A99 T99", profile="opencode", context_window=2000)

    assert (made.pinned, made.kept) == (("e4",), ())


def test_only_the_newest_request_before_the_kept_turns_is_nothing_to_compact() -> None:
    assert reason("U90 A90 T90", keep(50)).startswith("nothing to compact: only the newest request")


# --- force ------------------------------------------------------------------------------------------


def test_forced_all_but_the_last_two_messages_go_where_no_valid_cut_exists() -> None:
    # docs/specs.md, "opal.md", "1. Find Cut Point": "If no valid cut point exists and force: true".
    made = planned("U90 A90 U90 A90", FORCED)

    assert (made.removed, made.kept) == (("e1", "e2"), ("e3", "e4"))


def test_a_forced_cut_is_moved_to_a_safe_one() -> None:
    made = planned("U90 A90 U90 A90 T90 T90", FORCED)

    assert (made.removed, made.pinned, made.kept) == (("e1", "e2"), ("e3",), ("e4", "e5", "e6"))


def test_force_changes_nothing_where_a_valid_cut_exists() -> None:
    notation = "U100 A100 U100 A100 U100 A100"

    forced, plain = planned(notation, keep(250, force=True)), planned(notation, keep(250))

    assert replace(forced, inputs=plain.inputs) == plain


@pytest.mark.parametrize("trigger", ["overflow", "silent_overflow"])
def test_an_overflow_is_forced_and_keeps_a_fifth(trigger: str) -> None:
    # docs/specs.md, "opal.md", "Overflow Recovery": keep_recent_tokens = contextWindow / 5 and force: true.
    notation = "U100 A100 U100 A100 U100 A100 U100 A100"
    request = CompactRequest(trigger=trigger)  # type: ignore[arg-type]

    assert planned("U90 A90 U90 A90", request).kept == ("e3", "e4")
    assert planned(notation, request, context_window=1000).first_kept == "e7"
    assert planned(notation, request, context_window=2100).first_kept == "e5"


def test_with_nothing_that_could_go_even_force_does_nothing() -> None:
    assert reason("U9 A9", FORCED).startswith("nothing to compact")
    assert reason("", FORCED).startswith("nothing to compact")


# --- split turns ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("notation", "prefix"),
    [
        ("U90 A90 U90 A90 T90 A90 A90 T90", ()),
        ("U90 A90 U90 A90 T90 A90 A90 A90 T90", ("e3", "e4", "e5", "e6", "e7")),
    ],
)
def test_a_prefix_of_five_messages_is_split_and_one_of_four_is_not(
    notation: str, prefix: tuple[str, ...]
) -> None:
    # docs/specs.md, "opal.md", "2. Detect Split Turns": prefix ≥ 5 messages, the turn's user message
    # included.
    made = planned(notation, keep(100))

    assert made.prefix == prefix
    assert made.pinned == ("e3",)


def test_split_min_messages_is_a_setting() -> None:
    notation = "U90 A90 U90 A90 T90 A90 A90 T90"

    assert planned(notation, keep(100), split_min_messages=4).is_split
    assert not planned(notation, keep(100), split_min_messages=4, profile="evmts").is_split


def test_a_cut_before_a_user_message_splits_no_turn() -> None:
    assert not planned("U90 A90 T90 A90 T90 A90 U90 A90", keep(100)).is_split


# --- pins -------------------------------------------------------------------------------------------


def test_the_newest_request_stays_and_synthetic_messages_and_results_are_no_request() -> None:
    made = planned("U90 A90 T90 Y90 A90 T90 A90 T90", keep(100))

    assert made.pinned == ("e1",)


def test_where_the_newest_request_is_a_shell_command_the_request_before_it_stays_too() -> None:
    made = planned("U90 A90 B90 A90 T90 A90 T90", keep(100))

    assert made.pinned == ("e1", "e3")


def test_a_pinned_result_stays_with_its_whole_batch() -> None:
    items = dialogue("U90 A90 T90 T90 U90 A90")
    made = plan(inputs_of(view_of(items), request=keep(100), pinned=["e3"]))

    assert isinstance(made, Plan)
    assert (made.pinned, made.removed) == (("e2", "e3", "e4"), ("e1",))


def test_pins_beyond_an_eighth_of_the_window_go_oldest_first_with_a_word() -> None:
    items = dialogue("P90 P90 U300 A90 U90 A90")

    made = plan(inputs_of(view_of(items), request=keep(180), context_window=1000))

    assert isinstance(made, Plan)
    assert (made.pinned, made.removed) == (("e2",), ("e1", "e3", "e4"))
    assert made.note == "1 pinned message did not fit and went into the summary"


def test_an_older_pinned_request_that_is_no_longer_newest_goes() -> None:
    items = (summary(50), *dialogue("U90 A90 T90 U90 A90 U90 A90"))

    made = plan(inputs_of(View(items=items, tail_from=2, tokens=680, epoch=2), request=keep(100)))

    assert isinstance(made, Plan)
    assert made.merged == "s1"
    assert made.removed == ("e1", "e2", "e3", "e4", "e5")
    assert (made.messages_removed, made.messages_after) == (6, 3)


# --- a second compaction ----------------------------------------------------------------------------


def test_the_walk_covers_only_what_came_after_the_last_cut() -> None:
    items = (summary(500), *dialogue("U90 A90 U90 A90"))

    made = plan(inputs_of(View(items=items, tail_from=1, tokens=860, epoch=2), request=keep(400)))

    assert isinstance(made, NotCompacted)
    assert made.reason == "nothing to compact: all 4 messages are within the 400 tokens to keep"


def test_a_message_that_is_pinned_from_before_the_last_cut_is_not_walked() -> None:
    items = (summary(50), *dialogue("U300 A90 T90 A90"))

    made = plan(inputs_of(View(items=items, tail_from=2, tokens=620, epoch=2), request=keep(300)))

    assert isinstance(made, NotCompacted)
    assert "are within the 300 tokens to keep" in made.reason


def test_a_summary_that_came_with_an_import_is_merged_and_never_walked() -> None:
    imported = replace(summary(500), kind="message")

    within = plan(inputs_of(view_of((imported, *dialogue("U90 A90"))), request=keep(400)))
    beyond = plan(inputs_of(view_of((imported, *dialogue("U90 A90 U90 A90"))), request=keep(200)))

    assert isinstance(within, NotCompacted)
    assert within.reason == "nothing to compact: all 2 messages are within the 400 tokens to keep"
    assert isinstance(beyond, Plan)
    assert (beyond.merged, beyond.removed) == ("s1", ("e1", "e2"))


def test_a_repeated_request_is_nothing_to_compact_even_forced() -> None:
    request = CompactRequest(force=True, is_repeated=True)

    assert reason("U90 A90 U90 A90", request) == (
        "nothing to compact: nothing was added since the last compaction"
    )


def test_a_target_below_an_earlier_summary_takes_the_summary_in() -> None:
    items = (summary(500), *dialogue("U90 A90"))

    made = plan(inputs_of(View(items=items, tail_from=1, tokens=680, epoch=2), request=target(300)))

    assert isinstance(made, Plan)
    assert made.merged == "s1"
    assert made.tokens_expected <= 300


# --- target_tokens ----------------------------------------------------------------------------------


def test_a_target_is_divided_fixed_and_request_first_an_eighth_of_the_rest_tail_the_rest_summary() -> None:
    notation = "U100 A300 T300 U40 A100 T300 A100 T50 A60 A70"

    made = planned(notation, target(700), fixed=Fixed(system=40, tools=20))

    # 700 - 60 - 40 = 600; an eighth is 75: e10 takes 70.
    assert made.kept == ("e10",)
    assert made.pinned == ("e4",)
    assert made.summary_budget == 600 - 70
    assert made.tokens_expected == 700


def test_in_a_larger_target_the_tail_may_take_up_to_a_quarter() -> None:
    made = planned("U100 A9000 T300 U100 A4000 A300 T44 A400 A400", target(6_100))

    # 6100 - 100 = 6000; a quarter is 1500: e6 to e9 take 1144.
    assert made.kept == ("e6", "e7", "e8", "e9")
    assert made.summary_budget == 6_000 - 1_144


def test_a_request_in_the_tail_does_not_count_against_its_share() -> None:
    made = planned("U300 A300 U100 A40", target(500))

    assert made.kept == ("e3", "e4")
    assert made.summary_budget == 500 - 140


def test_the_summary_gets_twice_the_smallest_one_before_the_tail_gets_anything() -> None:
    notation = "U100 A300 T300 U40 A100 A15"

    # The smallest summary has 75 tokens. 164 - 150 = 14, and an eighth of 165 would be 20.
    assert planned(notation, target(40 + 164)).kept == ()
    assert planned(notation, target(40 + 165)).kept == ("e6",)


def test_a_summary_that_constraints_fill_takes_the_room_of_the_tail() -> None:
    rules = " ".join(f"Never use the file number {n}.py of the mill." for n in range(20))
    request = Item(entry_id="e0", body=Message(role="user", content=(Text(text=rules),)), tokens=900)
    rest = dialogue("A900 T900 A900 U40 A100 A60")

    free = planned("U900 A900 T900 A900 U40 A100 A60", target(600))
    full = plan(inputs_of(view_of((request, *rest)), request=target(600)))

    assert free.kept == ("e7",)
    assert isinstance(full, Plan)
    assert full.kept == ()
    assert full.summary_budget == 600 - 40


@pytest.mark.parametrize("size", [179, 180, 181])
def test_a_target_at_or_above_the_present_size_does_nothing(size: int) -> None:
    made = outcome("U90 A90", target(size))

    assert isinstance(made, NotCompacted) == (size >= 180)


def test_a_last_batch_that_alone_exceeds_the_target_is_clipped_into_an_eighth() -> None:
    made = planned("U100 A300 T300 U40 A20 T4000", target(1000))

    assert made.kept == ("e5", "e6")
    assert made.shortened == 1
    assert made.stubs[0].tokens + 20 <= (1000 - 40) // 8
    assert "… [clipped " in made.stubs[0].texts[0][1]
    assert made.tokens_expected <= 1000


def test_a_last_batch_above_its_quarter_and_within_the_target_leaves_the_tail_empty() -> None:
    made = planned("U100 A300 T300 U40 A20 T400", target(700))

    assert (made.kept, made.first_kept, made.pinned) == ((), None, ("e4",))
    assert made.summary_budget == 700 - 40


def test_a_large_answer_leaves_the_tail_empty() -> None:
    made = planned("U100 A300 T300 U40 A20 T400 A900", target(700))

    assert (made.kept, made.first_kept, made.pinned) == ((), None, ("e4",))


def test_a_target_without_a_model_gives_all_its_rest_to_one_record() -> None:
    notation = "U90 A90 U90 " + "A90 T90 " * 6 + "A90"

    assert not planned(notation, target(900)).is_split
    assert planned(notation, target(900, may_ask_model=True)).is_split


def test_where_only_the_last_batch_could_go_it_is_clipped_and_nothing_summarised() -> None:
    made = planned("U40 A20 T4000", target(700))

    assert (made.summary_budget, made.removed, made.shortened) == (0, (), 1)
    assert (made.messages_removed, made.messages_after) == (0, 3)
    assert made.tokens_expected <= 700


def test_a_target_that_the_floor_exceeds_is_1008_with_the_floor() -> None:
    with pytest.raises(CannotFit) as refused:
        planned("U500 A300 T300 U70 A20 T400", target(244), fixed=Fixed(system=60, tools=40))

    # The smallest summary has 35 tokens, and 40 more for a line of state.
    floor = refused.value.data["floor"]
    assert floor == {"system": 60, "tools": 40, "last_request": 70, "summary": 75}
    assert refused.value.data["least_target"] == 245
    assert refused.value.message == (
        "The request cannot be made to fit 244 tokens: the system prompt takes 60, the tools 40,"
        " the newest request 70, the smallest summary 75; the least that would do is 245 tokens."
    )
    made = planned("U500 A300 T300 U70 A20 T400", target(245), fixed=Fixed(system=60, tools=40))
    assert made.tokens_expected == 245
    assert made.condensed is None


def test_a_target_that_compactd_computed_needs_no_room_for_a_line_of_state() -> None:
    request = target(205, trigger="overflow")

    made = planned("U500 A300 T300 U70 A20 T400", request, fixed=Fixed(system=60, tools=40))

    assert (made.tokens_expected, made.summary_budget) == (205, 35)


def test_an_open_call_is_never_left_out_to_make_room() -> None:
    made = planned("U90 A300 T300 U40 A30? T400", target(500))

    assert made.kept == ("e5", "e6")
    assert made.tokens_expected <= 500


# --- the limit of the window ------------------------------------------------------------------------


def test_old_tool_output_of_the_tail_is_pruned_before_less_is_kept() -> None:
    notation = "U100 A100 U100 A20 T600 A20 T100 A20"

    made = planned(notation, keep(850), context_window=1000)  # 40 and a summary do not fit

    assert made.kept == ("e3", "e4", "e5", "e6", "e7", "e8")
    assert [stub.entry_id for stub in made.stubs] == ["e5"]
    assert made.stubs[0].texts == ((0, "[pruned: run — 600 tokens; session/expand e5 shows it]"),)
    assert made.tokens_expected <= 938


def test_less_is_kept_where_pruning_is_not_enough_and_the_plan_says_so() -> None:
    notation = "U200 A100 U100 A300 A300 A300 A20"

    made = planned(notation, messages(5), context_window=1000)

    assert made.kept == ("e6", "e7")
    assert made.note == "kept 2 messages instead of 5: more would not fit"


def test_the_largest_results_of_the_last_batch_are_clipped_first() -> None:
    made = planned("U100 A100 U100 A20 T900 T80", keep(50), context_window=1000)

    assert made.kept == ("e4", "e5", "e6")
    assert [stub.entry_id for stub in made.stubs] == ["e5"]
    text = made.stubs[0].texts[0][1]
    assert "… [clipped " in text
    assert "of 900 tokens; session/expand e5 shows all] …" in text


def test_where_clipping_is_not_enough_the_tail_is_empty() -> None:
    made = planned("U100 A100 U100 A900", keep(50), context_window=1000)

    assert (made.kept, made.pinned) == ((), ("e3",))


def test_a_request_that_alone_does_not_fit_is_1008() -> None:
    with pytest.raises(CannotFit) as refused:
        planned("U100 A100 U990", keep(50), context_window=1000)

    assert refused.value.data["limit"] == 938


def test_what_fits_as_it_is_is_never_1008() -> None:
    # 110 fixed and 161 in all; without e1, which a summary of 35 would stand for, it would not fit 188.
    made = outcome("Y4 A12? T12 T12", replace(FORCED), fixed=Fixed(100, 10), context_window=200)

    assert isinstance(made, NotCompacted)
    assert made.tokens == 110 + 40 + 11


def test_what_is_too_large_is_compacted_without_being_forced() -> None:
    made = planned("U100 A500 T500", messages(9), context_window=1000)

    assert made.shortened == 1
    assert made.tokens_expected <= 938


def test_an_overflow_attempt_must_come_below_what_was_sent() -> None:
    request = CompactRequest(trigger="overflow", below=400)

    made = planned("U100 A100 U100 A20 T300 A20 T80", request, context_window=1000)

    assert made.tokens_expected < 400


# --- budgets, results -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "path"),
    [
        (CompactRequest(keep_recent=9, target_tokens=9), "$.target_tokens"),
        (CompactRequest(keep_recent=9, keep_messages=9), "$.keep_messages"),
        (CompactRequest(keep_recent=0), "$.keep_recent"),
        (CompactRequest(keep_messages=-1), "$.keep_messages"),
        (CompactRequest(target_tokens=0), "$.target_tokens"),
    ],
)
def test_more_than_one_budget_or_one_below_1_is_refused(request_: CompactRequest, path: str) -> None:
    with pytest.raises(InvalidParams) as refused:
        outcome("U9", request_)

    assert refused.value.data["path"] == path


@pytest.mark.parametrize(
    ("given", "request_", "strategies"),
    [
        ({}, CompactRequest(), ("extract", "truncate")),
        ({}, CompactRequest(may_ask_model=True), ("summarize", "extract", "truncate")),
        ({"profile": "opal"}, CompactRequest(), ("truncate",)),
        ({"profile": "opal"}, CompactRequest(may_ask_model=True), ("summarize", "truncate")),
        ({"profile": "opal"}, CompactRequest(strategy="extract"), ("extract", "truncate")),
        ({"strategy": "truncate"}, CompactRequest(may_ask_model=True), ("truncate",)),
        ({}, CompactRequest(strategy="summarize"), ("summarize", "extract", "truncate")),
    ],
)
def test_a_strategy_that_fails_gives_way_to_the_next(
    given: dict[str, object], request_: CompactRequest, strategies: tuple[str, ...]
) -> None:
    made = planned("U90 A90 U90 A90", replace(request_, force=True), **given)

    assert made.strategies == strategies


def test_what_can_go_must_be_larger_than_the_smallest_summary() -> None:
    assert reason("U9 A9 U90 A90", messages(2)) == (
        "compacting would not make it smaller: the messages that can be removed have"
        " 18 tokens, and the smallest summary has 35"
    )
    assert planned("U18 A18 U90 A90", messages(2)).summary_budget == 35


def test_summary_tokens_is_exact_and_still_below_what_goes() -> None:
    notation = "U900 A900 U90 A90"

    assert planned(notation, messages(2), summary_tokens=1000).summary_budget == 1000
    assert planned(notation, messages(2), summary_tokens=5000).summary_budget == 1799
    assert planned(notation, messages(2)).summary_budget == 900


def test_a_plan_tells_what_a_dry_run_answers() -> None:
    made = planned(EXAMPLE, context_window=1000, fixed=Fixed(system=60, tools=40))

    told = expected_result(made)

    assert (told.compacted, told.compaction_id, told.summary) == (True, None, "")
    assert (told.messages_before, told.messages_after, told.messages_removed) == (12, 7, 6)
    assert told.tokens_saved == told.tokens_before - told.tokens_after
    assert told.reason == "dry run: nothing was changed"


def test_nothing_to_do_is_no_success() -> None:
    made = outcome("U9 A9", CompactRequest(), fixed=Fixed(system=5, tools=6))

    told = expected_result(made)

    assert (told.compacted, told.tokens_before, told.tokens_after, told.messages_after) == (False, 29, 29, 2)
    assert told.reason == made.reason if isinstance(made, NotCompacted) else False


def test_a_request_that_answers_calls_in_the_same_message_stays_with_them() -> None:
    items = list(dialogue("U90 A90 T90 A90 T90 A90 T90"))
    result = ToolResult(call_id="c9", content=filler(20))
    call = ToolCall(call_id="c9", name="run", arguments=Raw(b"{}"))
    items[1] = replace(items[1], body=Message(role="assistant", content=(call,)))
    items[2] = replace(
        items[2], body=Message(role="user", content=(result, Text(text="and now the other one")))
    )

    made = plan(inputs_of(view_of(items), request=keep(100)))

    assert isinstance(made, Plan)
    assert made.pinned == ("e2", "e3")
    assert ids(items)[0] in made.removed
