"""Divide the size of the next request into parts, so that all commands show the same numbers.

The total is the size of the whole next request, from the provider's report if there is one. The size of a
part, entry or message is this process's own estimate. The tokens of the total that no estimate explains are
the part `NOT_IN_FILE`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
    """The estimate for everything in the file. If it is larger than `used`, the sizes in `parts` are the
    estimates scaled down; otherwise they are the estimates.
    """

    @property
    def not_in_file(self) -> int:
        """Tokens that only the provider's report shows."""
        return self.parts[NOT_IN_FILE]

    def scaled(self, estimate: int) -> int:
        """Return the size to show for something with this estimate: scaled down if the sizes in `parts`
        are.
        """
        return estimate if self.estimate <= self.used else round(estimate * self.used / self.estimate)

    def scaled_each(self, estimates: Sequence[int]) -> list[int]:
        """Return the size to show for each of `estimates`. The sum of these sizes is `scaled` of the sum of
        the estimates.
        """
        shown: list[int] = []
        done = given = 0
        for tokens in estimates:
            # Rounding the running sum leaves no remainder.
            done += tokens
            until = self.scaled(done)
            shown.append(until - given)
            given = until
        return shown

    def scaled_result(self, result: CompactionResult) -> CompactionResult:
        """Return `result` with the sizes of the whole request before and after the compaction. The part
        `NOT_IN_FILE` stays as large as it is.
        """
        saved = min(self.used, self.scaled(result.tokens_saved))
        return replace(result, tokens_before=self.used, tokens_after=self.used - saved, tokens_saved=saved)


def breakdown_of(estimates: Mapping[str, int], used: int) -> RequestBreakdown:
    """Divide the next request of `used` tokens into parts with the given estimates. O(parts).

    The estimates stay unchanged, and the remaining tokens become the part `NOT_IN_FILE`. If the sum of the
    estimates exceeds `used`, they are scaled down to it, because the provider's report is right and the
    estimates are not.
    """
    estimate = sum(estimates.values())
    context = RequestBreakdown(used=used, parts={}, estimate=estimate)
    parts = dict(zip(estimates, context.scaled_each(tuple(estimates.values())), strict=True))
    return replace(context, parts={**parts, NOT_IN_FILE: max(0, used - estimate)})
