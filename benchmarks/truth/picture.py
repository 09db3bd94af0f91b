"""Draws the scores of the size prediction: median to 90th percentile of each method, on a log scale."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import log10

from benchmarks.truth.shares import at_share

ROWS = (
    ("after 1", "tenth report after the first"),
    ("after 3", "tenth report after three"),
    ("after 10", "tenth report after ten"),
    ("growth", "next growth of 500 and more"),
)

COLOURS = {"no change": "#8a8f98", "o200k alone": "#c98500", "plain slope": "#3b82c4", "ours": "#16825d"}

TARGETS = {"after 1": (0.5, 3), "after 3": (0.5, 3), "after 10": (0.5, 3), "growth": (10, None)}
"""Errors that were asked for, in percent: median and 90th percentile."""

LEFT, WIDTH, LINE, GAP, TOP = 210, 720, 16, 14, 56
LEAST, MOST = 0.1, 100.0

STYLE = """
text { font: 12px system-ui, sans-serif; fill: #333 } .grid { stroke: #ddd } .target { stroke: #b3261e }
.small { font-size: 11px } .head { font-size: 14px; font-weight: 600 }
@media (prefers-color-scheme: dark) { text { fill: #ddd } .grid { stroke: #444 } .target { stroke: #f2867e } }
"""


def picture(scored: Mapping[str, Mapping[str, list[float]]], methods: Sequence[str]) -> str:
    """The SVG of situation → method → relative errors."""
    height = TOP + len(ROWS) * (len(methods) * LINE + GAP) + 34
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        "<title>How far predicted sizes are off</title>",
        f"<style>{STYLE}</style>",
        '<text class="head" x="8" y="20">How far the predicted size is off, median to 90th percentile</text>',
        *_legend(methods),
        *_grid(height - 30),
    ]
    y = TOP
    for situation, title in ROWS:
        errors = scored[situation]
        middle = y + len(methods) * LINE / 2 + 4
        parts.append(f'<text x="{LEFT - 12}" y="{middle}" text-anchor="end">{title}</text>')
        for target in TARGETS[situation]:
            if target is not None:
                bottom = y + len(methods) * LINE
                parts.append(
                    f'<path class="target" stroke-dasharray="3 3" d="M{_x(target):.1f} {y}V{bottom}"/>'
                )
        for method in methods:
            parts.append(_bar(y + LINE / 2, errors[method], COLOURS[method]))
            y += LINE
        y += GAP
    return "\n".join([*parts, "</svg>", ""])


def _bar(y: float, errors: list[float], colour: str) -> str:
    median, most = at_share(errors, 0.5), at_share(errors, 0.9)
    return (
        f'<path d="M{_x(median):.1f} {y}H{_x(most):.1f}" stroke="{colour}" stroke-width="5"/>'
        f'<circle cx="{_x(median):.1f}" cy="{y}" r="4.5" fill="{colour}"/>'
        f'<text class="small" x="{_x(most) + 8:.1f}" y="{y + 4}">{median:.2g} / {most:.2g}</text>'
    )


def _grid(bottom: int) -> Iterator[str]:
    for percent in (0.1, 0.3, 1, 3, 10, 30, 100):
        x = _x(percent)
        yield f'<path class="grid" d="M{x:.1f} {TOP - 6}V{bottom}"/>'
        yield f'<text class="small" x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{percent} %</text>'


def _legend(methods: Sequence[str]) -> Iterator[str]:
    x = LEFT
    for method in methods:
        yield f'<circle cx="{x}" cy="36" r="4.5" fill="{COLOURS[method]}"/>'
        yield f'<text class="small" x="{x + 9}" y="40">{method}</text>'
        x += 100
    yield f'<path class="target" stroke-dasharray="3 3" d="M{x} 29V43"/>'
    yield f'<text class="small" x="{x + 6}" y="40">asked for</text>'


def _x(percent: float) -> float:
    share = (log10(max(LEAST, percent)) - log10(LEAST)) / (log10(MOST) - log10(LEAST))
    return LEFT + share * (WIDTH - LEFT - 80)
