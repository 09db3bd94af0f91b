"""Floods of sentences that set limits: they cost linear time, they evict no limit of another message, and
each result says how many were left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactd.core.constraints.constraints import (
    MAX_CONSTRAINTS,
    MAX_OF_A_MESSAGE,
    Constraint,
    constraints_of,
    fitting_constraints,
    missing_constraints,
)
from compactd.core.constraints.patterns import LIMIT, NEGATIVE
from compactd.core.history.entries import Item
from compactd.core.planning.plan import Plan, plan
from compactd.core.planning.request import CompactRequest
from compactd.core.summary.compaction import Draft, SummaryInput, compact
from compactd.core.text.phrases import MAX_SEPARATE_PHRASES, Phrases
from compactd.protocol.messages import Message, Role, Text
from tests.security.test_linear_time import MOST, TIMES, UNNOTICED_S, took_s
from tests.support.dialogue import drive, inputs_of, view_of

REAL = "Never touch the public API of the parser."
FLOODS: dict[str, Callable[[int], str]] = {
    "one subject, no disagreement": lambda n: f"Never use more than {n} retries.",
    "one subject, two numbers": lambda n: f"Never use more than {n} and {n + 1} retries.",
    "one subject, each newer": lambda n: f"Use at most {n} retries in the loader.",
    "a subject each": lambda n: f"Never touch part_{n} of module_{n}.",
    "each begins with another": lambda n: f"Never touch {'ab ' * (n % 40)}x{n // 40}.",
}
ANSWER = "Understood. " + "I look at the parser and at its tests again. " * 40
COUNT = 500
"""Limits in the shorter session."""


def session(*texts: str) -> list[Item]:
    said: list[tuple[Role, str]] = []
    for text in texts:
        said += [("user", text), ("assistant", ANSWER)]
    said.append(("user", "Go on."))
    return [
        Item(entry_id=f"e{n}", body=Message(role=role, content=(Text(text=text),)), tokens=len(text) // 4 + 1)
        for n, (role, text) in enumerate(said, 1)
    ]


def flood(line: Callable[[int], str], count: int, per_message: int = 100) -> list[str]:
    return [
        "\n".join(line(n) for n in range(at, min(at + per_message, count)))
        for at in range(0, count, per_message)
    ]


def compacted(items: Sequence[Item], **settings: object) -> Draft:
    request = CompactRequest(strategy="extract", keep_messages=1)
    inputs = inputs_of(view_of(items), request=request, **settings)  # type: ignore[arg-type]
    made = plan(inputs)
    assert isinstance(made, Plan)
    _, draft = drive(compact(SummaryInput(plan=made)))
    assert isinstance(draft, Draft)
    return draft


@pytest.mark.parametrize("name", FLOODS)
def test_a_session_of_many_limits_is_compacted_in_time_that_grows_as_their_number(name: str) -> None:
    short, long = (session(*flood(FLOODS[name], COUNT * times)) for times in (1, TIMES))
    compacted(short)

    shorter, longer = (min(took_s(lambda _: compacted(each), "") for _ in range(2)) for each in (short, long))  # noqa: B023

    assert longer < UNNOTICED_S or longer / shorter < MOST


@pytest.mark.parametrize("name", FLOODS)
def test_many_limits_are_told_apart_and_looked_for_in_time_that_grows_as_their_number(name: str) -> None:
    def told_apart(text: str) -> None:
        demands = constraints_of(session(*text.split("\n\n")))
        missing_constraints((*demands.in_force, *demands.superseded), text)

    texts = ["\n\n".join(flood(FLOODS[name], 2 * COUNT * times)) for times in (1, TIMES)]
    took_s(told_apart, texts[0])

    shorter, longer = (min(took_s(told_apart, text) for _ in range(2)) for text in texts)

    assert longer < UNNOTICED_S or longer / shorter < MOST


@pytest.mark.parametrize("tokens", [64, 400, 2_000])
@pytest.mark.parametrize("name", FLOODS)
def test_a_flood_of_limits_in_one_message_evicts_no_limit_of_another_message(name: str, tokens: int) -> None:
    pasted = "\n".join(FLOODS[name](n) for n in range(100))
    items = session(f"Mend the parser. {REAL}", pasted, "Always run the tests.")

    draft = compacted(items, constraint_tokens=tokens)

    lines = draft.summary.split("\n")
    assert f"- {REAL} [e1]" in lines
    assert "- Always run the tests. [e5]" in lines


def test_the_result_says_how_many_limits_were_left_out_of_a_flood() -> None:
    pasted = "\n".join(f"No x{n}." for n in range(600))
    items = session(f"Mend the parser. {REAL}", pasted)

    draft = compacted(items, constraint_tokens=100_000)

    assert "the summary has no room for 500 of the user's constraints" in draft.result.reason
    assert f"- {REAL} [e1]\n" in draft.summary


def test_what_a_person_writes_before_and_after_a_flood_in_one_message_counts() -> None:
    pasted = "\n".join(f"No x{n}." for n in range(600))

    demands = constraints_of(session(f"{REAL}\n{pasted}\nNever push."))

    told = [one.text for one in demands.in_force]
    assert (told[0], told[-1], len(told)) == (REAL, "Never push.", MAX_OF_A_MESSAGE)
    assert demands.left_out == (("e1", 602 - MAX_OF_A_MESSAGE),)


def test_sixty_rules_of_a_user_in_one_message_all_stand_in_the_summary_in_their_order() -> None:
    rules = [f"Never rename module_{n}." for n in range(60)]

    draft = compacted(session("\n".join(rules), "Never push."))

    assert [line for line in draft.summary.splitlines() if line.startswith("- Never")] == [
        *(f"- {rule} [e1]" for rule in rules),
        "- Never push. [e3]",
    ]
    assert "constraints" not in (draft.result.reason or "")


def test_what_is_left_out_of_a_message_supersedes_nothing() -> None:
    pasted = [f"No x{n}." for n in range(600)]
    pasted[300] = "Always push to origin."

    demands = constraints_of(session("Never push to origin.", "\n".join(pasted)))

    assert "Never push to origin." in {one.text for one in demands.in_force}
    assert demands.superseded == ()


def test_a_summary_holds_a_bounded_number_of_limits_whatever_room_there_is() -> None:
    said = [Constraint(f"Never touch x{n}.", f"e{n}") for n in range(MAX_CONSTRAINTS + 10)]

    assert fitting_constraints(said, 10**9, len) == tuple(said[10:])


SUBJECTS = {
    "Never push.": "push",
    "Always push.": "push",
    "Keep push below 9 s.": "keep push",
    "Push at most 3 times.": "pushes",
    "Push at most 5 times.": "pushes",
    "Never push at most 3 times or 4.": "pushes of two numbers",
    "No tabs.": "tabs",
    "Always use tabs.": "tabs",
    "Use tabs, not blanks.": "blanks",
    "Always test.": "test",
    "不要使用全局变量。": "globals",
    "必须使用全局变量。": "globals",
}


@given(st.lists(st.sampled_from(list(SUBJECTS)), max_size=12))
def test_an_older_limit_is_superseded_if_and_only_if_one_in_force_disagrees(said: list[str]) -> None:
    demands = constraints_of(session(*said))

    order = list(dict.fromkeys(reversed(said)))
    kept: list[str] = []
    for one in order:
        if not any(_disagree(one, newer) for newer in kept):
            kept.append(one)
    assert [one.text for one in demands.in_force] == kept[::-1]
    assert {one.text for one in demands.superseded} == set(order) - set(kept)


def _disagree(older: str, newer: str) -> bool:
    """Two sentences, compared as a pair."""
    if SUBJECTS[older] != SUBJECTS[newer]:
        return False
    mine, other = ([word for word in one.rstrip(".").split() if word.isdigit()] for one in (older, newer))
    limits = [LIMIT.search(one) is not None for one in (older, newer)]
    if all(limits):
        return len(mine) == 1 == len(other) and mine != other
    forbids = [NEGATIVE.search(one) is not None for one in (older, newer)]
    return forbids[0] != forbids[1]


@given(st.lists(st.text("ab ", max_size=9), max_size=3 * MAX_SEPARATE_PHRASES), st.text("ab ", max_size=60))
def test_phrases_looked_for_at_once_are_those_that_are_found_one_by_one(
    phrases: list[str], text: str
) -> None:
    there = Phrases(phrases).found_in(text)

    assert there == [phrase for phrase in dict.fromkeys(phrases) if phrase and phrase in text]
