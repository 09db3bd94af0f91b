"""How much each level leaves out. `docs/reduce.md` shows what that saves and loses on recorded sessions."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from compactd.core.reduce.output import Level


class Clip(Struct, frozen=True):
    """How many characters at each end of a long output stay."""

    head: int
    tail: int


class Limits(Struct, frozen=True, kw_only=True):
    """The numbers of one level."""

    border_lines: int = 4
    """So many lines at the ends of a run that is shown elsewhere stay: any so many lines and one more that
    follow each other in the output do so in one of the texts that show them. The old text of an edit often
    begins in a known line and ends in a new one."""
    min_run_lines: int = 10
    """Shorter runs are not folded: their mark takes as much attention as they do."""
    min_run_chars: int = 200
    min_part_chars: int = 2_500
    """In a shorter output, parts are not folded: edits of small files span them."""
    folds_calls: bool = False
    """Whether lines of a diff or a search are folded if a call that wrote them shows them."""
    checks: Clip | None = None
    """For tests, builds and linters. None: they are not clipped."""
    diffs: Clip | None = None
    programs: Clip | None = None
    """For the output of other programs."""
    tickets: Clip | None = None
    """For issues and pull requests."""
    searches: Clip | None = None
    files: int = 20
    """If searches are clipped, the names of so many files stay."""
    listed: int = 20
    """If the output of a program is clipped, so many lines with only the path of a file stay."""
    found_per_file: int = 1
    """In each of these files, so many of the lines that were found stay."""
    samples: bool = False
    """Whether of long lists, tables and logs some lines stand for the others."""
    documents: int | None = None
    """After so many characters of a document, only its headings are shown."""
    bodies: float | None = None
    """Of a program's long source, a body is left out if the chance that it is needed is smaller than this
    per 1,000 characters."""
    numbered_lines: int = 10
    """Of line numbers that count up by one, the multiples of this are shown, and the first."""
    links: bool = True
    """Whether the fields of JSON objects that only link to other objects are shown."""
    min_calls: int = 5
    """Bodies are left out only if the view shows so many calls: before, too little is known of the task."""
    snippets: bool = False
    """Whether the lines of the changed file are left out of an edit's result."""


LIMITS: Final[dict[Level, Limits]] = {
    "light": Limits(),
    "default": Limits(
        checks=Clip(1_000, 2_000),
        diffs=Clip(8_000, 4_000),
        programs=Clip(3_000, 1_500),
        tickets=Clip(8_000, 4_000),
        samples=True,
    ),
    "strong": Limits(
        border_lines=0,
        min_run_lines=8,
        min_run_chars=150,
        min_part_chars=2_500,
        folds_calls=True,
        checks=Clip(300, 700),
        diffs=Clip(300, 150),
        programs=Clip(800, 500),
        tickets=Clip(5_000, 2_500),
        searches=Clip(300, 150),
        samples=True,
        documents=1_500,
        bodies=0.145,
        numbered_lines=50,
        links=False,
        snippets=True,
    ),
}
