"""A view to be compacted, and the ways to cut it.

A `Case` holds what does not change while ways are tried; a `Shape` is one of them, with what it keeps and
what it frees. Tokens throughout. (Rules: docs/dev/behaviour.md, "A compaction", 2.)
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import compress
from operator import sub

from msgspec import Struct

from compactd.core.budget.budget import SUMMARY_LEAST, room, summary_budget
from compactd.core.constraints.constraints import (
    LEAST_TOKENS,
    NOTHING_SAID,
    SUMMARY_DIVISOR,
    TARGET_DIVISOR,
    Constraint,
    Constraints,
    Found,
    Said,
    bullets,
    within,
)
from compactd.core.history.entries import EntryId, Item, Stub, is_summary
from compactd.core.history.outline import Outline
from compactd.core.history.projection import INTERRUPTED, projected_tokens
from compactd.core.history.view_cache import Costs, Known, unknown
from compactd.core.planning.clip import clip
from compactd.core.planning.prune import result_places, stubs_for
from compactd.core.planning.request import Inputs
from compactd.core.text.summary_format import CONSTRAINTS, smallest_tokens
from compactd.core.tokens.counting import Counter, block_tokens
from compactd.protocol.errors import CannotFit
from compactd.protocol.messages import Floor, PinReason, ToolResult

PINS_DIVISOR = 8
"""Of the window, for the messages that a user pinned."""

TARGET_PINS_DIVISOR = 4
"""The same of `target_tokens`."""

PINS_WITHOUT_WINDOW = 16_000
"""The same where no window is known: 128,000 ÷ 8."""


class Shape(Struct, frozen=True, kw_only=True):
    """One way to cut. Indices into the view's items."""

    cut: int
    pinned: tuple[int, ...]
    removed: tuple[range, ...]
    """None of them empty, in order."""
    stubs: Mapping[int, Stub]
    """Of what stays."""
    shortened: int
    """Tool results that `stubs` shorten."""
    kept_tokens: int
    """What stays, without the fixed part: pinned, tail, and the earlier summary where it stays."""
    removed_tokens: int
    """`removed`, and the earlier summary where it is taken in: what the new summary stands for."""
    gone: int
    """Those, and what the stubs save."""
    takes_in_summary: bool
    """The earlier summary goes into the new one."""
    unpinned: int
    """Pinned messages that found no room."""
    is_reduced: bool = False
    """Less of the tail stays than the walk kept."""


class Case(Struct, frozen=True, kw_only=True):
    """What the shapes have in common."""

    inputs: Inputs
    items: tuple[Item, ...]
    outline: Outline
    """Of `items`."""
    costs: Costs
    start: int
    """No cut is at or below this but in a `target_tokens` compaction that takes in an earlier summary."""
    merged: Item | None
    """The earlier summary."""
    fixed: int
    repair: int
    """Tokens of the error result that a call without one gets."""
    before: int
    limit: int | None
    """Most tokens of the new request."""
    request: frozenset[int]
    """The newest request, with the batch that it answers where it stands in one message with results."""
    request_tokens: int
    pins: tuple[frozenset[int], ...]
    """What the user pinned, whole batches, newest first."""
    frame: int
    """Tokens of the smallest summary, without the user's constraints."""
    said: Constraints
    """What the user demands."""
    most_constraints: int
    """Tokens that the constraints in a summary may take."""
    least: int
    """Tokens of the smallest summary, with the constraints that the newest request does not hold."""

    @classmethod
    def of(cls, inputs: Inputs) -> Case:
        """The case of a view. O(what is not known yet)."""
        items, fixed, request = inputs.view.items, inputs.fixed, inputs.request
        known = inputs.known or unknown(inputs.originals or items)
        outline, costs = known.outline_of(items), known.kept.costs(inputs.counter)
        merged = items[0] if items and is_summary(items[0].message) else None
        limit = room(inputs.standing.window, inputs.standing.cap)
        if request.below is not None:
            limit = min(request.below - 1, request.below - 1 if limit is None else limit)
        asked = frozenset[int]() if outline.request is None else outline.batch(outline.request)
        frame = smallest_tokens(inputs.settings.rules.lead, inputs.settings.rules.end, costs.count)
        said = _said_now(known, inputs.limits).demands
        most = _most_constraints(inputs)
        there = frozenset(outline.ids[i] for i in asked)
        pinned = within(_elsewhere(said, there), most, costs.count)
        return cls(
            inputs=inputs,
            items=items,
            outline=outline,
            costs=costs,
            start=max(inputs.view.tail_from, 0 if merged is None else 1),
            merged=merged,
            fixed=fixed.system + fixed.tools,
            repair=costs.count(INTERRUPTED) if outline.unanswered else 0,
            before=fixed.system + fixed.tools + projected_tokens(items, outline, costs),
            limit=limit,
            request=asked,
            request_tokens=sum(outline.tokens(i) for i in asked),
            pins=tuple(_pins(inputs, outline)),
            frame=frame,
            said=said,
            most_constraints=most,
            least=frame + constraint_tokens(pinned, costs),
        )

    @property
    def is_too_large(self) -> bool:
        """The present request is above the limit."""
        return self.limit is not None and self.before > self.limit

    @property
    def messages(self) -> int:
        """Messages of the view without an earlier summary."""
        return len(self.items) - (self.merged is not None)

    def sizes(self) -> list[int]:
        """Tokens of each message, with the error results that its calls without one get. O(messages)."""
        sums = self.outline.sums
        sizes = list(map(sub, sums[1:], sums))
        for index, count in self.outline.unanswered.items():
            sizes[index] += count * self.repair
        return sizes

    def size_from(self, cut: int) -> int:
        """The same of all messages from `cut` on. O(calls without a result)."""
        sums, unanswered = self.outline.sums, self.outline.unanswered
        missing = sum([count for index, count in unanswered.items() if index >= cut]) if unanswered else 0
        return sums[-1] - sums[cut] + missing * self.repair

    def floor(self) -> Floor:
        """What no compaction can remove: with the newest request, a batch whose calls wait for results."""
        last = self.request_tokens
        if not self.outline.is_safe(len(self.items)):
            batch = self.outline.last_batch
            last += self.size_from(batch) - sum(self.size(i) for i in self.request if i >= batch)
        return Floor(
            system=self.inputs.fixed.system,
            tools=self.inputs.fixed.tools,
            last_request=last,
            summary=self.least,
        )

    def shape(
        self,
        cut: int,
        stubs: Mapping[int, Stub] | None = None,
        *,
        with_pins: bool = True,
        takes_in_summary: bool = False,
    ) -> Shape:
        """The shape of cutting here. An earlier summary is taken in where anything is removed, or where
        asked. O(what is pinned or shortened)."""
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
        return Shape(
            cut=cut,
            pinned=tuple(sorted(pinned)),
            removed=removed,
            stubs=shown,
            shortened=sum(self._shortened(i, stub) for i, stub in shown.items()),
            kept_tokens=kept,
            removed_tokens=whole - left,
            gone=whole - kept,
            takes_in_summary=takes_in,
            unpinned=unpinned,
        )

    def size(self, index: int) -> int:
        """Tokens of a message, with the error results that its calls without one get."""
        return self.outline.tokens(index) + self.outline.unanswered.get(index, 0) * self.repair

    def constraints(
        self, shape: Shape, budget: int
    ) -> tuple[tuple[Constraint, ...], tuple[Constraint, ...], int]:
        """(the user's constraints that the summary must hold, as what stays does not; those that have no
        room: `within` chooses; how many more count for nothing)."""
        if not self.said.in_force:
            return (), (), 0
        ids = self.outline.ids
        stays = frozenset((*[ids[i] for i in shape.pinned], *ids[shape.cut :]))
        heading = self.costs.count(CONSTRAINTS + "\n") + 1
        most = min(self.most_constraints, budget - self.frame - heading)
        wanted = _elsewhere(self.said, stays)
        chosen = within(wanted, most, self.costs.count)
        taken = frozenset(one.text for one in chosen)
        dropped = tuple(one for one in wanted if one.text not in taken)
        return chosen, dropped, self.said.left_out_of(stays)

    def is_summarised(self, shape: Shape) -> bool:
        """Whether there is anything for a summary to stand for."""
        return bool(shape.removed) or shape.takes_in_summary

    def lacks(self, shape: Shape, limit: int, *, comfortably: bool) -> int:
        """Tokens by which the new request would exceed `limit`, with the smallest summary or, `comfortably`,
        one of a useful size; 0 or less where it fits."""
        need = 0
        if self.is_summarised(shape):
            need = self.least
            if comfortably:
                need = max(need, min(SUMMARY_LEAST, self._most_summary(shape)))
        return self.fixed + shape.kept_tokens + need - limit

    def summary_budget(self, shape: Shape, limit: int | None, *, whole: bool) -> int:
        """Most tokens of the summary's text: less than what goes, and no more than the limit leaves.

        Where it does not get the `whole` rest of a target, no more than the settings say, and by default half
        of what goes: else a small window would be due again at once.
        """
        most = shape.gone - 1
        if limit is not None:
            most = min(most, limit - self.fixed - shape.kept_tokens)
        return max(0, most if whole else min(most, self._most_summary(shape)))

    def cannot_fit(self, limit: int) -> CannotFit:
        """The error for a conversation that no compaction brings below `limit`."""
        floor = self.floor()
        return CannotFit(
            f"This cannot fit {limit:,} tokens: the system prompt takes {floor.system:,}, the tools"
            f" {floor.tools:,}, the newest request {floor.last_request:,}, the smallest summary"
            f" {floor.summary:,}. Shorten the request, offer fewer tools, or use a larger window.",
            limit=limit,
            floor={
                "system": floor.system,
                "tools": floor.tools,
                "last_request": floor.last_request,
                "summary": floor.summary,
            },
        )

    def clipped(self, first: int, most_tokens: int) -> dict[int, Stub] | None:
        """The results of the messages from `first` on, shortened so that these messages take at most
        `most_tokens` together; none where that cannot be."""
        places = result_places(self.items, first, len(self.items))
        counter = self.inputs.counter
        results = sum(block_tokens(self.items[i].message.content[at], counter) for i, at in places)
        others = self.size_from(first) - results
        clipping = clip(self.items, places, most_tokens - others, counter)
        if clipping is None:
            return None
        return self._by_index(clipping.stubs)

    def pruned(self, first: int, last: int) -> dict[int, Stub]:
        """Stubs for all tool output of the messages from `first` up to `last`."""
        pinned = frozenset().union(*self.pins)
        places = [place for place in result_places(self.items, first, last) if place[0] not in pinned]
        return self._by_index(stubs_for(self.items, places, self.inputs.counter).stubs)

    def pin_reason(self, index: int) -> PinReason:
        """Why a message stays although it is older than the tail. O(what is pinned)."""
        if index in self.request:
            return "request"
        batch = self.outline.batch(index)
        marked = frozenset((*self.outline.pinned, *self._marked))
        return "pinned" if not marked.isdisjoint(batch) else "command"

    @property
    def _marked(self) -> Iterator[int]:
        """Messages that `session/pin` named."""
        ids = self.outline.ids
        return compress(range(len(ids)), map(frozenset(self.inputs.pinned).__contains__, ids))

    def pins_cap(self) -> int:
        """Most tokens of what a user pinned and the tail does not hold."""
        target, window = self.inputs.request.target_tokens, self.inputs.standing.summary_window
        if target is not None:
            return target // TARGET_PINS_DIVISOR
        return PINS_WITHOUT_WINDOW if window is None else window // PINS_DIVISOR

    def _pinned_before(self, cut: int, with_pins: bool) -> tuple[set[int], int]:
        """(indices that stay although older than the cut, pinned messages that do not)."""
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

    def _shortened(self, index: int, stub: Stub) -> int:
        content = self.items[index].message.content
        shown = ((content[at], text) for at, text in stub.texts)
        return sum(isinstance(block, ToolResult) and block.content != text for block, text in shown)

    def _most_summary(self, shape: Shape) -> int:
        """What the settings give a summary, and less than what it stands for."""
        settings = self.inputs.settings
        share = shape.removed_tokens - 1 if settings.summary_tokens is not None else shape.removed_tokens // 2
        return min(summary_budget(settings, self.inputs.standing.summary_window), max(self.least, share))

    def _by_index(self, stubs: Sequence[Stub]) -> dict[int, Stub]:
        if not stubs:
            return {}
        places = {entry_id: index for index, entry_id in enumerate(self.outline.ids)}
        return {places[stub.entry_id]: stub for stub in stubs}


def constraint_tokens(constraints: Sequence[Constraint], counter: Counter) -> int:
    """What they take in a summary, with a heading. 0 for none."""
    if not constraints:
        return 0
    return counter.count("\n".join((CONSTRAINTS, *bullets(constraints)))) + 1


def _said_now(known: Known, limits: Found | None) -> Said:
    """What the user demands, with the new messages read. O(characters that users typed in those)."""
    before = known.said if isinstance(known.said, Said) else NOTHING_SAID
    said = before.further(known.fresh, limits, known.read)
    if known.kept.said is known.said:
        known.kept.said = said
    return said


def _elsewhere(said: Constraints, stays: Collection[EntryId]) -> tuple[Constraint, ...]:
    return tuple(one for one in said.in_force if one.entry_id not in stays)


def _most_constraints(inputs: Inputs) -> int:
    most, target = inputs.settings.constraint_tokens, inputs.request.target_tokens
    if most is not None:
        return most
    if target is not None:
        return max(LEAST_TOKENS, target // TARGET_DIVISOR)
    return max(
        LEAST_TOKENS, summary_budget(inputs.settings, inputs.standing.summary_window) // SUMMARY_DIVISOR
    )


def _between(first: int, last: int, stays: Sequence[int]) -> tuple[range, ...]:
    """What is from `first` up to, not including, `last` without what `stays`, which rises. O(what stays)."""
    starts, ends = [first, *(index + 1 for index in stays)], [*stays, last]
    return tuple(range(start, end) for start, end in zip(starts, ends, strict=True) if start < end)


def _pins(inputs: Inputs, outline: Outline) -> Iterator[frozenset[int]]:
    """What stays if there is room, newest first: what the user pinned, and, where the newest request is a
    shell command, the request before it."""
    items = inputs.view.items
    wanted = set(outline.pinned)
    if inputs.pinned:
        wanted.update(compress(range(len(items)), map(frozenset(inputs.pinned).__contains__, outline.ids)))
    if outline.request != outline.spoken and outline.spoken is not None:
        wanted.add(outline.spoken)
    seen: set[int] = set()
    for index in sorted(wanted, reverse=True):
        batch = outline.batch(index)
        if is_summary(items[index].message) or not seen.isdisjoint(batch):
            continue
        seen |= batch
        yield batch
