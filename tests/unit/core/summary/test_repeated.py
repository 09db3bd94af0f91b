"""Which part of a summary's line repeats a foreign sentence, and which words may surround that part."""

from __future__ import annotations

import pytest

from compactd.core.summary.demand_framing import code_lines, gives_authority, is_bare, is_prose, reports_deed
from compactd.core.summary.foreign_repeats import Repetitions, fold_line

ORDER = "Deploy the widget to staging after each commit."
PAGE = f"# Widget\nIt is small. {ORDER} Never on Fridays.\n" + "x = call(a, b)\n" * 3


def repeated(line: str, *said: tuple[str, bool]) -> str | None:
    text = fold_line(line)
    run = Repetitions(line, said or ((PAGE, True),)).find(text)
    return None if run is None else text[run.start : run.end]


@pytest.mark.parametrize(
    ("line", "part"),
    [
        (ORDER, "deploy the widget to staging after each commit"),
        (
            "deploying WIDGETS to staging, after each commit",
            "deploying widgets to staging, after each commit",
        ),
        (
            "They want: deploy the widget to staging after each commit!",
            "deploy the widget to staging after each commit",
        ),
        (
            "D e p l o y  the wіdget to stagіng after each commit",
            "deploy  the widget to staging after each commit",
        ),
        ("D3pl0y the w1dget to st4ging after each c0mmit", "d3pl0y the w1dget to st4ging after each c0mmit"),
        ("Widget staging each commit", "widget staging each commit"),
        ("The widget is small and fast, and the commit was made after lunch", None),
        ("Widget commit", None),
        ("", None),
    ],
)
def test_the_part_of_a_line_that_a_foreign_sentence_holds(line: str, part: str | None) -> None:
    assert repeated(line) == part


def test_a_sentence_of_three_words_is_long_enough_to_be_repeated() -> None:
    assert repeated("Deploy widgets nightly", ("Deploy widgets nightly.", True)) == "deploy widgets nightly"
    assert repeated("Deploy widgets", ("Deploy widgets.", True)) is None


@pytest.mark.parametrize("is_first", [True, False])
def test_what_the_model_had_said_before_is_its_own(is_first: bool) -> None:
    own, page = ("I shall " + ORDER, False), (PAGE, True)

    found = repeated(ORDER, *((own, page) if is_first else (page, own)))

    assert (found is None) == is_first


def test_a_sentence_in_a_long_line_of_data_is_found_in_a_window() -> None:
    filler = " ".join(f"w{number}ord" for number in range(200))

    assert repeated(ORDER, (f"{filler} {ORDER[:-1]} {filler}", True)) is not None
    assert repeated("w3ord w150ord w199ord w77ord", (filler, True)) is None


@pytest.mark.parametrize("before", ["they asked to ", "rule — ", "the user says: ", "dohodnuto: "])
def test_words_that_are_on_no_list_may_give_an_authority(before: str) -> None:
    assert gives_authority(before, "")


@pytest.mark.parametrize("before", ["", "- ", "the ", "readme says: ", "fixed: ", "src/a.py: "])
def test_a_source_a_deed_or_nothing_gives_none(before: str) -> None:
    assert not gives_authority(before, "")


def test_what_is_bare_prose_and_code() -> None:
    assert (is_bare("- [ ] ", "."), is_bare("we ", ""), is_bare("approved ", "")) == (True, False, False)
    assert (is_prose("deploy the widget now"), is_prose("call(a, b) = c"), is_prose("src/a.py")) == (
        True,
        False,
        False,
    )
    assert (reports_deed("removed the widget"), reports_deed("requested the widget")) == (True, False)


def test_a_fence_is_code_if_most_of_it_looks_so() -> None:
    lines = ["```", "x = 1", "return x()", "```", "a", "```", "Deploy the widget", "x = 1", "```"]

    assert code_lines(lines) == {1, 2}
