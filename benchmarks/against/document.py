"""Writes docs/peers.md and its plots from the results of a run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from benchmarks.against.behind import BEHIND
from benchmarks.against.contenders import ROOT
from benchmarks.against.places import PLACES
from benchmarks.against.plots import log_log
from benchmarks.against.results import Figure, Result, number
from benchmarks.against.running import Run
from benchmarks.against.table import left_out
from benchmarks.against.workload import size
from compactd import __version__

DOCS = ROOT / "docs"

HEAD = """# Speed of other projects at the same work

    python -m benchmarks.against             # installs the peers once, then measures: nightly
    python -m benchmarks.against --quick     # small sessions, two minutes
    python -m benchmarks.against --document  # writes this page and its plots
    python -m benchmarks.against --quick count load    # some parts

The peers (programs of other projects) are installed from PyPI and npm into separate environments below
`~/.cache/compactd-peers` (2 GB; `COMPACTD_PEERS` names another folder). `benchmarks/against/places.py`
pins each version. A peer that cannot be installed is left out, and the reason is given below.

Each peer is a separate process and gets the same session. All peers take turns in the same run.
Preparation is not timed. The first run of each peer is not counted; the figures are medians. **On a
busy machine, read the ratios.** The session is the long conversation of [Speed](benchmarks.md), made
from this repository's own files: tool results, calls with their arguments, the agent's text, and a
little text of the user's. The same contents of the repository give the same bytes.

A name with · is a lower bound, not a peer: this program does less than the others in its table, and so
shows what is possible at best. The ratio compares the others with compactd: how many times as long they
take, how many times as much memory they need, or how many times fewer requests per second they answer.
A ratio below 1 means that the other program is better.
"""


def write(done: Run, docs: Path = DOCS) -> list[Path]:
    """Writes the page and a plot for each row that grows; the files."""
    written = []
    parts = [HEAD, _machine(done), "## At a glance\n", _glance(done)]
    for key in dict.fromkeys(result.row.key for result in done.results):
        results = [result for result in done.results if result.row.key == key]
        parts.append(_section(results[0]))
        if results[0].row.grows and len(results) > 1:
            picture = docs / f"peers-{key}.svg"
            picture.write_text(_plot(results), "utf-8")
            written.append(picture)
            parts.append(f"![{results[0].row.what}: time over tokens]({picture.name})\n")
    parts += [_left_out(done.results), _versions(done)]
    page = docs / "peers.md"
    page.write_text("\n".join(parts), "utf-8")
    return [page, *written]


def _machine(done: Run) -> str:
    on = done.machine
    kind = "The quick size" if done.quick else "The full size"
    load, cores = float(on["load_1_min"]), int(on["cores"])
    busy = " **The machine was busy with other work: even the ratios are rough.**" if load > cores else ""
    return (
        f"{kind}, measured on {done.date} in {done.seconds:.0f} s: {on['cores']} cores ({on['cpu']}), "
        f"{on['system']}, Python {on['python']}, load {on['load_1_min']} at the start.{busy}\n"
        + "".join(
            f"\nMeasured again on {one.date} in {one.seconds:.0f} s, load {one.load_1_min} at the start, for "
            f"everybody in them: {'; '.join(one.rows)}.\n"
            for one in done.again
        )
    )


def _glance(done: Run) -> str:
    lines = ["| what | compactd | best peer | ratio |", "|---|---:|---|---:|"]
    for result in _main_results(done.results):
        ours, best = result.ours, result.best_peer
        if ours is None:
            continue
        told = "no other" if best is None else f"{best.who}, {number(best.value)} {result.row.unit}"
        ratio = "" if best is None else f"{number(result.times(best))} ×"
        lines.append(f"| {_what(result)} | {number(ours.value)} {result.row.unit} | {told} | {ratio} |")
    return "\n".join(lines) + "\n"


def _main_results(results: Sequence[Result]) -> list[Result]:
    """The first of each row: the main size."""
    first: dict[str, Result] = {}
    for result in results:
        first.setdefault(result.row.key, result)
    return list(first.values())


def _section(result: Result) -> str:
    row = result.row
    about = [
        text for text in (row.about, f"The session has {result.workload}." if result.workload else "") if text
    ]
    lines = [f"## {row.what[0].upper()}{row.what[1:]}\n", " ".join(about) + "\n"]
    lines += [f"| who | {row.unit} | ratio | what it does |", "|---|---:|---:|---|"]
    for figure in sorted(result.figures, key=lambda one: one.value, reverse=row.better == "more"):
        name = f"**{figure.who}**" if figure.kind == "ours" else figure.who
        floor = "· " if figure.kind == "floor" else ""
        ratio = "" if result.ours is None or figure is result.ours else number(result.times(figure))
        lines.append(f"| {floor}{name} | {number(figure.value)} | {ratio} | {_how(figure)} |")
    if result.is_first is False and row.key in BEHIND:
        lines.append(f"\ncompactd is not the best here. {BEHIND[row.key]}")
    return "\n".join(lines) + "\n"


def _how(figure: Figure) -> str:
    once = "only one run" if figure.runs == 0 else ""
    return "; ".join(part for part in (figure.how, figure.note, once) if part)


def _what(result: Result) -> str:
    return result.row.what if result.tokens is None else f"{result.row.what}, {size(result.tokens)}"


def _plot(results: Sequence[Result]) -> str:
    lines: dict[str, list[tuple[int, float]]] = {}
    for result in results:
        for figure in result.figures:
            if result.tokens is not None and figure.value > 0:
                lines.setdefault(figure.who, []).append((result.tokens, figure.value))
    return log_log(f"{results[0].row.what}: time over tokens", lines)


def _left_out(results: Sequence[Result]) -> str:
    lines = ["## Who is missing in which row\n"]
    lines += [f"- {name}: {'; '.join(whys)}." for name, whys in left_out(results).items()]
    return "\n".join(lines) + "\n"


def _versions(done: Run) -> str:
    """compactd's own version, and each pinned package of the environments that were installed."""
    pins = [pin for place in PLACES if place.name in done.installed for pin in (*place.python, *place.node)]
    named = [f"compactd {done.versions.get('compactd', __version__)}"]
    named += [" ".join(re.split("==|(?<!^)@", pin)) for pin in pins]
    return "## Versions\n\n" + ", ".join(dict.fromkeys(named)) + ".\n"
