"""Writes what was measured into docs/load.md: the table of the parts, the soak's figures and picture."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.figures import Row, percentile
from benchmarks.load.pictures import FILE, write
from benchmarks.load.soak import Soak

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "load.md"
TABLE = "<!-- the table: python -m benchmarks.load --full --docs -->\n"
SOAK = "<!-- the soak: python -m benchmarks.load pictures -->\n"
QUIET_LOAD = 1.0
"""If the load average is above this at the start, the page says that the machine was busy."""


def write_table(rows: Sequence[Row], on: Mapping[str, str | int | float], page: Path = PAGE) -> None:
    """Replace the rows of the table in `page`."""
    lines = ["| | measured | compared with | goal |", "|---|--:|---|---|"]
    lines += [
        f"| {row.what.strip()} | {_number(row.value, row.unit)} | {_beside(row)} | {_wanted(row)} |"
        for row in rows
    ]
    lines += ["", _machine(on)]
    _put(page, TABLE, "\n".join(lines) + "\n")


def write_soak(found: Soak, page: Path = PAGE) -> list[Path]:
    """The picture, and what it says in a few lines."""
    samples = [one for one in found.samples if one.rss_mb]
    p50s = [one.state.p50 for one in samples if one.state.count]
    bare = [one.bare.p50 for one in samples if one.bare.count]
    recovered = [kill.recovered_s for kill in found.kills if kill.recovered_s]
    first, last = samples[: len(samples) // 4], samples[-len(samples) // 4 :]
    lines = [
        "| | |",
        "|---|--:|",
        f"| minutes | {found.minutes:.0f} |",
        f"| SIGKILLs | {len(found.kills)} |",
        f"| messages acknowledged, in {found.sessions} sessions | {found.acknowledged:,} |",
        f"| of them compared byte for byte, over all daemons | {found.looked_at:,} |",
        f"| lost | {found.lost} |",
        f"| other requests, compactions among them | {found.requests:,}, {found.compactions:,} |",
        f"| `agent/state`, median of all p50s | {_middle(p50s):.2f} ms |",
        f"| a bare loop's ping, the same | {_middle(bare):.2f} ms |",
        f"| the daemon's share of a core | {100 * _mean([one.core_share for one in samples]):.0f} % |",
        f"| memory, mean of the first and the last quarter | {_mean([one.rss_mb for one in first]):.0f} MB, "
        f"{_mean([one.rss_mb for one in last]):.0f} MB |",
        f"| descriptors at most | {max((one.descriptors for one in samples), default=0)} |",
        f"| from the next daemon's start until six sessions are open, median | {_middle(recovered):.2f} s |",
        "",
        f"![Memory, latency, descriptors over the soak]({FILE})",
        "",
        _machine(found.machine),
    ]
    _put(page, SOAK, "\n".join(lines) + "\n")
    return [page, *write(found, page.parent)]


def _put(page: Path, mark: str, text: str) -> None:
    before, _, after = page.read_text("utf-8").partition(mark)
    page.write_text(before + mark + text + mark + after.partition(mark)[2], "utf-8")


def _machine(on: Mapping[str, str | int | float]) -> str:
    load = float(on["load_1_min"])
    busy = (
        f" **The machine was busy (load {load:.1f}): compare with the bare loop.**"
        if load > QUIET_LOAD
        else ""
    )
    day = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    return f"{on['cores']} cores ({on['cpu']}), {on['system']}, Python {on['python']}, {day}.{busy}"


def _beside(row: Row) -> str:
    return ", ".join(f"{name} {_number(value)}" for name, value in row.beside.items())


def _wanted(row: Row) -> str:
    wanted = []
    if row.target.most is not None:
        wanted.append(f"≤ {_number(row.target.most, row.unit)}")
    if row.target.most_ratio is not None:
        wanted.append(f"≤ {row.target.most_ratio:g} × {row.to} ({row.ratio:.2f})")
    return ", ".join(wanted) + {None: "", True: " ✓", False: " ✗"}[row.is_met]


def _number(value: float, unit: str = "") -> str:
    digits = 0 if value == int(value) or value >= 100 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f} {unit}".rstrip()


def _middle(values: Sequence[float]) -> float:
    return percentile(values, 50) if values else 0.0


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
