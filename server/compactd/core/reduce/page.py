"""The page: the lines of one output while rules decide which of them are left out.

A rule says which lines it would leave out, and with which words. The page takes an omission only if no
earlier rule took one of its lines, if no line in it is protected, and if its mark is shorter than what it
replaces. So no rule can make a text longer, and the order of the rules decides between them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from compactd.core.history.entries import EntryId
from compactd.core.reduce.marks import left_out, shown_in
from compactd.core.text.lazy_patterns import LazyPattern

MIN_GAIN_CHARS: Final = 60
"""An omission must save at least this many characters more than its mark takes."""

MAX_MATCHED_CHARS: Final = 500
"""Patterns read only so many characters of a line."""

LINES: Final = "lines left out"
"""What a mark says about lines of any kind."""

TAKEN: Final = 1
"""The state of a line that was left out."""
PROTECTED: Final = 2
"""The state of a line that must stay."""
_FREE: Final = re.compile(rb"\0+")


class Omission(Struct, frozen=True):
    """Lines that a rule leaves out: those from `start` to `stop` (exclusive)."""

    start: int
    stop: int
    rule: str
    what: str = LINES
    """What the mark says behind the number of lines."""
    shown_by: EntryId | None = None
    """The entry that shows the same lines; None if only the original has them."""
    label: str = ""
    """What that entry is, such as the name of a file."""


class Page:
    """The lines of an output and the omissions that were accepted so far."""

    def __init__(
        self,
        lines: list[str],
        entry_id: EntryId,
        gaps: Mapping[int, int] | None = None,
        *,
        rules: Iterable[str] = (),
    ) -> None:
        """Take the lines. `gaps` says which of them are blank because other lines are left out there, and how
        many. `rules` acted already."""
        self.lines: Final = lines
        self._gaps: Final = gaps or {}
        self.entry_id: Final = entry_id
        self.rules: Final[list[str]] = [*rules]
        """The rules that acted, in the order in which they did."""
        self._states: Final = bytearray(len(lines))
        """For each line: 0 if it is free, or `TAKEN`, or `PROTECTED`."""
        self._omissions: Final[list[Omission]] = []
        self._note = ""
        for index in self._gaps:
            self._states[index] = TAKEN
            self._omissions.append(Omission(index, index + 1, ""))

    @property
    def has_gaps(self) -> bool:
        """Whether lines were left out before the page was made."""
        return bool(self._gaps)

    @property
    def has_marks(self) -> bool:
        """Whether lines were left out, so that there is a mark in their place."""
        return bool(self._omissions)

    def note(self, mark: str) -> None:
        """Show a mark before the first line; none if it is empty."""
        self._note = mark

    def protect(self, indexes: Iterable[int]) -> None:
        """Keep these lines, whatever a later rule says."""
        for index in indexes:
            if not self._states[index]:
                self._states[index] = PROTECTED

    def is_free(self, index: int) -> bool:
        """Return whether a line is neither left out nor protected."""
        return not self._states[index]

    def is_taken(self, index: int) -> bool:
        """Return whether a line was left out."""
        return self._states[index] == TAKEN

    def free_runs(self, start: int = 0, stop: int | None = None) -> list[tuple[int, int]]:
        """Return the runs of lines that are free, as pairs of first line and end. O(lines)."""
        end = len(self.lines) if stop is None else stop
        return [found.span() for found in _FREE.finditer(self._states, start, end)]

    def runs_of(self, pattern: LazyPattern, min_lines: int) -> Iterator[tuple[int, int]]:
        """Yield the runs of free lines that a pattern matches at their beginning. No empty line is in a run.
        O(characters)."""
        lines, match = self.lines, pattern.match
        for first, stop in self.free_runs():
            start = first
            for at in range(first, stop):
                line = lines[at]
                if not line or match(line, 0, MAX_MATCHED_CHARS) is None:
                    if at - start >= min_lines:
                        yield start, at
                    start = at + 1
            if stop - start >= min_lines:
                yield start, stop

    def omit(self, omission: Omission) -> bool:
        """Leave lines out, if that is allowed and saves something. Return whether it was done. O(lines)."""
        start, stop = omission.start, omission.stop
        if start >= stop or any(self._states[start:stop]):
            return False
        saved = sum(map(len, self.lines[start:stop])) + stop - start
        if saved < len(self._mark(omission, stop - start)) + 1 + MIN_GAIN_CHARS:
            return False
        self._states[start:stop] = bytes((TAKEN,)) * (stop - start)
        self._omissions.append(omission)
        self.acted(omission.rule)
        return True

    def omit_free(self, start: int, stop: int, rule: str, what: str = LINES) -> None:
        """Leave out what is free between two lines, each run by itself. O(lines)."""
        for first, end in self.free_runs(start, stop):
            self.omit(Omission(first, end, rule, what))

    def replace(self, index: int, line: str, rule: str) -> None:
        """Show `line` instead of a line, if it is shorter."""
        if len(line) < len(self.lines[index]):
            self.lines[index] = line
            self.acted(rule)

    def acted(self, rule: str) -> None:
        """Note that a rule changed something."""
        if rule not in self.rules:
            self.rules.append(rule)

    def entry_ids(self) -> tuple[EntryId, ...]:
        """Return the other entries that marks name, each once, in the order of the lines."""
        ordered = sorted(self._omissions, key=lambda one: one.start)
        return tuple(dict.fromkeys(one.shown_by for one in ordered if one.shown_by is not None))

    def render(self) -> str:
        """Return the text: the lines that stay, and a mark in place of the others. O(characters)."""
        parts: list[str] = [self._note] if self._note else []
        at = 0
        for omission, stop in self._merged():
            parts.extend(self.lines[at : omission.start])
            parts.append(self._mark(omission, stop - omission.start))
            at = stop
        parts.extend(self.lines[at:])
        return "\n".join(parts)

    def _merged(self) -> list[tuple[Omission, int]]:
        """Return the omissions in order, each with its end. Adjacent ones are one if only the original has
        them."""
        merged: list[tuple[Omission, int]] = []
        for omission in sorted(self._omissions, key=lambda one: one.start):
            if merged:
                last, stop = merged[-1]
                if stop == omission.start and not (last.shown_by or omission.shown_by):
                    what = last.what if last.what == omission.what else LINES
                    merged[-1] = replace(last, what=what), omission.stop
                    continue
            merged.append((omission, omission.stop))
        return merged

    def _mark(self, omission: Omission, count: int) -> str:
        count += sum(self._gaps[at] - 1 for at in self._gaps if omission.start <= at < omission.start + count)
        if omission.shown_by is None:
            return left_out(count, omission.what, self.entry_id)
        return shown_in(count, omission.what, omission.shown_by, omission.label)
