"""What the view already shows: the lines of earlier tool outputs, after their reduction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from compactd.core.history.entries import EntryId
from compactd.core.reduce.asked_words import AskedWords
from compactd.core.reduce.calls import written_texts
from compactd.core.reduce.numbering import plain_lines
from compactd.core.reduce.output import ToolOutput
from compactd.core.work.file_operations import PATH_ARGUMENTS

MIN_ANCHOR_CHARS: Final = 12
"""A shorter line is not looked up. It counts only as the neighbour of one that was found."""
MIN_WRITTEN_CHARS: Final = 200
"""A shorter text in a call is not looked up."""
MAX_PLACES: Final = 8
"""Of the places where a line stands, only so many are kept: the newest."""


class Run(Struct, frozen=True):
    """Lines that an entry of the view shows too, one after the other and complete."""

    start: int
    stop: int
    """Exclusive."""
    entry_id: EntryId
    label: str
    file: str


class _Text(Struct):
    """A text of an entry that the view shows."""

    entry_id: EntryId
    lines: list[str]
    label: str
    file: str
    """The name of the file that the entry shows, without folders; empty if it is not known."""
    is_call: bool = False
    """Whether the lines are in the call, not in its result."""


class ShownLines:
    """An index of the tool outputs that the view shows. Not safe to use from two threads at once."""

    def __init__(self) -> None:
        self.asked: Final = AskedWords()
        """The words of the calls."""
        self._texts: dict[EntryId, list[_Text]] = {}
        self._places: dict[str, list[tuple[_Text, int]]] = {}
        """For each line of at least `MIN_ANCHOR_CHARS`, where it stands, oldest first."""

    def add(self, entry_id: EntryId, output: ToolOutput) -> None:
        """Take the output of an entry, with the text that the view shows for it (the reduced one, if it was
        reduced). Entries are added in the order of the view. O(length).
        """
        self.asked.add(entry_id, output)
        label, file = _label(output)
        texts = [_Text(entry_id, plain_lines(output.text.split("\n")), label, file)]
        for written in written_texts(output.arguments):
            if len(written) >= MIN_WRITTEN_CHARS:
                lines = plain_lines(written.split("\n"))
                texts.append(_Text(entry_id, lines, f"written by {label}", file, is_call=True))
        self._texts[entry_id] = texts
        for text in texts:
            for at, line in enumerate(text.lines):
                if len(line) >= MIN_ANCHOR_CHARS:
                    places = self._places.setdefault(line, [])
                    places.append((text, at))
                    if len(places) > MAX_PLACES:
                        del places[0]

    def forget(self, entry_id: EntryId) -> None:
        """Leave out an entry that the view no longer shows, if it is there. O(its length)."""
        self.asked.forget(entry_id)
        for text in self._texts.pop(entry_id, ()):
            for line in set(text.lines):
                places = self._places.get(line)
                if places is None:
                    continue
                places[:] = [place for place in places if place[0] is not text]
                if not places:
                    del self._places[line]

    def runs(
        self,
        lines: Sequence[str],
        *,
        min_lines: int,
        min_chars: int,
        overlap: int = 0,
        file: str = "",
        calls: bool = False,
    ) -> list[Run]:
        """Return the runs of `lines` that one entry shows, in order. Each has at least `min_lines` lines and
        `min_chars` characters, and begins at most `overlap` lines before the end of the one before it. The
        lines have no numbers (`numbering.plain_lines`). O(length) for usual texts: a run that is too short is
        tried `MAX_PLACES` times per line.
        """
        runs: list[Run] = []
        if not self._places:
            return runs
        at = done = 0
        while at < len(lines):
            places = self._places.get(lines[at])
            best: Run | None = None
            for text, place in reversed(places or ()):
                if (file and text.file and text.file != file) or (text.is_call and not calls):
                    continue
                run = _extend(lines, at, max(0, done - overlap), text, place)
                if best is None or run.stop - run.start > best.stop - best.start:
                    best = run
            at += 1
            if best is None or best.stop - best.start < min_lines:
                continue
            if sum(map(len, lines[best.start : best.stop])) >= min_chars:
                runs.append(best)
                at = done = best.stop
        return runs


def _extend(lines: Sequence[str], at: int, least: int, text: _Text, place: int) -> Run:
    """Return the run around the line `at` that equals the lines around `place` of a text. It does not begin
    before the line `least`."""
    others = text.lines
    start, other = at, place
    while start > least and other > 0 and lines[start - 1] == others[other - 1]:
        start -= 1
        other -= 1
    stop, other = at + 1, place + 1
    while stop < len(lines) and other < len(others) and lines[stop] == others[other]:
        stop += 1
        other += 1
    return Run(start, stop, text.entry_id, text.label, text.file)


def _label(output: ToolOutput) -> tuple[str, str]:
    """Return what an output is, for a mark (its tool and file), and the name of the file."""
    path = next((str(output.arguments[name]) for name in PATH_ARGUMENTS if output.arguments.get(name)), "")
    file = path.rsplit("/", 1)[-1]
    return f"{output.name} {file}".strip(), file if "." in file else ""
