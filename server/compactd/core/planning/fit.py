"""How a compaction is made to fit: prune the tail, keep less of it, clip its last batch, keep none of it.

(Rules: docs/dev/behaviour.md, "2. Plan" and "4. Check".) Tokens throughout.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from itertools import accumulate

from msgspec.structs import replace

from compactd.core.history.entries import Stub
from compactd.core.planning.candidates import Case, Shape

TAIL_DIVISOR = 4
"""Of what a `target_tokens` leaves beside the fixed part and the newest request, the verbatim tail."""

CLIPPED_DIVISOR = 8
"""The same for a last batch that alone exceeds the target. Measured on 20 cuts of recorded sessions (2026-11,
`target_tokens` 2000): an eighth loses nothing against no tail, a quarter loses 0.4 of CG."""


def fit(case: Case, cut: int) -> Shape:
    """The shape nearest to cutting at `cut` that fits the limit: as it is; with old tool output of the tail
    pruned; with less of the tail; with its last batch clipped; without it. Raises `CannotFit`."""
    shape = case.shape(cut)
    limit = case.limit
    if limit is None or case.lacks(shape, limit, comfortably=True) <= 0:
        return shape
    for shape in _smaller(case, cut, limit):
        return replace(shape, is_reduced=shape.cut > cut)
    for comfortably in (True, False):
        for shape in _smallest(case, cut, limit, comfortably=comfortably):
            if case.lacks(shape, limit, comfortably=comfortably) <= 0:
                return replace(shape, is_reduced=shape.cut > cut)
    raise case.cannot_fit(limit)


def fit_target(case: Case, target: int) -> Shape:
    """The shape that divides `target`: the fixed part and the newest request first; of the rest, at most a
    quarter is the tail, the longest safe one, perhaps none; the summary gets what remains.

    A last batch that alone exceeds the target is clipped into an eighth of the rest, so that its calls and
    the ends of its results stay; the record quotes the middle. Raises `CannotFit`.
    """
    limit = target if case.limit is None else min(case.limit, target)
    end = len(case.items)
    for with_pins in (True, False):
        stays = case.shape(end, with_pins=with_pins).kept_tokens
        rest = limit - case.fixed - stays
        if rest < case.least:
            continue
        tail = min(rest // TAIL_DIVISOR, rest - case.least)
        cut = _longest_tail(case, stays, tail, with_pins)
        if cut is not None and (cut < end or not _is_clipped_rather(case, limit)):
            return case.shape(cut, with_pins=with_pins, takes_in_summary=True)
        for most in (min(rest // CLIPPED_DIVISOR, tail), tail):
            shape = _with_clipped_batch(case, most, rest, with_pins)
            if shape is not None:
                return shape
        if cut is not None:
            return case.shape(cut, with_pins=with_pins, takes_in_summary=True)
        shape = _with_clipped_batch(case, rest - case.least, rest, with_pins)
        if shape is not None:
            return shape
    raise case.cannot_fit(limit)


def _smaller(case: Case, cut: int, limit: int) -> Iterator[Shape]:
    """The cut with as much of the older tool output of its tail pruned as is needed, oldest first; where
    that is not enough, the later cuts in the same way. Only what fits."""
    last = case.outline.last_batch
    stubs = case.pruned(cut, last)
    tails = _tails(case, stubs)
    for later in case.outline.safe(cut, last):
        if case.fixed + case.least + tails[later] > limit:
            continue
        lack = case.lacks(case.shape(later), limit, comfortably=True)
        needed: dict[int, Stub] = {}
        for index, stub in sorted(stubs.items()):
            if index >= later and lack > 0:
                needed[index] = stub
                lack -= case.items[index].tokens - stub.tokens
        if lack <= 0:
            yield case.shape(later, needed)


def _smallest(case: Case, cut: int, limit: int, *, comfortably: bool) -> Iterator[Shape]:
    """The last batch clipped, then nothing; first with what the user pinned, then without."""
    last = max(cut, case.outline.last_batch)
    takes_in = not comfortably
    for with_pins in (True, False):
        bare = case.shape(last, with_pins=with_pins, takes_in_summary=takes_in)
        batch = case.size_from(last)
        stubs = case.clipped(last, batch - case.lacks(bare, limit, comfortably=comfortably))
        if stubs is not None:
            yield case.shape(last, stubs, with_pins=with_pins, takes_in_summary=takes_in)
    end = len(case.items)
    if case.outline.is_safe(end):
        for with_pins in (True, False):
            yield case.shape(end, with_pins=with_pins, takes_in_summary=takes_in)


def _longest_tail(case: Case, stays: int, most: int, with_pins: bool) -> int | None:
    """The first safe cut whose tail takes at most `most` beside what stays in any case."""
    end = len(case.items)
    first = case.start if case.merged is not None else case.start + 1
    shortest = bisect_left(range(end), -(stays + most), key=lambda cut: -case.size_from(cut))
    for cut in case.outline.safe(max(first, shortest), end):
        if case.shape(cut, with_pins=with_pins, takes_in_summary=True).kept_tokens <= stays + most:
            return cut
    return None


def _tails(case: Case, stubs: Mapping[int, Stub]) -> list[int]:
    """Tokens of the tail at each cut. O(messages)."""
    sizes = case.sizes()
    for index, stub in stubs.items():
        sizes[index] -= case.items[index].tokens - stub.tokens
    return [*accumulate(reversed(sizes), initial=0)][::-1]


def _with_clipped_batch(case: Case, most: int, rest: int, with_pins: bool) -> Shape | None:
    """The last batch as the tail, its results clipped so that it takes at most `most`; all the `rest` where
    nothing but results goes, so that no summary needs room."""
    last = case.outline.last_batch
    if last < case.start:
        return None
    bare = case.shape(last, with_pins=with_pins, takes_in_summary=True)
    own = sum(case.items[i].tokens for i in case.request if i >= last)
    stubs = case.clipped(last, own + (most if case.is_summarised(bare) else rest))
    return None if stubs is None else case.shape(last, stubs, with_pins=with_pins, takes_in_summary=True)


def _is_clipped_rather(case: Case, limit: int) -> bool:
    """Whether the last batch is clipped rather than left out: where it alone exceeds the limit, and where
    nothing else could go, so that its results can have all the room."""
    last = case.outline.last_batch
    if case.size_from(last) > limit:
        return True
    nothing_else = last >= case.start and not case.is_summarised(case.shape(last))
    return nothing_else and case.outline.kind(len(case.items) - 1) == "result"
