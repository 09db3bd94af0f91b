"""The price of cache writes that last an hour: known for Claude's models, and for no other."""

from __future__ import annotations

from compactd.core.models.lookup import PriceStep, Pricing, with_hour_writes
from compactd.core.models.registry import Registry
from compactd.core.models.rows import ModelRow

PRICES = Pricing(
    input=3.0,
    output=15.0,
    cache_read=0.3,
    cache_write=3.75,
    steps=(PriceStep(above=200_000, input=6.0, output=22.5, cache_write=7.5),),
)


def pricing(model: str, prices: Pricing | None) -> Pricing | None:
    row = ModelRow(provider="a", id=model, context=1_000, prices=prices, src=("list",))
    return Registry((row,)).lookup(f"a/{model}").pricing


def test_claudes_is_twice_the_input_price_at_each_step() -> None:
    found = pricing("claude-sonnet-5-5", PRICES)

    assert found is not None
    assert found.cache_write_1h == 6.0
    assert [step.cache_write_1h for step in found.steps] == [12.0]
    assert found == with_hour_writes(found)


def test_other_models_and_lists_without_prices_of_writes_have_none() -> None:
    plain = Pricing(input=3.0, output=15.0)

    assert pricing("gpt-5.6", PRICES) == PRICES
    assert pricing("claude-sonnet-5-5", plain) == plain
    assert pricing("claude-sonnet-5-5", None) is None
