"""OpenAI's automatic prompt cache, as documented for models before GPT-5.6. It shares no code with what it
tests.

The rules (developers.openai.com, "Prompt caching", read 2026-11, and its version of 2025 for the steps):

- A request of at least 1,024 tokens is cached without a mark, and its writes are not billed.
- A later request reads the longest common beginning, from 1,024 tokens on in steps of 128. Tools are part of
  the beginning.
- A prefix is removed 5 to 10 minutes after its last use. Here: after 5 minutes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import takewhile

from tests.support.loopback.prefix_cache import Billed
from tests.support.loopback.writing import Json

MINIMUM_TOKENS = 1_024
STEP_TOKENS = 128
LIFETIME_S = 300.0
CHARS_PER_TOKEN = 4


class AutomaticCache:
    """The cache of one organisation."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock` returns the time in seconds."""
        self._clock = clock
        self._held: list[tuple[tuple[str, ...], float]] = []
        """(the parts of a request, when it was used last)."""

    def bill(self, body: Json) -> Billed:
        """Return what a request is billed for, and remember it."""
        now, parts = self._clock(), _parts(body)
        self._held = [(held, at) for held, at in self._held if now - at < LIFETIME_S]
        common = max((_common_chars(held, parts) for held, _ in self._held), default=0)
        tokens = -(-sum(map(len, parts)) // CHARS_PER_TOKEN)
        read = common // CHARS_PER_TOKEN // STEP_TOKENS * STEP_TOKENS
        read = read if read >= MINIMUM_TOKENS else 0
        if tokens >= MINIMUM_TOKENS:
            self._held.append((parts, now))
        return Billed(input=tokens - read, read=read, written_5m=0, written_1h=0)


def _parts(body: Json) -> tuple[str, ...]:
    """Return what a model reads of a request, in its order."""
    items = [*(body.get("tools") or ()), body.get("instructions") or ""]
    items += body.get("input") or body.get("messages") or []
    return tuple(json.dumps(item, ensure_ascii=False) for item in (str(body.get("model")), *items))


def _common_chars(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    """Return the length of the common beginning of two requests."""
    same = _common_length(one, other)
    if same == min(len(one), len(other)):
        return sum(map(len, one[:same]))
    return sum(map(len, one[:same])) + _common_length(one[same], other[same])


def _common_length(one: Sequence[str], other: Sequence[str]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
