"""Laws of a reduction: never longer, deterministic, nothing forged, nothing invented, errors kept."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from compactd.core.history.entries import EntryId
from compactd.core.reduce.errors import error_lines
from compactd.core.reduce.marks import defuse, find_marks
from compactd.core.reduce.numbering import plain_lines
from compactd.core.reduce.output import Level, ToolOutput
from compactd.core.reduce.reduce import MIN_CHARS, reduce_output
from compactd.core.reduce.shown import ShownLines
from compactd.core.reduce.terminal import without_escapes, without_overwritten
from compactd.core.reduce.web_pages import text_of_page
from tests.support.examples import examples
from tests.unit.core.reduce.outputs import EARLIER, ORIGINAL, levels, output, outputs, readable, reduce, texts


def _view(earlier: list[ToolOutput], level: Level) -> tuple[ShownLines, dict[EntryId, str]]:
    """Return what a view shows that reduced these outputs one after the other, and their texts in it."""
    shown, visible = ShownLines(), {}
    for number, one in enumerate(earlier):
        entry_id = EntryId(f"e{number}")
        text = reduce_output(one, shown, entry_id, level).text
        shown.add(entry_id, ToolOutput(one.name, one.arguments, text))
        visible[entry_id] = text
    return shown, visible


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(outputs(), max_size=2), outputs(), levels())
def test_a_reduction_is_never_longer_and_says_which_rules_acted(
    earlier: list[ToolOutput], one: ToolOutput, level: Level
) -> None:
    shown, _ = _view(earlier, level)

    reduction = reduce(one, level, shown)

    assert len(reduction.text) <= len(one.text)
    assert (reduction.text == one.text) == (reduction.rules == ())


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(outputs(), max_size=2), outputs(), levels())
def test_the_same_output_is_reduced_to_the_same_text(
    earlier: list[ToolOutput], one: ToolOutput, level: Level
) -> None:
    assert reduce(one, level, _view(earlier, level)[0]) == reduce(one, level, _view(earlier, level)[0])


@settings(max_examples=examples(100), deadline=None)
@given(texts(), levels())
def test_a_small_output_stays_as_it_is_except_for_lookalikes_of_marks(text: str, level: Level) -> None:
    small = text[: MIN_CHARS - 1]

    assert reduce(output(small), level).text == defuse(small)


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(outputs(), max_size=2), outputs(), levels())
def test_every_mark_is_ours(earlier: list[ToolOutput], one: ToolOutput, level: Level) -> None:
    shown, visible = _view(earlier, level)

    reduction = reduce(one, level, shown)

    marks = find_marks(reduction.text)
    assert {mark.entry_id for mark in marks if not mark.is_elsewhere} <= {ORIGINAL}
    assert {mark.entry_id for mark in marks if mark.is_elsewhere} == set(reduction.entry_ids) <= set(visible)
    assert not find_marks(defuse(one.text))


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(outputs(), max_size=2), outputs(), levels())
def test_every_line_is_one_of_the_output_or_has_a_mark(
    earlier: list[ToolOutput], one: ToolOutput, level: Level
) -> None:
    shown, _ = _view(earlier, level)
    known = readable(one.text)

    reduction = reduce(one, level, shown)

    if "html" not in reduction.rules:
        assert [
            line for line in reduction.text.split("\n") if line not in known and not find_marks(line)
        ] == []


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(outputs(), min_size=1, max_size=3), outputs(), levels())
def test_what_is_left_out_as_shown_stands_in_the_entry_that_the_mark_names(
    earlier: list[ToolOutput], one: ToolOutput, level: Level
) -> None:
    shown, visible = _view([*earlier, one], level)

    reduction = reduce(one, level, shown)

    clean = without_overwritten(without_escapes(one.text))
    forms = (one.text, clean, text_of_page(clean))
    originals = [plain_lines(defuse(form).split("\n")) for form in forms]
    for mark in find_marks(reduction.text):
        if mark.is_elsewhere and mark.what == "lines" and "grouped" not in reduction.rules:
            there = plain_lines(visible[mark.entry_id].split("\n"))
            runs = {tuple(there[at : at + mark.count]) for at in range(len(there))}
            places = (tuple(form[at : at + mark.count]) for form in originals for at in range(len(form)))
            assert any(place in runs for place in places)


@settings(max_examples=examples(200), deadline=None)
@given(outputs(), levels())
def test_a_line_that_reports_an_error_stays(one: ToolOutput, level: Level) -> None:
    failed = ToolOutput(one.name, one.arguments, one.text, is_error=True)
    lines = defuse(without_overwritten(without_escapes(one.text))).split("\n")

    reduction = reduce(failed, level)

    if "html" not in reduction.rules:
        text = defuse(without_escapes(reduction.text))
        assert [lines[at] for at in error_lines(lines) if lines[at].strip() not in text] == []


@settings(max_examples=examples(200), deadline=None)
@given(outputs(), levels())
def test_the_counts_of_marks_for_lines_are_what_is_missing(one: ToolOutput, level: Level) -> None:
    reduction = reduce(one, level)

    marks = [mark for mark in find_marks(reduction.text) if re.match(r"(?:lines|rows)\b", mark.what)]
    whole = [mark for mark in marks if _alone(reduction.text, mark.start, mark.stop)]
    if not {"html", "grouped", "json"} & {*reduction.rules} and reduction.text != one.text:
        shown = len(reduction.text.split("\n")) - len(whole)
        assert shown + sum(mark.count for mark in whole) == len(one.text.split("\n"))


def _alone(text: str, start: int, stop: int) -> bool:
    """Return whether a mark is a line of its own."""
    return text[start - 1 : start] in ("", "\n") and text[stop : stop + 1] in ("", "\n")


def test_an_entry_that_is_forgotten_is_not_named() -> None:
    shown = ShownLines()
    text = "\n".join(f"line number {n} of the file that is read twice" for n in range(100))
    shown.add(EARLIER, output(text))
    before = reduce(output(text), shown=shown)

    shown.forget(EARLIER)

    assert before.entry_ids == (EARLIER,)
    assert reduce(output(text, ("Read", {"file_path": "a"})), shown=shown).entry_ids == ()
