"""Carrying out a plan: what a summariser is asked, which answers are accepted, what is written to the
journal.

Longer than other files: the flow has one path a strategy and failure, and all share their scripts.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

import pytest
from msgspec import Raw
from msgspec.structs import replace

from compactd.core.history.entries import Item
from compactd.core.planning.plan import CompactRequest, Fixed, NotCompacted, Plan, plan
from compactd.core.summary.answers import summary_in
from compactd.core.summary.compaction import (
    Ask,
    CompactionOutcome,
    Draft,
    ModelReply,
    NoModel,
    PruneOnly,
    SummaryAnswer,
    SummaryFailed,
    SummaryInput,
    compact,
)
from compactd.core.summary.prompts import HEADINGS, PLACEHOLDERS
from compactd.core.summary.turn_prefix import HEADING
from compactd.core.text.summary_format import LEAD, NATURE
from compactd.protocol.messages import Message, Text, ToolCall, Usage
from tests.support.dialogue import CHARS4, NOTHING_FIXED, after, dialogue, drive, filler, inputs_of, view_of

EXAMPLE = "U40 A60 T200 A50 U30 A20 T90 A20 T70 A20 T140 A30"
ASKED = CompactRequest(trigger="threshold", may_ask_model=True)

FORM = "\n".join(f"## {heading}\n(none)" for heading in HEADINGS)
GOOD = FORM.replace("(none)", "- Mend the loader.", 1)


def run(
    notation_or_items: str | tuple[Item, ...],
    script: Iterable[tuple[SummaryAnswer, ...]] = (),
    request: CompactRequest = ASKED,
    *,
    window: int | None = None,
    originals: tuple[Item, ...] = (),
    fixed: Fixed = NOTHING_FIXED,
    **given: object,
) -> tuple[list[tuple[Ask, ...]], CompactionOutcome]:
    items = dialogue(notation_or_items) if isinstance(notation_or_items, str) else notation_or_items
    inputs = inputs_of(
        view_of(items),
        originals=originals,
        request=request,
        fixed=fixed,
        **given,  # type: ignore[arg-type]
    )
    made = plan(inputs)
    assert isinstance(made, Plan), made
    return drive(compact(SummaryInput(plan=made, summariser_window=window)), script)


def drafted(*args: object, **given: object) -> Draft:
    end = run(*args, **given)[1]  # type: ignore[arg-type]
    assert isinstance(end, Draft), end
    return end


def said(text: str, **more: object) -> tuple[SummaryAnswer, ...]:
    return (replace(ModelReply(text=text), **more),)


def with_call(items: tuple[Item, ...], index: int, name: str, arguments: bytes) -> tuple[Item, ...]:
    """The first call of a message, with other words."""
    message = items[index].message
    blocks = tuple(
        replace(block, name=name, arguments=Raw(arguments)) if isinstance(block, ToolCall) else block
        for block in message.content
    )
    changed = replace(items[index], body=replace(message, content=blocks))
    return (*items[:index], changed, *items[index + 1 :])


# --- the worked example -----------------------------------------------------------------------------


def test_the_worked_example_comes_from_870_to_530() -> None:
    # The summary message is the lead, a blank line and what the model wrote: 120 tokens together.
    body = GOOD + "\n- "
    body += filler(120 - CHARS4.count(f"{LEAD}\n{NATURE}\n\n{body}"))[: -len(body) % 4 or None]
    body += "." * (480 - len(f"{LEAD}\n{NATURE}\n\n{body}"))

    asked, end = run(EXAMPLE, [said(body)], context_window=1000, fixed=Fixed(system=60, tools=40))

    assert [[ask.purpose for ask in at_once] for at_once in asked] == [["history"]]
    assert isinstance(end, Draft)
    assert (end.summary_tokens, end.first_kept, end.pinned, end.stubs) == (120, "e8", ("e5",), ())
    result = end.result
    assert (result.compacted, result.reason, result.strategy) == (True, "", "summarize")
    assert (result.tokens_before, result.tokens_after, result.tokens_saved) == (870, 530, 340)
    assert (result.messages_before, result.messages_after, result.messages_removed) == (12, 7, 6)
    assert (result.kept_messages, result.pinned_entry_ids, result.split_turn) == (5, ("e5",), False)


# --- what is asked ----------------------------------------------------------------------------------


def test_the_summariser_sees_a_transcript_between_tags_and_is_told_not_to_go_on() -> None:
    asked, _ = run(EXAMPLE, [said(GOOD)], context_window=1000)
    ask = asked[0][0]

    assert ask.prompt.startswith("<conversation>\n[User]: ")
    assert "\n</conversation>\n" in ask.prompt
    assert "[Assistant tool calls]: run({})" in ask.prompt
    assert "Do NOT continue the conversation" in ask.prompt
    assert "summariser" in ask.system
    assert all(f"## {heading}" in ask.prompt for heading in HEADINGS)


def test_an_answer_may_be_as_long_as_half_of_what_goes_and_at_least_256_tokens() -> None:
    request = replace(ASKED, keep_messages=2)

    assert run("U400 A600 U90 A90", [said(GOOD)], request)[0][0][0].max_tokens == 500
    assert run("U90 A90 U90 A90", [said(GOOD)], request)[0][0][0].max_tokens == 256
    assert run("U400 A600 U90 A90", [said(GOOD)], request, summary_tokens=300)[0][0][0].max_tokens == 300


def test_what_stays_word_for_word_is_not_in_the_transcript() -> None:
    asked, _ = run("U90 A90 U91 A92", [said(GOOD)], replace(ASKED, force=True))

    assert filler(90, 1) in asked[0][0].prompt
    assert filler(91, 3) not in asked[0][0].prompt


def test_focus_context_and_prompt_of_the_request_reach_the_summariser() -> None:
    request = replace(ASKED, force=True, instructions="the parser", context=("branch: main",))

    asked, _ = run("U90 A90 U90 A90", [said(GOOD)], request)
    assert asked[0][0].prompt.endswith("\n\nAdditional focus: the parser")
    assert "<context>\nbranch: main\n</context>" in asked[0][0].prompt

    own = replace(request, prompt="Say it short: {messages} That was it.", instructions=None)
    asked, end = run("U90 A90 U90 A90", [said("it went well")], own)
    assert asked[0][0].prompt.startswith("Say it short: <conversation>")
    assert asked[0][0].prompt.endswith(" That was it.")
    assert isinstance(end, Draft)
    assert "it went well" in end.summary, "under a user's prompt no heading is asked for"


def test_a_compact_prompt_without_a_mark_gets_the_transcript_at_its_end() -> None:
    asked, _ = run("U90 A90 U90 A90", [said("fine")], replace(ASKED, force=True), compact_prompt="Be brief.")

    assert asked[0][0].prompt.startswith("Be brief.\n\n<conversation>")
    assert asked[0][0].prompt.endswith("</conversation>")


def test_an_earlier_summary_goes_in_once_as_previous_summary_and_is_merged() -> None:
    items = dialogue("U90 A90 U90 A90")
    first = drafted(items, [said(GOOD)], replace(ASKED, force=True))
    view = after(items, first)
    more = (*view.items, *dialogue("U90 A90 U90 A90", first=9))
    inputs = inputs_of(
        replace(view_of(more), tail_from=view.tail_from),
        originals=(*items, *more[view.tail_from + 2 :]),
        request=replace(ASKED, keep_recent=150),
    )
    made = plan(inputs)
    assert isinstance(made, Plan)

    asked, end = drive(compact(SummaryInput(plan=made)), [said(GOOD)])

    prompt = asked[0][0].prompt
    assert asked[0][0].purpose == "merge"
    assert prompt.count("Mend the loader") == 1
    assert f"<previous-summary>\n{GOOD}\n</previous-summary>" in prompt
    assert LEAD not in prompt
    assert isinstance(end, Draft)
    assert end.result.messages_removed == len(made.removed) + 1


def test_a_transcript_that_exceeds_the_summarisers_window_is_folded_in_parts() -> None:
    long = f"{GOOD}\n{filler(700)}"
    notation = "U300 A300 " * 6 + "U9 A9"

    asked, end = run(notation, [said(long)] * 9, replace(ASKED, keep_messages=2), window=3000)

    assert isinstance(end, Draft)
    assert end.result.strategy == "summarize"
    assert len(asked) > 1
    assert [ask.purpose for (ask,) in asked] == ["history"] + ["merge"] * (len(asked) - 1)
    for (ask,) in asked:
        assert CHARS4.count(ask.prompt) + CHARS4.count(ask.system) + ask.max_tokens <= 3000
    parts = "".join(ask.prompt for (ask,) in asked)
    assert all(filler(300, n) in parts for n in range(1, 13))


def test_a_summariser_with_too_small_a_window_is_not_asked() -> None:
    asked, end = run("U900 A900 U9 A9", [], replace(ASKED, keep_messages=2), window=700)

    assert asked == []
    assert isinstance(end, Draft)
    assert end.result.strategy == "extract"
    assert "window is too small" in end.result.reason


# --- split turns ------------------------------------------------------------------------------------

SPLIT = "U90 A90 U90 A90 T90 A90 A90 A90 T90"


def test_a_split_turn_asks_for_two_summaries_at_once_and_merges_them_under_headings() -> None:
    # docs/specs.md, "opal.md", "2. Detect Split Turns": history summary and turn-prefix summary.
    asked, end = run(
        SPLIT,
        [(ModelReply(text=GOOD), ModelReply(text="- tried the cache"))],
        replace(ASKED, keep_recent=100),
    )

    assert [[ask.purpose for ask in at_once] for at_once in asked] == [["history", "prefix"]]
    history, prefix = asked[0]
    assert filler(90, 2) in history.prompt
    assert filler(90, 4)[:200] not in history.prompt
    assert filler(90, 3) in prefix.prompt, "the request of the turn is pinned and still shown to it"
    assert "still in progress" in prefix.prompt
    assert isinstance(end, Draft)
    assert end.result.split_turn
    assert end.summary.endswith(f"{HEADING}\n- tried the cache")
    assert end.summary.index("## Goal") < end.summary.index(HEADING)


def test_what_is_under_way_and_comes_next_is_told_once_by_the_newer_of_the_two_summaries() -> None:
    history = (
        GOOD.replace("## Progress\n(none)", "## Progress\n### In Progress\n- [ ] Read the loader.")
        .replace("## Next Steps\n(none)", "## Next Steps\n1. Write the loader's tests.")
        .replace("## Key Decisions\n(none)", "## Key Decisions\n- **dict.get**: it cannot fail.")
    )
    beginning = (
        "- tried the cache\n\n### In Progress\n- The cache is being measured.\n\n"
        "## Next Steps\n1. Publish the figures.\n"
    )

    _, end = run(
        SPLIT,
        [(ModelReply(text=history), ModelReply(text=beginning))],
        replace(ASKED, keep_recent=100),
    )

    assert isinstance(end, Draft)
    text = end.summary
    assert "Read the loader" not in text
    assert "Write the loader's tests" not in text
    assert "**dict.get**: it cannot fail." in text
    assert text.count("The cache is being measured.") == 1
    assert text.count("Publish the figures.") == 1
    assert text.index("Publish the figures.") < text.index(HEADING)
    assert text.lower().count("in progress\n") == 1
    assert text.endswith(f"{HEADING}\n- tried the cache")


def test_what_the_newer_summary_does_not_say_stays_in_the_older_one() -> None:
    history = GOOD.replace("## Next Steps\n(none)", "## Next Steps\n1. Write the loader's tests.")

    _, end = run(
        SPLIT,
        [(ModelReply(text=history), ModelReply(text="- tried the cache\n## Next Steps\n(none)"))],
        replace(ASKED, keep_recent=100),
    )

    assert isinstance(end, Draft)
    assert "1. Write the loader's tests." in end.summary
    assert end.summary.endswith(f"{HEADING}\n- tried the cache")


def test_a_split_turn_without_history_has_the_prefix_alone() -> None:
    asked, end = run(
        "U90 A90 T90 A90 A90 A90 T90", [said("- tried the cache")], replace(ASKED, keep_recent=100)
    )

    assert [ask.purpose for ask in asked[0]] == ["prefix"]
    assert isinstance(end, Draft)
    assert "## Goal" not in end.summary


def test_one_of_two_that_fails_is_a_failure_of_both_and_both_are_paid_for() -> None:
    usage = Usage(input_tokens=7, output_tokens=3)

    _, end = run(
        SPLIT,
        [(ModelReply(text=GOOD, usage=usage), ModelReply(text="", usage=usage))],
        replace(ASKED, keep_recent=100),
    )

    assert isinstance(end, Draft)
    assert end.result.strategy == "extract"
    assert end.result.usage == Usage(input_tokens=14, output_tokens=6, context_tokens=7)
    assert end.result.split_turn


@pytest.mark.parametrize("strategy", ["extract", "truncate"])
def test_a_split_turn_without_a_model_names_the_steps_of_its_prefix(strategy: str) -> None:
    items = with_call(dialogue(SPLIT), 3, "Bash", b'{"command": "go test ./..."}')

    end = drafted(items, [], CompactRequest(keep_recent=100, strategy=strategy))  # type: ignore[arg-type]

    assert end.result.split_turn
    assert HEADING in end.summary
    if strategy == "truncate":
        assert "(5 messages of the turn in progress)" in end.summary


# --- answers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (ModelReply(text=""), "empty"),
        (ModelReply(text="  \n "), "empty"),
        (ModelReply(text=FORM), "empty"),
        (ModelReply(text=GOOD, stop_reason="refusal"), "refused"),
        (ModelReply(text=GOOD, stop_reason="content_filter"), "refused"),
        (ModelReply(text=GOOD, stop_reason="tool_use"), "ended with the stop reason tool_use"),
        (ModelReply(text="Sure! I will now run the tests again."), "headings"),
        (ModelReply(text="I'm sorry, but I can't help with that."), "headings"),
        (ModelReply(text="## Goal\n- Mend it.\n## Progress\n- [x] done"), "headings"),
        (
            ModelReply(text=GOOD.replace("- Mend the loader.", f"- {PLACEHOLDERS[0]}")),
            "without filling it in",
        ),
        (SummaryFailed("the provider answered 500"), "answered 500"),
        (NoModel(), "no model"),
    ],
)
def test_what_is_no_summary_gives_way_to_the_next_strategy(answer: SummaryAnswer, why: str) -> None:
    _, end = run("U90 A90 U90 A90", [(answer,)], replace(ASKED, force=True))

    assert isinstance(end, Draft)
    assert end.result.strategy == "extract"
    assert why in end.result.reason


@pytest.mark.parametrize("reason", ["length", "MAX_TOKENS"])
def test_an_answer_that_was_cut_off_is_gone_on_with(reason: str) -> None:
    begun, rest = GOOD[:80], GOOD[80:]
    script = [(ModelReply(text=begun, stop_reason=reason),), (ModelReply(text=rest, stop_reason="stop"),)]

    asked, end = run("U90 A90 U90 A90", script, replace(ASKED, force=True))

    assert isinstance(end, Draft)
    assert end.result.strategy == "summarize"
    assert GOOD in end.summary
    (first,), (second,) = asked
    assert second.prompt.startswith(first.prompt), "a model remembers nothing: it gets the transcript again"
    assert f"<unfinished-summary>\n{begun}\n</unfinished-summary>" in second.prompt


def test_a_model_that_begins_its_summary_anew_is_taken_at_its_second_word() -> None:
    script = [(ModelReply(text=GOOD[:80], stop_reason="length"),), (ModelReply(text=GOOD),)]

    end = run("U90 A90 U90 A90", script, replace(ASKED, force=True))[1]

    assert isinstance(end, Draft)
    assert end.summary.count("## Goal") == 1


@pytest.mark.parametrize("text", ["", GOOD[:80]], ids=["all was reasoning", "twice"])
def test_an_answer_that_stays_cut_off_is_asked_for_in_two_halves(text: str) -> None:
    cut = (ModelReply(text=text, stop_reason="length"),)
    script = [cut, *([cut] if text else []), (ModelReply(text=GOOD),), (ModelReply(text=f"{GOOD}\n- More."),)]

    asked, end = run("U90 A90 U90 A90", script, replace(ASKED, force=True))

    assert isinstance(end, Draft)
    assert end.result.strategy == "summarize"
    assert "- More." in end.summary
    (whole,), *_, (one,), (other,) = asked
    said = [ask.prompt.partition("<conversation>")[2].partition("</conversation>")[0] for ask in (one, other)]
    assert [ask.purpose for ask in (whole, one, other)] == ["history", "history", "merge"]
    assert all(part.strip() and len(part) < len(whole.prompt) for part in said)
    assert said[0] != said[1]


def test_a_model_whose_every_answer_is_cut_off_gives_way_after_a_few_questions() -> None:
    cut = (ModelReply(text=GOOD, stop_reason="length"),)

    asked, end = run("U90 A90 U90 A90", [cut] * 9, replace(ASKED, force=True))

    assert isinstance(end, Draft)
    assert (end.result.strategy, len(asked)) == ("extract", 4)
    assert "cut off" in end.result.reason


LISTED = (
    "{n}. {heading}: {words}",
    "- **{heading}**: {words}",
    "* __{heading}__ — {words}",
    "{n}) **{heading}:**\n   - {words}",
    "- {heading}:\n    - {words}",
    "## {n}. {heading}\n- {words}",
    "**{n}. {heading}**\n- {words}",
)


@pytest.mark.parametrize("shape", LISTED)
def test_headings_that_are_items_of_a_list_are_headings(shape: str) -> None:
    answer = "Here it is:\n\n" + "\n".join(
        shape.format(n=n, heading=heading.replace("&", "and").upper(), words=f"word {n}.")
        for n, heading in enumerate(HEADINGS, 1)
    )

    found, why = summary_in(ModelReply(text=answer), HEADINGS)

    assert why == ""
    assert found == "\n".join(f"## {heading}\n- word {n}." for n, heading in enumerate(HEADINGS, 1))


def test_an_item_below_another_is_no_heading() -> None:
    answer = "1. GOAL: mend it\n2. PROGRESS: half\n   - Next Steps: none yet\n3. NEXT STEPS: test\n"

    found, why = summary_in(ModelReply(text=answer), HEADINGS)

    assert why == ""
    assert [line for line in found.splitlines() if line.startswith("##")] == [
        "## Goal",
        "## Progress",
        "## Next Steps",
    ]


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"Here is the summary:\n\n{GOOD}",
        f"```markdown\n{GOOD}\n```",
        GOOD.replace("## ", "# "),
        GOOD.replace("&", "and"),
        "## Goal\n- Mend it.\n## Progress\n- [x] done\n## Next Steps\n1. test",
    ],
)
def test_a_summary_in_a_slightly_other_form_counts(text: str) -> None:
    found, why = summary_in(ModelReply(text=text, stop_reason="end_turn"), HEADINGS, PLACEHOLDERS)

    assert why == ""
    assert found.splitlines()[0].strip("# ") == "Goal"


def test_file_lists_that_a_model_wrote_are_left_out() -> None:
    text = f"{GOOD}\n\n<read-files>\nmade/up.py\n</read-files>\n<modified-files>\n</modified-files>"

    assert summary_in(ModelReply(text=text), HEADINGS)[0] == GOOD


def test_a_refusal_is_no_summary_where_no_headings_are_asked_for() -> None:
    assert summary_in(ModelReply(text="I cannot do that."))[1] == "the model refused to summarise"
    assert summary_in(ModelReply(text="We mended the loader."))[1] == ""


def test_a_summary_that_would_not_shrink_the_request_gives_way() -> None:
    _, end = run("U90 A90 U90 A90", [said(GOOD + "\n- " + filler(300))], replace(ASKED, force=True))

    assert isinstance(end, Draft)
    assert end.result.strategy == "extract"
    assert "the request would take" in end.result.reason


# --- the text ---------------------------------------------------------------------------------------


def test_the_summary_message_is_lead_sections_and_file_lists_by_code() -> None:
    items = with_call(dialogue("U90 A90 T90 A90 T90 U90 A90"), 1, "Read", b'{"path": "src/loader.py"}')
    items = with_call(items, 3, "Edit", b'{"path": "src/cache.py", "old_string": "a", "new_string": "b"}')

    end = drafted(items, [said(GOOD)], replace(ASKED, keep_messages=2))

    assert end.summary == (
        f"{LEAD}\n{NATURE}\n\n{GOOD}\n\n"
        "<read-files>\nsrc/loader.py\n</read-files>\n<modified-files>\nsrc/cache.py\n</modified-files>"
    )
    assert (end.result.read_files, end.result.modified_files) == (("src/loader.py",), ("src/cache.py",))


def test_files_accumulate_and_one_read_then_modified_is_modified_only() -> None:
    first = with_call(dialogue("U90 A90 T90 U90 A90"), 1, "Read", b'{"path": "src/cache.py"}')
    draft = drafted(first, [], CompactRequest(keep_messages=2))
    edit = b'{"path": "src/cache.py", "content": "x"}'
    more = with_call(dialogue("A90 T90 U90 A90", first=9), 0, "Write", edit)
    items = (*after(first, draft).items, *more)
    view = replace(view_of(items), tail_from=1)
    made = plan(inputs_of(view, originals=(*first, *more), request=CompactRequest(keep_messages=2)))
    assert isinstance(made, Plan)

    end = drive(compact(SummaryInput(plan=made)))[1]

    assert draft.result.read_files == ("src/cache.py",)
    assert isinstance(end, Draft)
    assert (end.result.read_files, end.result.modified_files) == ((), ("src/cache.py",))


def test_lists_that_do_not_fit_are_cut_in_the_text_with_a_count_and_stay_whole_in_the_result() -> None:
    items = dialogue("U90 " + "A90 T90 " * 30 + "U90 A90")
    for index in range(1, 60, 2):
        items = with_call(items, index, "Read", b'{"path": "src/a/rather/long/name/%d.py"}' % index)

    end = drafted(items, [said(GOOD)], replace(ASKED, keep_messages=2), summary_tokens=150)

    assert len(end.result.read_files) == 30
    assert end.summary_tokens <= 150
    assert "more)\n</read-files>" in end.summary
    assert "src/a/rather/long/name/59.py" in end.summary, "the newest are kept"


def test_facts_that_a_models_summary_lost_are_added_under_critical_context_and_counted() -> None:
    items = list(dialogue("U90 A90 A90 U90 A90"))
    for at in (1, 2):
        text = f"the flag lives in src/deep/loader_flags.py {filler(70)}"
        items[at] = replace(items[at], body=Message(role="assistant", content=(Text(text=text),)))

    end = drafted(tuple(items), [said(GOOD)], replace(ASKED, keep_messages=2))

    context = end.summary.split("## Critical Context\n")[1]
    assert "src/deep/loader_flags.py" in context
    assert end.result.retention is not None
    assert end.result.retention.score == 1.0


def test_evmts_puts_its_markers_around_the_summary() -> None:
    # docs/specs-evmts-opencode.md, "evmts-32.md", "compaction-algorithm".
    end = drafted("U90 A90 U90 A90 U90 A90 U90 A90", [], CompactRequest(strategy="truncate"), profile="evmts")

    assert end.summary.startswith("[Conversation Summary]\n")
    assert end.summary.endswith("\n[End Summary - 3 messages compacted]")


def test_under_evmts_the_end_marker_stands_last_in_an_extract_too() -> None:
    items = with_call(dialogue("U90 A90 T90 U90 A90 U90 A90 U90 A90"), 1, "Read", b'{"path": "a/b.py"}')

    end = drafted(items, [], CompactRequest(strategy="extract"), profile="evmts")

    assert "</read-files>\n\n[End Summary - " in end.summary
    assert end.summary.endswith(" messages compacted]")
    assert end.summary_tokens <= 512


def test_truncate_says_how_many_messages_of_which_role_it_were() -> None:
    # docs/specs.md, "opal.md", "3. Generate Summary", `:truncate`.
    end = drafted("U90 A90 T90 A90 U90 A90", [], CompactRequest(strategy="truncate", keep_messages=2))

    assert end.summary == f"{LEAD}\n\n[Compacted 4 messages: 1 user, 2 assistant, 1 tool]"
    assert end.result.strategy == "truncate"


def test_extract_works_on_the_originals_and_stays_within_its_budget() -> None:
    items = list(dialogue("U90 A90 T900 U90 A90"))
    whole = replace(items[0], body=Message(role="user", content=(Text(text="Never touch the public API."),)))
    request = CompactRequest(keep_messages=2, strategy="extract")

    end = drafted(tuple(items), [], request, originals=(whole, *items[1:]), summary_tokens=200)

    assert "Never touch the public API. [e1]" in end.summary
    assert end.summary_tokens <= 200
    assert end.summary.startswith(LEAD)


def test_the_same_input_gives_the_same_bytes() -> None:
    request = CompactRequest(keep_messages=2)

    assert drafted(SPLIT, [], request) == drafted(SPLIT, [], request)


# --- other ends -------------------------------------------------------------------------------------


def test_where_only_results_are_shortened_there_is_no_summary() -> None:
    _, end = run("U40 A20 T4000", [], CompactRequest(target_tokens=500))

    assert isinstance(end, PruneOnly)
    assert end.result.tokens_after <= 500
    assert (end.result.messages_removed, end.result.pruned_tool_results) == (0, 1)
    assert end.tokens_saved == end.result.tokens_saved


def test_a_clipped_batch_stays_in_the_view_shortened_and_the_whole_stays_in_the_budget() -> None:
    items = dialogue("U100 A300 T300 U40 A20 T4000")

    end = drafted(items, [], CompactRequest(target_tokens=700))

    view = after(items, end)
    assert view.tokens == end.result.tokens_after <= 700
    assert [item.kind for item in view.items] == ["summary", "message", "message", "stub"]


def test_nothing_that_can_be_made_smaller_is_no_compaction() -> None:
    items = dialogue("U20 A20 U90 A90")
    inputs = inputs_of(view_of(items), request=CompactRequest(keep_messages=2, strategy="extract"))
    made = plan(inputs)
    assert isinstance(made, Plan)

    done = drive(compact(SummaryInput(plan=made)))[1]
    assert isinstance(done, Draft)
    smaller = replace(made, tokens_before=done.result.tokens_after)
    end = drive(compact(SummaryInput(plan=smaller)))[1]

    assert isinstance(end, NotCompacted)
    assert end.reason.startswith("compacting would not make it smaller (extract: ")
    assert (end.tokens, end.messages) == (done.result.tokens_after, 4)


def test_a_check_that_raises_ends_the_work_at_once() -> None:
    class Stop(Exception):
        pass

    phases: list[str] = []

    def check(phase: str, fraction: float) -> None:
        phases.append(phase)
        if phase == "extract":
            raise Stop

    items = dialogue("U90 A90 U90 A90")
    inputs = inputs_of(view_of(items), request=CompactRequest(force=True))
    made = plan(inputs)
    assert isinstance(made, Plan)

    with pytest.raises(Stop):
        drive(compact(SummaryInput(plan=made, check=check)))
    assert phases == ["prepare", "extract"]


def test_progress_rises_to_the_end() -> None:
    told: list[float] = []
    items = dialogue("U90 A90 U90 A90")
    inputs = inputs_of(view_of(items), request=replace(ASKED, force=True))
    made = plan(inputs)
    assert isinstance(made, Plan)

    given = SummaryInput(plan=made, check=lambda _, fraction: told.append(fraction))
    drive(compact(given), [said(GOOD)])

    assert told == sorted(told)
    assert told[-1] == 1.0


def test_what_a_compaction_looked_at_is_held_by_nobody_behind_it() -> None:
    items = dialogue(EXAMPLE)
    inputs = inputs_of(view_of(items), request=replace(ASKED, strategy="extract", keep_recent=100))
    made = plan(inputs)
    assert isinstance(made, Plan)
    given = SummaryInput(plan=made)
    before = [sys.getrefcount(item) for item in items]

    _, outcome = drive(compact(given), ())
    during = [sys.getrefcount(item) for item in items]
    given.release()

    assert isinstance(outcome, Draft)
    assert during != before
    assert [sys.getrefcount(item) for item in items] == before
