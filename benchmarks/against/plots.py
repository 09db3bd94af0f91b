"""Plots of time against session size on logarithmic axes, as SVG. Equal figures give equal bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from math import ceil, floor, log10

WIDTH, HEIGHT = 720, 360
LEFT, RIGHT, TOP, BOTTOM = 64, 190, 34, 40
COLOURS = ("#0b6bcb", "#c2410c", "#15803d", "#7e22ce", "#b45309", "#0f766e", "#be185d", "#475569")
LABEL_PX = 14
"""The smallest distance between two names at the right. Closer ones are moved apart."""

Points = Sequence[tuple[int, float]]


def log_log(title: str, lines: Mapping[str, Points], ours: str = "compactd") -> str:
    """A plot of ms over tokens. `ours` is drawn thicker, and first. Raises `ValueError` for no points."""
    drawn = {name: sorted(points) for name, points in lines.items() if points}
    if not drawn:
        raise ValueError("nothing to draw")
    every = [point for points in drawn.values() for point in points]
    left, right = min(x for x, _ in every), max(x for x, _ in every)
    low = floor(log10(min(y for _, y in every)))
    high = max(low + 1, ceil(log10(max(y for _, y in every))))

    def across(tokens: float) -> float:
        share = 0.5 if left == right else (log10(tokens) - log10(left)) / (log10(right) - log10(left))
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def up(ms: float) -> float:
        return HEIGHT - BOTTOM - (log10(ms) - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="12">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="20" font-size="14" fill="#111827">{escape(title)}</text>',
    ]
    for power in range(low, high + 1):
        y = up(10.0**power)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#e5e7eb"/>')
        parts.append(
            f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end" fill="#4b5563">{_ms(power)}</text>'
        )
    for tokens in sorted({x for x, _ in every}):
        x = across(tokens)
        parts.append(f'<path d="M{x:.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="#f3f4f6"/>')
        label = f"{tokens / 1e6:g}M" if tokens >= 1_000_000 else f"{tokens / 1e3:g}k"
        parts.append(
            f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle" fill="#4b5563">{label}</text>'
        )
    parts.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 6}" text-anchor="middle" '
        'fill="#4b5563">tokens of the session</text>'
    )
    names = sorted(drawn, key=lambda name: (name != ours, name))
    ends = _apart({name: up(drawn[name][-1][1]) for name in names})
    for number, name in enumerate(names):
        colour = COLOURS[number % len(COLOURS)]
        width = 3 if name == ours else 1.5
        path = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in drawn[name])
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"/>')
        parts += [
            f'<circle cx="{across(x):.1f}" cy="{up(y):.1f}" r="{width + 1}" fill="{colour}"/>'
            for x, y in drawn[name]
        ]
        weight = ' font-weight="bold"' if name == ours else ""
        last = across(drawn[name][-1][0])
        if last < WIDTH - RIGHT - 1:
            y = up(drawn[name][-1][1])
            parts.append(
                f'<path d="M{last:.1f} {y:.1f}L{WIDTH - RIGHT + 8} {ends[name]:.1f}" stroke="{colour}" '
                'stroke-width="0.5" stroke-dasharray="2 3"/>'
            )
        parts.append(
            f'<text x="{WIDTH - RIGHT + 12}" y="{ends[name] + 4:.1f}" fill="{colour}"{weight}>'
            f"{escape(name)}</text>"
        )
    return "\n".join((*parts, "</svg>")) + "\n"


def _ms(power: int) -> str:
    if power >= 3:
        return f"{10 ** (power - 3):,} s"
    return f"{10.0**power:g} ms" if power >= 0 else f"{10.0 ** (power + 3):g} µs"


def _apart(wanted: Mapping[str, float]) -> dict[str, float]:
    """The heights, moved so that no two names stand on each other, from the top down."""
    placed: dict[str, float] = {}
    last = float("-inf")
    for name in sorted(wanted, key=lambda one: wanted[one]):
        last = placed[name] = max(wanted[name], last + LABEL_PX)
    return placed
