"""Markdown tables of the figures, for the terminal and docs/retention.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from benchmarks.retention.figures import OWN_SIZE, PARTS, Difference, Figures, Score
from benchmarks.retention.probes import CATEGORIES, NAMES

TITLES = {
    "keep_last": "keep the last messages",
    "pi_tail_files": "pi's tail + file lists",
    "head_tail": "first request + last messages",
    "obs_mask10": "newest 10 tool outputs kept, older masked",
    "uniform_trunc": "every message cut to the same length",
    "opencode_prune": "OpenCode's prune + tail",
    "structured": "sections by rules",
    "salience": "lines ranked by salience",
    "iddump": "bag of identifiers (the cheat)",
    "recorded_summary": "the model's own summary",
    "extract": "**extract**",
}
PART_TITLES = {
    "tuned": "Sessions that it may be tuned on",
    "aside": "Sessions put aside",
    "all": "All sessions",
}


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; the first column to the left, the others to the right."""
    lines = [list(head), *map(list, rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(head))]

    def row(cells: Sequence[str]) -> str:
        first = cells[0].ljust(widths[0])
        rest = (cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))
        return "| " + " | ".join((first, *rest)) + " |"

    rule = [":" + "-" * (widths[0] - 1), *("-" * (width - 1) + ":" for width in widths[1:])]
    return "\n".join((row(lines[0]), row(rule), *map(row, lines[1:])))


def size_title(size: str) -> str:
    """A budget's heading."""
    if size == OWN_SIZE:
        return "own size"
    return f"{int(size) // 1000}k" if int(size) % 1000 == 0 else size


def sizes_of(found: Figures) -> list[str]:
    """The budgets, recorded compactions last."""
    has_own = any(OWN_SIZE in by for by in found.scores["all"].values())
    return [*map(str, found.budgets), *([OWN_SIZE] if has_own else [])]


def scores(found: Figures, part: str) -> str:
    """linked / CG of each method within each budget."""
    sizes = sizes_of(found)
    rows = (
        [TITLES[method], *(_pair(by.get(size)) for size in sizes)]
        for method, by in found.scores[part].items()
        if by
    )
    return table(["linked / CG, %", *map(size_title, sizes)], rows)


def _pair(score: Score | None) -> str:
    return "" if score is None or not score.cuts else f"{score.linked:.1f} / {score.cg:.1f}"


def differences(found: Figures, part: str) -> str:
    """Return a table of how many points compactd is above each rival on the same cuts."""
    sizes = sizes_of(found)
    rows = (
        [f"{TITLES[rival]}, {title}", *(_difference(by.get(size, {}).get(name)) for size in sizes)]
        for rival, by in found.differences[part].items()
        for name, title in (("linked", "linked"), ("cg", "CG"))
    )
    return table(["extract less …, points", *map(size_title, sizes)], rows)


def _difference(one: Difference | None) -> str:
    if one is None:
        return ""
    return f"{one.mean:+.1f} ({one.low:+.1f} … {one.high:+.1f}; {one.least:+.1f} … {one.most:+.1f})"


def categories(found: Figures, size: str) -> str:
    """The share kept of each category."""
    rows = (
        [TITLES[method], *(f"{by[size][name]:.0f}" if name in by[size] else "" for name in CATEGORIES)]
        for method, by in found.categories.items()
        if by.get(size)
    )
    return table([f"linked at {size_title(size)}, %", *(NAMES[name] for name in CATEGORIES)], rows)


def report(found: Figures) -> Iterator[str]:
    """All tables for a terminal."""
    yield f"measured on: {found.data}"
    for part in PARTS:
        counted = next(iter(found.scores[part].get("extract", {}).values()), None)
        if counted is None:
            continue
        yield f"\n{PART_TITLES[part]} ({counted.sessions} sessions, {counted.cuts} cuts)\n"
        yield scores(found, part)
        if found.differences[part]:
            yield "\nPaired, with 95 % of resampled sessions; with one session left out in turn\n"
            yield differences(found, part)
    yield ""
    yield categories(found, str(found.sessions_budget))
    refused = sum(score.refused for score in found.scores["all"].get("extract", {}).values())
    yield f"\nextract: over budget {found.over}, with an atom made {found.made}, refused {refused}"
