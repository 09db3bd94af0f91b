"""The next request of a session: how many tokens it has, and what they are.

One function, `fill`, divides the size of the next request into parts. All commands show its numbers, so that
they agree. A total is the next request with all that it holds. A part, an entry or a message is counted by
our estimate. What a provider's report shows beyond that is not in the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from compactd.protocol.messages import CompactionResult

NOT_IN_FILE = "not_in_file"
"""The part that only a provider's report shows: the agent's system prompt and tools, and what it adds to a
request without writing it down."""


class Context(Struct, frozen=True, kw_only=True):
    """The next request, divided. Tokens."""

    used: int
    """All of it."""
    parts: Mapping[str, int]
    """They add up to `used`."""
    estimate: int
    """What we estimate for all that is in the file. `parts` hold it as it is, or shrunk to `used`."""

    @property
    def not_in_file(self) -> int:
        """What only a report shows."""
        return self.parts[NOT_IN_FILE]

    def shown(self, estimate: int) -> int:
        """What `parts` hold of something that we estimate at so many tokens."""
        return estimate if self.estimate <= self.used else round(estimate * self.used / self.estimate)

    def shown_each(self, estimates: Sequence[int]) -> list[int]:
        """The same of each of `estimates`, so that they add up as all of them do."""
        shown: list[int] = []
        done = given = 0
        for tokens in estimates:
            # Rounded as a running sum, so that nothing is left over.
            done += tokens
            until = self.shown(done)
            shown.append(until - given)
            given = until
        return shown

    def compacted(self, result: CompactionResult) -> CompactionResult:
        """A compaction of this context, with sizes of the whole request. What is not in the file stays."""
        saved = min(self.used, self.shown(result.tokens_saved))
        return replace(result, tokens_before=self.used, tokens_after=self.used - saved, tokens_saved=saved)


def fill(estimates: Mapping[str, int], used: int) -> Context:
    """The next request of `used` tokens, divided into parts that we estimate. O(parts).

    The estimates stay as they are, and the rest is not in the file. If they are larger than the request, they
    are shrunk to it: a report is right, and our estimate is not.
    """
    estimate = sum(estimates.values())
    context = Context(used=used, parts={}, estimate=estimate)
    parts = dict(zip(estimates, context.shown_each(tuple(estimates.values())), strict=True))
    return replace(context, parts={**parts, NOT_IN_FILE: max(0, used - estimate)})
