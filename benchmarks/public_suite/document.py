"""Writes the tables of the section "The public suite" in docs/retention.md."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.public_suite.results import Forms, tables
from benchmarks.public_suite.running import SUITE
from benchmarks.retention.document import PAGE, PUBLIC_SUITE, with_block


def block(forms: Forms, version: str, date: str) -> str:
    """Return the text of the page's block. `version` is compactd's, `date` the day of the run."""
    own = forms["own"]
    parts = [
        f"{SUITE} {own.kit_version}, compactd {version}, {date}. Seeds {', '.join(map(str, own.seeds))};"
        f" the figures are those after {own.rounds} rounds."
    ]
    for budget, shown in tables(forms):
        parts += [f"At {budget} of the transcript:", shown]
    return "\n\n".join(parts)


def write(forms: Forms, version: str, date: str) -> None:
    """Replace the block of the page. Everything else on the page stays."""
    page = PAGE.read_text("utf-8")
    PAGE.write_text(with_block(page, PUBLIC_SUITE, block(forms, version, date)), "utf-8")


def report(forms: Forms) -> Iterator[str]:
    """Yield the lines for a terminal."""
    for budget, shown in tables(forms):
        yield f"\n{budget} of the transcript, after {forms['own'].rounds} rounds\n"
        yield shown
