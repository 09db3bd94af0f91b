"""Draws the figures as SVG, without dependencies: retention against budget, by category, by session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import log2
from pathlib import Path

from benchmarks.chart import chart, small_text
from benchmarks.retention.figures import Figures
from benchmarks.retention.probes import CATEGORIES, NAMES
from benchmarks.retention.tables import TITLES, size_title

COLOURS = {
    "keep_last": "#8a8f98",
    "pi_tail_files": "#b0a08c",
    "head_tail": "#9b7fc4",
    "obs_mask10": "#5fa8b5",
    "uniform_trunc": "#c46a9b",
    "opencode_prune": "#3b82c4",
    "structured": "#c98500",
    "salience": "#b3541e",
    "iddump": "#c9c9c9",
    "recorded_summary": "#b3261e",
    "extract": "#16825d",
}
SHOWN = ("keep_last", "opencode_prune", "structured", "salience", "recorded_summary", "extract")
"""The methods in pictures that would be too crowded with all: of several with similar scores, the best."""

FILES = {
    "budget": "retention-by-budget.svg",
    "category": "retention-by-category.svg",
    "session": "retention-by-session.svg",
}


def write(found: Figures, folder: Path) -> list[Path]:
    """All pictures, into `folder`; their files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, draw in (("budget", by_budget), ("category", by_category), ("session", by_session)):
        file = folder / FILES[name]
        file.write_text(draw(found), "utf-8")
        written.append(file)
    return written


def _name(method: str) -> str:
    return TITLES[method].replace("*", "").replace("&", "&amp;")


def by_budget(found: Figures) -> str:
    """Two panels: linked retention and CG of each method against the budget, all sessions."""
    methods = [m for m in found.scores["all"] if m != "recorded_summary"]
    parts: list[str] = []
    for at, figure in enumerate(("linked", "cg")):
        parts += _panel(found, methods, figure, 44 + at * 330)
    parts += _names_at_right(methods, 706)
    return chart(960, 400, "What the agent needs later and a compaction keeps, against its budget", parts)


PANEL_TOP, PANEL_BOTTOM, PANEL_WIDTH = 56, 350, 280


def _panel(found: Figures, methods: Sequence[str], figure: str, left: int) -> Iterator[str]:
    def y(percent: float) -> float:
        return PANEL_BOTTOM - (PANEL_BOTTOM - PANEL_TOP) * min(max(percent, 0), 100) / 100

    first, last = log2(found.budgets[0]), log2(found.budgets[-1])

    def x(budget: int) -> float:
        return left + PANEL_WIDTH * ((log2(budget) - first) / (last - first) if last > first else 0.5)

    yield f'<text x="{left}" y="44">{"linked retention" if figure == "linked" else "CG"}, %</text>'
    for percent in range(0, 101, 20):
        yield f'<path class="grid" d="M{left} {y(percent):.1f}H{left + PANEL_WIDTH}"/>'
        yield small_text(left - 6, y(percent) + 4, str(percent), "end")
    for budget in found.budgets:
        title = size_title(str(budget))
        yield small_text(x(budget), PANEL_BOTTOM + 18, title, "middle")
    for method in methods:
        points = [
            (x(budget), y(getattr(one, figure)))
            for budget in found.budgets
            if (one := found.scores["all"][method].get(str(budget))) is not None
        ]
        path = "L".join(f"{px:.1f} {py:.1f}" for px, py in points)
        width = 3 if method == "extract" else 1.5
        yield f'<path fill="none" stroke="{COLOURS[method]}" stroke-width="{width}" d="M{path}"/>'
        for px, py in points:
            yield f'<circle cx="{px:.1f}" cy="{py:.1f}" r="{width + 0.5}" fill="{COLOURS[method]}"/>'


def _names_at_right(methods: Sequence[str], x: int) -> Iterator[str]:
    for at, method in enumerate(reversed(methods)):
        y = 66 + at * 20
        yield f'<path stroke="{COLOURS[method]}" stroke-width="4" d="M{x} {y - 4}h16"/>'
        yield f'<text class="small" x="{x + 22}" y="{y}">{_name(method)}</text>'


def _legend(methods: Sequence[str], x: int) -> Iterator[str]:
    for method in methods:
        yield f'<circle cx="{x}" cy="38" r="4.5" fill="{COLOURS[method]}"/>'
        yield f'<text class="small" x="{x + 9}" y="42">{_name(method)}</text>'
        x += 24 + 6 * len(_name(method))


ROW, ROWS_LEFT, ROWS_WIDTH = 26, 190, 640


def _rows(
    titles: Sequence[str], values: Sequence[Mapping[str, float]], methods: Sequence[str]
) -> tuple[list[str], int]:
    """One line for each title, a dot for each method; the parts and where they end."""
    top = 62
    bottom = top + ROW * len(titles)
    parts: list[str] = []
    for percent in range(0, 101, 20):
        x = ROWS_LEFT + ROWS_WIDTH * percent / 100
        parts.append(f'<path class="grid" d="M{x:.1f} {top - 8}V{bottom}"/>')
        parts.append(
            f'<text class="small" x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{percent} %</text>'
        )
    for at, (title, mine) in enumerate(zip(titles, values, strict=True)):
        y = top + ROW * at + ROW / 2 - 4
        parts.append(f'<text class="small" x="{ROWS_LEFT - 10}" y="{y + 4}" text-anchor="end">{title}</text>')
        parts.append(f'<path class="faint" d="M{ROWS_LEFT} {y}h{ROWS_WIDTH}"/>')
        for method in methods:
            if method in mine:
                x = ROWS_LEFT + ROWS_WIDTH * min(max(mine[method], 0), 100) / 100
                radius = 5.5 if method == "extract" else 4
                parts.append(f'<circle cx="{x:.1f}" cy="{y}" r="{radius}" fill="{COLOURS[method]}"/>')
    return parts, bottom


def by_category(found: Figures) -> str:
    """Draw the retention of each category within the middle budget."""
    size = str(found.sessions_budget)
    methods = [m for m in SHOWN if found.categories.get(m, {}).get(size)]
    values = [
        {m: found.categories[m][size][name] for m in methods if name in found.categories[m][size]}
        for name in CATEGORIES
    ]
    parts, bottom = _rows([NAMES[name] for name in CATEGORIES], values, methods)
    title = f"Linked retention at {size_title(size)} by what is kept"
    return chart(860, bottom + 30, title, [*_legend(methods, ROWS_LEFT), *parts])


def by_session(found: Figures) -> str:
    """Draw linked retention by session, for the middle budget, sorted by compactd's value, lowest first."""
    size = size_title(str(found.sessions_budget))
    methods = [m for m in SHOWN if any(m in by for by in found.sessions.values())]
    order = sorted(
        found.sessions, key=lambda name: (found.sessions[name].get("extract", (0.0, 0.0))[0], name)
    )
    values = [{m: found.sessions[name][m][0] for m in methods if m in found.sessions[name]} for name in order]
    parts, bottom = _rows(order, values, methods)
    return chart(
        860,
        bottom + 30,
        f"Linked retention at {size} by session",
        [*_legend(methods, ROWS_LEFT), *parts],
    )
