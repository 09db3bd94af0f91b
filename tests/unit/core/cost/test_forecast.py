"""The forecast of a request's usage report, by the rules of the cache."""

from __future__ import annotations

import pytest

from compactd.core.cost.cache_rules import CacheRules, cache_rules
from compactd.core.cost.forecast import NextRequest, forecast, held_tokens
from compactd.protocol.messages import Usage

CLAUDE = cache_rules("anthropic", "claude-sonnet-5-5")
GPT = cache_rules("openai", "gpt-5")
GPT_6 = cache_rules("openai", "gpt-5.6")


def expected(size: int, cached: int, rules: CacheRules | None, *, lasts: bool = False) -> Usage:
    return forecast(NextRequest(size=size, cached=cached, output=7, lasts_an_hour=lasts), rules)


@pytest.mark.parametrize(
    ("size", "cached", "rules", "usage"),
    [
        (9_000, 8_000, CLAUDE, Usage(cache_read_tokens=8_000, cache_write_tokens=1_000, output_tokens=7)),
        (9_000, 0, CLAUDE, Usage(cache_write_tokens=9_000, output_tokens=7)),
        (9_000, 1_000, CLAUDE, Usage(cache_write_tokens=9_000, output_tokens=7)),
        (9_000, 99_000, CLAUDE, Usage(cache_read_tokens=9_000, output_tokens=7)),
        (1_000, 900, CLAUDE, Usage(input_tokens=1_000, output_tokens=7)),
        (9_000, 8_001, GPT, Usage(cache_read_tokens=7_936, input_tokens=1_064, output_tokens=7)),
        (9_000, 8_001, GPT_6, Usage(cache_read_tokens=8_001, cache_write_tokens=999, output_tokens=7)),
        (9_000, 8_000, None, Usage(input_tokens=9_000, output_tokens=7)),
    ],
)
def test_what_is_not_read_is_written_or_paid_in_full(
    size: int, cached: int, rules: CacheRules | None, usage: Usage
) -> None:
    assert expected(size, cached, rules) == usage


def test_writes_for_an_hour() -> None:
    assert expected(9_000, 8_000, CLAUDE, lasts=True).cache_write_1h_tokens == 1_000


@pytest.mark.parametrize(
    ("usage", "rules", "held"),
    [
        (Usage(input_tokens=5, cache_read_tokens=900, cache_write_tokens=90), CLAUDE, 990),
        (Usage(input_tokens=9_000), CLAUDE, 0),
        (Usage(input_tokens=1_000, cache_read_tokens=4_096), GPT, 4_992),
        (Usage(input_tokens=1_000), GPT, 0),
        (Usage(input_tokens=9_000), None, 0),
        # The sum of several iterations is no context.
        (Usage(cache_read_tokens=90_000, context_tokens=50_000), CLAUDE, 50_000),
    ],
)
def test_what_the_provider_holds_after_a_request(usage: Usage, rules: CacheRules | None, held: int) -> None:
    assert held_tokens(usage, rules) == held
