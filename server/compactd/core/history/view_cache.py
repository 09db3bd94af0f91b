"""What is kept of a session from one plan to the next, so that a plan costs what is new.

Nothing here decides anything: a plan that finds none of it works it out and comes to the same. A session is
appended to in the loop while a worker plans: what a worker works out it works out for itself, and gives it
here whole; what the loop keeps up is copied before a worker sees it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct

from compactd.core.history.entries import Item
from compactd.core.history.outline import Outline, Outlining
from compactd.core.tokens.counting import Counter

FEW = 64
"""Messages that the loop takes in at once, at some µs each; more are for a worker."""

MOST_COUNTS = 4_096
"""Texts whose tokens are kept: a plan counts its frame and the user's constraints, always the same ones."""


class PathIndex(Protocol):
    """What was found in the messages of a path, as far as it was read."""

    @property
    def read(self) -> int:
        """Entries of the path that were read, from its first on."""
        ...


class Costs:
    """A counter that remembers what each plan counts again: short texts, and messages shown in part."""

    __slots__ = ("_messages", "_texts", "counter")

    def __init__(self, counter: Counter) -> None:
        self.counter = counter
        self._texts: dict[str, int] = {}
        self._messages: dict[int, int] = {}

    @property
    def name(self) -> str:
        """The counter's."""
        return self.counter.name

    @property
    def exact(self) -> bool:
        """As the counter is."""
        return self.counter.exact

    def count(self, text: str) -> int:
        """Tokens of `text`. O(text) at the first time."""
        known = self._texts.get(text)
        if known is None:
            if len(self._texts) >= MOST_COUNTS:
                self._texts = {}
            known = self._texts[text] = self.counter.count(text)
        return known

    def of_message(self, index: int, count: Callable[[], int]) -> int:
        """What `count` gives for this message of the view, at the first time."""
        known = self._messages.get(index)
        if known is None:
            known = self._messages[index] = count()
        return known


class Kept:
    """What is kept of one view of one path: a changed one begins anew."""

    __slots__ = ("_costs", "_outlining", "said")

    def __init__(self, said: PathIndex | None = None) -> None:
        self.said = said
        """What the user demanded on the path so far; none: nobody asked yet."""
        self._outlining: Outlining | None = Outlining()
        """None: it fell behind, and the next plan works it out."""
        self._costs: Costs | None = None

    def appended(self, items: Sequence[Item]) -> None:
        """Takes in the newest of `items`, the view's, where that needs no decoding. O(that message)."""
        known = self._outlining
        if known is None:
            return
        behind = len(items) - known.count
        if behind == 1 and items[-1].is_decoded:
            known.add(items[-1])
        elif behind <= FEW and all(item.is_decoded for item in items[-behind:]):
            for item in items[-behind:]:
                known.add(item)
        else:
            # What stays bytes, as in a session that is being opened, is for a worker to ask for.
            self._outlining = None

    def rebuilt(self) -> Kept:
        """What is left where another view of the same path is shown."""
        return Kept(self.said)

    def known(self, items: Sequence[Item], since: Callable[[int], Sequence[Item]], read: int) -> Known:
        """What is known of the view as it stands. `since`: the originals of the path from an entry on, of the
        `read` entries it has. O(messages), at the speed of memory."""
        outlining, said = self._outlining, self.said
        is_current = outlining is not None and outlining.count == len(items)
        return Known(
            kept=self,
            outline=outlining.outline() if outlining is not None and is_current else None,
            said=said,
            fresh=tuple(since(0 if said is None else said.read)),
            read=read,
        )

    def outlined(self, items: Sequence[Item]) -> Outline:
        """The outline of `items`, kept for what is appended to them. O(blocks)."""
        outlining = Outlining(items)
        made = outlining.outline()
        self._outlining = outlining
        return made

    def costs(self, counter: Counter) -> Costs:
        """What is counted again and again, by this counter."""
        known = self._costs
        if known is None or known.counter != counter:
            known = self._costs = Costs(counter)
        return known


class Known(Struct, frozen=True, kw_only=True):
    """What was known before a plan, and what is new since then."""

    kept: Kept
    outline: Outline | None
    """None where it must be worked out."""
    said: PathIndex | None
    fresh: tuple[Item, ...]
    """Originals of the path that `said` has not read, oldest first."""
    read: int
    """Entries of the path, those included."""

    def outline_of(self, items: Sequence[Item]) -> Outline:
        """The outline of the view's items."""
        return self.kept.outlined(items) if self.outline is None else self.outline


def unknown(originals: Sequence[Item]) -> Known:
    """Nothing is known yet."""
    return Known(kept=Kept(), outline=None, said=None, fresh=tuple(originals), read=len(originals))
