"""Draws the figures of docs/cost.md as SVG: cost against retained facts, and cost by session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.chart import chart, small_text
from benchmarks.cost.figures import BASE, FIXED, Figures, Row

COLOURS = {"fixed": "#3b82c4", "cost": "#16825d", "never": "#8a8f98", "160k today": "#c98500"}
FILES = {"frontier": "cost-frontier.svg", "sessions": "cost-by-session.svg"}


def write(found: Figures, folder: Path) -> list[Path]:
    """Write all pictures into `folder`. Return the files."""
    written = []
    for name, draw in (("frontier", frontier), ("sessions", by_session)):
        file = folder / FILES[name]
        file.write_text(draw(found), "utf-8")
        written.append(file)
    return written


LEFT, TOP, WIDTH, HEIGHT = 60, 50, 640, 300


def frontier(found: Figures) -> str:
    """Draw the bill of each policy against the share of the used facts that it kept, all sessions."""
    rows = next(iter(found.lists.values()))["all"]
    shown = [name for name in rows if name != "own"]
    base = rows[BASE].totals["1"]
    least = min(rows[name].bill.retained for name in shown)
    low = int(least * 100) / 100
    most = max(1.0, *(rows[name].totals["1"] / base for name in shown))

    def x(row: Row) -> float:
        return LEFT + WIDTH * (row.bill.retained - low) / (1 - low)

    def y(share: float) -> float:
        return TOP + HEIGHT * (1 - share / (most * 1.05))

    parts: list[str] = []
    for tick in range(0, int(most * 100) + 1, 20):
        at = y(tick / 100)
        parts.append(f'<path class="grid" d="M{LEFT} {at:.1f}H{LEFT + WIDTH}"/>')
        parts.append(small_text(LEFT - 6, at + 4, f"{tick} %", "end"))
    steps = round((1 - low) * 100)
    for step in range(steps + 1):
        at = LEFT + WIDTH * step / steps
        parts.append(small_text(at, TOP + HEIGHT + 18, f"{100 * low + step:.0f} %", "middle"))
    parts.append(small_text(LEFT + WIDTH / 2, TOP + HEIGHT + 36, "used facts that the context had", "middle"))
    line = "L".join(f"{x(rows[name]):.1f} {y(rows[name].totals['1'] / base):.1f}" for name in FIXED)
    parts.append(f'<path fill="none" stroke="{COLOURS["fixed"]}" stroke-width="1.5" d="M{line}"/>')
    for name in shown:
        row = rows[name]
        colour = COLOURS.get(name, COLOURS["fixed"])
        across, down = x(row), y(row.totals["1"] / base)
        parts.append(
            f'<circle cx="{across:.1f}" cy="{down:.1f}" r="{6 if name == "cost" else 4}" fill="{colour}"/>'
        )
        anchor = "end" if across > LEFT + WIDTH - 60 else "start"
        parts.append(small_text(across + (-8 if anchor == "end" else 8), down - 6, name, anchor))
    title = "Bill, as a share of compacting at 80 % of the window, against what the context had"
    return chart(760, 410, title, parts)


ROW = 22


def by_session(found: Figures) -> str:
    """Draw for each session the bills of the fixed thresholds and of the cost policy, as shares of the most
    expensive one."""
    order = [
        row for row in sorted(found.sessions, key=lambda row: row.name) if len(set(row.totals.values())) > 1
    ]
    parts = list(_legend())
    top, left, width = 62, 190, 600
    bottom = top + ROW * len(order)
    for percent in range(0, 101, 20):
        across = left + width * percent / 100
        parts.append(f'<path class="grid" d="M{across:.1f} {top - 8}V{bottom}"/>')
        parts.append(small_text(across, bottom + 16, f"{percent} %", "middle"))
    for at, row in enumerate(order):
        down = top + ROW * at + ROW / 2 - 4
        most = max(row.totals[name] for name in (*FIXED, "never", "cost"))
        parts.append(small_text(left - 10, down + 4, row.name, "end"))
        parts.append(f'<path class="faint" d="M{left} {down}h{width}"/>')
        for name in (*FIXED, "cost"):
            across = left + width * row.totals[name] / most
            colour = COLOURS.get(name, COLOURS["fixed"])
            radius = 5.5 if name == "cost" else 3
            parts.append(f'<circle cx="{across:.1f}" cy="{down}" r="{radius}" fill="{colour}"/>')
    title = "Bill by session, as a share of never compacting or of the most expensive threshold"
    return chart(820, bottom + 30, title, parts)


def _legend() -> Iterator[str]:
    across = 190
    for name, text in (("fixed", "fixed thresholds, 40k to 190k"), ("cost", "cost policy")):
        yield f'<circle cx="{across}" cy="38" r="4.5" fill="{COLOURS[name]}"/>'
        yield small_text(across + 9, 42, text)
        across += 220
