"""Choose how long Anthropic keeps a session's requests in its prompt cache: 5 minutes or 1 hour.

A write for an hour is dearer (2 instead of 1.25 times the input price). It pays if the session often pauses
for more than 5 minutes and at most an hour: the next request then reads its context instead of writing it
again.

What happens at the provider if the lifetime changes (platform.claude.com, "Prompt caching", parts "Mixing
different TTLs" and "1-hour cache duration", as known in 2026-11): a request reads the longest prefix that is
in the cache, whatever lifetime that has, and a read starts the prefix's own lifetime again. Then the request
writes what follows, up to its marks, for the lifetime that the marks name. So a change writes nothing again
by itself. The page does not say whether a prefix that was written for 5 minutes stays for an hour if a mark
for an hour follows it. If not, the next pause writes it again, for an hour. So a change must promise clearly
more than it costs, in both directions. If the next request must write all of its context, this is part of
what a change to an hour costs.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from compactd.core.cost.cache_rules import ONE_HOUR_S
from compactd.core.cost.price import Rates

Lifetime = Literal["5m", "1h"]
"""How long the provider keeps what it cached, from the last time it was read."""

FIVE_MINUTES_S = 300.0
MIN_GAPS = 3
"""With fewer gaps between requests, the lifetime stays as it is."""
MARGIN = 1.5
"""The other lifetime is chosen if what it saves is more than so many times what it costs."""
DECAY = 0.99
"""With each later gap, a gap weighs so much less. After 69 gaps it weighs half."""


class Pauses:
    """The gaps between a session's requests, by what the cache's lifetime means for them. Each request
    updates these counters in O(1)."""

    def __init__(self) -> None:
        self.requests = 0
        """How many requests there have been."""
        self.gaps = 0
        """How many gaps there have been."""
        self.short = 0.0
        """Gaps after which either lifetime writes the same: those of at most 5 minutes, and those of at most
        an hour before a request whose messages had changed. Weighted by `DECAY`, as the others are."""
        self.middle = 0.0
        """Gaps of more than 5 minutes and at most an hour. Only these cost less with the longer lifetime."""
        self.long = 0.0
        """Gaps of more than an hour."""
        self._fresh = 0.0
        self._last_at: float | None = None
        self._is_changed = False

    def note_request(self, at: float, fresh: int) -> None:
        """Count a request that was answered at `at`, in seconds since 1970. `fresh`: the tokens of its input
        that were not read from the cache.

        These are no gaps: if `at` is 0, so that a time is not known; if it is earlier than that of the last
        request, so that the clock went back; if it is the same, as in a transcript that came at once. O(1).
        """
        self.requests += 1
        last, self._last_at = self._last_at, at or None
        is_changed, self._is_changed = self._is_changed, False
        if not at or last is None or at <= last:
            return
        self.gaps += 1
        self.short, self.middle, self.long, self._fresh = (
            DECAY * counted for counted in (self.short, self.middle, self.long, self._fresh)
        )
        if at - last > ONE_HOUR_S:
            self.long += 1
        elif at - last > FIVE_MINUTES_S and not is_changed:
            self.middle += 1
        else:
            self.short += 1
            self._fresh += fresh

    def note_change(self) -> None:
        """Note that the next request must be written again anyway: after a compaction, undo or prune, or
        because another model answers. O(1)."""
        self._is_changed = True

    def fresh_tokens(self, otherwise: float) -> float:
        """Return how many tokens a request writes with either lifetime, on average; `otherwise` if no gap
        shows it. O(1)."""
        return self._fresh / self.short if self.short else otherwise


class NextWrite(Struct, frozen=True, kw_only=True):
    """What is known of the next request. Sizes are tokens."""

    context: int
    """Its size."""
    growth: float
    """How many tokens a request adds, on average. It counts as long as no gap has shown what is written."""
    is_cold: bool
    """Whether the cache has expired, so that this request writes all of its context."""


def choose_lifetime(current: Lifetime, pauses: Pauses, request: NextWrite, rates: Rates) -> Lifetime:
    """Return the lifetime with which a session costs less if it goes on as so far. `current` is that of the
    last request. It stays if there are few gaps, and if the other one is not clearly cheaper. O(1).

    More gaps between 5 minutes and an hour never shorten the lifetime. More gaps above an hour can: after
    them, all is written again with either lifetime, and that costs more with the longer one.
    """
    if pauses.gaps < MIN_GAPS:
        return current
    fresh = pauses.fresh_tokens(request.growth)
    written = (pauses.short + pauses.middle) * fresh + (pauses.long + request.is_cold) * request.context
    extra = written * (rates.cache_write_1h - rates.cache_write_5m)
    saved = pauses.middle * request.context * (rates.cache_write_5m - rates.cache_read)
    if current == "5m":
        return "1h" if saved > MARGIN * extra else "5m"
    return "5m" if extra > MARGIN * saved else "1h"
