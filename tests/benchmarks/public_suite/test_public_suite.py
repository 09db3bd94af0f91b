"""The public suite as a benchmark: the relabelled sessions, compactd as a compactor, the tables.

The suite itself is not installed for tests; `stand_in.py` stands for it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from benchmarks.peers import environment
from benchmarks.public_suite import document as suite_document
from benchmarks.public_suite.adapter import Compactd
from benchmarks.public_suite.relabelled import SuiteChanged, relabelled, relabelling
from benchmarks.public_suite.results import Forms, Payload, tables
from benchmarks.public_suite.running import RunFailed, run
from benchmarks.retention import document
from compactd.client import Client
from tests.benchmarks.public_suite import stand_in
from tests.benchmarks.public_suite.stand_in import LABELS, Canary, Session, Turn

BUILDERS = {
    "random": stand_in.build_random_session,
    "semantic": stand_in.build_semantic_session,
    "held out": stand_in.build_semantic_heldout_session,
}

each_session = pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)


def texts_without(session: Session, *canaries: Canary) -> list[str]:
    """The texts of the session, in lower case, except those that state one of these canaries."""
    stated = {session.canary_positions[one.id] for one in canaries}
    return [turn.text.lower() for n, turn in enumerate(session.turns) if n not in stated]


# --- the relabelled copy ------------------------------------------------------------------------------------


@each_session
def test_a_relabelled_session_shares_no_label_and_no_sentence_with_the_suite(build) -> None:
    session, canaries = build(1)

    copy, copies = relabelled(session, canaries)

    texts = [*(turn.text for turn in copy.turns), *(one.content for one in copies)]
    assert not re.search("|".join(LABELS), "\n".join(texts), re.IGNORECASE)
    assert {turn.text for turn in session.turns}.isdisjoint(texts)


@each_session
def test_a_relabelled_session_has_the_same_turns(build) -> None:
    session, canaries = build(1)

    copy, copies = relabelled(session, canaries)

    assert [replace(turn, text="") for turn in copy.turns] == [
        replace(turn, text="") for turn in session.turns
    ]
    same = [
        (session.turns.index(turn), copy.turns.index(new))
        for turn, new in zip(session.turns, copy.turns, strict=True)
    ]
    assert all(old == new for old, new in same), "texts that repeat must repeat at the same places"
    assert [one.id for one in copies] == [one.id for one in canaries]


@each_session
def test_every_statement_has_what_the_judge_requires(build) -> None:
    session, canaries = build(1)

    copy, copies = relabelled(session, canaries)

    for one in copies:
        stated = copy.turns[copy.canary_positions[one.id]].text
        assert stated == one.content
        assert one.required_tokens == one.behavior_required_tokens != ()
        assert all(token in stated.lower() for token in one.required_tokens), one.id


@each_session
def test_values_keep_their_capitals(build) -> None:
    copy, copies = relabelled(*build(1))

    text = "\n".join(turn.text for turn in copy.turns)
    values = {token for one in copies for token in one.required_tokens if re.fullmatch(r"value\d+", token)}
    assert values
    assert all(value.title() in text for value in values)


@each_session
def test_no_other_turn_has_what_the_judge_requires(build) -> None:
    copy, copies = relabelled(*build(1))

    for one in copies:
        others = texts_without(copy, one)
        assert not any(all(token in text for token in one.required_tokens) for text in others), one.id


@each_session
def test_an_earlier_value_is_in_the_earlier_statement_alone(build) -> None:
    session, canaries = build(1)

    copy, copies = relabelled(session, canaries)

    assert [bool(one.superseded_tokens) for one in copies] == [
        bool(one.superseded_tokens) for one in canaries
    ]
    for one in copies:
        for token in one.superseded_tokens:
            having = [turn for turn in copy.turns if token in turn.text.lower()]
            assert len(having) == 1, (one.id, token)
            assert copy.turns.index(having[0]) < copy.canary_positions[one.id]


def test_a_canary_without_a_wording_is_refused() -> None:
    session, canaries = stand_in.build_random_session(1)
    unknown = replace(canaries[0], id="r-new")

    with pytest.raises(SuiteChanged, match="r-new"):
        relabelled(session, [unknown, *canaries[1:]])


def test_more_small_talk_than_there_are_texts_for_is_refused() -> None:
    session, canaries = stand_in.build_random_session(1)
    more = tuple(Turn("user", f"Something else, number {n}.") for n in range(20))

    with pytest.raises(SuiteChanged, match="too few texts for the role user"):
        relabelled(replace(session, turns=(*session.turns, *more)), canaries)


# --- compactd as a compactor --------------------------------------------------------------------------------


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with Client(env=environment(tmp_path, tmp_path / "home")) as client:
        yield client


@each_session
@pytest.mark.parametrize("budget", [0.15, 0.2, 0.3])
def test_each_round_is_within_the_budget_and_uses_most_of_it(client: Client, build, budget: float) -> None:
    for make in (build, relabelling(build)):
        session, _ = make(1)
        turns = [(turn.role, turn.text) for turn in session.turns]
        chars = int(len(stand_in.text_of(session.turns)) * budget)
        compactor = Compactd(client)

        sizes = [len(compactor.compact(turns, number, chars)) for number in (1, 2, 3)]

        assert all(chars * 0.9 <= size <= chars for size in sizes), (chars, sizes)


def test_a_later_round_keeps_a_smaller_budget(client: Client) -> None:
    session, _ = stand_in.build_random_session(1)
    turns = [(turn.role, turn.text) for turn in session.turns]
    compactor = Compactd(client)

    sizes = [len(compactor.compact(turns, number, chars)) for number, chars in ((1, 2000), (2, 1000))]

    assert 1000 < sizes[0] <= 2000
    assert 500 < sizes[1] <= 1000


def test_each_round_is_one_compaction_whatever_was_tried(client: Client) -> None:
    session, _ = stand_in.build_random_session(1)
    compactor = Compactd(client)
    turns = [(turn.role, turn.text) for turn in session.turns if turn.role != "system"]
    texts = [compactor.compact(turns, number, chars) for number, chars in ((1, 1500), (2, 900), (3, 600))]

    undone = [client.session_undo(session_id=compactor.session_id).message_count for _ in texts]

    assert undone[0] <= undone[1] < undone[2] == len(turns)


def test_the_system_prompt_is_no_message(client: Client) -> None:
    compactor = Compactd(client)
    turns = [
        ("system", "Answer in rhymes."),
        ("user", "Count to three."),
        ("assistant", "One, two, three."),
    ] * 9

    text = compactor.compact(turns, 1, 400)

    assert "three" in text
    assert "rhymes" not in text


def test_a_role_without_a_message_is_refused(client: Client) -> None:
    with pytest.raises(ValueError, match="tool"):
        Compactd(client).compact([("tool", "3 files")], 1, 400)


# --- the run ------------------------------------------------------------------------------------------------

KIT = {
    "__init__": "",
    "cli": "from tests.benchmarks.public_suite.stand_in import COMPACTORS",
    "compacted": "from tests.benchmarks.public_suite.stand_in import CompactedContext",
    "benchmark": """
from tests.benchmarks.public_suite.stand_in import *
def run_budget_benchmark(compactors):
    print("a line that is no request")
    return judge(compactors, build_random_session, 0.3)
""",
}
"""The stand-in as the package that the benchmark imports."""


@pytest.fixture
def kit(tmp_path: Path) -> Path:
    package = tmp_path / "kit" / "compaction_kit"
    package.mkdir(parents=True)
    for name, source in KIT.items():
        (package / f"{name}.py").write_text(source, "utf-8")
    return package.parent


def test_both_forms_are_run_with_the_suites_compactors_and_compactd(client: Client, kit: Path) -> None:
    asked: list[tuple[tuple[str, str], ...]] = []

    def compact(turns, number: int, budget_chars: int) -> str:
        asked.append(turns)
        return Compactd(client).compact(turns, 1, budget_chars)

    forms = run(sys.executable, compact, kit)

    assert {name: [one.compactor for one in form.entries] for name, form in forms.items()} == {
        "own": ["compactd", "tail"],
        "relabelled": ["compactd", "tail"],
    }
    assert all(one.budget_compliant for form in forms.values() for one in form.entries)
    first = [sum("FACT" in text for _, text in turns) for turns in asked if len(turns) > 1]
    assert first[0] > 0
    assert first[-1] == 0


def test_a_suite_that_fails_is_reported(kit: Path, capfd) -> None:
    (kit / "compaction_kit" / "cli.py").write_text("raise ValueError('not today')", "utf-8")

    with pytest.raises(RunFailed):
        run(sys.executable, lambda *_: "", kit)

    assert "not today" in capfd.readouterr().err


# --- the tables ---------------------------------------------------------------------------------------------


def payload(survival: float, both: int, *, is_compliant: bool = True) -> Payload:
    entry = {
        "compactor": "compactd",
        "budget_fraction": 0.1,
        "budget_compliant": is_compliant,
        "mean_final_output_ratio": 0.09,
        "randomized": {"overall_final_survival": survival},
        "semantic": {"conflicts": {"n": 64, "resolved": 48, "both": both}, "distinct_pair_rate": 0.5},
    }
    return msgspec.convert(
        {"kit_version": "0.8.0", "budgets": [0.1], "seeds": [1, 2], "rounds": 5, "entries": [entry]}, Payload
    )


FORMS: Forms = {"own": payload(0.9, 4), "relabelled": payload(0.65, 7)}


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_a_table_shows_both_forms_and_the_difference() -> None:
    [(budget, shown)] = tables(FORMS)

    head, _, row = shown.splitlines()
    assert budget == "10%"
    assert dict(zip(cells(head), cells(row), strict=True)) == {
        "own → relabelled (difference)": "**compactd**",
        "survival, %": "90.0 → 65.0 (-25.0)",
        "resolved updates, %": "75.0 → 75.0 (+0.0)",
        "stale next to new, of 64": "4 → 7 (+3)",
        "distinct pairs, %": "50.0 → 50.0 (+0.0)",
    }


def test_a_compactor_that_exceeds_the_budget_in_one_form_is_marked() -> None:
    [(_, shown)] = tables({"own": payload(0.9, 4), "relabelled": payload(0.9, 4, is_compliant=False)})

    assert "**compactd**, over the budget" in shown


def test_the_two_writers_of_the_page_keep_each_others_blocks() -> None:
    page = document.PAGE.read_text("utf-8")
    block = suite_document.block(FORMS, "1.0", "2026-11-27")
    others = {name: f"new {name}" for name in re.findall("<!-- figures: ([a-z -]+) -->", page)}
    del others[document.PUBLIC_SUITE]

    ours_first = document.filled(document.with_block(page, document.PUBLIC_SUITE, block), others)
    ours_last = document.with_block(document.filled(page, others), document.PUBLIC_SUITE, block)

    assert ours_first == ours_last
    assert all(text in ours_first for text in (block, *others.values()))


def test_a_block_that_the_page_does_not_have_is_refused() -> None:
    with pytest.raises(KeyError, match="public suite"):
        document.with_block("no block here", document.PUBLIC_SUITE, "text")
