"""The parts that all charts of the benchmarks share, as SVG without dependencies."""

from __future__ import annotations

from collections.abc import Sequence

STYLE = """
text { font: 12px system-ui, sans-serif; fill: #333 } .grid { stroke: #ddd } .faint { stroke: #e4e4e4 }
.small { font-size: 11px } .head { font-size: 14px; font-weight: 600 }
@media (prefers-color-scheme: dark) {
text { fill: #ddd } .grid { stroke: #444 } .faint { stroke: #3a3a3a } }
"""


def chart(width: int, height: int, title: str, parts: Sequence[str]) -> str:
    """Return a whole SVG file with the title and `parts`. Sizes are pixels."""
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
            f"<title>{title}</title>",
            f"<style>{STYLE}</style>",
            f'<text class="head" x="8" y="20">{title}</text>',
            *parts,
            "</svg>",
            "",
        )
    )


def small_text(x: float, y: float, text: str, anchor: str = "start") -> str:
    """Return a small text at a place. `anchor`: which part of it is there, as in SVG's `text-anchor`."""
    return f'<text class="small" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>'
