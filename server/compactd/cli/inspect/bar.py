"""The bar that shows a context window: what fills it, and the compaction threshold."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from compactd.cli.inspect.context import NOT_IN_FILE

GROUPS = (
    ("█", ("system", "tools", NOT_IN_FILE)),
    ("▓", ("results",)),
    ("▒", ("calls",)),
    ("░", ("summary", "user", "text", "reasoning")),
)
"""(shade, the parts that are drawn with it). The shades differ even without colour."""

FREE = "·"
MARK = "│"
EDGES = 2
PERCENT_COLUMNS = 7
"""Columns at the right for `  100 %`."""
CELLS = 100
"""The number of cells if there is room: one per percent of the window."""
MIN_CELLS = 8
WHOLE_BAR = CELLS + EDGES + PERCENT_COLUMNS
"""Columns of a bar with all cells."""

NAMES = {NOT_IN_FILE: "system prompt and tools (not in the file)"}


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


def bar(gauge: Gauge, width: int) -> list[str]:
    """Return the bar, the threshold mark below it, and the legend: two or three lines.

    The bar has `CELLS` cells, or fewer if `width` is too small.
    """
    inner = max(MIN_CELLS, min(CELLS, width - EDGES - PERCENT_COLUMNS))
    whole = max(1, gauge.window or 0, gauge.used)
    cells: list[str] = []
    done = 0
    for shade, names in GROUPS:
        done += sum(gauge.parts.get(name, 0) for name in names)
        cells += shade * (min(inner, round(inner * done / whole)) - len(cells))
    cells += FREE * (inner - len(cells))
    lines = [""]
    at: int | None = None
    if gauge.threshold is not None and gauge.threshold <= whole:
        at = min(inner - 1, round(inner * gauge.threshold / whole))
        cells[at] = MARK
    lines[0] = f"▐{''.join(cells)}▌  {gauge.percent_text}".rstrip()
    legend = " " + legend_of(gauge)
    mark = "" if at is None else _mark(gauge, at + 1, width)
    if mark and len(legend) + 2 <= len(mark) - len(mark.lstrip()):
        lines.append(legend + mark[len(legend) :])
    else:
        lines += [line for line in (mark, legend) if line]
    return lines


def legend_of(gauge: Gauge, *, shades: bool = True) -> str:
    """Return a legend: the parts and their shares of the window. With `shades`, each group of parts has its
    shade in front.
    """
    groups = []
    for shade, names in GROUPS:
        shares = [f"{NAMES.get(name, name)} {share(gauge, name)}" for name in names if gauge.parts.get(name)]
        if shares:
            groups.append(f"{shade} {' '.join(shares)}" if shades else ", ".join(shares))
    return "  ".join(groups) if shades else ", ".join(groups)


def share(gauge: Gauge, name: str) -> str:
    """Return the share of the window that the part `name` fills, such as `12 %`. If the window is unknown,
    return its share of the used tokens.
    """
    whole = gauge.window or gauge.used or 1
    percent = 100 * gauge.parts.get(name, 0) / whole
    return f"{percent:.0f} %" if percent >= 0.5 else "<1 %"


def _mark(gauge: Gauge, at: int, width: int) -> str:
    """Return `↑ compacts at 80 %` with the arrow at column `at`, from 0."""
    percent = 100 * (gauge.threshold or 0) / (gauge.window or gauge.used or 1)
    text = f"compacts at {percent:.0f} %"
    if at + 2 + len(text) <= width:
        return f"{' ' * at}↑ {text}"
    return f"{text} ↑".rjust(at + 1)
