"""Define the candidates of a compaction plan: the view to compact (`CutProblem`) and one way to cut it
(`CutCandidate`).

A `CutProblem` has what is the same for all candidates. A `CutCandidate` is one candidate, with what it keeps
and what it frees. The *tail* is the messages after the cut; a *batch* is a message with tool calls and the
messages with their results. All sizes are tokens. (Rules: docs/dev/behaviour.md, "A compaction", 2.)
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import compress
from operator import sub

from msgspec import Struct
from msgspec.structs import asdict, replace

from compactd.core.budget.budget import MIN_SUMMARY_TOKENS, largest_request, summary_budget
from compactd.core.constraints.constraints import (
    MIN_CONSTRAINT_TOKENS,
    NO_PATH_CONSTRAINTS,
    SUMMARY_DIVISOR,
    TARGET_DIVISOR,
    Constraint,
    Constraints,
    LimitIndex,
    PathConstraints,
    bullets,
    fitting_constraints,
)
from compactd.core.history.entries import EntryId, Item, Stub, is_summary, with_stub
from compactd.core.history.outline import Outline
from compactd.core.history.projection import INTERRUPTED, projected_tokens
from compactd.core.history.view_cache import CachedView, CountText, nothing_cached
from compactd.core.planning.clip import MIN_CLIP, clip
from compactd.core.planning.condensed_request import condensed_request, unstated_constraints
from compactd.core.planning.prune import result_places, stubs_for
from compactd.core.planning.request import Inputs
from compactd.core.text.summary_format import CONSTRAINTS, smallest_tokens
from compactd.core.tokens.counting import block_tokens
from compactd.protocol.errors import CannotFit
from compactd.protocol.messages import Floor, PinReason, ToolResult

PINS_DIVISOR = 8
"""The messages that the user pinned may take at most an eighth of the window. This is the divisor."""

TARGET_PINS_DIVISOR = 4
"""With `target_tokens`, the pinned messages may take at most a quarter of the target. This is the divisor."""

STATE_TOKENS = 40
"""With a target that a client chose, a summary has room for at least this many tokens about the state of the
work, which is one line."""

PINS_WITHOUT_WINDOW = 16_000
"""The most tokens that pinned messages may take if the window is unknown: an eighth of 128,000."""


class CutCandidate(Struct, frozen=True, kw_only=True):
    """One way to cut the view, and its sizes. Messages are given by their index in the view's items."""

    cut: int
    """The first message of the tail. The messages before it are removed or pinned."""
    pinned: tuple[int, ...]
    """The messages that stay although they are before the cut."""
    removed: tuple[range, ...]
    """The messages that the summary replaces, as non-empty ranges in ascending order. The earlier summary is
    not among them."""
    stubs: Mapping[int, Stub]
    """Stubs that replace tool output of the messages that stay, by message index."""
    shortened: int
    """How many tool results these stubs shorten. Results that the view already shows in this form are not
    counted."""
    kept_tokens: int
    """The tokens of everything that stays: pinned messages, the tail, and the earlier summary unless it is
    merged. The system prompt and the tools are not included."""
    removed_tokens: int
    """The tokens that the new summary replaces: the removed messages, and the earlier summary if it is
    merged."""
    freed_tokens: int
    """All tokens that leave the view: `removed_tokens`, and what the stubs and the condensed request save."""
    takes_in_summary: bool
    """Whether the earlier summary is merged into the new one."""
    unpinned: int
    """How many pinned messages are removed, because they exceed `CutProblem.pins_cap` or the limit."""
    is_reduced: bool = False
    """Whether the tail is shorter than the keep-recent budget allows, because the limit left no room."""


class CutProblem(Struct, frozen=True, kw_only=True):
    """The view to compact, with everything that all candidate cuts have in common."""

    inputs: Inputs
    items: tuple[Item, ...]
    """The items of the view, with the newest request as `condensed` shows it."""
    outline: Outline
    """The order, kinds, sizes and safe cuts of `items`."""
    whole: Outline
    """The outline of the view, with the newest request as the view shows it."""
    condensed: Stub | None
    """How the newest request is shown if it is too large for the target; None if it stays as it is."""
    unstated: frozenset[str]
    """The user's constraints, by their text, that the newest request states and its condensed form does
    not."""
    count: CountText
    """Counts the tokens of a text, with a cache."""
    start: int
    """The index of the last compaction's cut, below which no cut is considered. A new cut is above it. It may
    be equal with `target_tokens` if an earlier summary is merged, or if the request is too large and there is
    no other cut."""
    merged: Item | None
    """The earlier summary, which the new one may take in; None if the view starts with none."""
    fixed: int
    """The tokens of the system prompt and the tools."""
    repair: int
    """The tokens of the synthetic error result that a request contains for each call without a result; 0 if
    every call has one."""
    before: int
    """The tokens of the whole request before the compaction."""
    limit: int | None
    """The most tokens that the whole request may have after the compaction; None if there is no limit."""
    request: frozenset[int]
    """The indices of the newest request and of its batch. (A request's message can also contain tool results;
    then the calls that they answer belong to the batch.)"""
    request_tokens: int
    """The tokens of the messages in `request`."""
    pins: tuple[frozenset[int], ...]
    """The pinned messages, newest first, each as a set of indices with the whole batch that it belongs to."""
    frame: int
    """The tokens of the smallest possible summary, without the user's constraints."""
    said: Constraints
    """The user's constraints that are found in the conversation."""
    most_constraints: int
    """The most tokens that the user's constraints may take in a summary."""
    least: int
    """The tokens of the smallest summary that contains the user's constraints. Constraints that the newest
    request states are not counted, because that request stays. With a target that a client chose, a line of
    state is included."""

    @classmethod
    def of(cls, inputs: Inputs) -> CutProblem:
        """Build the problem of compacting `inputs.view`. The cost is proportional to the part of the view
        that `inputs.known` has not cached."""
        items, fixed = inputs.view.items, inputs.fixed
        known = inputs.known or nothing_cached(inputs.originals)
        outline, count = known.outline_of(items), known.kept.count_with(inputs.counter)
        before = fixed.system + fixed.tools + projected_tokens(items, outline, inputs.counter)
        said = _path_constraints(known, inputs.limits).constraints
        return cls._with_target(inputs, outline, count, said, before)

    def with_target(self, target_tokens: int) -> CutProblem:
        """Return the problem of compacting the same view to another target. O(messages) if the newest request
        is condensed."""
        request = replace(self.inputs.request, target_tokens=target_tokens)
        inputs = replace(self.inputs, request=request)
        return self._with_target(inputs, self.whole, self.count, self.said, self.before)

    @classmethod
    def _with_target(
        cls, inputs: Inputs, whole: Outline, count: CountText, said: Constraints, before: int
    ) -> CutProblem:
        """Build the problem from what does not depend on the target: the outline of the view, the user's
        constraints, and the size of the request before the compaction."""
        items, fixed, request, outline = inputs.view.items, inputs.fixed, inputs.request, whole
        condensed, unstated = condensed_request(inputs, whole), frozenset[str]()
        if condensed is not None and outline.request is not None:
            at = outline.request
            shown = with_stub(items[at], condensed)
            outline = outline.with_smaller(at, outline.tokens(at) - shown.tokens)
            items = (*items[:at], shown, *items[at + 1 :])
            unstated = unstated_constraints(said, shown)
        merged = items[0] if items and is_summary(items[0].message) else None
        limit = largest_request(inputs.standing.window, inputs.standing.cap)
        if request.below is not None:
            limit = min(request.below - 1, request.below - 1 if limit is None else limit)
        asked = frozenset[int]() if outline.request is None else outline.batch(outline.request)
        frame = smallest_tokens(inputs.settings.rules.lead, inputs.settings.rules.end, count)
        most = _max_constraint_tokens(inputs)
        there = frozenset(outline.ids[i] for i in asked)
        pinned = fitting_constraints(_constraints_removed(said, there, unstated), most, count)
        state = 0 if request.chosen_target is None else STATE_TOKENS
        return cls(
            inputs=inputs,
            items=items,
            outline=outline,
            whole=whole,
            condensed=condensed,
            unstated=unstated,
            count=count,
            start=max(inputs.view.tail_from, 0 if merged is None else 1),
            merged=merged,
            fixed=fixed.system + fixed.tools,
            repair=count(INTERRUPTED) if outline.unanswered else 0,
            before=before,
            limit=limit,
            request=asked,
            request_tokens=sum(outline.tokens(i) for i in asked),
            pins=tuple(_pins(inputs, outline)),
            frame=frame,
            said=said,
            most_constraints=most,
            least=frame + constraint_tokens(pinned, count) + state,
        )

    @property
    def is_too_large(self) -> bool:
        """Whether the request exceeds the limit now, before the compaction."""
        return self.limit is not None and self.before > self.limit

    @property
    def messages(self) -> int:
        """The number of messages in the view, without the earlier summary."""
        return len(self.items) - (self.merged is not None)

    @property
    def condensed_tokens(self) -> int:
        """How many tokens the condensed form of the newest request saves."""
        return self.whole.sums[-1] - self.outline.sums[-1]

    def sizes(self) -> list[int]:
        """Return the tokens of each message, including the synthetic error results for its calls without a
        result. O(messages)."""
        sums = self.outline.sums
        sizes = list(map(sub, sums[1:], sums))
        for index, count in self.outline.unanswered.items():
            sizes[index] += count * self.repair
        return sizes

    def size_from(self, cut: int) -> int:
        """Return the tokens of all messages from index `cut` on, including synthetic error results. O(calls
        without a result)."""
        sums, unanswered = self.outline.sums, self.outline.unanswered
        missing = sum([count for index, count in unanswered.items() if index >= cut]) if unanswered else 0
        return sums[-1] - sums[cut] + missing * self.repair

    def floor(self) -> Floor:
        """Return the smallest possible request, as tokens of its parts. If a batch of calls still waits for
        results, it is counted as part of the newest request."""
        last = self.request_tokens
        if not self.outline.is_safe(len(self.items)):
            batch = self.outline.smallest_tail_start
            last += self.size_from(batch) - sum(self.size(i) for i in self.request if i >= batch)
        return Floor(
            system=self.inputs.fixed.system,
            tools=self.inputs.fixed.tools,
            last_request=last,
            summary=self.least,
        )

    def clippable_tokens(self) -> int:
        """Return how many tokens of the floor can be saved by clipping: those of the tool results in a batch
        of calls that still waits for results."""
        if self.outline.is_safe(len(self.items)):
            return 0
        places = result_places(self.items, self.outline.smallest_tail_start, len(self.items))
        results = [self.items[i].message.content[at] for i, at in places]
        return sum(max(0, block_tokens(block, self.inputs.counter) - MIN_CLIP) for block in results)

    def shape(
        self,
        cut: int,
        stubs: Mapping[int, Stub] | None = None,
        *,
        with_pins: bool = True,
        takes_in_summary: bool = False,
    ) -> CutCandidate:
        """Return what stays in the view and what is removed from it, with sizes (`CutCandidate`), if the view
        is cut at `cut`. `stubs` replace tool output of messages that stay. Without `with_pins`, the user's
        pinned messages do not stay. An earlier summary is merged if any message is removed, or if
        `takes_in_summary` is set. O(pinned and shortened messages)."""
        pinned, unpinned = self._pinned_before(cut, with_pins)
        first = 0 if self.merged is None else 1
        stays = sorted(pinned)
        removed = _between(first, cut, stays)
        takes_in = self.merged is not None and (bool(removed) or takes_in_summary)
        if self.merged is not None and not takes_in:
            stays.insert(0, 0)
        shown = {i: stub for i, stub in (stubs or {}).items() if i in pinned or i >= cut}
        whole, left = self.size_from(0), self.size_from(cut) + sum(self.size(i) for i in stays)
        kept = left - sum(self.items[i].tokens - stub.tokens for i, stub in shown.items())
        return CutCandidate(
            cut=cut,
            pinned=tuple(sorted(pinned)),
            removed=removed,
            stubs=shown,
            shortened=sum(self._shortened_results(i, stub) for i, stub in shown.items()),
            kept_tokens=kept,
            removed_tokens=whole - left,
            freed_tokens=whole - kept + self.condensed_tokens,
            takes_in_summary=takes_in,
            unpinned=unpinned,
        )

    def size(self, index: int) -> int:
        """Return the tokens of one message, including the synthetic error results for its calls without a
        result."""
        return self.outline.tokens(index) + self.outline.unanswered.get(index, 0) * self.repair

    def constraints(
        self, shape: CutCandidate, budget: int
    ) -> tuple[tuple[Constraint, ...], tuple[Constraint, ...], int]:
        """Divide the user's constraints whose messages are removed if the view is cut as `shape` says.
        `budget` is the most tokens of the summary.

        Return (the constraints to write into the summary, the constraints for which there is no room, the
        number of limits that do not count as constraints because their message states too many).
        """
        if not self.said.in_force:
            return (), (), 0
        ids = self.outline.ids
        stays = frozenset((*[ids[i] for i in shape.pinned], *ids[shape.cut :]))
        heading = self.count(CONSTRAINTS + "\n") + 1
        most = min(self.most_constraints, budget - self.frame - heading)
        wanted = _constraints_removed(self.said, stays, self.unstated)
        chosen = fitting_constraints(wanted, most, self.count)
        taken = frozenset(one.text for one in chosen)
        dropped = tuple(one for one in wanted if one.text not in taken)
        return chosen, dropped, self.said.count_left_out(stays)

    def is_summarised(self, shape: CutCandidate) -> bool:
        """Return whether a summary is needed if the view is cut as `shape` says, because messages are removed
        or the earlier summary is merged."""
        return bool(shape.removed) or shape.takes_in_summary

    def overshoot(self, shape: CutCandidate, limit: int, *, comfortably: bool) -> int:
        """Return by how many tokens the new request would exceed `limit`; 0 or less means that it fits. The
        summary is counted with its smallest possible size or, with `comfortably`, with a useful size."""
        need = 0
        if self.is_summarised(shape):
            need = self.least
            if comfortably:
                need = max(need, min(MIN_SUMMARY_TOKENS, self._max_summary_tokens(shape)))
        return self.fixed + shape.kept_tokens + need - limit

    def summary_budget(self, shape: CutCandidate, limit: int | None, *, whole: bool) -> int:
        """Return the most tokens that the summary's text may take. It is always less than what is removed,
        and no more than the limit leaves.

        With `whole`, the summary gets all that `limit` leaves. Otherwise it gets at most what the settings
        allow, by default half of what is removed; with more, a small window would soon need the next
        compaction.
        """
        most = shape.freed_tokens - 1
        if limit is not None:
            most = min(most, limit - self.fixed - shape.kept_tokens)
        return max(0, most if whole else min(most, self._max_summary_tokens(shape)))

    def cannot_fit(self, limit: int, least_target: int | None = None) -> CannotFit:
        """Return the error to raise if no compaction can make the request fit `limit`. `least_target` is the
        smallest target that it could fit; None if there is none or if it is not known."""
        floor = (self if least_target is None else self.with_target(least_target)).floor()
        advice = ". Shorten the request, offer fewer tools, or use a larger window."
        if least_target is not None:
            advice = f"; the least that would do is {least_target:,} tokens."
        error = CannotFit(
            f"The request cannot be made to fit {limit:,} tokens: the system prompt takes {floor.system:,},"
            f" the tools {floor.tools:,}, the newest request {floor.last_request:,}, the smallest summary"
            f" {floor.summary:,}{advice}",
            limit=limit,
            floor=asdict(floor),
        )
        if least_target is not None:
            error.data.update(least_target=least_target)
        return error

    def clip_results(self, first: int, most_tokens: int) -> dict[int, Stub] | None:
        """Clip tool results so that the messages from index `first` on take at most `most_tokens` together.
        Return the stubs by message index, or None if that is impossible."""
        places = result_places(self.items, first, len(self.items))
        counter = self.inputs.counter
        results = sum(block_tokens(self.items[i].message.content[at], counter) for i, at in places)
        others = self.size_from(first) - results
        clipping = clip(self.items, places, most_tokens - others, counter)
        if clipping is None:
            return None
        return self._by_index(clipping.stubs)

    def prune_results(self, first: int, last: int) -> dict[int, Stub]:
        """Return stubs for all tool output of the messages `first` (inclusive) to `last` (exclusive), by
        message index. Pinned messages get none."""
        pinned = frozenset().union(*self.pins)
        places = [place for place in result_places(self.items, first, last) if place[0] not in pinned]
        return self._by_index(stubs_for(self.items, places, self.inputs.counter).stubs)

    def pin_reason(self, index: int) -> PinReason:
        """Return why a message before the cut stays: it is the newest request, it is pinned, or it is the
        request before a shell command. O(pinned messages)."""
        if index in self.request:
            return "request"
        batch = self.outline.batch(index)
        marked = frozenset((*self.outline.pinned, *self._pinned_by_user))
        return "pinned" if not marked.isdisjoint(batch) else "command"

    @property
    def _pinned_by_user(self) -> Iterator[int]:
        """The indices of the messages that `session/pin` pinned."""
        ids = self.outline.ids
        return compress(range(len(ids)), map(frozenset(self.inputs.pinned).__contains__, ids))

    def pins_cap(self) -> int:
        """Return the most tokens that pinned messages before the cut may take together."""
        target, window = self.inputs.request.target_tokens, self.inputs.standing.summary_window
        if target is not None:
            return target // TARGET_PINS_DIVISOR
        return PINS_WITHOUT_WINDOW if window is None else window // PINS_DIVISOR

    def _pinned_before(self, cut: int, with_pins: bool) -> tuple[set[int], int]:
        """Return (the indices of the messages before the cut that stay, the number of pinned messages before
        the cut that do not stay)."""
        chosen = {i for i in self.request if i < cut}
        left, unpinned = self.pins_cap(), 0
        for batch in self.pins:
            older = {i for i in batch if i < cut} - chosen
            tokens = sum(self.outline.tokens(i) for i in older)
            if with_pins and tokens <= left:
                chosen |= older
                left -= tokens
            else:
                unpinned += len(older)
        return chosen, unpinned

    def _shortened_results(self, index: int, stub: Stub) -> int:
        """Return how many tool results the stub shortens. Results that the view already shows in the stub's
        form are not counted."""
        content = self.items[index].message.content
        shown = ((content[at], text) for at, text in stub.texts)
        return sum(isinstance(block, ToolResult) and block.content != text for block, text in shown)

    def _max_summary_tokens(self, shape: CutCandidate) -> int:
        """Return the most tokens that the settings allow for a summary: their budget, but at most a share of
        the tokens that the summary replaces. The share is half of these tokens, or all but one if
        `summary_tokens` is set. If the smallest summary needs more, the share is raised to its size."""
        settings = self.inputs.settings
        share = shape.removed_tokens - 1 if settings.summary_tokens is not None else shape.removed_tokens // 2
        return min(summary_budget(settings, self.inputs.standing.summary_window), max(self.least, share))

    def _by_index(self, stubs: Sequence[Stub]) -> dict[int, Stub]:
        """Return the stubs by the index of their message."""
        if not stubs:
            return {}
        places = {entry_id: index for index, entry_id in enumerate(self.outline.ids)}
        return {places[stub.entry_id]: stub for stub in stubs}


def constraint_tokens(constraints: Sequence[Constraint], count: CountText) -> int:
    """Return the tokens that these constraints take in a summary, with their heading; 0 if there are none."""
    if not constraints:
        return 0
    return count("\n".join((CONSTRAINTS, *bullets(constraints)))) + 1


def _path_constraints(known: CachedView, limits: LimitIndex | None) -> PathConstraints:
    """Read the messages that are new since the last plan, and return all of the user's constraints.
    O(characters that users typed in the new messages)."""
    before = known.path_index if isinstance(known.path_index, PathConstraints) else NO_PATH_CONSTRAINTS
    said = before.read_more(known.fresh, limits, known.read)
    if known.kept.said is known.path_index:
        known.kept.said = said
    return said


def _constraints_removed(
    said: Constraints, stays: Collection[EntryId], unstated: Collection[str]
) -> tuple[Constraint, ...]:
    """Return the constraints that still apply and that no message of `stays` states. `unstated` are the texts
    of those that a message of `stays` no longer shows."""
    return tuple(one for one in said.in_force if one.entry_id not in stays or one.text in unstated)


def _max_constraint_tokens(inputs: Inputs) -> int:
    """Return the most tokens that the user's constraints may take in a summary."""
    most, target = inputs.settings.constraint_tokens, inputs.request.target_tokens
    if most is not None:
        return most
    if target is not None:
        return max(MIN_CONSTRAINT_TOKENS, target // TARGET_DIVISOR)
    return max(
        MIN_CONSTRAINT_TOKENS,
        summary_budget(inputs.settings, inputs.standing.summary_window) // SUMMARY_DIVISOR,
    )


def _between(first: int, last: int, stays: Sequence[int]) -> tuple[range, ...]:
    """Return the indices from `first` (inclusive) to `last` (exclusive) as ranges, without the indices in
    `stays`, which must be ascending. O(length of `stays`)."""
    starts, ends = [first, *(index + 1 for index in stays)], [*stays, last]
    return tuple(range(start, end) for start, end in zip(starts, ends, strict=True) if start < end)


def _pins(inputs: Inputs, outline: Outline) -> Iterator[frozenset[int]]:
    """Yield the batches that stay if there is room, newest first, as sets of indices. They contain the
    messages that the user pinned. If the newest request is a shell command, they also contain the newest
    request that is not a shell command."""
    items = inputs.view.items
    wanted = set(outline.pinned)
    if inputs.pinned:
        wanted.update(compress(range(len(items)), map(frozenset(inputs.pinned).__contains__, outline.ids)))
    if outline.request != outline.typed_request and outline.typed_request is not None:
        wanted.add(outline.typed_request)
    seen: set[int] = set()
    for index in sorted(wanted, reverse=True):
        batch = outline.batch(index)
        if is_summary(items[index].message) or not seen.isdisjoint(batch):
            continue
        seen |= batch
        yield batch
