"""Write docs/reading.md's table from the results of the reading test."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.reading.questions import KINDS
from benchmarks.reading.scores import Row

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "reading.md"
_TABLE: Final = re.compile(r"(?<=<!-- table -->\n).*?(?=<!-- end of table -->)", re.DOTALL)

NAMES: Final = {
    "own": "the agent's own summary",
    "extract": "`extract` at that size",
    "extract-8k": "`extract` at 8,000",
    "before": "`extract` at that size, before it told the state of the work (`75c7c84`)",
    "before-8k": "`extract` at 8,000, before it did so",
    "summarize": "`summarize` at that size, a strong model asked",
    "summarize-8k": "`summarize` at 8,000, a strong model asked",
    "own-hook": "own summary and what `compactd hook` adds",
    "first-last": "first request and last messages, 8,000",
    "pruned": "old tool output cleared, last messages, 8,000",
}
"""What each method is called in the table."""


def table(rows: Sequence[Row]) -> str:
    """Return the results as a table in Markdown."""
    titles = ("hand-over text", "tokens", "all", *KINDS, "worst session", "wrong answers", "ease of reading")
    head = f"| {' | '.join(titles)} |"
    lines = [head, re.sub(r"[^|]+", " --- ", head)]
    for row in rows:
        kinds = " | ".join(f"{row.kinds[kind]:.0f}" for kind in KINDS)
        lines.append(
            f"| {NAMES.get(row.method, row.method)} | {row.tokens:,.0f}"
            f" | {row.overall:.1f} ({row.low:.0f} to {row.high:.0f}) | {kinds} | {row.worst:.0f}"
            f" | {row.wrong} of {row.asked} | {row.readability:.1f} |"
        )
    return "\n".join(lines) + "\n"


def write_page(rows: Sequence[Row]) -> None:
    """Replace the table in docs/reading.md."""
    page = PAGE.read_text("utf-8")
    PAGE.write_text(_TABLE.sub(lambda _: table(rows), page), "utf-8")
