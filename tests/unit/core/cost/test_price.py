"""The price of a request."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactd.core.cost.price import price
from compactd.core.models.lookup import PriceStep, Pricing
from compactd.protocol.messages import SummaryUsage, Usage

PLAIN = Pricing(input=3.0, output=15.0, cache_read=0.3, cache_write=3.75)
HOURLY = Pricing(input=3.0, output=15.0, cache_write=3.75, cache_write_1h=2.0)
STEPPED = Pricing(
    input=1.0,
    output=10.0,
    cache_read=0.1,
    steps=(
        PriceStep(above=200_000, input=2.0, output=20.0, cache_read=0.2),
        PriceStep(above=500_000, input=4.0, output=40.0),
    ),
)


@pytest.mark.parametrize(
    ("usage", "pricing", "dollars"),
    [
        (None, PLAIN, None),
        (Usage(), None, None),
        (Usage(), PLAIN, 0.0),
        (Usage(input_tokens=1_000_000), PLAIN, 3.0),
        (Usage(output_tokens=1_000_000), PLAIN, 15.0),
        (Usage(cache_read_tokens=1_000_000), PLAIN, 0.3),
        (Usage(cache_write_tokens=1_000_000), PLAIN, 3.75),
        (Usage(cache_write_tokens=1_000_000, cache_write_1h_tokens=1_000_000), PLAIN, 6.0),
        (Usage(cache_write_tokens=1_000_000, cache_write_1h_tokens=400_000), HOURLY, 3.05),
        # The provider's own compaction is billed in addition, and does not make the request large.
        (
            Usage(input_tokens=100_000, summary=SummaryUsage(input_tokens=150_000, output_tokens=10_000)),
            STEPPED,
            0.35,
        ),
        # Three rounds for one answer are not one large request.
        (Usage(input_tokens=300_000, context_tokens=100_000), STEPPED, 0.3),
        # Reasoning is output already.
        (Usage(output_tokens=1_000_000, reasoning_tokens=900_000), PLAIN, 15.0),
        # A cache without a price of its own is input.
        (Usage(cache_write_tokens=100_000), STEPPED, 0.1),
        # The step begins above its bound, by the whole input, and holds for everything.
        (Usage(input_tokens=200_000, output_tokens=100_000), STEPPED, 1.2),
        (Usage(input_tokens=200_001, output_tokens=100_000), STEPPED, 2.400002),
        (Usage(input_tokens=100_000, cache_read_tokens=100_001), STEPPED, 0.2200002),
        (Usage(input_tokens=600_000, cache_read_tokens=100_000), STEPPED, 2.8),
    ],
)
def test_each_kind_of_token_has_its_price(
    usage: Usage | None, pricing: Pricing | None, dollars: float | None
) -> None:
    assert price(usage, pricing) == (None if dollars is None else pytest.approx(dollars))


TOKENS = st.integers(0, 2_000_000)


@settings(deadline=None)
@given(TOKENS, TOKENS, TOKENS, TOKENS)
def test_more_tokens_never_cost_less(fresh: int, out: int, read: int, written: int) -> None:
    def dollars(more: int) -> float:
        usage = Usage(
            input_tokens=fresh + more,
            output_tokens=out,
            cache_read_tokens=read,
            cache_write_tokens=written,
        )
        found = price(usage, STEPPED)
        assert found is not None
        return found

    assert 0 <= dollars(0) <= dollars(1) <= dollars(100_000)
