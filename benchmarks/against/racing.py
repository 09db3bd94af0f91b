"""Measures the libraries: each contender has its own process and the same session, and they take turns."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec
from msgspec import Struct

from benchmarks.against.child import Answer, CannotDo, Child
from benchmarks.against.contenders import (
    Contender,
    Kind,
    command_of,
    environment_of,
    why_not_there,
)
from benchmarks.against.results import LIBRARY_ROWS, MEMORY, Figure, Result, Row
from benchmarks.against.storing import place_in, stored
from benchmarks.against.workload import Workload
from benchmarks.figures import median

FROM_JOURNAL = frozenset(("cut", "plan", "trim", "compact"))
"""Rows that compactd does on a session that is open, as it was stored."""

Say = Callable[[str], None]


class Pace(Struct, frozen=True, kw_only=True):
    """How much time a whole run may take."""

    main: int
    """The size in tokens of the session for the table."""
    sizes: tuple[int, ...]
    """The sizes for the plots, in tokens; `main` is one of them."""
    rounds: int
    """Counted runs, at most."""
    budget_s: float
    """Seconds that one contender may spend on a row at one size, beyond its first run."""
    patience_s: float
    """When a run is given up."""
    starts: int
    start_budget_s: float


class Race:
    """All contenders, spawned once; every row is run over all of them in turns."""

    def __init__(
        self, contenders: Sequence[Contender], env: Mapping[str, str], folder: Path, pace: Pace, say: Say
    ) -> None:
        self._contenders = contenders
        self._env = env
        self._folder = folder
        self._pace = pace
        self._say = say
        self._children: dict[str, Child] = {}
        self._absent: dict[str, str] = {}
        self._unstored: dict[str, str] = {}
        self._exact: dict[int, float] = {}
        self._took: dict[tuple[str, str], tuple[int, float]] = {}
        self.versions: dict[str, str] = {}
        """The version of each contender that started."""
        self._stack = ExitStack()

    def __enter__(self) -> Race:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def starts(self) -> list[Figure]:
        """Measure the time from spawn until the imports are done, the first run of each not counted. Leave
        each running."""
        times: dict[str, list[float]] = {}
        first: dict[str, float] = {}
        for run in range(self._pace.starts + 1):
            for contender in self._contenders:
                name = contender.name
                if name in self._absent or sum(times.get(name, ())) > 1000 * self._pace.start_budget_s:
                    continue
                if any(one.side == contender.side for one in _before(self._contenders, contender)):
                    continue  # another row of the same program
                child = self._spawned(contender)
                if child is None:
                    continue
                if run or child.start_s < self._pace.start_budget_s:
                    child.kill()
                else:
                    self._children[name] = child  # it is not spawned again for long
                if run:
                    times.setdefault(name, []).append(1000 * child.start_s)
                else:
                    first[name] = 1000 * child.start_s
                    if first[name] > 1000 * self._pace.start_budget_s:
                        times[name] = [first[name]] * 2
        kinds: dict[str, Kind] = {contender.name: contender.kind for contender in self._contenders}
        return [
            Figure(
                who=name,
                kind=kinds[name],
                value=median(values),
                runs=0 if first[name] in values else len(values),
                how="a library, until it can be called",
            )
            for name, values in times.items()
            if kinds[name] == "peer"
        ]

    def rows(self, keys: Sequence[str], workloads: Sequence[Workload]) -> list[Result]:
        """The rows at the main size, and at every size those that grow; the loads first."""
        found: list[Result] = []
        if FROM_JOURNAL & set(keys) or "load" in keys:
            self._unstored = stored(
                self._contenders, self._env, workloads, self._folder, self._pace.patience_s
            )
        for workload in sorted(workloads, key=lambda one: one.tokens != self._pace.main):
            self._say(f"  {workload.said}")
            for row in LIBRARY_ROWS:
                if row.key in keys and (row.grows or workload.tokens == self._pace.main):
                    found += self._row(row, workload)
        return found

    def _row(self, row: Row, workload: Workload) -> list[Result]:
        cannot: dict[str, str] = {}
        taking: dict[str, Child] = {}
        for contender in self._contenders:
            name = contender.name
            if row.key not in contender.rows:
                if row.key in contender.cannot:
                    cannot[name] = contender.cannot[row.key]
                continue
            try:
                is_stored = row.key == "load" or (contender.place is None and row.key in FROM_JOURNAL)
                if is_stored and contender.side in self._unstored:
                    raise CannotDo(self._unstored[contender.side])
                self._check_steepness(row, contender, workload)
                child = self._child(contender)
                file = place_in(self._folder, contender, workload) if is_stored else workload.file
                rows, keep = contender.rows[row.key], str(workload.keep)
                child.ask(do="prepare", row=rows, file=str(file), keep=keep)
                taking[name] = child
            except CannotDo as why:
                cannot[name] = str(why)
        answers = self._in_turns(row, workload, taking, cannot)
        figures = tuple(self._figure(row, one, answers) for one in self._contenders if one.name in answers)
        if row.key in ("count", "estimate"):
            figures = self._compared(row, workload, figures, answers)
        result = Result(
            row=row, tokens=workload.tokens, workload=workload.said, figures=figures, cannot=cannot
        )
        if row.key != "load" or workload.tokens != self._pace.main:
            return [result]
        return [result, _memory(workload, self._contenders, answers)]

    def _compared(
        self,
        row: Row,
        workload: Workload,
        figures: tuple[Figure, ...],
        answers: Mapping[str, list[Answer]],
    ) -> tuple[Figure, ...]:
        """Note how far each total is from the exact one. A contender that does not count exactly is no peer
        of one that does."""
        totals = {name: float(given[-1].told.get("tokens") or 0) for name, given in answers.items()}
        if row.key == "count" and "compactd" in totals:
            self._exact[workload.tokens] = totals["compactd"]
        exact = self._exact.get(workload.tokens)
        if not exact:
            return figures
        made = []
        for figure in figures:
            error = totals[figure.who] / exact - 1
            note = f"{totals[figure.who]:,.0f} tokens{f', {error:+.1%}' if error else ''}"
            is_other = row.key == "count" and error != 0
            kind: Kind = "floor" if is_other else figure.kind
            made.append(msgspec.structs.replace(figure, note=note, kind=kind))
        return tuple(made)

    def _in_turns(
        self, row: Row, workload: Workload, taking: dict[str, Child], cannot: dict[str, str]
    ) -> dict[str, list[Answer]]:
        """Each one's answers, the first of them the one that is not counted."""
        answers: dict[str, list[Answer]] = {}
        spent: dict[str, float] = {}
        gc.collect()
        for run in range(self._pace.rounds + 1):
            for name, child in list(taking.items()):
                if run and spent[name] > self._pace.budget_s:
                    continue
                try:
                    answer = child.ask(do="run")
                except CannotDo as why:
                    cannot[name] = str(why)
                    answers.pop(name, None)
                    del taking[name]
                    if not child.is_running:
                        self._children.pop(name, None)
                    continue
                answers.setdefault(name, []).append(answer)
                spent[name] = spent.get(name, 0.0) + answer.s
        for name, given in answers.items():
            self._took[row.key, name] = (workload.tokens, given[-1].s)
        return answers

    def _check_steepness(self, row: Row, contender: Contender, workload: Workload) -> None:
        """Raises `CannotDo` where the size before says that this one would take too long."""
        tokens, took = self._took.get((row.key, contender.name), (workload.tokens, 0.0))
        if workload.tokens > tokens and took * workload.tokens / tokens > self._pace.patience_s / 2:
            raise CannotDo(f"left out, because it takes {took:.0f} s for {tokens:,} tokens")

    def _child(self, contender: Contender) -> Child:
        if contender.name in self._absent:
            raise CannotDo(self._absent[contender.name])
        child = self._children.get(contender.name) or self._spawned(contender)
        if child is None:
            raise CannotDo(self._absent[contender.name])
        self._children[contender.name] = child
        return child

    def _spawned(self, contender: Contender) -> Child | None:
        absent = why_not_there(contender)
        if absent is None:
            try:
                env = environment_of(contender, self._env, self._folder / "ranks")
                child = Child(command_of(contender), env, self._pace.patience_s)
                self.versions[contender.name] = child.greeting.version
                return self._stack.enter_context(child)
            except CannotDo as why:
                absent = str(why)
        self._absent[contender.name] = absent
        return None

    def _figure(self, row: Row, contender: Contender, answers: Mapping[str, list[Answer]]) -> Figure:
        given = answers[contender.name]
        counted = given[1:] or given
        return Figure(
            who=contender.name,
            kind="floor" if row.key in contender.less else contender.kind,
            value=1000 * median([answer.s for answer in counted]),
            core=1000 * median([answer.core_s for answer in counted]),
            runs=len(given) - 1,
            how=contender.how.get(row.key, ""),
            note=_note(row, given[-1]),
        )


def _before(contenders: Sequence[Contender], contender: Contender) -> Sequence[Contender]:
    return contenders[: contenders.index(contender)]


def _note(row: Row, answer: Answer) -> str:
    told = answer.told
    for key in ("tokens", "chars"):
        if told.get(key) is not None:
            return f"{told[key]:,} {key}"
    return ""


def _memory(
    workload: Workload, contenders: Sequence[Contender], answers: Mapping[str, list[Answer]]
) -> Result:
    figures = tuple(
        Figure(
            who=one.name,
            kind=one.kind,
            value=(answers[one.name][0].rss - answers[one.name][0].rss_before) / 1e6,
            runs=1,
        )
        for one in contenders
        if one.name in answers
    )
    return Result(row=MEMORY, tokens=workload.tokens, workload=workload.said, figures=figures, cannot={})
