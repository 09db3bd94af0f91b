"""How many examples a law is tried on: a quarter in `make test`, all of them in `make nightly`."""

from __future__ import annotations

from hypothesis import settings

ALL, FEW = 100, 25
"""Examples per law that names no number itself: in `make nightly`, and in `make test`."""
MIN = 2


def examples(count: int) -> int:
    """Return how many of `count` examples this run tries, for `max_examples`: `MIN` or more, at most
    `count`."""
    return max(min(count, MIN), count * settings.default.max_examples // ALL)
