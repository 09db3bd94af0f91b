"""The rows of a benchmark's table: a figure, what it is compared with, and its target."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from rich.console import Console
from rich.table import Table


class Target(Struct, frozen=True, kw_only=True):
    """The limit for a figure, or for its ratio to a peer's figure."""

    most: float | None = None
    """The largest allowed value in the row's unit, inclusive."""
    most_ratio: float | None = None
    """The largest allowed ratio of the figure to that of the peer named by `Row.to`, inclusive."""


class Row(Struct, frozen=True, kw_only=True):
    """One figure."""

    what: str
    value: float
    unit: str
    beside: Mapping[str, float] = {}
    """The same figure of other programs, in the same run."""
    to: str | None = None
    """Which of them `ratio` is to."""
    target: Target = Target()

    @property
    def ratio(self) -> float | None:
        """The figure divided by the peer's figure."""
        return None if self.to is None else self.value / self.beside[self.to]

    @property
    def is_met(self) -> bool | None:
        """True if the target is met; None if there is none."""
        target, ratio = self.target, self.ratio
        verdicts = []
        if target.most is not None:
            verdicts.append(self.value <= target.most)
        if target.most_ratio is not None and ratio is not None:
            verdicts.append(ratio <= target.most_ratio)
        return all(verdicts) if verdicts else None


def median(values: Sequence[float]) -> float:
    """The middle value; of an even number the upper of the two."""
    return sorted(values)[len(values) // 2]


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that `percent` of all do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def machine() -> dict[str, str | int | float]:
    """Describe the machine that the figures were measured on."""
    return {
        "cores": os.cpu_count() or 1,
        "cpu": _cpu_name(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "load_1_min": round(os.getloadavg()[0], 2),
    }


def _cpu_name() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8")
    except OSError:
        return platform.processor() or "unknown"
    names = [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")]
    return names[0] if names else "unknown"


def show(rows: Sequence[Row], notes: Sequence[str], on: Mapping[str, str | int | float]) -> None:
    """Prints the table."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=170)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("medians", "compactd", "beside", "ratio", "target", ""):
        table.add_column(
            name, justify="right" if name in ("compactd", "ratio") else "left", no_wrap=name != "beside"
        )
    for row in rows:
        table.add_row(*_cells(row))
    console.print(table)
    console.print()
    for note in notes:
        console.print(note, soft_wrap=True)
    line = f"{on['cores']} cores ({on['cpu']}), {on['system']}, Python {on['python']}"
    console.print(f"{line}, load {on['load_1_min']} at the start", soft_wrap=True)


def _cells(row: Row) -> tuple[str, str, str, str, str, str]:
    beside = " · ".join(f"{name} {_number(value)}" for name, value in row.beside.items())
    ratio = "" if row.ratio is None else f"{row.ratio:.2f} ×"
    wanted = []
    if row.target.most is not None:
        wanted.append(f"≤ {_number(row.target.most, row.unit)}")
    if row.target.most_ratio is not None:
        wanted.append(f"≤ {row.target.most_ratio:g} × {row.to}")
    mark = {None: "", True: "[green]✓[/green]", False: "[red]✗[/red]"}[row.is_met]
    return row.what, _number(row.value, row.unit), beside, ratio, ", ".join(wanted), mark


def _number(value: float, unit: str = "") -> str:
    digits = 0 if value >= 1000 else 1 if value >= 10 else 2 if value >= 1 else 3
    return f"{value:,.{digits}f} {unit}".rstrip()


def as_json(
    rows: Sequence[Row], notes: Sequence[str], on: Mapping[str, str | int | float]
) -> dict[str, object]:
    """Return the table as JSON, for programs."""
    return {
        "machine": on,
        "notes": list(notes),
        "figures": [
            {
                "what": row.what,
                "value": row.value,
                "unit": row.unit,
                "beside": dict(row.beside),
                "ratio": row.ratio,
                "ratio_to": row.to,
                "target": row.target.most,
                "target_ratio": row.target.most_ratio,
                "met": row.is_met,
            }
            for row in rows
        ],
    }
