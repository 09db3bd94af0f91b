"""Prints the figures as a table: one line per row, compactd first, then each contender with its ratio."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from rich.console import Console
from rich.table import Table

from benchmarks.against.results import Result, number
from benchmarks.against.workload import size

HOW = (
    "Medians; all take turns, and the first run of each is not counted. In brackets: how many times as long "
    "as compactd the other takes (or as much memory, or fewer per second); below 1, the other is better. · "
    "marks a lower bound, not a peer: it does less than the row requires."
)


def in_core_time(results: Sequence[Result]) -> list[Result]:
    """Return the results with CPU time in place of wall time, which is of no use on a busy machine."""
    made = []
    for result in results:
        figures = [
            msgspec.structs.replace(figure, value=figure.core)
            for figure in result.figures
            if figure.core is not None
        ]
        if figures:
            row = msgspec.structs.replace(result.row, what=f"{result.row.what} (core)")
            made.append(msgspec.structs.replace(result, row=row, figures=tuple(figures)))
    return made


def show(results: Sequence[Result], on: Mapping[str, str | int | float], notes: Sequence[str]) -> None:
    """Print the table, then what was left out and the notes."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=160)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("what", no_wrap=True)
    table.add_column("compactd", justify="right", no_wrap=True)
    table.add_column("beside")
    table.add_column("", no_wrap=True)
    for result in results:
        table.add_row(_what(result), _ours(result), _beside(result), _mark(result))
    console.print(table)
    for name, whys in left_out(results).items():
        console.print(f"{name}: {'; '.join(whys)}", soft_wrap=True, style="dim")
    for note in (HOW, *notes):
        console.print(note, soft_wrap=True)
    line = f"{on['cores']} cores ({on['cpu']}), {on['system']}, Python {on['python']}"
    console.print(f"{line}, load {on['load_1_min']} at the start", soft_wrap=True)


def left_out(results: Sequence[Result]) -> dict[str, list[str]]:
    """Return for each contender the rows in which it has no figure, grouped by reason."""
    rows: dict[str, dict[str, list[str]]] = {}
    for result in results:
        for name, why in result.cannot.items():
            whats = rows.setdefault(name, {}).setdefault(why, [])
            if result.row.what not in whats:
                whats.append(result.row.what)
    return {
        name: [f"{', '.join(whats)}: {why}" for why, whats in reasons.items()]
        for name, reasons in rows.items()
    }


def _what(result: Result) -> str:
    return result.row.what if result.tokens is None else f"{result.row.what}, {size(result.tokens)}"


def _ours(result: Result) -> str:
    return "" if result.ours is None else f"{number(result.ours.value)} {result.row.unit}"


def _beside(result: Result) -> str:
    told = []
    for figure in sorted(result.figures, key=lambda one: one.value, reverse=result.row.better == "more"):
        if figure is result.ours:
            continue
        ratio = "" if result.ours is None else f" ({number(result.times(figure))} ×)"
        floor = "· " if figure.kind == "floor" else ""
        told.append(f"{floor}{figure.who} {number(figure.value)}{ratio}")
    return ", ".join(told)


def _mark(result: Result) -> str:
    return {None: "", True: "[green]first[/green]", False: "[yellow]not first[/yellow]"}[result.is_first]
