"""The numbers that a picture of a context window shows, for the SVG and the web page."""

from __future__ import annotations

from msgspec import Struct

from compactd.cli.framework.load_file import describe
from compactd.cli.framework.page import one_line
from compactd.cli.inspect.anatomy import PARTS, ContextBlock
from compactd.cli.inspect.bar import NAMES, share
from compactd.cli.inspect.context import NOT_IN_FILE
from compactd.cli.inspect.growth import GrowthPoint, thin
from compactd.cli.inspect.render import TILES, Figure, Inspected, figures_of, preview_rows, preview_text
from compactd.core.cost.price import price
from compactd.core.tokens.usage import context_size, normalise

KINDS = {
    NOT_IN_FILE: "fixed",
    "system": "fixed",
    "tools": "fixed",
    "mcp_tools": "fixed",
    "memory_files": "fixed",
    "results": "results",
    "calls": "calls",
    "summary": "summary",
    "user": "user",
    "text": "text",
    "reasoning": "text",
}
"""Part -> the name of its colour, which is a CSS class. The parts are in their order along the bar, which is
the same as in the terminal.
"""

_ENTRY_KINDS = {
    "tool result": "results",
    "tool call": "calls",
    "system": "fixed",
    "memory file": "fixed",
}

POINTS = 2_000
"""The most points of a curve. If there are more, they are thinned out evenly."""


class PicturePart(Struct, frozen=True):
    """One part of what fills the window."""

    name: str
    kind: str
    tokens: int
    share: str


class CostPoint(Struct, frozen=True):
    """The cost up to an answer, in US dollars."""

    turn: int
    dollars: float


class Picture(Struct, frozen=True, kw_only=True):
    """A context window, its growth and its cost. Sizes are in tokens."""

    title: str
    about: str
    percent: str
    """The fill in percent of the window; empty if the window is unknown."""
    used: int
    window: int | None
    threshold: int | None
    parts: tuple[PicturePart, ...]
    """The parts with at least one token, in the order of the bar."""
    figures: tuple[Figure, ...]
    entries: tuple[ContextBlock, ...]
    """The largest entries, largest first."""
    rest_count: int
    """The number of entries that are not in `entries`."""
    rest_tokens: int
    """Tokens of these entries, without system prompt and tools."""
    points: tuple[GrowthPoint, ...]
    measured: bool
    """True if the points come from a provider's reports; otherwise they are estimates."""
    compactions: tuple[int, ...]
    """The turn of each compaction."""
    spent: tuple[CostPoint, ...]
    preview: tuple[str, ...]
    """What a compaction now would do, as sentences."""
    warnings: tuple[str, ...]


def picture_of(seen: Inspected) -> Picture:
    """Return everything that the picture shows. O(messages)."""
    conversation = seen.conversation
    entries = seen.anatomy.largest[:TILES]
    fixed = sum(seen.context.parts[name] for name, kind in KINDS.items() if kind == "fixed")
    shown = sum(entry.tokens for entry in entries)
    return Picture(
        title=one_line(conversation.title or conversation.name),
        about=one_line(describe(conversation, in_context=True)),
        percent=seen.gauge.percent_text,
        used=seen.gauge.used,
        window=seen.gauge.window,
        threshold=seen.gauge.threshold,
        parts=tuple(
            PicturePart(NAMES.get(name, name), kind, seen.gauge.parts[name], share(seen.gauge, name))
            for name, kind in KINDS.items()
            if seen.gauge.parts.get(name)
        ),
        figures=tuple(figures_of(seen)),
        entries=entries,
        rest_count=max(0, seen.anatomy.count - len(entries)),
        rest_tokens=max(0, seen.context.used - fixed - shown),
        points=tuple(thin(seen.growth.sizes, POINTS)),
        measured=seen.growth.measured,
        compactions=seen.growth.compactions,
        spent=tuple(thin(_spent(seen), POINTS)),
        preview=tuple(_preview(seen)),
        warnings=tuple(one_line(warning) for warning in seen.warnings),
    )


def kind_of(entry: ContextBlock) -> str:
    """Return the name of an entry's colour, which is a CSS class."""
    return _ENTRY_KINDS.get(entry.kind, entry.kind if entry.kind in PARTS else "text")


def _spent(seen: Inspected) -> list[CostPoint]:
    """Return the cost up to each answer. The last one is the cost of all requests in the file: the cost of
    sub-agents is spread over the answers, because the file does not place it between them.
    """
    if seen.pricing is None:
        return []
    found: list[CostPoint] = []
    dollars = 0.0
    turn = 0
    for (message, _), place in zip(seen.conversation.messages, seen.all_places, strict=True):
        turn = place.turn
        if message.usage is None:
            continue
        usage, _ = normalise(message.usage)
        if context_size(usage):
            dollars += price(usage, seen.pricing) or 0.0
            found.append(CostPoint(turn, dollars))
    whole = seen.cost.dollars if seen.cost is not None else dollars
    scale = whole / dollars if dollars else 1.0
    return [CostPoint(point.turn, round(point.dollars * scale, 6)) for point in found]


def _preview(seen: Inspected) -> list[str]:
    preview, rows = seen.preview, preview_rows(seen)
    if not rows:
        return [preview_text(seen)]
    return [
        f"{preview_text(seen)}: {preview.tokens_before:,} → {preview.tokens_after:,}",
        *(f"{verb} {text}" for verb, text in rows),
    ]
