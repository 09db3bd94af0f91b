"""Make a compaction fit its limit: prune tool output of the tail, keep a shorter tail, clip the last batch,
or keep no tail at all.

The *tail* is the messages after the cut; a *batch* is a message with tool calls and the messages with their
results. All sizes are tokens. (Rules: docs/dev/behaviour.md, "2. Plan" and "4. Check".)
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from itertools import accumulate

from msgspec.structs import replace

from compactd.core.history.entries import Stub
from compactd.core.planning.candidates import CutCandidate, CutProblem

TAIL_DIVISOR = 4
SMALL_TAIL_DIVISOR = 8
SMALL_TOKENS = 700
"""With `target_tokens`, the system prompt, the tools, the newest request and the pinned messages come first.
The tail may take a quarter of the tokens that they leave. If they leave little more than `SMALL_TOKENS`, it
may take only what is more than that, but at least an eighth: what the user wants and what was done matter
more than the last words then."""
NEEDS = 2
"""With `target_tokens`, the summary gets this many times the tokens of the smallest one with the user's
constraints, if necessary at the expense of the tail."""

CLIPPED_DIVISOR = 8
"""With `target_tokens`, a last batch that alone exceeds the target is clipped to an eighth of what the system
prompt, the tools, the newest request and the pinned messages leave. This is the divisor."""


def fit(case: CutProblem, cut: int) -> CutCandidate:
    """Return the way to cut the view (`CutCandidate`) that is nearest to cutting at `cut` and fits the limit.

    It tries, in this order: the cut unchanged; old tool output of the tail pruned; a shorter tail; the last
    batch clipped; no tail. Raise `CannotFit` if nothing fits.
    """
    shape = case.shape(cut)
    limit = case.limit
    if limit is None or case.overshoot(shape, limit, comfortably=True) <= 0:
        return shape
    for shape in _smaller(case, cut, limit):
        return replace(shape, is_reduced=shape.cut > cut)
    for comfortably in (True, False):
        for shape in _smallest(case, cut, limit, comfortably=comfortably):
            if case.overshoot(shape, limit, comfortably=comfortably) <= 0:
                return replace(shape, is_reduced=shape.cut > cut)
    raise case.cannot_fit(limit)


def fit_target(case: CutProblem, target: int) -> CutCandidate:
    """Divide the budget `target`, in tokens, and return the way to cut the view (`CutCandidate`) that
    results.

    If the newest request is condensed, and everything else then fits, nothing else changes. Otherwise, the
    system prompt, the tools, the newest request and the pinned messages come first. Of the rest, an eighth to
    a quarter goes to the tail: the longest one that begins at a safe cut, perhaps none. The summary gets what
    remains.

    If the last batch alone exceeds the target, it is clipped to an eighth of the rest. Its calls then stay,
    with the beginning and the end of each result, and the summary quotes what is clipped. Raise `CannotFit`
    if nothing fits. If a client chose the target, the error names the least target that would do.
    """
    limit = target if case.limit is None else min(case.limit, target)
    found = _divide(case, limit)
    if found is None:
        raise case.cannot_fit(limit, _least_target(case))
    return found


def _least_target(case: CutProblem) -> int | None:
    """Return the smallest target above the one of `case` to which the view can be compacted; None if there is
    none, or if no client chose the target.

    What a target must have room for grows with it: a larger part of the newest request, more constraints. So
    the search goes from each target to what it must have room for, until it has.
    """
    if case.inputs.request.chosen_target is None:
        return None
    target, most = 0, case.before - 1 if case.limit is None else min(case.before - 1, case.limit)
    while (need := _smallest_request(case)) > target:
        target = need
        if target > most:
            return None
        case = case.with_target(target)
    return target if _divide(case, target) is not None else None


def _smallest_request(case: CutProblem) -> int:
    """Return the tokens of the smallest request that `fit_target` can make for the target of `case`."""
    floor = case.floor()
    least = floor.system + floor.tools + floor.last_request + floor.summary - case.clippable_tokens()
    whole = _with_all_messages(case)
    return least if whole is None else min(least, case.fixed + whole.kept_tokens)


def _with_all_messages(case: CutProblem) -> CutCandidate | None:
    """Return the way to cut the view that only condenses the newest request and removes no message. None if
    the request is not condensed, or if an earlier compaction kept older messages that must go now."""
    if case.condensed is None:
        return None
    shape = case.shape(case.start)
    return None if case.is_summarised(shape) else shape


def _divide(case: CutProblem, limit: int) -> CutCandidate | None:
    """Divide the budget `limit` as `fit_target` says. Return None if nothing fits."""
    whole = _with_all_messages(case)
    if whole is not None and case.fixed + whole.kept_tokens <= limit:
        return whole
    end = len(case.items)
    # Without a model, an earlier summary alone can be made again in a smaller size, from the originals.
    is_remade = not case.inputs.request.may_ask_model
    for with_pins in (True, False):
        stays = case.shape(end, with_pins=with_pins, takes_in_summary=is_remade).kept_tokens
        rest = limit - case.fixed - stays
        if rest < case.least:
            continue
        share = max(rest // SMALL_TAIL_DIVISOR, min(rest // TAIL_DIVISOR, rest - SMALL_TOKENS))
        tail = min(share, rest - case.least)
        # A summary that has room only for the constraints takes the room of the tail.
        cut = _longest_tail(case, stays, max(0, min(tail, rest - NEEDS * case.least)), with_pins)
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
    return None


def _smaller(case: CutProblem, cut: int, limit: int) -> Iterator[CutCandidate]:
    """Yield ways to cut the view that fit after tool output is pruned: first at `cut`, then at each later
    safe cut. For each cut, the oldest tool output of its tail is pruned first, and only as much as necessary.
    The last batch is never pruned."""
    last = case.outline.smallest_tail_start
    stubs = case.prune_results(cut, last)
    tails = _tails(case, stubs)
    for later in case.outline.safe(cut, last):
        if case.fixed + case.least + tails[later] > limit:
            continue
        lack = case.overshoot(case.shape(later), limit, comfortably=True)
        needed: dict[int, Stub] = {}
        for index, stub in sorted(stubs.items()):
            if index >= later and lack > 0:
                needed[index] = stub
                lack -= case.items[index].tokens - stub.tokens
        if lack <= 0:
            yield case.shape(later, needed)


def _smallest(case: CutProblem, cut: int, limit: int, *, comfortably: bool) -> Iterator[CutCandidate]:
    """Yield the last resorts: the last batch clipped, then no tail at all. Each comes first with the user's
    pinned messages and then without them. With `comfortably`, room is left for a summary of useful size.
    Otherwise room is left only for the smallest summary, and the earlier summary is merged."""
    last = max(cut, case.outline.smallest_tail_start)
    takes_in = not comfortably
    for with_pins in (True, False):
        bare = case.shape(last, with_pins=with_pins, takes_in_summary=takes_in)
        batch = case.size_from(last)
        stubs = case.clip_results(last, batch - case.overshoot(bare, limit, comfortably=comfortably))
        if stubs is not None:
            yield case.shape(last, stubs, with_pins=with_pins, takes_in_summary=takes_in)
    end = len(case.items)
    if case.outline.is_safe(end):
        for with_pins in (True, False):
            yield case.shape(end, with_pins=with_pins, takes_in_summary=takes_in)


def _longest_tail(case: CutProblem, stays: int, most: int, with_pins: bool) -> int | None:
    """Return the first safe cut whose tail takes at most `most` tokens; None if there is none. `stays` is the
    number of tokens of messages that stay in any case."""
    end = len(case.items)
    first = case.start if case.merged is not None else case.start + 1
    shortest = bisect_left(range(end), -(stays + most), key=lambda cut: -case.size_from(cut))
    for cut in case.outline.safe(max(first, shortest), end):
        if case.shape(cut, with_pins=with_pins, takes_in_summary=True).kept_tokens <= stays + most:
            return cut
    return None


def _tails(case: CutProblem, stubs: Mapping[int, Stub]) -> list[int]:
    """Return the tokens of the tail for each possible cut, if `stubs` replace tool output. O(messages)."""
    sizes = case.sizes()
    for index, stub in stubs.items():
        sizes[index] -= case.items[index].tokens - stub.tokens
    return [*accumulate(reversed(sizes), initial=0)][::-1]


def _with_clipped_batch(case: CutProblem, most: int, rest: int, with_pins: bool) -> CutCandidate | None:
    """Return the way to cut the view whose tail is the last batch, with its results clipped to `most` tokens.
    If nothing else is removed, the results are clipped to `rest` tokens instead, because no room for a
    summary must be kept. Return None if the results cannot be clipped so far."""
    last = case.outline.smallest_tail_start
    if last < case.start:
        return None
    bare = case.shape(last, with_pins=with_pins, takes_in_summary=True)
    own = sum(case.items[i].tokens for i in case.request if i >= last)
    stubs = case.clip_results(last, own + (most if case.is_summarised(bare) else rest))
    return None if stubs is None else case.shape(last, stubs, with_pins=with_pins, takes_in_summary=True)


def _is_clipped_rather(case: CutProblem, limit: int) -> bool:
    """Return whether to clip the last batch instead of removing it. It is clipped if it alone exceeds the
    limit. It is also clipped if nothing else could be removed, because its results can then take all the
    room."""
    last = case.outline.smallest_tail_start
    if case.size_from(last) > limit:
        return True
    nothing_else = last >= case.start and not case.is_summarised(case.shape(last))
    return nothing_else and case.outline.kind(len(case.items) - 1) == "result"
