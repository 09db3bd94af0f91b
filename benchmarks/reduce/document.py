"""Writes the tables of docs/reduce.md between their marks, and docs/reduce.json."""

from __future__ import annotations

from pathlib import Path

import msgspec

from benchmarks.reduce import bill
from benchmarks.reduce.figures import Figures, KindShare, Share
from benchmarks.retention.document import filled
from benchmarks.retention.sessions import REPOSITORY
from benchmarks.retention.tables import table
from compactd.core.reduce.output import LEVELS

DOCS = REPOSITORY / "docs"
PAGE = DOCS / "reduce.md"
JSON = DOCS / "reduce.json"
HEAD = (
    "reduction",
    "saved",
    "used facts kept",
    "edits possible",
    "calls counted",
    "error lines",
    "ms per 100 KB",
)
MIN_KIND_TOKENS = 1_000


def blocks(found: Figures) -> dict[str, str]:
    """Return the text of each block of the page, by name."""
    texts = {
        part: table(HEAD, [_row(name, one, found) for name, one in rows.items()])
        for part, rows in found.parts.items()
    }
    texts["kinds"] = _kinds(found)
    texts["bill"] = bill.block(bill.written())
    texts["date"] = f"Measured on {found.date}, {found.parts['all']['default'].sessions} sessions."
    return texts


def _row(name: str, one: Share, found: Figures) -> list[str]:
    title = f"**{name}**" if name in LEVELS else name
    return [
        title,
        _percent(one.saved),
        _percent(one.kept),
        f"{one.possible_edits} of {one.edits} ({_percent(one.possible_edits / max(1, one.edits))})",
        _percent(one.visible_edits / max(1, one.edits)),
        f"{one.kept_error_lines} of {one.error_lines}",
        f"{found.ms_per_100_kb[name]:.0f}",
    ]


def _kinds(found: Figures) -> str:
    rows = []
    for kind, one in found.kinds["default"].items():
        if one.tokens < MIN_KIND_TOKENS:
            continue
        row = [kind, f"{one.outputs:,}", f"{one.tokens:,}"]
        row += [_kind_cell(found.kinds[level][kind]) for level in LEVELS]
        rows.append(row)
    return table(("kind", "outputs", "tokens", *LEVELS), rows)


def _kind_cell(one: KindShare) -> str:
    kept = f", {one.kept} of {one.used} facts" if one.used else ""
    return f"{_percent(one.saved)}{kept}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def write(found: Figures) -> list[Path]:
    """Write the page's tables and the JSON again. Return the files."""
    PAGE.write_text(filled(PAGE.read_text("utf-8"), blocks(found)), "utf-8")
    JSON.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    return [PAGE, JSON]


def stale() -> list[str]:
    """Return the names of the files that do not agree with docs/reduce.json."""
    found = msgspec.json.decode(JSON.read_bytes(), type=Figures)
    text = PAGE.read_text("utf-8")
    return [] if filled(text, blocks(found)) == text else [PAGE.name]
