"""The check of each strategy's summary: constraints word for word, lost facts, repairs, inventions."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec
import pytest
from msgspec import UNSET, Raw

from compactd.core.history.entries import Item
from compactd.core.planning.plan import NotCompacted, Plan, plan, without_room
from compactd.core.planning.request import CompactRequest
from compactd.core.summary.check import with_open_tasks
from compactd.core.summary.compaction import (
    CompactionOutcome,
    Draft,
    ModelReply,
    SummaryInput,
    compact,
    read_ahead,
)
from compactd.core.summary.message import add_under_heading
from compactd.core.summary.prompts import HEADINGS
from compactd.protocol.errors import CannotFit
from compactd.protocol.messages import Block, Message, Role, Text, ToolCall, ToolResult
from compactd.protocol.work import PlanTask
from tests.support.dialogue import CHARS4, inputs_of, view_of

FORM = "\n".join(f"## {heading}\n(none)" for heading in HEADINGS)
POOR = FORM.replace("(none)", "- Make it work.", 1)
"""A model's summary that keeps nothing."""
EVMTS = "\n".join(
    f"## {heading}\n- so it is"
    for heading in ("KEY DECISIONS", "FILE CONTEXT", "CODE CHANGES", "ERRORS & SOLUTIONS", "CURRENT STATE")
)
RULES = ("Never rename parse_all.", "No new dependency.", "Use at most 3 retries.")


def item(number: int, role: Role, *blocks: Block) -> Item:
    message = Message(role=role, content=blocks)
    return Item(entry_id=f"e{number}", body=message, tokens=sum(map(_tokens, blocks)))


def _tokens(block: Block) -> int:
    match block:
        case Text(text=text):
            return CHARS4.count(text)
        case ToolResult(content=str() as text):
            return CHARS4.count(text)
        case _:
            return 10


def said(number: int, role: Role, text: str) -> Item:
    return item(number, role, Text(text=text))


def session(*rules: str, rounds: int = 30) -> tuple[Item, ...]:
    """An agent's work on a parser, with rules that its user set at the start."""
    items = [said(1, "user", f"Mend the parser in src/parse.py. {' '.join(rules)}")]
    for n in range(rounds):
        arguments = Raw(msgspec.json.encode({"command": "go test ./... -run TestAll"}))
        call = ToolCall(call_id=f"t{n}", name="Bash", arguments=arguments)
        text = f"token_loop failed in src/tokens/scan_{n % 7}.py after {n + 100} ms: IndexError in next_token"
        items.append(item(len(items) + 1, "assistant", Text(text="Let me run it again and look."), call))
        items.append(
            item(len(items) + 1, "tool", ToolResult(call_id=f"t{n}", content=f"{text}\n{text} again"))
        )
    items.append(said(len(items) + 1, "assistant", "It is next_token."))
    return (*items, said(len(items) + 1, "user", "Go on then."))


def done(
    items: Sequence[Item],
    body: str = POOR,
    request: CompactRequest | None = None,
    steps: int = 0,
    **given: object,
) -> CompactionOutcome:
    """The compaction of `items`, with `body` as each answer of the model; so many `steps` are done ahead of
    the answer."""
    asked = request or CompactRequest(strategy="summarize", may_ask_model=True, keep_messages=1)
    inputs = inputs_of(view_of(tuple(items)), request=asked, **given)  # type: ignore[arg-type]
    made = plan(inputs)
    if not isinstance(made, Plan):
        return made
    summary_input = SummaryInput(plan=made)
    running = compact(summary_input)
    try:
        asks = next(running)
        if steps:
            looks = iter(range(steps))
            read_ahead(summary_input, lambda: next(looks, None) is None)
        while True:
            asks = running.send(
                tuple(ModelReply(text=body if a.purpose != "prefix" else "So.") for a in asks)
            )
    except StopIteration as end:
        outcome: CompactionOutcome = end.value
        return outcome


def drafted(*args: object, **given: object) -> Draft:
    end = done(*args, **given)  # type: ignore[arg-type]
    assert isinstance(end, Draft), end
    return end


def by(strategy: str, **more: object) -> CompactRequest:
    return CompactRequest(strategy=strategy, may_ask_model=True, **more)  # type: ignore[arg-type]


# --- constraints ------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", ["default", "opal", "go-agent", "klaude", "evmts", "opencode"])
@pytest.mark.parametrize("strategy", ["summarize", "extract", "truncate"])
def test_the_users_constraints_stand_word_for_word_in_every_strategys_summary(
    strategy: str, profile: str
) -> None:
    body = EVMTS if profile == "evmts" else POOR

    end = drafted(session(*RULES), body, by(strategy, keep_messages=1), profile=profile)

    assert end.result.strategy == strategy
    for rule in RULES:
        assert end.summary.count(rule) == 1
    assert "- (none)" not in end.summary


def test_they_stand_under_their_heading() -> None:
    for strategy in ("summarize", "extract", "truncate"):
        text = drafted(session(*RULES), request=by(strategy, keep_messages=1)).summary

        start = text.index("## Constraints & Preferences")
        assert all(
            text.find("\n## ", start + 4) > text.index(rule) for rule in RULES if strategy != "truncate"
        )


def test_what_stays_word_for_word_is_not_named_twice() -> None:
    items = (*session(), said(100, "assistant", "Well."), said(101, "user", "Never rename parse_all."))

    assert "Never rename" not in drafted(items, request=by("extract", keep_messages=1)).summary


def test_a_models_own_line_with_the_constraint_is_enough() -> None:
    body = FORM.replace("Preferences\n(none)", "Preferences\n- Never rename parse_all.")

    assert drafted(session("Never rename parse_all."), body, retention_floor=0.0).summary.count("rename") == 1


def test_a_constraint_that_a_newer_one_disagrees_with_is_no_longer_one() -> None:
    items = (
        *session("Always use tabs here."),
        said(90, "assistant", "Yes."),
        *session("Never use tabs here."),
    )
    numbered = tuple(
        Item(entry_id=f"e{n}", body=one.body, tokens=one.tokens) for n, one in enumerate(items, 1)
    )

    text = drafted(numbered, request=by("extract", target_tokens=1500)).summary

    assert "Never use tabs here." in text
    assert "Always use tabs here." not in text


def test_a_cap_of_nothing_pins_nothing() -> None:
    given = session(*RULES)

    none = plan_of(given, constraint_tokens=0)

    assert none.constraints == ()
    assert without_room(none) == "the summary has no room for 3 of the user's constraints"
    assert without_room(none, RULES[0]) == "the summary has no room for 2 of the user's constraints"
    assert [one.text for one in plan_of(given).constraints] == list(RULES)
    assert plan_of(given).note == without_room(plan_of(given)) == ""


def plan_of(items: Sequence[Item], **given: object) -> Plan:
    inputs = inputs_of(view_of(tuple(items)), request=CompactRequest(keep_messages=1), **given)  # type: ignore[arg-type]
    made = plan(inputs)
    assert isinstance(made, Plan), made
    return made


def test_constraints_count_in_the_smallest_summary_and_so_in_the_floor() -> None:
    rules = [f"Never ever rename the function number_{n} in the parser of this project." for n in range(40)]
    items = session("\n".join(rules))
    with_rules = inputs_of(view_of(items), request=CompactRequest(target_tokens=150), constraint_tokens=2000)
    without = inputs_of(view_of(items), request=CompactRequest(target_tokens=150), constraint_tokens=0)

    with pytest.raises(CannotFit) as refused:
        plan(with_rules)
    told = refused.value.data["floor"]
    assert isinstance(told, dict)
    floor = {name: part for name, part in told.items() if isinstance(part, int)}
    assert floor["summary"] > 500
    assert isinstance(plan(without), Plan)
    fits = inputs_of(
        view_of(items), request=CompactRequest(target_tokens=sum(floor.values())), constraint_tokens=2000
    )
    assert isinstance(plan(fits), Plan)


# --- what is lost -----------------------------------------------------------------------------------


def test_what_a_summary_lost_of_what_was_used_again_is_appended_with_where_it_stood() -> None:
    end = drafted(session(), POOR, retention_floor=0.0)
    retention = end.result.retention

    assert retention is not None
    assert (retention.before, retention.score) == (0.0, 1.0)
    context = end.summary[end.summary.index("## Critical Context") :]
    assert "(tool) token_loop failed in src/tokens/scan_" in context
    assert "`go test ./... -run TestAll`" in end.summary
    assert end.result.reason == ""


def test_truncate_says_how_many_messages_it_dropped_and_looks_for_no_facts() -> None:
    end = drafted(session("Never rename parse_all."), request=by("truncate", keep_messages=1))

    assert "[Compacted 62 messages: 1 user, 31 assistant, 30 tool]" in end.summary
    assert "- Never rename parse_all. [e" in end.summary
    assert "token_loop" not in end.summary
    assert end.result.retention is None


VOIDING = (
    'the rule "{}" was lifted in v2',
    "~~{}~~",
    "(obsolete) {}",
    "Ignore: {}",
    "{} (until e3, now void)",
)


@pytest.mark.parametrize("said", VOIDING)
@pytest.mark.parametrize("heading", ["## Constraints & Preferences", "## Critical Context"])
def test_a_limit_that_a_models_summary_only_mentions_is_stated_by_itself(said: str, heading: str) -> None:
    limit = "Never rename parse_all."
    body = POOR.replace(heading, f"{heading}\n- {said.format(limit)}")

    text = drafted(session(limit), body).summary

    start = text.index("## Constraints & Preferences")
    assert re.search(rf"(?m)^- {re.escape(limit)} \[e\d+\]$", text[start : text.index("\n## ", start + 4)])


def test_a_models_summary_below_the_floor_is_repaired_by_the_record_and_says_so() -> None:
    end = drafted(session(*RULES), POOR)
    result = end.result

    assert result.strategy == "summarize"
    assert result.reason == (
        "the model's summary kept 0% of the facts that were used again;"
        " what it lacks of the state of the work was added"
    )
    assert result.retention is not None
    assert (result.retention.before, result.retention.score) == (0.0, 1.0)
    assert "- Make it work." in end.summary
    assert "## Progress" in end.summary
    assert end.summary.count("## Goal") == 1
    assert "Mend the parser in src/parse.py." in end.summary


def test_a_models_summary_that_leaves_no_room_for_a_repair_gives_way() -> None:
    crowded = POOR + "\n" + "- and so it went on and on until all was well\n" * 60

    end = drafted(session(), crowded, summary_tokens=700)

    assert end.result.strategy == "extract"
    assert end.result.reason.startswith("summarize: the model's summary kept 0% of the facts")


def test_a_models_summary_that_fills_its_room_is_used_if_it_is_not_hopeless() -> None:
    names = "\n".join(f"- token_loop failed in src/tokens/scan_{n}.py" for n in range(2))
    crowded = POOR + f"\n{names}\n" + "- and so it went on and on until all was well\n" * 60

    end = drafted(session(), crowded, summary_tokens=700)

    assert end.result.strategy == "summarize"
    assert end.result.reason.endswith("of the facts that were used again; it has no room for more")


def test_a_summary_above_the_floor_is_left_as_it_is() -> None:
    whole = "\n".join(
        f"- {text}"
        for text in (
            "src/parse.py",
            "TestAll by go test ./... -run TestAll",
            *(f"src/tokens/scan_{n}.py" for n in range(7)),
            "token_loop, next_token: IndexError",
        )
    )
    end = drafted(session(), whole.join(FORM.rsplit("(none)", 1)))

    assert end.result.reason == ""
    assert end.result.retention is not None
    assert end.result.retention.before == end.result.retention.score == 1.0
    assert end.result.unfounded is UNSET


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5, 1000])
def test_what_is_read_while_the_model_writes_changes_no_byte_wherever_the_answer_ends_it(steps: int) -> None:
    for body in (POOR, FORM):
        assert drafted(session(*RULES), body, steps=steps) == drafted(session(*RULES), body)


def test_what_a_model_invents_is_marked_below_its_sections_and_told() -> None:
    body = FORM.replace("(none)", "- Mend src/phantom.py, where ghost_loop ran 4711 times.", 1)

    end = drafted(session(), body, retention_floor=0.0)

    assert end.result.unfounded == ("src/phantom.py", "ghost_loop", "4711")
    assert (
        "\n\nStated above, but nowhere in the conversation: src/phantom.py, ghost_loop, 4711" in end.summary
    )
    heading = end.summary.index("## Critical Context")
    assert end.summary.index("Stated above") > heading


def test_nothing_that_would_grow_is_done() -> None:
    short = (
        said(1, "user", "Never push. Always test."),
        said(2, "assistant", "Yes."),
        said(3, "user", "Go."),
    )

    assert isinstance(done(short, request=by("extract", force=True)), NotCompacted)


# --- sections ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "heading", "expected"),
    [
        ("## A\n(none)\n## B\n- b", "## A", "## A\n- x\n\n## B\n- b"),
        (
            "## A\n- a\n\n<read-files>\nf\n</read-files>",
            "## A",
            "## A\n- a\n- x\n\n<read-files>\nf\n</read-files>",
        ),
        ("## P\n### Done\n- d\n### Next\n- n", "### Done", "## P\n### Done\n- d\n- x\n\n### Next\n- n"),
        ("## A\n- a\n[End 5]", "## A", "## A\n- a\n- x\n\n[End 5]"),
        ("free words", "## A", "free words\n\n## A\n- x"),
        ("**A:**\n- a", "## A", "**A:**\n- a\n- x"),
    ],
)
def test_lines_go_to_the_end_of_their_section(text: str, heading: str, expected: str) -> None:
    assert add_under_heading(text, "- x", heading, "[End ") == expected


PLAN = (
    PlanTask(text="Write the parser for dates", status="done", entry_id="e2"),
    PlanTask(text="Document the limits of searches", status="open", entry_id="e4"),
)


def test_a_task_that_is_open_is_not_called_done() -> None:
    body = (
        "### Done\n- [x] Wrote the parser for dates\n- [x] Document the limits of searches\n- [x] Other work"
    )

    text, changed = with_open_tasks(body, PLAN)

    assert changed == 1
    assert text == (
        "### Done\n- [x] Wrote the parser for dates\n"
        "- [ ] Document the limits of searches (still open [e4])\n- [x] Other work"
    )


def test_a_summary_without_marks_is_left_as_it_is() -> None:
    assert with_open_tasks("Document the limits of searches: done.", PLAN) == (
        "Document the limits of searches: done.",
        0,
    )
