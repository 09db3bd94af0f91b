"""The figures of docs/reduce.md: shares over sessions and by kind of output."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean

from msgspec import Struct

from benchmarks.reduce.measure import Measured, Tally
from benchmarks.retention.aside import is_aside

MIN_TOKENS = 5_000
MIN_USED = 5
"""A session with fewer tokens in results, or fewer used facts, has no share of its own."""

PARTS: dict[str, Callable[[str], bool]] = {
    "all": lambda name: True,
    "aside": is_aside,
}
"""All sessions, and those that are held out by name (`benchmarks/retention/aside.py`)."""


class Share(Struct, frozen=True, kw_only=True):
    """One reducer over several sessions."""

    saved: float
    """The share of the tokens that was saved: the mean over sessions."""
    kept: float
    """The share of the used facts that is still shown: the mean over sessions."""
    edits: int
    possible_edits: int
    visible_edits: int
    error_lines: int
    kept_error_lines: int
    sessions: int


class KindShare(Struct, frozen=True, kw_only=True):
    """One reducer over the outputs of one kind."""

    outputs: int
    tokens: int
    saved: float
    used: int
    kept: int


class Figures(Struct, frozen=True, kw_only=True):
    """All figures of the page."""

    date: str
    parts: dict[str, dict[str, Share]]
    """By part and reducer."""
    kinds: dict[str, dict[str, KindShare]]
    """By reducer and kind of output."""
    ms_per_100_kb: dict[str, float]


def share(measured: Iterable[Measured]) -> Share:
    """Return the shares of one reducer over sessions."""
    sessions = list(measured)
    counted = [one.whole for one in sessions if one.whole.tokens >= MIN_TOKENS and one.whole.used >= MIN_USED]
    return Share(
        saved=fmean(1 - one.reduced_tokens / one.tokens for one in counted) if counted else 0.0,
        kept=fmean(one.kept / one.used for one in counted) if counted else 0.0,
        edits=sum(one.edits for one in sessions),
        possible_edits=sum(one.possible_edits for one in sessions),
        visible_edits=sum(one.visible_edits for one in sessions),
        error_lines=sum(one.whole.error_lines for one in sessions),
        kept_error_lines=sum(one.whole.kept_error_lines for one in sessions),
        sessions=len(counted),
    )


def kinds_of(measured: Iterable[Measured]) -> dict[str, KindShare]:
    """Return the shares of one reducer by kind of output, the largest kind first."""
    sums: dict[str, Tally] = defaultdict(Tally)
    for one in measured:
        for kind, tally in one.by_kind.items():
            sums[kind].add(tally)
    return {
        kind: KindShare(
            outputs=tally.outputs,
            tokens=round(tally.tokens),
            saved=1 - tally.reduced_tokens / tally.tokens,
            used=tally.used,
            kept=tally.kept,
        )
        for kind, tally in sorted(sums.items(), key=lambda item: -item[1].tokens)
        if tally.tokens
    }


def figures(date: str, by_reducer: dict[str, Sequence[Measured]]) -> Figures:
    """Return the figures of all reducers."""
    return Figures(
        date=date,
        parts={
            part: {
                name: share(one for one in measured if belongs(one.name))
                for name, measured in by_reducer.items()
            }
            for part, belongs in PARTS.items()
        },
        kinds={name: kinds_of(measured) for name, measured in by_reducer.items()},
        ms_per_100_kb={name: _speed(measured) for name, measured in by_reducer.items()},
    )


def _speed(measured: Iterable[Measured]) -> float:
    """Return how many milliseconds 100 KB take."""
    sessions = list(measured)
    characters = sum(one.characters for one in sessions)
    return round(1e8 * sum(one.seconds for one in sessions) / max(1, characters), 1)
