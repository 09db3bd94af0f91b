"""Scores methods at the cuts of sessions, on all cores. Results that cannot change are cached on disk."""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from benchmarks.retention import ours, sessions
from benchmarks.retention.atoms import Atom, Atoms
from benchmarks.retention.baselines import PLAIN, Method, recorded_summary
from benchmarks.retention.judging import kept, linked, surprise, tally
from benchmarks.retention.points import Cut, count, cuts_of, points_of, recorded_points
from benchmarks.retention.ranked import RANKED
from benchmarks.retention.sessions import Source

T = TypeVar("T")

HERE = Path(__file__).parent
CACHE = Path("build/retention")
METRIC = ("aside", "records", "atoms", "probes", "judging", "points", "agents", "sessions")
"""Modules that say what a probe is and how it is looked for."""

OURS = "extract"
RECORDED = "recorded_summary"
BASELINES: dict[str, Method] = {**PLAIN, **RANKED}
METHODS = (*BASELINES, OURS)

NOT_CUT = ("aider",)
"""Sources whose files are no one session: they only say which atoms are commonplace."""


class Row(Struct, frozen=True, omit_defaults=True):
    """One method at one cut within one budget."""

    session: str
    start: int
    cut: int
    end: int
    method: str
    budget: int
    """Tokens; at a recorded compaction, those of its summary."""
    tokens: int
    linked: float | None
    """Share of the probes, 0 to 1; none where no category has enough."""
    cg: float
    """Share of the past's help; above 1 where the context helps more."""
    found: dict[str, tuple[int, int]]
    """For each category (probes found, probes)."""
    is_recorded: bool = False
    """Whether the cut is a recorded compaction, with the size of its summary."""
    is_refused: bool = False
    """The newest request alone does not fit: no score."""
    made: tuple[str, ...] = ()
    """Atoms of the summary that its past does not hold."""
    past: int = 0
    """Tokens of the past."""


class Timed(Struct, frozen=True):
    """A row and how long its compaction took."""

    row: Row
    seconds: float = 0.0


class Job(Struct, frozen=True):
    """What to score in one session."""

    source: Source
    common: frozenset[Atom]
    methods: tuple[str, ...]
    budgets: tuple[int, ...]
    cache: Path
    engine: str = ""
    """Which engine makes ours; looked at once, for a file may change while a long run goes on."""
    by_daemon: bool = False
    is_recorded: bool = True
    """Whether to score at recorded compactions too."""


def fingerprint(paths: Iterable[Path]) -> str:
    """Return a hash of the contents of files; for Python files, layout does not matter."""
    hashed = hashlib.sha256()
    for path in sorted(paths):
        data = path.read_bytes()
        if path.suffix == ".py":
            data = ast.unparse(ast.parse(data)).encode()
        hashed.update(hashlib.sha256(data).digest())
    return hashed.hexdigest()[:16]


@functools.cache
def _code(*modules: str) -> str:
    return fingerprint(HERE / f"{module}.py" for module in modules)


def engine() -> str:
    """Which code makes ours. O(bytes of the engine)."""
    return fingerprint((HERE.parents[1] / "server" / "compactd").rglob("*.py"))


def remembered(cache: Path, key: str, make: Callable[[], T]) -> T:
    """Return what `make` returns, from `cache` if it was made under the same key."""
    file = cache / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.pickle"
    if file.exists():
        return pickle.loads(file.read_bytes())
    made = make()
    cache.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(f".{os.getpid()}")
    part.write_bytes(pickle.dumps(made))
    part.replace(file)
    return made


def common_of(found: Sequence[Source], cache: Path) -> frozenset[Atom]:
    """Return the atoms that are common to these sessions. The project's own session is not counted, so that
    figures with and without it stay comparable."""
    others = [source for source in found if source.name != sessions.OWN_NAME]
    key = "common " + _code(*METRIC) + fingerprint(source.file for source in others)

    def make() -> frozenset[Atom]:
        return sessions.commonplace(
            [(source.name, sessions.atoms_in(sessions.read(source))) for source in others]
        )

    return remembered(cache, key, make)


def cuts(job: Job) -> list[Cut]:
    """The cuts of a session, recorded compactions last."""
    if job.source.name.startswith(NOT_CUT):
        return []

    def make() -> list[Cut]:
        session = sessions.read(job.source)
        points = [*points_of(session.records), *recorded_points(session.records)]
        return list(cuts_of(session, job.common, points))

    return remembered(job.cache, _session_key(job), make)


@functools.cache
def _session_key(job: Job) -> str:
    common = hashlib.sha256(repr(sorted(job.common)).encode()).hexdigest()
    return f"{job.source.name} {_code(*METRIC)} {fingerprint([job.source.file])} {common}"


def key_of(job: Job) -> str:
    """Return the cache key of a job for compactd: the session, the metric, the engine."""
    return f"{_session_key(job)} {job.engine} {_code('ours', 'ablations')}"


def scored(job: Job) -> list[Timed]:
    """The rows of one session."""
    rows: list[Timed] = []
    found: list[Cut] = []
    code = {OURS: job.engine + _code("ours") + str(job.by_daemon)}
    baselines = _code("baselines", "ranked")
    for method in job.methods:
        key = f"{_session_key(job)} {method} {code.get(method, baselines)} {job.budgets} {job.is_recorded}"

        def make(method: str = method) -> list[Timed]:
            if not found:
                found.extend(cuts(job))
            return list(_of_method(method, found, job))

        rows += remembered(job.cache, key, make)
    return rows


def _of_method(method: str, found: Sequence[Cut], job: Job) -> Iterator[Timed]:
    with contextlib.ExitStack() as ending:
        daemon = None
        if method == OURS and job.by_daemon and found:
            daemon = ours.Daemon()
            ending.callback(daemon.close)
        for cut in found:
            if not cut.summary:
                budgets = () if method == RECORDED else job.budgets
            else:
                budgets = (count(cut.summary),) if job.is_recorded else ()
            items = ours.items_of(cut.past) if budgets and method == OURS and daemon is None else ()
            for budget in budgets:
                if method != OURS:
                    context = (recorded_summary if method == RECORDED else BASELINES[method])(cut, budget)
                    yield Timed(judged(cut, method, budget, context))
                    continue
                made = (
                    ours.in_process(items, budget) if daemon is None else daemon.compacted(cut.past, budget)
                )
                yield Timed(judged(cut, method, budget, made.context, made.summary), made.seconds)


def judged(cut: Cut, method: str, budget: int, context: str, summary: str = "") -> Row:
    """The score of a context; one that is empty was refused."""
    atoms = _atoms_without(cut.folder)
    found = tally(cut.full, kept(cut.probes, context, atoms, cut.folder))
    help_of_past = max(1, cut.bits_nothing - cut.bits_past)
    made: set[Atom] = set()
    if summary:
        made = atoms(summary).difference(*(atoms.of(record) | atoms(record.rendered) for record in cut.past))
    return Row(
        session=cut.session,
        start=cut.point.start,
        cut=cut.point.cut,
        end=cut.point.end,
        method=method,
        budget=budget,
        tokens=count(context),
        linked=linked(found),
        cg=(cut.bits_nothing - surprise(context, cut.wrote, cut.saw)) / help_of_past,
        found=found,
        is_recorded=bool(cut.summary),
        is_refused=not context,
        made=tuple(sorted(value for _, value in made)),
        past=sum(cut.sizes),
    )


@functools.lru_cache(maxsize=2)
def _atoms_without(folder: str) -> Atoms:
    """Kept for the next context, which shows much of the same."""
    return Atoms(folder)


def keep_memory() -> None:
    """Lets this process keep what LZMA frees: else each of its 200 MB is given back and asked for again,
    which is two fifths of its time. Where the C library is another one, nothing happens."""
    import ctypes

    with contextlib.suppress(AttributeError, OSError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(MALLOC_MMAP_MAX, 0)
        mallopt(MALLOC_TRIM_THRESHOLD, 1 << 30)


MALLOC_TRIM_THRESHOLD, MALLOC_MMAP_MAX = -1, -4
"""The names of two options of glibc's mallopt(3)."""


def all_scored(jobs: Sequence[Job], processes: int) -> list[Timed]:
    """The rows of all jobs, in the order of the jobs. The largest sessions are begun first."""
    order = sorted(range(len(jobs)), key=lambda at: -jobs[at].source.file.stat().st_size)
    rows: dict[int, list[Timed]] = {}
    if processes == 1:
        rows = {at: scored(jobs[at]) for at in order}
    else:
        with ProcessPoolExecutor(processes, initializer=keep_memory) as pool:
            rows = dict(zip(order, pool.map(scored, [jobs[at] for at in order]), strict=True))
    return [row for at in range(len(jobs)) for row in rows[at]]


def write_rows(rows: Sequence[Timed], file: Path) -> None:
    """The figures of every cut, one a line, without times: the same run gives the same bytes."""
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = (msgspec.json.encode(_rounded(timed.row)) for timed in rows)
    file.write_bytes(b"[\n" + b",\n".join(lines) + b"\n]\n")


def _rounded(row: Row) -> Row:
    linked_ = None if row.linked is None else round(row.linked, 4)
    return msgspec.structs.replace(row, linked=linked_, cg=round(row.cg, 4))
