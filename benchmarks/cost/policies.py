"""The policies that are compared: fixed thresholds, never, the agent's own compactions, the cost policy."""

from __future__ import annotations

from msgspec import Struct

from benchmarks.cost.bill import PriceList, is_cold
from benchmarks.cost.replay import Moment
from compactd.core.cost.policy import KEPT_TOKENS, Situation, decide, target_of
from compactd.core.cost.price import rates_of

WINDOW = 200_000
THRESHOLDS = (40_000, 60_000, 80_000, 100_000, 130_000, 160_000, 190_000)
"""The last two are 80 % and 95 % of the window."""
MIN_GROWN = 2_000
"""A fixed threshold does not compact again before so many tokens came."""


class Fixed(Struct, frozen=True, tag="fixed"):
    """Compacts when the request reaches a threshold."""

    threshold: int
    kept: int = KEPT_TOKENS
    """To how many tokens of messages it compacts, as the cost policy does, so that only the time of the
    compaction differs."""
    is_own: bool = False

    @property
    def name(self) -> str:
        """The threshold, as shown in tables."""
        return f"{self.threshold // 1000}k" + ("" if self.kept == KEPT_TOKENS else " today")

    def target(self, moment: Moment) -> int | None:
        """Return the size to compact to if the threshold is reached."""
        if moment.size < self.threshold or moment.grown < MIN_GROWN:
            return None
        return min(moment.head + self.kept, self.threshold * 9 // 10)


class Never(Struct, frozen=True, tag="never"):
    """Never compacts, as if the window had no end."""

    is_own: bool = False
    name: str = "never"

    def target(self, moment: Moment) -> int | None:
        """Return None."""
        return None


class Own(Struct, frozen=True, tag="own"):
    """Uses the compactions that the recording contains."""

    is_own: bool = True
    name: str = "own"

    def target(self, moment: Moment) -> int | None:
        """Return None."""
        return None


class Cost(Struct, frozen=True, tag="cost"):
    """Decides with the daemon's own cost policy, and compacts at 80 % of the window in any case."""

    prices: PriceList
    kept: int = KEPT_TOKENS
    is_own: bool = False

    @property
    def name(self) -> str:
        """The policy's name, as shown in tables."""
        return "cost" if self.kept == KEPT_TOKENS else f"cost, {self.kept // 1000}k"

    def target(self, moment: Moment) -> int | None:
        """Return the size to compact to if it pays."""
        after = target_of(moment.head, moment.newest_request, self.kept)
        if moment.size < WINDOW * 4 // 5:
            decision = decide(
                Situation(
                    context=moment.size,
                    after=after,
                    head=moment.head,
                    growth=moment.rhythm.growth(),
                    requests=moment.rhythm.requests,
                    grown=moment.grown,
                    is_cold=None if moment.gap_s is None else is_cold(moment.gap_s, self.prices.lifetime_s),
                ),
                rates_of(self.prices.pricing, moment.size),
            )
            if not decision.compact:
                return None
        return after


TODAY = Fixed(160_000, WINDOW // 4 + WINDOW // 16)
"""compactd's default at 80 % of the window: it keeps a quarter of the window word for word, and its summary
has at most a sixteenth of the window."""

AnyPolicy = Fixed | Never | Own | Cost
