"""The figures of docs/frameworks.md, and how new ones take the place of old ones."""

from __future__ import annotations

from benchmarks.frameworks import document
from benchmarks.frameworks.clock import CALLS, Clock
from benchmarks.frameworks.figures import Measured, Outcome, Timing
from tests.frameworks.support.provider import Totals


def row(framework: str, name: str, facts: int = 0, least: int = 0) -> Outcome:
    totals = dict.fromkeys(Totals.__dataclass_fields__, 0)
    return Outcome(
        framework=framework,
        name=name,
        kind="compactd" if name == "ours" else "own",
        window=8_000,
        lots=5,
        all_turns=40,
        all_facts=53,
        faults=0,
        least_facts=least,
        **{**totals, "facts": facts},
    )


def timing(name: str, median_ms: float) -> Timing:
    return Timing(
        framework="a",
        name=name,
        kind="own",
        tokens=200_000,
        median_ms=median_ms,
        p95_ms=9,
        first_ms=50,
        fresh_ms=5,
        count=60,
    )


def test_the_page_agrees_with_its_figures() -> None:
    assert document.stale() == []


def test_new_rows_take_their_places_and_go_after_those_of_their_framework() -> None:
    old = Measured(date="1", versions={}, outcomes=[row("a", "x"), row("b", "x")], timings=[timing("x", 1)])
    new = Measured(date="2", versions={"a": "2"}, outcomes=[row("a", "ours"), row("b", "x", 7, 7)])

    both = document.merged(old, new)

    assert [(one.framework, one.name, one.facts) for one in both.outcomes] == [
        ("a", "x", 0),
        ("a", "ours", 0),
        ("b", "x", 7),
    ]
    assert (both.date, both.versions, both.timings) == ("2", {"a": "2"}, old.timings)


def test_a_row_names_both_numbers_of_facts_if_they_differ() -> None:
    found = Measured(date="1", versions={}, outcomes=[row("a", "ours", 53, 2), row("b", "x", 4, 4)])

    lines = document.blocks(found)["talk"].splitlines()

    assert lines[2].startswith("| **a: ours** |")
    assert "2 to 53 of 53" in lines[2]
    assert " 4 of 53" in lines[3]


def test_the_difference_is_to_the_first_row_of_the_framework() -> None:
    found = Measured(date="1", versions={}, timings=[timing("x", 4), timing("y", 6.5)])

    lines = document.blocks(found)["times"].splitlines()

    assert "+2.5 ms" in lines[3]
    assert "+" not in lines[2]


def test_a_clocks_gaps_are_between_an_answer_and_the_next_call() -> None:
    clock = Clock(asked=1.0, calls=[1.5, 2.5, 4.5], answers=[2.0, 3.0, 5.0])

    assert clock.first_ms == 500
    assert clock.gaps_ms == [500, 1_500]


def test_a_clocks_script_ends_after_its_calls() -> None:
    clock = Clock()
    steps = [clock.called() for _ in range(CALLS + 1)]

    assert all(step is not None for step in steps[:-1])
    assert steps[-1] is None
