"""The soak as a picture: memory, latency and descriptors over its time. SVG, no dependency."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from benchmarks.load.soak import Soak

FILE = "soak.svg"
WIDTH, PANEL, LEFT, RIGHT, TOP, GAP = 900, 150, 64, 130, 44, 44
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #333 }
.grid { stroke: #ddd } .kill { stroke: #b3261e; opacity: .22 }
.small { font-size: 11px } .head { font-size: 14px; font-weight: 600 }
@media (prefers-color-scheme: dark) { text { fill: #ddd } .grid { stroke: #444 } }
"""
COLOURS = ("#16825d", "#3b82c4", "#c98500", "#8a8f98")


class Curve(Struct, frozen=True):
    """One line of a panel."""

    name: str
    values: Sequence[float]


class Panel(Struct, frozen=True):
    """One figure over the time."""

    title: str
    curves: Sequence[Curve]
    digits: int = 0


def write(found: Soak, folder: Path) -> list[Path]:
    """The picture, into `folder`."""
    file = folder / FILE
    file.write_text(drawn(found), "utf-8")
    return [file]


def drawn(found: Soak) -> str:
    """A panel below the other, the kills as faint lines through all of them."""
    samples = [one for one in found.samples if one.rss_mb]
    panels = (
        Panel("Memory, MB (RSS)", [Curve("daemon", [one.rss_mb for one in samples])]),
        Panel(
            "A small request, p50 of 5 s, ms",
            [
                Curve("agent/state", [one.state.p50 for one in samples]),
                Curve("daemon/ping", [one.ping.p50 for one in samples]),
                Curve("bare loop", [one.bare.p50 for one in samples]),
            ],
            digits=1,
        ),
        Panel(
            "A small request, slowest of 5 s, ms",
            [
                Curve("agent/state", [one.state.slowest for one in samples]),
                Curve("bare loop", [one.bare.slowest for one in samples]),
            ],
        ),
        Panel(
            "Descriptors and threads",
            [
                Curve("descriptors", [float(one.descriptors) for one in samples]),
                Curve("threads", [float(one.threads) for one in samples]),
            ],
        ),
        Panel("Messages acknowledged", [Curve("messages", [float(one.acknowledged) for one in samples])]),
    )
    times = [one.at_s / 60 for one in samples]
    last = max([*times, found.minutes, 0.01])
    height = TOP + len(panels) * (PANEL + GAP)
    parts: list[str] = []
    for number, panel in enumerate(panels):
        parts += _panel(panel, times, last, TOP + number * (PANEL + GAP))
    for kill in found.kills:
        x = _x(kill.at_s / 60, last)
        parts.append(f'<line class="kill" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{height - GAP}"/>')
    title = (
        f"{found.minutes:.0f} minutes of traffic, {len(found.kills)} kills (faint lines), "
        f"{found.acknowledged:,} messages acknowledged, {found.lost} lost"
    )
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
            f"<title>{title}</title>",
            f"<style>{STYLE}</style>",
            f'<text class="head" x="8" y="20">{title}</text>',
            *parts,
            "</svg>",
            "",
        )
    )


def _x(minutes: float, last: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * minutes / last


def _panel(panel: Panel, times: Sequence[float], last: float, top: float) -> list[str]:
    most = max((max(curve.values, default=0.0) for curve in panel.curves), default=0.0) * 1.08 or 1.0
    bottom = top + PANEL
    parts = [f'<text x="{LEFT}" y="{top - 6}">{panel.title}</text>']
    for step in range(5):
        y = bottom - PANEL * step / 4
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        told = f"{most * step / 4:,.{panel.digits}f}"
        parts.append(f'<text class="small" x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{told}</text>')
    for step in range(7):
        at = last * step / 6
        parts.append(
            f'<text class="small" x="{_x(at, last):.1f}" y="{bottom + 14:.1f}" text-anchor="middle">'
            f"{at:.0f} min</text>"
        )
    for number, curve in enumerate(panel.curves):
        colour = COLOURS[number] if curve.name != "bare loop" else COLOURS[3]
        points = " ".join(
            f"{_x(at, last):.1f},{bottom - PANEL * value / most:.1f}"
            for at, value in zip(times, curve.values, strict=True)
        )
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="1.2" points="{points}"/>')
        y = top + 14 + 16 * number
        parts.append(f'<rect x="{WIDTH - RIGHT + 10}" y="{y - 9}" width="10" height="10" fill="{colour}"/>')
        parts.append(f'<text class="small" x="{WIDTH - RIGHT + 25}" y="{y}">{curve.name}</text>')
    return parts
