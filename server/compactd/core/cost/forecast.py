"""Predict what the next request costs."""

from __future__ import annotations

from msgspec import Struct

from compactd.core.cost.cache_rules import CacheRules
from compactd.core.tokens.usage import context_size
from compactd.protocol.messages import Usage


class NextRequest(Struct, frozen=True, kw_only=True):
    """What is known of a request before it is sent. Sizes are tokens."""

    size: int
    """All tokens of its input."""
    cached: int
    """Those at its beginning that the provider has in its cache."""
    output: int
    """The expected tokens of the answer."""
    lasts_an_hour: bool = False
    """Whether what it writes stays in the cache for an hour."""


def held_tokens(last: Usage, rules: CacheRules | None) -> int:
    """Return how many tokens of the last request the provider has in its cache until they expire: what it
    read and wrote, or all of it if the provider caches by itself and does not report writes. 0 if the rules
    are not known. O(1)."""
    if rules is None:
        return 0
    size = context_size(last)
    if rules.reports_writes or last.cache_write_tokens:
        return min(size, last.cache_read_tokens + last.cache_write_tokens)
    return size - size % rules.step_tokens if size >= rules.minimum_tokens else 0


def forecast(request: NextRequest, rules: CacheRules | None) -> Usage:
    """Return the usage report that the request is expected to have. Without known rules, nothing is expected
    from the cache. O(1)."""
    if rules is None or request.size < rules.minimum_tokens:
        return Usage(input_tokens=request.size, output_tokens=request.output)
    read = min(request.cached, request.size)
    read -= read % rules.step_tokens
    read = read if read >= rules.minimum_tokens else 0
    rest = request.size - read
    if not rules.reports_writes:
        return Usage(input_tokens=rest, cache_read_tokens=read, output_tokens=request.output)
    return Usage(
        cache_read_tokens=read,
        cache_write_tokens=rest,
        cache_write_1h_tokens=rest if request.lasts_an_hour else 0,
        output_tokens=request.output,
    )
