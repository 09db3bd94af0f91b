"""Writes the tables of docs/frameworks.md between their marks, and docs/frameworks.json."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from benchmarks.frameworks.figures import Measured, Outcome, Timing

Row = TypeVar("Row", Outcome, Timing)

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "frameworks.md"
JSON = DOCS / "frameworks.json"

_BLOCK = re.compile(r"(<!-- figures: (?P<name>[a-z -]+) -->\n)(?P<text>.*?)(?P<end><!-- end -->)", re.DOTALL)
HEAD = (
    "agent",
    "requests",
    "refused",
    "for summaries",
    "input tokens",
    "requests done",
    "facts known",
    "laws broken",
)
TIMES = ("agent", "each request", "difference", "95 % of them", "first, 200k", "first, new")


def read() -> Measured:
    """Return what docs/frameworks.json contains; nothing if it is missing."""
    if not JSON.exists():
        return Measured(date="", versions={})
    return msgspec.json.decode(JSON.read_bytes(), type=Measured)


def merged(old: Measured, new: Measured) -> Measured:
    """Return the old figures with the new ones in their places. A new row goes after those of its
    framework."""
    return Measured(
        date=new.date,
        versions=new.versions,
        outcomes=_merged(old.outcomes, new.outcomes),
        timings=_merged(old.timings, new.timings),
    )


def _merged(old: Sequence[Row], new: Sequence[Row]) -> list[Row]:
    rows = list(old)
    for one in new:
        same = [at for at, row in enumerate(rows) if (row.framework, row.name) == (one.framework, one.name)]
        framework = [at for at, row in enumerate(rows) if row.framework == one.framework]
        if same:
            rows[same[0]] = one
        else:
            rows.insert(framework[-1] + 1 if framework else len(rows), one)
    return rows


def blocks(found: Measured) -> dict[str, str]:
    """Return the text of each block of the page, by name."""
    versions = ", ".join(f"{name} {version}" for name, version in found.versions.items())
    return {
        "date": f"Measured on {found.date} with {versions}.",
        "talk": table(HEAD, [_row(one) for one in found.outcomes]),
        "times": table(TIMES, [_times(one, found.timings) for one in found.timings]),
    }


def filled(page: str, texts: dict[str, str]) -> str:
    """Return `page` with its blocks replaced."""
    return _BLOCK.sub(lambda found: f"{found[1]}\n{texts[found['name']]}\n\n{found['end']}", page)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of Markdown; the first column to the left, the others to the right."""
    lines = [list(head), *map(list, rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(head))]
    shown = [
        "| " + " | ".join((line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:]))) + " |"
        for line in lines
    ]
    rule = "|".join((":" + "-" * (widths[0] + 1), *("-" * (width + 1) + ":" for width in widths[1:])))
    return "\n".join((shown[0], f"|{rule}|", *shown[1:]))


def _row(one: Outcome) -> list[str]:
    facts = f"{one.facts}" if one.facts == one.least_facts else f"{one.least_facts} to {one.facts}"
    return [
        _title(one),
        f"{one.requests}",
        f"{one.rejections}",
        f"{one.summaries}",
        f"{one.input_tokens:,}",
        f"{one.tasks} of {one.lots}",
        f"{facts} of {one.all_facts}",
        f"{one.faults}",
    ]


def _times(one: Timing, all_of_them: Sequence[Timing]) -> list[str]:
    first = next((row for row in all_of_them if row.framework == one.framework), one)
    return [
        _title(one),
        f"{one.median_ms:.1f} ms",
        "" if first is one else f"{one.median_ms - first.median_ms:+.1f} ms",
        f"{one.p95_ms:.1f} ms",
        f"{one.first_ms:.0f} ms",
        f"{one.fresh_ms:.0f} ms",
    ]


def _title(one: Outcome | Timing) -> str:
    title = f"{one.framework}: {one.name}"
    return f"**{title}**" if one.kind == "compactd" else title


def write(found: Measured) -> list[Path]:
    """Write the page's tables and the JSON again. Return the files."""
    PAGE.write_text(filled(PAGE.read_text("utf-8"), blocks(found)), "utf-8")
    JSON.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    return [PAGE, JSON]


def stale() -> list[str]:
    """Return the names of the files that do not agree with docs/frameworks.json."""
    text = PAGE.read_text("utf-8")
    return [] if filled(text, blocks(read())) == text else [PAGE.name]
