"""Reduce one tool output: `reduce_output`."""

from __future__ import annotations

from typing import Final

from compactd.core.history.entries import EntryId
from compactd.core.reduce.diffs import file_lines, fold_generated, is_diff
from compactd.core.reduce.edit_results import fold_snippet, fold_written
from compactd.core.reduce.errors import error_lines, has_failed
from compactd.core.reduce.folding import fold_shown
from compactd.core.reduce.kinds import Origin, recognise
from compactd.core.reduce.limits import LIMITS, Clip, Limits
from compactd.core.reduce.long_lines import shorten_long_lines
from compactd.core.reduce.long_output import clip_long_output
from compactd.core.reduce.marks import defuse
from compactd.core.reduce.noise import fold_progress
from compactd.core.reduce.notices import fold_notice
from compactd.core.reduce.numbering import thin_numbers
from compactd.core.reduce.outlines import show_outline
from compactd.core.reduce.output import Level, Reduction, ToolOutput
from compactd.core.reduce.page import Page
from compactd.core.reduce.reading import read_page
from compactd.core.reduce.repeats import fold_repeats
from compactd.core.reduce.samples import fold_alike, fold_listing, fold_table
from compactd.core.reduce.searches import first_of_files, path_lines
from compactd.core.reduce.shown import ShownLines
from compactd.core.reduce.test_runs import fold_passed

MIN_CHARS: Final = 500
"""A shorter output is never reduced, in characters. Only what looks like a mark is changed in it."""
MIN_SAVED_CHARS: Final = 80
"""A reduction that saves less is dropped."""


def reduce_output(output: ToolOutput, shown: ShownLines, entry_id: EntryId, level: Level) -> Reduction:
    """Return what to show instead of `output`. `entry_id` is the entry under which the original is kept: the
    marks name it. `shown` is only read. O(length).
    """
    if len(output.text) < MIN_CHARS:
        return _unreduced(output.text)
    origin = recognise(output)
    limits = LIMITS[level]
    page = read_page(output, origin, entry_id, lists=level != "light", links=limits.links)
    _omit(page, output, origin, shown, limits)
    thin_numbers(page, limits.numbered_lines)
    reduced = page.render()
    if not page.rules or len(output.text) - len(reduced) < MIN_SAVED_CHARS:
        return _unreduced(output.text)
    return Reduction(reduced, tuple(page.rules), page.entry_ids())


def _omit(page: Page, output: ToolOutput, origin: Origin, shown: ShownLines, limits: Limits) -> None:
    """Let the rules leave out lines, the surest ones first."""
    shorten_long_lines(page)
    # Lines of a file or a diff may mention errors without reporting any.
    is_text = origin.kind in ("file", "edit", "search")
    diff = not is_text and is_diff(output.text)
    failed = output.is_error if diff else has_failed(output)
    errors = [] if (is_text or diff) and not failed else error_lines(page.lines)
    page.protect(errors)
    if origin.kind == "edit" and not failed:
        fold_written(page, output)
        if limits.snippets:
            fold_snippet(page)
    fold_notice(page, shown)
    fold_shown(page, shown, origin, limits, diff=diff)
    match origin.kind:
        case "file" if not failed:
            show_outline(page, output, origin, shown.asked, limits)
        case "search":
            if limits.searches is not None:
                page.protect(first_of_files(page.lines, limits.files, limits.found_per_file))
            clip_long_output(page, limits.searches, errors)
            if page.has_marks:
                # They say that the original has more. Otherwise a note says that the lines are grouped.
                page.note("")
        case "shell" | "listing" | "web" | "other":
            _omit_output(page, origin, limits, errors, diff=diff)
        case "agent":
            fold_repeats(page)
        case _:
            pass


def _omit_output(page: Page, origin: Origin, limits: Limits, errors: list[int], *, diff: bool) -> None:
    """Let the rules for the output of programs leave out lines."""
    if diff:
        page.protect(file_lines(page.lines))
        fold_generated(page)
    elif origin.kind == "shell":
        fold_passed(page)
        fold_progress(page)
    samples = limits.samples and not diff
    if samples:
        fold_table(page)
        fold_listing(page)
    fold_repeats(page)
    if samples and origin.kind != "listing":
        fold_alike(page)
    if origin.kind == "shell":
        if not diff:
            page.protect(path_lines(page.lines)[: limits.listed])
        clip_long_output(page, _clip(origin, limits, diff=diff), errors)


def _clip(origin: Origin, limits: Limits, *, diff: bool) -> Clip | None:
    if diff:
        return limits.diffs
    if origin.checks:
        return limits.checks
    return limits.tickets if origin.is_ticket else limits.programs


def _unreduced(text: str) -> Reduction:
    """Return a text with all of its lines."""
    defused = defuse(text)
    return Reduction(defused, ("lookalikes",) if defused != text else ())
