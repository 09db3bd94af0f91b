"""The table of `compactd usage`. It shows fewer and shorter columns in a narrow terminal."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from compactd.cli.framework.page import Page, one_line, shorten_to_columns
from compactd.cli.usage.totals import Report, Sum

_GAP = 2
_MIN_KEY = 10
"""The least columns of a project, model or session if the table must become narrower."""
_SHORTENED = ("project", "model", "session")


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
    left_out = "+" if found.unpriced_tokens else ""
    return f"${dollars:,.2f}{left_out}{'*' if found.cost_reports else ''}"


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


def show(page: Page, report: Report) -> None:
    """Print the table. In a pipe, numbers are never shortened, and each row is one line."""
    keys = [
        [_key_text(name, value, found) for name, value in zip(report.by, key, strict=True)]
        for key, found in report.rows
    ]
    keys.append(["total", *([""] * (len(report.by) - 1))])
    sums = [*(found for _, found in report.rows), report.total]
    layouts = [(_ALL, False), (_ALL, True), (_FEW, True), (_FEWEST, True)]
    for columns, is_short in layouts if page.is_drawn else layouts[:1]:
        cells = [[column.cell(found, is_short) for column in columns] for found in sums]
        titles = [_lines_of(column.title, is_short) for column in columns]
        widths = [
            max(*(len(line) for line in title), *(len(row[place]) for row in cells))
            for place, title in enumerate(titles)
        ]
        room = page.width - sum(widths) - _GAP * len(widths)
        key_widths = _key_widths(report.by, keys, room if page.is_drawn else None)
        if key_widths is not None:
            break
    else:
        key_widths = [_MIN_KEY] * len(report.by)
    heads = [(["", name] if is_short else [name]) for name in report.by] + titles
    for line in range(2 if is_short else 1):
        _line(page, [head[line] for head in heads], [*key_widths, *widths], len(key_widths))
    for key, row in zip(keys[:-1], cells[:-1], strict=True):
        _line(page, [*key, *row], [*key_widths, *widths], len(key_widths))
    if len(keys) > 2:
        _line(page, [*keys[-1], *cells[-1]], [*key_widths, *widths], len(key_widths))


def _lines_of(title: str, is_short: bool) -> list[str]:
    """Return a title in two lines if the table is narrow."""
    if not is_short:
        return [title]
    first, _, second = title.rpartition(" ")
    return [first, second]


def _line(page: Page, cells: Sequence[str], widths: Sequence[int], keys: int) -> None:
    texts = []
    for place, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        if place >= keys:
            texts.append(cell.rjust(width))
        else:
            texts.append(_fit(cell, width))
    page.line((" " * _GAP).join(texts).rstrip())


def _fit(text: str, columns: int) -> str:
    """Return `text` with exactly `columns` columns; a character can take two."""
    if text.isascii():
        return (shorten_to_columns(text, columns) if len(text) > columns else text).ljust(columns)
    from rich.cells import cell_len

    shown = shorten_to_columns(text, columns)
    return shown + " " * max(0, columns - cell_len(shown))


def _key_widths(by: Sequence[str], keys: Sequence[Sequence[str]], room: int | None) -> list[int] | None:
    """Return the columns of each key, so that all keys together fit into `room`; None if they cannot. With
    `room` None, nothing is shortened.
    """
    widths = [max(len(name), *(len(key[place]) for key in keys)) for place, name in enumerate(by)]
    if room is None:
        return widths
    room -= _GAP * (len(by) - 1)
    while sum(widths) > room:
        longest = max(
            (width, place)
            for place, width in enumerate(widths)
            if by[place] in _SHORTENED or width <= _MIN_KEY or len(by) > 0
        )[1]
        if by[longest] not in _SHORTENED or widths[longest] <= _MIN_KEY:
            return None
        widths[longest] -= 1
    return widths


def _key_text(name: str, value: str, found: Sum) -> str:
    if name == "project":
        return one_line(home_as_tilde(value, os.environ))
    if name == "session":
        projects = sorted(os.path.basename(project.rstrip("/\\")) or project for project in found.projects)
        return one_line(f"{_short_id(value)} {projects[0] if projects else ''}").strip()
    return one_line(value)


def _short_id(session_id: str) -> str:
    """Return the first part of a UUID; other ids unchanged."""
    parts = session_id.split("-")
    return parts[0] if [len(part) for part in parts] == [8, 4, 4, 4, 12] else session_id


def home_as_tilde(path: str, environ: Mapping[str, str]) -> str:
    """Return a path with `~` for the user's home."""
    home = (environ.get("HOME") or environ.get("USERPROFILE") or "").rstrip("/\\")
    return (
        f"~{path[len(home) :]}"
        if home and (path == home or path.startswith((f"{home}/", f"{home}\\")))
        else path
    )
