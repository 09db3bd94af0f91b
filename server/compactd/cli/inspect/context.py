"""Divide the size of the next request into parts, so that all commands show the same numbers.

The total is the size of the whole next request, from the provider's report if there is one. The size of a
part, entry or message is this process's own estimate. The tokens of the total that no estimate explains are
the part `NOT_IN_FILE`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate, pairwise

from msgspec import Struct
from msgspec.structs import replace

from compactd.protocol.messages import CompactionResult

NOT_IN_FILE = "not_in_file"
"""The part that only a provider's report shows: the agent's system prompt and tools, and whatever the agent
adds to a request without recording it.
"""


class RequestBreakdown(Struct, frozen=True, kw_only=True):
    """The next request, divided into parts. Sizes are in tokens."""

    used: int
    """The whole request."""
    parts: Mapping[str, int]
    """Tokens of each part. Their sum is `used`."""
    estimate: int
    """The estimated tokens of everything in the file. If this is more than `used`, the estimates in `parts`
    are scaled down so that their sum is `used`.
    """

    @property
    def not_in_file(self) -> int:
        """Tokens that only the provider's report shows."""
        return self.parts[NOT_IN_FILE]

    def scaled(self, estimate: int) -> int:
        """Return the size to show for a part, entry or message of `estimate` tokens: the estimate itself, or
        the estimate scaled down as in `parts`.
        """
        return estimate if self.estimate <= self.used else round(estimate * self.used / self.estimate)

    def scaled_result(self, result: CompactionResult) -> CompactionResult:
        """Return `result` with the sizes of the whole request instead of the daemon's: `used` before the
        compaction, and `used` minus the saved tokens after it. The saved tokens are scaled like an estimate.
        """
        saved = min(self.used, self.scaled(result.tokens_saved))
        return replace(result, tokens_before=self.used, tokens_after=self.used - saved, tokens_saved=saved)


def round_each(values: Iterable[int], rounded: Callable[[int], int]) -> list[int]:
    """Return each of `values` as `rounded` changes it, but so that the sum of the results is
    `rounded(sum(values))`: the running sum is rounded, which leaves no remainder.
    """
    ends = [rounded(total) for total in accumulate(values)]
    return [end - start for start, end in pairwise((0, *ends))]


def breakdown_of(estimates: Mapping[str, int], used: int) -> RequestBreakdown:
    """Divide the next request of `used` tokens into parts with the given estimates. O(parts).

    The estimates stay unchanged, and the remaining tokens become the part `NOT_IN_FILE`. If the sum of the
    estimates exceeds `used`, the estimates are scaled down to `used`: the provider's report is right, and the
    estimates are not.
    """
    estimate = sum(estimates.values())
    context = RequestBreakdown(used=used, parts={}, estimate=estimate)
    parts = dict(zip(estimates, round_each(estimates.values(), context.scaled), strict=True))
    return replace(context, parts={**parts, NOT_IN_FILE: max(0, used - estimate)})
