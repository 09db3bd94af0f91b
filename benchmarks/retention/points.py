"""The cuts at which a compaction is judged: a recorded session is split into a past and a known future."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from msgspec import Struct

from benchmarks.retention.atoms import Atom, Atoms
from benchmarks.retention.judging import kept, surprise, written_and_seen
from benchmarks.retention.probes import Probe, Probes, probes_of
from benchmarks.retention.records import SUMMARY, Record, Session, context_of, working_dir
from compactd.models.tokenizers.counters import counter_for

SHARES = (0.5, 0.75)
LEAST_STRETCH, LEAST_PAST, LEAST_FUTURE = 20_000, 12_000, 3_000
"""Estimated tokens, so that the cuts do not depend on a tokenizer."""
CHARS_A_TOKEN = 3.6
LEAST_MESSAGES = 6
LEAST_PROBES = 8

count = counter_for("tokenizer", "o200k_base").count
"""Counts the tokens of a text, in the unit of the budgets."""


class Point(Struct, frozen=True):
    """Where a session is cut, as indices of its messages."""

    start: int
    """First message of the past."""
    cut: int
    """First message of the future."""
    end: int
    """The index after the future's last message."""
    summary: int = -1
    """The message that contains a recorded summary of the past; -1 if this benchmark chose the cut."""


class Cut(Struct):
    """A point with all that does not depend on what is judged there."""

    session: str
    folder: str
    point: Point
    past: tuple[Record, ...]
    future: tuple[Record, ...]
    probes: Probes
    full: frozenset[Probe]
    """The probes that the whole past contains; a score is a share of these."""
    wrote: bytes
    saw: bytes
    bits_nothing: int
    bits_past: int
    sizes: tuple[int, ...]
    """Tokens of each message of the past, rendered."""
    common: frozenset[Atom] = frozenset()
    """Atoms that are not probes because they occur in other sessions too."""
    summary: str = ""
    """The recorded summary, rendered; empty if this benchmark chose the cut."""


def estimated(records: Sequence[Record]) -> list[float]:
    """Return the estimated tokens of each message, from its characters."""
    return [len(record.rendered) / CHARS_A_TOKEN for record in records]


def summaries(records: Sequence[Record]) -> list[int]:
    """Return the indices of recorded compactions."""
    return [at for at, record in enumerate(records) if record.kind == SUMMARY]


def stretches(starts: Sequence[int], end: int) -> list[tuple[int, int]]:
    """The parts of a session between recorded compactions."""
    return list(itertools.pairwise([0, *starts, end]))


def cut_at(records: Sequence[Record], sizes: Sequence[float], low: int, high: int, share: float) -> int:
    """Return the index that has `share` of a stretch's tokens before it, moved forward past tool results."""
    wanted = share * sum(sizes[low:high])
    before, at = 0.0, low
    while at < high:
        before += sizes[at]
        at += 1
        if before >= wanted:
            break
    while at < high and records[at].role == "tool":
        at += 1
    return at


def points_of(records: Sequence[Record]) -> Iterator[Point]:
    """The cuts at 50 % and 75 % of each stretch that is long enough."""
    sizes = estimated(records)
    for low, high in stretches(summaries(records), len(records)):
        if sum(sizes[low:high]) < LEAST_STRETCH:
            continue
        for share in SHARES:
            point = Point(low, cut_at(records, sizes, low, high, share), high)
            if _is_wide(point, sizes):
                yield point


def recorded_points(records: Sequence[Record]) -> Iterator[Point]:
    """The cuts at recorded compactions: the future begins behind the summary."""
    sizes = estimated(records)
    starts = summaries(records)
    for (low, at), (_, high) in itertools.pairwise(stretches(starts, len(records))):
        point = Point(low, at + 1, high, at)
        if _is_wide(point, sizes):
            yield point


def _is_wide(point: Point, sizes: Sequence[float]) -> bool:
    past_end = point.cut if point.summary < 0 else point.summary
    return (
        point.end - point.cut >= LEAST_MESSAGES
        and sum(sizes[point.start : past_end]) >= LEAST_PAST
        and sum(sizes[point.cut : point.end]) >= LEAST_FUTURE
    )


def cuts_of(session: Session, common: frozenset[Atom], points: Sequence[Point]) -> Iterator[Cut]:
    """Yield the cut at each point, with its probes. Skip points with too few probes. O(length) per point."""
    folder = working_dir(session.records)
    atoms = Atoms(folder)
    for point in points:
        past = session.records[point.start : point.cut if point.summary < 0 else point.summary]
        future = session.records[point.cut : point.end]
        probes = probes_of(past, future, atoms, folder, common)
        if len(probes.atoms) < LEAST_PROBES:
            continue
        text = context_of(past)
        wrote, saw = written_and_seen(future, [count(record.rendered) for record in future])
        yield Cut(
            session=session.name,
            folder=folder,
            point=point,
            past=past,
            future=future,
            probes=probes,
            full=frozenset(kept(probes, text, atoms, folder)),
            wrote=wrote,
            saw=saw,
            bits_nothing=surprise("", wrote, saw),
            bits_past=surprise(text, wrote, saw),
            sizes=tuple(count(record.rendered) for record in past),
            common=common,
            summary="" if point.summary < 0 else session.records[point.summary].rendered,
        )
