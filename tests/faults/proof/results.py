"""The results of the runs: stored in docs/proof.json, and written as a table to docs/proof.md."""

from __future__ import annotations

import datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from tests.faults.proof.parts import ROOT, Row

RESULTS = ROOT / "docs" / "proof.json"
PAGE = ROOT / "docs" / "proof.md"
MARK = "<!-- the table: written by `make proof` -->\n"


class Kept(Struct, kw_only=True, omit_defaults=True):
    """One row of the table, over all runs."""

    part: str
    row: Row
    """The last run's."""
    date: str
    all_times: int
    all_lost: int
    first_seed: int | None = None
    note: str = ""
    """Of the last run: its commit, and the line with which it closed."""


def today() -> str:
    """The date of a run that ends now."""
    return datetime.datetime.now(tz=datetime.UTC).date().isoformat()


def load() -> dict[str, Kept]:
    """The rows so far, by part and name."""
    if not RESULTS.exists():
        return {}
    return msgspec.json.decode(RESULTS.read_bytes(), type=dict[str, Kept])


def store(kept: dict[str, Kept]) -> None:
    """Writes the rows to docs/proof.json."""
    RESULTS.write_bytes(msgspec.json.format(msgspec.json.encode(kept), indent=1) + b"\n")


def write_table(kept: dict[str, Kept], page: Path = PAGE) -> None:
    """Writes the rows to docs/proof.md, between its two marks."""
    lines = ["| part | fault | times | lost | seeds | last run |", "|---|---|--:|--:|---|---|"]
    for key in sorted(kept):
        one = kept[key]
        seeds = "–" if one.row.next_seed is None else f"{one.first_seed} … {one.row.next_seed - 1}"
        times = f"{one.all_times:,} {one.row.unit}"
        last = f"{one.date}, {one.note}" if one.note else one.date
        lines.append(f"| {one.part} | {one.row.fault} | {times} | {one.all_lost} | {seeds} | {last} |")
    before, _, after = page.read_text(encoding="utf-8").partition(MARK)
    rest = after.partition(MARK)[2]
    page.write_text(before + MARK + "\n".join(lines) + "\n" + MARK + rest, encoding="utf-8")
