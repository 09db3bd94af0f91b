"""A cache of what a plan computes about a session, so that the next plan only computes what is new.

The cache decides nothing: a plan without it computes the same result. While a plan runs in a worker, the
event loop may append to the session. So a worker computes its own values and stores them in the cache as a
whole, and values that the event loop updates are copied before a worker sees them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Protocol

from msgspec import Struct

from compactd.core.history.entries import Item
from compactd.core.history.outline import Outline, OutlineBuilder
from compactd.core.tokens.counting import Counter

MAX_INLINE_MESSAGES = 64
"""The event loop adds at most this many messages to the outline at once, at a few µs each. If more were
appended, the next plan computes the outline in a worker."""

MAX_COUNTS = 4_096
"""How many texts have their token counts cached. Each plan counts the same texts again: the fixed parts of
the summary and the user's constraints."""


CountText = Callable[[str], int]
"""A function that counts the tokens of a text."""


class PathIndex(Protocol):
    """What was found in the messages of a path (the user's constraints), up to the entry that was read
    last."""

    @property
    def read(self) -> int:
        """How many entries of the path were read, from its first on."""
        ...


class ViewCache:
    """The cache for one view of one path. A changed view gets a new cache."""

    def __init__(self, said: PathIndex | None = None) -> None:
        self.said = said
        """The user's constraints on the path so far; None if they were never computed."""
        self.outlining: OutlineBuilder | None = OutlineBuilder()
        """The outline being updated; None if it was dropped, so that the next plan computes it."""
        self._counting: tuple[Counter, CountText] | None = None
        """A counter, and its method `count` with a cache."""

    def take_in(self, items: Sequence[Item]) -> None:
        """Add to the outline the messages that were appended to `items`, the view's items. If there are more
        than `MAX_INLINE_MESSAGES` new messages or one is not decoded, drop the outline instead; the next plan
        computes it. O(new messages)."""
        known = self.outlining
        if known is None:
            return
        new = items[known.count :]
        if len(new) <= MAX_INLINE_MESSAGES and all(item.is_decoded for item in new):
            for item in new:
                known.add(item)
        else:
            # Messages that are still bytes, as in a session that is being opened, are left to a worker.
            self.outlining = None

    def snapshot(
        self, items: Sequence[Item], since: Callable[[int], Sequence[Item]], read: int
    ) -> CachedView:
        """Return what is known of the view now. `since(n)` returns the original messages of the path from
        entry `n` on. The path has `read` entries. O(messages), a fast copy."""
        outlining, said = self.outlining, self.said
        is_current = outlining is not None and outlining.count == len(items)
        return CachedView(
            kept=self,
            outline=outlining.outline() if outlining is not None and is_current else None,
            path_index=said,
            fresh=tuple(since(0 if said is None else said.read)),
            read=read,
        )

    def count_with(self, counter: Counter) -> CountText:
        """Return a function that counts a text's tokens like `counter.count`, and caches the counts."""
        if self._counting is None or self._counting[0] != counter:
            self._counting = (counter, lru_cache(MAX_COUNTS)(counter.count))
        return self._counting[1]


class CachedView(Struct, frozen=True, kw_only=True):
    """What the cache had when a plan began, and which messages it had not read."""

    kept: ViewCache
    outline: Outline | None
    """The outline of the view; None if it must be computed."""
    path_index: PathIndex | None
    fresh: tuple[Item, ...]
    """Original messages of the path that `path_index` has not read yet, oldest first."""
    read: int
    """The number of entries of the path, including those of `fresh`."""

    def outline_of(self, items: Sequence[Item]) -> Outline:
        """Return the outline of the view's items. If it must be computed, the cache keeps it up to date from
        now on. O(blocks) then."""
        if self.outline is not None:
            return self.outline
        outlining = OutlineBuilder(items)
        made = outlining.outline()
        self.kept.outlining = outlining
        return made


def nothing_cached(originals: Sequence[Item]) -> CachedView:
    """Return what an empty cache knows: nothing. All `originals` are new."""
    return CachedView(
        kept=ViewCache(), outline=None, path_index=None, fresh=tuple(originals), read=len(originals)
    )
