"""The table of `compactd usage`. It shows fewer and shorter columns in a narrow terminal."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from compactd.cli.framework.page import Page, one_line, shorten_to_columns
from compactd.cli.usage.totals import Report, Sum

_GAP = 2
_LEAST = {"project": 16, "model": 20, "session": 14}
"""The least columns of these dimensions if the table must become narrower. Others are never shortened."""
_SIGNS = "+*"


class _Column(Struct, frozen=True):
    title: str
    cell: Callable[[Sum, bool], str]
    """A function of (a sum, whether numbers are shortened) that returns the text."""


def _tokens(number: int, is_short: bool) -> str:
    """Return a number of tokens: `1,234,567`, or short `1.23M`."""
    if not is_short or number < 1000:
        return f"{number:,}"
    for size, unit in ((1e3, "k"), (1e6, "M"), (1e9, "G")):
        shown = number / size
        # Numbers from 999.5 on would be rounded to 1000.
        if shown < 999.5 or unit == "G":
            return f"{shown:.{0 if shown >= 99.95 else 1 if shown >= 9.995 else 2}f}{unit}"
    return ""


def _share(found: Sum) -> str:
    share = found.cached_share
    return "-" if share is None else f"{100 * share:.0f} %"


def cost_text(found: Sum) -> str:
    """Return a cost: `$1.23`; `unknown`; `$1.23+` if it leaves tokens out; `*` marks reported costs."""
    dollars = found.cost_usd
    if dollars is None:
        return "unknown"
    amount = "<$0.01" if 0 < dollars < 0.005 else f"${dollars:,.2f}"
    left_out = "+" if found.unpriced_tokens else ""
    return f"{amount}{left_out}{'*' if found.cost_reports else ''}"


_INPUT = _Column("input", lambda found, short: _tokens(found.input, short))
_OUTPUT = _Column("output", lambda found, short: _tokens(found.output, short))
_WRITE = _Column(
    "cache write",
    lambda found, short: _tokens(found.cache_write, short) if found.cache_write_is_reported else "-",
)
_READ = _Column("cache read", lambda found, short: _tokens(found.cache_read, short))
_TOTAL = _Column("total", lambda found, short: _tokens(found.total, short))
_CACHED = _Column("cached", lambda found, short: _share(found))
_COST = _Column("cost", lambda found, short: cost_text(found))

_ALL = (_INPUT, _OUTPUT, _WRITE, _READ, _TOTAL, _CACHED, _COST)
_FEW = (_OUTPUT, _TOTAL, _CACHED, _COST)
_FEWEST = (_TOTAL, _CACHED, _COST)
_LAYOUTS = ((_ALL, False), (_ALL, True), (_FEW, True), (_FEWEST, True))
"""(columns, whether numbers are shortened), from the widest layout to the narrowest."""


def show(page: Page, report: Report) -> None:
    """Print the table. In a pipe, numbers are never shortened, and each row is one line. If a terminal is too
    narrow for the columns, each row has two lines: what it is about, and the numbers.
    """
    names = list(report.by)
    keys = [
        [_key_text(name, value, found) for name, value in zip(names, key, strict=True)]
        for key, found in report.rows
    ]
    sums = [found for _, found in report.rows]
    if len(keys) > 1:
        keys.append(["total", *([""] * (len(names) - 1))])
        sums.append(report.total)
    layouts = iter(_LAYOUTS if page.is_drawn else _LAYOUTS[:1])
    widths: list[int] | None = None
    numbers: list[list[str]] = []
    while widths is None and (layout := next(layouts, None)) is not None:
        numbers = _numbers(layout[0], sums, is_short=layout[1])
        room = page.width - sum(_GAP + len(cell) for cell in numbers[-1])
        widths = _key_widths(names, keys, room if page.is_drawn else None)
    is_stacked = widths is None
    if widths is None:
        widths = _key_widths(names, keys, page.width) or [page.width // len(names) - _GAP] * len(names)
    heads = len(numbers) - len(sums)
    labels = [*([[""] * len(names)] * (heads - 1)), names, *keys]
    for label, cells in zip(labels, numbers, strict=True):
        fitted = [_fit(name, text, width) for name, text, width in zip(names, label, widths, strict=True)]
        if is_stacked:
            if any(label):
                page.line((" " * _GAP).join(fitted).rstrip())
            page.line((" " * _GAP).join(("", *cells)).rstrip())
        else:
            page.line((" " * _GAP).join((*fitted, *cells)).rstrip())


def _numbers(columns: Sequence[_Column], sums: Sequence[Sum], *, is_short: bool) -> list[list[str]]:
    """Return the lines of the columns with numbers, all cells of a column equally wide: titles, in two lines
    if one of them needs it, then the rows.
    """
    titles = [_lines_of(column.title, is_short=is_short) for column in columns]
    rows = [[column.cell(found, is_short) for column in columns] for found in sums]
    if any(row[-1][-1:] in _SIGNS for row in rows):
        # Signs after a cost stand in columns of their own, so that the numbers are aligned.
        signs = max(len(row[-1]) - len(row[-1].rstrip(_SIGNS)) for row in rows)
        for row in rows:
            bare = row[-1].rstrip(_SIGNS)
            row[-1] = bare + row[-1][len(bare) :].ljust(signs)
    heads = [[title[0] for title in titles], [title[1] for title in titles]]
    lines = [*(heads if any(heads[0]) else heads[1:]), *rows]
    widths = [max(len(line[place]) for line in lines) for place in range(len(columns))]
    return [[cell.rjust(width) for cell, width in zip(line, widths, strict=True)] for line in lines]


def _lines_of(title: str, *, is_short: bool) -> tuple[str, str]:
    """Return the two lines of a title; the first is empty unless the table is narrow."""
    first, _, second = title.rpartition(" ")
    return (first, second) if is_short else ("", title)


def _fit(name: str, text: str, columns: int) -> str:
    """Return the value of the dimension `name` with exactly `columns` columns. Of a path, the end is kept."""
    if text.isascii() and len(text) <= columns:
        return text.ljust(columns)
    from rich.cells import cell_len

    if cell_len(text) > columns:
        if name == "project":
            while cell_len(text) > columns - 1:
                text = text[1:]
            text = f"…{text}"
        else:
            text = shorten_to_columns(text, columns)
    return text + " " * max(0, columns - cell_len(text))


def _key_widths(names: Sequence[str], keys: Sequence[Sequence[str]], room: int | None) -> list[int] | None:
    """Return the columns of each key, so that all keys together fit into `room`; None if they cannot. With
    `room` None, nothing is shortened.
    """
    widths = [max(len(name), *(len(key[place]) for key in keys)) for place, name in enumerate(names)]
    if room is None:
        return widths
    least = [min(width, _LEAST.get(name, width)) for name, width in zip(names, widths, strict=True)]
    over = sum(widths) + _GAP * (len(names) - 1) - room
    while over > 0:
        spare, place = max((width - least[place], place) for place, width in enumerate(widths))
        if spare <= 0:
            return None
        widths[place] -= 1
        over -= 1
    return widths


def _key_text(name: str, value: str, found: Sum) -> str:
    if name == "project":
        return one_line(home_as_tilde(value, os.environ))
    if name == "session":
        projects = sorted(re.split(r"[/\\]", project.rstrip("/\\"))[-1] for project in found.projects)
        return one_line(f"{_short_id(value)} {projects[0] if projects else ''}").strip()
    return one_line(value)


def _short_id(session_id: str) -> str:
    """Return the first part of a UUID; other ids unchanged."""
    parts = session_id.split("-")
    return parts[0] if [len(part) for part in parts] == [8, 4, 4, 4, 12] else session_id


def home_as_tilde(path: str, environ: Mapping[str, str]) -> str:
    """Return a path with `~` for the user's home."""
    home = (environ.get("HOME") or environ.get("USERPROFILE") or "").rstrip("/\\")
    is_inside = bool(home) and (path == home or path.startswith((f"{home}/", f"{home}\\")))
    return f"~{path[len(home) :]}" if is_inside else path
