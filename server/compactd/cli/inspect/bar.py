"""The bar that shows a context window: what fills it, and the compaction threshold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from msgspec import Struct

from compactd.cli.inspect.context import NOT_IN_FILE

GROUPS = (
    ("█", ("system", "tools", "mcp_tools", "memory_files", NOT_IN_FILE)),
    ("▓", ("results",)),
    ("▒", ("calls",)),
    ("░", ("summary", "user", "text", "reasoning")),
)
"""(shade, the parts that are drawn with it) for the panel of the chat, which has little room."""


class Part(NamedTuple):
    """How the bar draws one part of the context. No two parts have the same sign."""

    name: str
    sign: str
    style: str
    """The colour, as rich names it. Yellow and red are left to what needs attention."""


PARTS = (
    Part(NOT_IN_FILE, "█", "blue"),
    Part("system", "▓", "blue"),
    Part("tools", "▒", "blue"),
    Part("mcp_tools", "▚", "blue"),
    Part("memory_files", "%", "bright_blue"),
    Part("results", "░", "green"),
    Part("calls", "=", "cyan"),
    Part("summary", "#", "magenta"),
    Part("user", "@", "bright_magenta"),
    Part("text", "+", "bright_cyan"),
    Part("reasoning", "~", "bright_black"),
)
"""The parts in their order along the bar."""

FREE = "·"
FREE_STYLE = "bright_black"
MARK = "│"
EDGES = 2
PERCENT_COLUMNS = 7
"""Columns at the right for `  100 %`."""
CELLS = 100
"""The number of cells if there is room: one per percent of the window."""
MIN_CELLS = 8
WHOLE_BAR = CELLS + EDGES + PERCENT_COLUMNS
"""Columns of a bar with all cells."""

NAMES = {
    NOT_IN_FILE: "system prompt and tools (not in the file)",
    "mcp_tools": "MCP tools",
    "memory_files": "memory files",
}
NARROW = 64
"""In fewer columns, the legend uses a shorter name for the part that is not in the file."""
NARROW_NAME = "system, tools (not in file)"
GAP = 3
"""Columns between two parts in the legend."""


class Gauge(Struct, frozen=True, kw_only=True):
    """The contents of a context window, as a bar shows them. Sizes are in tokens."""

    parts: Mapping[str, int]
    """Tokens of each part. Their sum is `used`."""
    used: int
    window: int | None
    threshold: int | None
    is_guess: bool
    is_estimate: bool = False

    @property
    def percent_text(self) -> str:
        """The fill such as `41 %`, or `~41 %` if the window is a guess or an estimate."""
        if not self.window:
            return ""
        return f"{'~' if self.is_guess or self.is_estimate else ''}{100 * self.used / self.window:.0f} %"


class Piece(NamedTuple):
    """A piece of a line, with its colour as rich names it; empty for none."""

    text: str
    style: str = ""


Line = Sequence[Piece]


def text_of(line: Line) -> str:
    """Return a line without its colours."""
    return "".join(piece.text for piece in line)


def bar(gauge: Gauge, width: int, style: str = "") -> list[Line]:
    """Return the bar, compactd's threshold below it, and the legend, each line as coloured pieces.

    The bar has `CELLS` cells, or fewer if `width` is too small. `style`: the colour of the edges, the
    percentage and the threshold.
    """
    inner = max(MIN_CELLS, min(CELLS, width - EDGES - PERCENT_COLUMNS))
    whole = max(1, gauge.window or 0, gauge.used)
    cells: list[Piece] = []
    done = 0
    for part in PARTS:
        done += gauge.parts.get(part.name, 0)
        count = min(inner, round(inner * done / whole)) - len(cells)
        cells += [Piece(part.sign, part.style)] * count
    cells += [Piece(FREE, FREE_STYLE)] * (inner - len(cells))
    at: int | None = None
    if gauge.threshold is not None and gauge.threshold <= whole:
        at = min(inner - 1, round(inner * gauge.threshold / whole))
        cells[at] = Piece(MARK, style)
    lines = [_joined((Piece("▐", style), *cells, Piece("▌", style), Piece(f"  {gauge.percent_text}", style)))]
    if at is not None:
        lines.append([Piece(_mark(gauge, at + 1, width), style)])
    return [*lines, *_legend(gauge, width)]


def _joined(pieces: Iterable[Piece]) -> Line:
    """Return the pieces with neighbours of the same colour joined."""
    return [
        Piece("".join(piece.text for piece in run), style)
        for style, run in groupby(pieces, key=lambda piece: piece.style)
    ]


def _legend(gauge: Gauge, width: int) -> Iterator[Line]:
    """Yield the lines of the legend: each part with its sign and its share. A part is never broken into two
    lines.
    """
    line: list[Piece] = []
    room = 0
    for part, whole in _legend_parts(gauge, width):
        text = whole if len(whole) <= width - 3 else f"{whole[: width - 4]}…"
        if line and len(text) + 2 + GAP > room:
            yield line
            line = []
        if not line:
            line, room = [Piece(" ")], width - 1
        else:
            line.append(Piece(" " * GAP))
            room -= GAP
        line += [Piece(part.sign, part.style), Piece(f" {text}")]
        room -= len(text) + 2
    if line:
        yield line


def _legend_parts(gauge: Gauge, width: int) -> Iterator[tuple[Part, str]]:
    """Yield each part of the legend with its name and share, the free part of the window last."""
    for part in PARTS:
        if gauge.parts.get(part.name):
            is_short = part.name == NOT_IN_FILE and width < NARROW
            name = NARROW_NAME if is_short else NAMES.get(part.name, part.name)
            yield part, f"{name} {share(gauge, part.name)}"
    if gauge.window and gauge.window > gauge.used:
        free = 100 - round(100 * gauge.used / gauge.window)
        yield Part("free", FREE, FREE_STYLE), f"free {free} %"


def legend_of(gauge: Gauge) -> str:
    """Return the parts and their shares of the window as text, without signs."""
    return ", ".join(
        f"{NAMES.get(part.name, part.name)} {share(gauge, part.name)}"
        for part in PARTS
        if gauge.parts.get(part.name)
    )


def share(gauge: Gauge, name: str) -> str:
    """Return the share of the window that the part `name` fills, such as `12 %`. If the window is unknown,
    return its share of the used tokens.
    """
    whole = gauge.window or gauge.used or 1
    percent = 100 * gauge.parts.get(name, 0) / whole
    return f"{percent:.0f} %" if percent >= 0.5 else "<1 %"


def _mark(gauge: Gauge, at: int, width: int) -> str:
    """Return `↑ compactd compacts at 80 %` with the arrow at column `at`, from 0."""
    percent = 100 * (gauge.threshold or 0) / (gauge.window or gauge.used or 1)
    text = f"compactd compacts at {percent:.0f} %"
    if at + 2 + len(text) <= width:
        return f"{' ' * at}↑ {text}"
    if len(text) < at:
        return f"{text} ↑".rjust(at + 1)
    return f"{' ' * at}↑ {percent:.0f} %" if at + 8 <= width else f"{percent:.0f} % ↑".rjust(at + 1)
