"""A newest request that is too large for a target is shown condensed: what the user typed stays, and of what
the user pasted, the beginning and the end."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import asdict

from compactd.core.constraints.constraints import constraints_of
from compactd.core.constraints.user_text import TypedSentence, typed_sentences
from compactd.core.history.entries import Item, with_stub
from compactd.core.history.message_kinds import is_request
from compactd.core.planning.clip import MIN_CLIP
from compactd.core.planning.condensed_request import condense
from compactd.core.planning.plan import CompactRequest, Fixed, NotCompacted, Plan, plan
from compactd.core.planning.prune import stubs_for
from compactd.core.summary.compaction import Draft, PruneOnly, SummaryInput, compact
from compactd.core.text.message_text import join_text_blocks
from compactd.core.text.quoting import visible_lines
from compactd.core.tokens.counting import message_tokens
from compactd.core.work.state import WorkReader
from compactd.protocol.errors import CannotFit
from compactd.protocol.messages import Block, Image, Message, Meta, Text, ToolCall, ToolResult, Trigger
from tests.support.dialogue import CHARS4, after, dialogue, drive, filler, inputs_of, view_of
from tests.support.examples import examples
from tests.support.pastes import LOG, PASTES

BEFORE = "U90 A300 T400 A90"
ASKS = "Mend the loader. Never touch cache.py.\n"
ENDS = "\nTell me what failed. Use at most 3 files."


def request(*blocks: Block | str, meta: Meta | None = None, entry_id: str = "e9") -> Item:
    content = tuple(Text(text=block) if isinstance(block, str) else block for block in blocks)
    message = Message(role="user", content=content, meta=meta)
    return Item(entry_id=entry_id, body=message, tokens=message_tokens(message, CHARS4))


def condensed(item: Item, most_tokens: int) -> Item | None:
    stub = condense(item, item, most_tokens, CHARS4)
    return None if stub is None else with_stub(item, stub)


def text_of(item: Item | None) -> str:
    assert item is not None
    (block,) = item.message.content
    assert isinstance(block, Text)
    return block.text


def typed(item: Item) -> list[TypedSentence]:
    return list(typed_sentences(item))


def planned(item: Item, target: int, before: str = BEFORE, trigger: Trigger = "manual") -> Plan:
    view = view_of((*dialogue(before), item))
    made = plan(inputs_of(view, request=CompactRequest(target_tokens=target, trigger=trigger)))
    assert isinstance(made, Plan), made
    return made


# --- the text ---------------------------------------------------------------------------------------


def test_typed_words_stay_and_a_pasted_log_is_quoted_with_its_beginning_and_its_end() -> None:
    item = request(ASKS + LOG * 9 + ENDS)

    shown = text_of(condensed(item, 150))

    assert shown == (
        "Mend the loader. Never touch cache.py.\n"
        "> 2026-11-27 10:00:00 INFO worker 0 did its work\n"
        "> 2026-11-27 10:00:01 INFO worker 1 did its work\n"
        "> 2026-11-27 10:00:02 INFO worker 2 did its work\n"
        "> 2026-11-27 10:00:03 INFO worker 3 did its work\n"
        "> … [clipped 8,523 of 8,618 tokens; session/expand e9 shows all] …\n"
        "> 2026-11-27 10:00:16 INFO worker 76 did its work\n"
        "> 2026-11-27 10:00:17 INFO worker 77 did its work\n"
        "> 2026-11-27 10:00:18 INFO worker 78 did its work\n"
        "> 2026-11-27 10:00:19 INFO worker 79 did its work\n"
        "\nTell me what failed. Use at most 3 files."
    )


def test_the_mark_tells_the_first_error_of_what_it_hides() -> None:
    item = request(f"{ASKS}```\n{LOG}{LOG}KeyError: no such worker\n{LOG}{LOG}```")

    assert "tokens; (tool) KeyError: no such worker; session/expand e9 shows all] …" in text_of(
        condensed(item, 300)
    )


def test_small_pasted_parts_stay_whole_and_the_largest_come_down_first() -> None:
    small = "```\nload(1)\n```\n"
    item = request(ASKS, small + "And then?\n", f"```\n{LOG}```\nWhy?", f"<file>\n{LOG * 3}</file>\nEnd.")

    shown = condensed(item, 400)

    assert shown is not None
    texts = [block.text for block in shown.message.content if isinstance(block, Text)]
    assert texts[:2] == [ASKS, small + "And then?\n"]
    assert [text.count("session/expand e9 shows all") for text in texts] == [0, 0, 1, 1]
    assert texts[2].endswith("> ```\n\nWhy?")
    assert abs(CHARS4.count(texts[2]) - CHARS4.count(texts[3])) < 20
    assert shown.tokens <= 400


def test_a_log_without_a_frame_is_quoted_even_if_all_of_it_is_shown() -> None:
    item = request(
        f"{ASKS}2026-11-27 10:00:00 started\n2026-11-27 10:00:01 you must stop\nWhy?\n```\n{LOG}```"
    )

    assert "\n> 2026-11-27 10:00:00 started\n> 2026-11-27 10:00:01 you must stop\n\nWhy?\n" in text_of(
        condensed(item, 300)
    )


@pytest.mark.parametrize(("room", "gaps"), [(100, 6), (170, 3), (230, 1)])
def test_where_there_are_too_many_pasted_parts_the_last_are_left_out(room: int, gaps: int) -> None:
    item = request("".join(f"Look at number {n}.\n```\n{'load()' * (9 + n)}\n```\n" for n in range(9)))

    shown = text_of(condensed(item, room))

    assert [line for line in shown.split("\n") if line.startswith("Look")] == [
        f"Look at number {n}." for n in range(9)
    ]
    assert shown.count("\n> …\n") == gaps
    assert shown.count("\n```\nload()") == 8 - gaps
    assert shown.count("session/expand e9 shows all") == 1
    assert shown.split("> … [")[0].endswith("Look at number 8.\n")
    assert CHARS4.count(shown) <= room


def test_what_is_left_for_the_parts_that_are_left_out_shows_some_of_the_largest() -> None:
    item = request("".join(f"Look at number {n}.\n```\n{'load()' * 60}\n```\n" for n in range(10)))

    shown = text_of(condensed(item, 520))

    assert shown.count("\n```\nload()") == 4
    assert "Look at number 4.\n> ```\n> load()" in shown
    assert (shown.count("[clipped "), shown.count("\n> …\n")) == (1, 4)


def test_if_the_typed_sentences_are_too_large_the_first_and_the_last_stay() -> None:
    sentences = [f"Sentence number {n} says something." for n in range(60)]
    item = request(" ".join(sentences))

    shown = text_of(condensed(item, 100))

    assert shown == (
        " ".join(sentences[:5])
        + " \n> … [clipped 442 of 523 tokens; session/expand e9 shows all] …\n\n"
        + " ".join(sentences[-4:])
    )
    assert CHARS4.count(shown) <= 100


def test_if_not_even_one_sentence_fits_the_first_and_the_last_words_stay() -> None:
    words = [f"word{n}" for n in range(900)]

    shown = text_of(condensed(request(" ".join(words)), 60))

    first, _, last = shown.split("\n> … [clipped ")[0], "", shown.split("] …\n\n")[1]
    assert first.split() == words[: len(first.split())] != []
    assert last.split() == words[-len(last.split()) :] != []
    assert CHARS4.count(shown) <= 60


def test_only_a_mark_stays_of_a_pasted_line_without_end() -> None:
    shown = text_of(condensed(request(f"<file>{'x' * 90_000}</file>"), 10))

    assert shown.startswith("> <file>xxx")
    assert shown.endswith("xxx</file>")
    assert CHARS4.count(shown) <= MIN_CLIP


def test_a_message_that_would_not_become_smaller_stays() -> None:
    assert condensed(request("Mend it."), 1) is None
    assert condensed(request(filler(MIN_CLIP)), 1) is None


def test_pictures_and_results_in_the_message_stay() -> None:
    picture = Image(data="aaaa")
    result = ToolResult(call_id="c", content="done " * 40)
    item = request(result, ASKS + LOG, picture)

    shown = condensed(item, 2_000)

    assert shown is not None
    assert (shown.message.content[0], shown.message.content[2]) == (result, picture)
    assert shown.message.role == "user"
    assert shown.tokens == message_tokens(shown.message, CHARS4) < item.tokens


def test_a_shell_command_with_its_output_is_clipped_without_quotation_marks() -> None:
    item = request(f"$ make test\n{LOG}", meta=Meta(kind="bash_execution"))

    shown = text_of(condensed(item, 100))

    assert shown.startswith("$ make test\n2026-11-27")
    assert "\n… [clipped " in shown
    assert "\n>" not in shown


def test_a_message_that_was_condensed_before_is_condensed_from_the_original() -> None:
    whole = request(ASKS + LOG * 9 + ENDS)
    before = condensed(whole, 400)
    assert before is not None

    stub = condense(before, whole, 150, CHARS4)

    assert stub is not None
    assert text_of(with_stub(before, stub)) == text_of(condensed(whole, 150))


@given(st.lists(PASTES, min_size=1, max_size=3), st.integers(1, 900))
@settings(deadline=None, max_examples=examples(200))
def test_no_pasted_word_becomes_the_users_and_what_was_typed_stays(texts: list[str], most: int) -> None:
    item = request(*texts)
    shown = condensed(item, most)
    if shown is None or not is_request(item.message):
        return

    said, still = typed(item), typed(shown)
    text = visible_lines(join_text_blocks(shown.message.content))

    assert is_request(shown.message)
    assert shown.tokens <= max(MIN_CLIP, most)
    assert "session/expand e9 shows all" in text
    words = " ".join(one.text for one in said)
    # A sentence that announces a list is joined with the list, and has a colon then.
    assert all(word.strip(":;") in words for one in still for word in one.text.split())
    if 2 * CHARS4.count(words) + 60 * len(texts) < most:
        assert all(line in text for one in said for line in one.lines or one.text.split())


# --- the plan ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["U100 A100 U%d A20", "U100 A100 U%d A20 T900", "U100 A100 U%d", "U%d"])
def test_a_request_of_a_third_of_the_target_stays_and_a_larger_one_is_condensed(place: str) -> None:
    for size in (300, 301):
        items = dialogue(place % size)
        at = next(n for n, item in enumerate(items) if item.tokens == size)
        more = view_of((*items[:at], *dialogue("A900 U50 A900", 70)[:1], *items[at:]))
        made = plan(inputs_of(more, request=CompactRequest(target_tokens=900)))

        assert isinstance(made, Plan)
        assert made.condensed == (None if size == 300 else items[at].entry_id)
        assert [stub.tokens <= 300 for stub in made.stubs if stub.entry_id == items[at].entry_id] == (
            [] if size == 300 else [True]
        )
        assert made.tokens_expected <= 900


@pytest.mark.parametrize("trigger", ["overflow", "model_switch"])
def test_a_target_that_no_client_chose_condenses_nothing(trigger: Trigger) -> None:
    made = planned(request(ASKS + filler(400)), 900, trigger=trigger)

    assert (made.condensed, made.stubs) == (None, ())


def test_without_a_target_nothing_is_condensed() -> None:
    view = view_of((*dialogue(BEFORE), request(ASKS + LOG * 9)))

    with pytest.raises(CannotFit):
        plan(inputs_of(view, request=CompactRequest(keep_messages=1), context_window=2_000))


def test_the_result_says_that_the_request_is_condensed() -> None:
    item = request(ASKS + LOG * 9 + ENDS)
    made = planned(item, 900)
    note = f"the newest request is shown condensed, in {made.stubs[0].tokens} of {item.tokens:,} tokens"

    result = drive(compact(SummaryInput(plan=made)))[1].result  # type: ignore[union-attr]

    assert made.note == result.reason == f"{note}: session/expand e9 shows all"
    assert result.condensed_request == "e9"
    assert result.tokens_after <= 900
    assert result.tokens_before - result.tokens_after == result.tokens_saved


@pytest.mark.parametrize(("answer", "removed"), [(500, ()), (700, ("e1", "e2"))])
def test_if_condensing_is_enough_no_message_is_removed(answer: int, removed: tuple[str, ...]) -> None:
    made = planned(request(ASKS + LOG * 9 + ENDS), 900, before=f"U20 A{answer}")

    assert (made.removed, made.condensed, bool(made.summary_budget)) == (removed, "e9", bool(removed))
    assert made.tokens_expected <= 900


@pytest.mark.parametrize(("between", "removed"), [("", ("e1",)), ("A560", ("e1", "e20"))])
def test_a_request_that_an_earlier_compaction_kept_goes_into_the_summary(
    between: str, removed: tuple[str, ...]
) -> None:
    earlier = Message(role="user", content=(Text(text=filler(20)),), meta=Meta(type="compaction_summary"))
    items = (
        Item(entry_id="s1", body=earlier, tokens=20, kind="summary"),
        request(filler(30), entry_id="e1"),
        *dialogue(between, 20),
        request(ASKS + LOG * 9, entry_id="e90"),
    )
    view = view_of(items, tail_from=2)

    made = plan(inputs_of(view, originals=items[1:], request=CompactRequest(target_tokens=900)))

    assert isinstance(made, Plan)
    assert (made.merged, made.removed, made.condensed) == ("s1", removed, "e90")
    assert made.tokens_expected <= 900


def test_a_request_that_is_the_whole_conversation_is_condensed_without_a_summary() -> None:
    made = planned(request(ASKS + LOG * 9 + ENDS), 900, before="")

    end = drive(compact(SummaryInput(plan=made)))[1]

    assert isinstance(end, PruneOnly)
    assert end.stubs == made.stubs
    assert end.result.reason == made.condensed_note != ""
    assert (end.result.messages_removed, end.result.condensed_request) == (0, "e9")


def test_a_stub_of_results_in_the_same_message_keeps_the_condensed_text() -> None:
    call = Message(role="assistant", content=(ToolCall(call_id="c", name="run", arguments=Raw(b"{}")),))
    asked = Item(entry_id="e8", body=call, tokens=message_tokens(call, CHARS4))
    whole = request(ToolResult(call_id="c", content="done\n" * 90), ASKS + LOG * 9)
    shown = condensed(whole, 300)
    assert shown is not None

    (stub,) = stubs_for((asked, shown), [(1, 0)], CHARS4).stubs

    again = with_stub(whole, stub)
    assert again.message.content[1] == shown.message.content[1]
    assert again.message.content[0] != shown.message.content[0]
    assert again.tokens == message_tokens(again.message, CHARS4)


def test_a_second_stub_of_results_does_not_repeat_a_text_that_is_whole() -> None:
    results = [ToolResult(call_id=f"c{n}", content="done\n" * 90) for n in range(2)]
    calls = tuple(ToolCall(call_id=f"c{n}", name="run", arguments=Raw(b"{}")) for n in range(2))
    call = Message(role="assistant", content=calls)
    asked = Item(entry_id="e8", body=call, tokens=message_tokens(call, CHARS4))
    whole = request(*results, ASKS)
    first = with_stub(whole, stubs_for((asked, whole), [(1, 0)], CHARS4).stubs[0])

    (stub,) = stubs_for((asked, first), [(1, 1)], CHARS4).stubs

    assert [at for at, _ in stub.texts] == [0, 1]


def test_results_in_the_same_message_are_part_of_the_floor() -> None:
    call = Message(role="assistant", content=(ToolCall(call_id="c", name="run", arguments=Raw(b"{}")),))
    asked = Item(entry_id="e8", body=call, tokens=message_tokens(call, CHARS4))
    item = request(ToolResult(call_id="c", content="done\n" * 4_000), ASKS + LOG * 9)
    view = view_of((*dialogue(BEFORE), asked, item))

    with pytest.raises(CannotFit) as refused:
        plan(inputs_of(view, request=CompactRequest(target_tokens=900)))
    least = refused.value.data["least_target"]
    assert isinstance(least, int)
    made = plan(inputs_of(view, request=CompactRequest(target_tokens=least)))

    assert isinstance(made, Plan)
    assert made.condensed == "e9"
    assert 5_000 < made.tokens_expected <= least < 9_000


# --- what is read from the originals ----------------------------------------------------------------


def test_constraints_and_state_are_those_of_the_whole_message() -> None:
    item = request(ASKS + LOG * 9 + ENDS)
    view = view_of((*dialogue(BEFORE), item))
    made = planned(item, 900)
    end = drive(compact(SummaryInput(plan=made)))[1]
    assert isinstance(end, Draft)

    again = plan(
        inputs_of(
            view_of((*after(view.items, end).items, *dialogue("A900 U9 A900 U9", 10)), tail_from=2),
            originals=(*view.items, *dialogue("A900 U9 A900 U9", 10)),
            request=CompactRequest(target_tokens=700),
        )
    )

    assert isinstance(again, Plan)
    assert (
        [one.text for one in again.constraints]
        == [one.text for one in constraints_of((item,)).in_force]
        == ["Never touch cache.py.", "Use at most 3 files."]
    )
    reader = WorkReader()
    for one in view.items:
        reader.add(one)
    assert SummaryInput(plan=made).work == reader.state()


def test_a_constraint_that_the_condensed_request_states_is_not_repeated_and_another_is_in_the_summary() -> (
    None
):
    middle = "Never push to main."
    told = [*(f"Sentence number {n} says something." for n in range(30)), middle]
    item = request(" ".join((*told, *told[-2::-1], "Never touch cache.py.")))

    made = planned(item, 600)

    assert [one.text for one in made.constraints] == [middle]
    end = drive(compact(SummaryInput(plan=made)))[1]
    assert isinstance(end, Draft)
    assert f"- {middle} [e9]" in end.summary


def test_the_summary_does_not_repeat_what_stays_of_a_request_and_quotes_what_is_gone() -> None:
    items = (request("First make the parser work in all cases.", entry_id="e0"), *dialogue("A300 T400 A90"))
    told = "Now mend src/load.py and tell me why it failed.\n"
    more = "".join(f"The file number {n} is another file that you may read.\n" for n in range(80))
    item = request(more[: len(more) // 2] + told + more[len(more) // 2 :])
    view = view_of((*items, item))
    made = plan(inputs_of(view, request=CompactRequest(target_tokens=700)))
    assert isinstance(made, Plan)

    end = drive(compact(SummaryInput(plan=made)))[1]

    assert isinstance(end, Draft)
    (stub,) = made.stubs
    stays = stub.texts[0][1].split("\n")
    assert "The file number 0 is another file that you may read." in stays
    assert "make the parser work" in end.summary
    assert "mend src/load.py" in end.summary
    assert [line for line in stays if line.startswith("The file") and line in end.summary] == []


# --- the least target -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "before"),
    [
        ("Go on.", "U90 A300 T400 A90"),
        (ASKS + LOG * 9 + ENDS, "U90 A300 T400 A90"),
        (filler(4_000), "U90 A300 T400 A90"),
        (" ".join(f"Never use the file number {n}.py." for n in range(40)), "U90 A300 T400 A90 U99 A800"),
        ("Go on.", "U90 A300 T400 A90? T900 T30"),
    ],
)
@pytest.mark.parametrize("target", [1, 100, 170])
def test_a_target_that_is_too_small_is_refused_with_the_least_that_would_do(
    text: str, before: str, target: int
) -> None:
    item = request(text)
    items = (*dialogue("U200 A900"), item, *dialogue(before, 20))
    error = None
    try:
        plan(inputs_of(view_of(items), fixed=Fixed(60, 40), request=CompactRequest(target_tokens=target)))
    except CannotFit as refused:
        error = refused
    assert error is not None
    least = error.data["least_target"]
    assert isinstance(least, int)
    assert error.message.endswith(f"; the least that would do is {least:,} tokens.")
    floor = error.data["floor"]
    assert isinstance(floor, dict)

    for tokens in (least - 1, least):
        inputs = inputs_of(view_of(items), fixed=Fixed(60, 40), request=CompactRequest(target_tokens=tokens))
        if tokens < least:
            with pytest.raises(CannotFit):
                plan(inputs)
            continue
        made = plan(inputs)
        assert isinstance(made, Plan)
        assert floor == asdict(made.floor)
        end = drive(compact(SummaryInput(plan=made)))[1]
        assert not isinstance(end, NotCompacted)
        assert end.result.tokens_after <= least


def test_a_request_that_is_the_whole_conversation_needs_no_room_for_a_summary() -> None:
    view = view_of((request(ASKS + LOG * 9),))
    with pytest.raises(CannotFit) as refused:
        plan(inputs_of(view, request=CompactRequest(target_tokens=20)))
    least = refused.value.data["least_target"]
    assert isinstance(least, int)

    made = plan(inputs_of(view, request=CompactRequest(target_tokens=least)))

    assert isinstance(made, Plan)
    assert made.tokens_expected == least <= MIN_CLIP


def test_a_small_target_has_half_of_it_for_constraints_and_the_others_are_named() -> None:
    rules = [f"Never use the file number {n}.py." for n in range(30)]
    items = (request(" ".join(rules), entry_id="e0"), *dialogue("A900 T900 A900"), request("Go on."))

    made = plan(inputs_of(view_of(items), request=CompactRequest(target_tokens=300)))

    assert isinstance(made, Plan)
    assert 5 <= len(made.constraints) < 30
    assert sorted(one.text for one in (*made.constraints, *made.dropped)) == sorted(rules)


def test_more_constraints_than_any_session_has_do_not_make_a_target_impossible() -> None:
    items: tuple[Item, ...] = ()
    for n in range(9):
        rules = " ".join(f"Never use the file {n} number {m}.py in the folder." for m in range(60))
        items += (request(rules, entry_id=f"e{n}"), *dialogue("A900", 10 * n + 20))
    view = view_of((*items, request("Go on.", entry_id="e999")))

    made = plan(inputs_of(view, request=CompactRequest(target_tokens=3_000)))

    assert isinstance(made, Plan)
    assert 90 < len(made.constraints) < 180
    assert made.dropped != ()


def test_a_target_that_no_client_chose_is_refused_without_a_least_one() -> None:
    view = view_of((*dialogue(BEFORE), request(filler(400))))

    with pytest.raises(CannotFit) as refused:
        plan(inputs_of(view, request=CompactRequest(target_tokens=300, trigger="overflow")))

    assert set(refused.value.data) == {"limit", "floor"}


def test_where_no_target_would_do_the_error_names_none() -> None:
    view = view_of((*dialogue("U30 A30"), request("Go on with it now.")))

    with pytest.raises(CannotFit) as refused:
        plan(inputs_of(view, request=CompactRequest(target_tokens=40)))

    assert "least_target" not in refused.value.data
    assert "the least that would do" not in refused.value.message


def test_the_least_target_holds_a_line_of_state() -> None:
    items = (request("Mend src/load.py in the parser, please.", entry_id="e0"), *dialogue("A300 T400 A90"))
    view = view_of((*items, request("Go on.")))
    with pytest.raises(CannotFit) as refused:
        plan(inputs_of(view, request=CompactRequest(target_tokens=50)))
    least = refused.value.data["least_target"]
    assert isinstance(least, int)

    made = plan(inputs_of(view, request=CompactRequest(target_tokens=least)))
    assert isinstance(made, Plan)
    end = drive(compact(SummaryInput(plan=made)))[1]

    assert isinstance(end, Draft)
    assert "Mend src/load.py in the parser" in end.summary
