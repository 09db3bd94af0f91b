"""Anthropic's prompt cache, by its documented rules. It shares no code with what it tests.

The rules (platform.claude.com, "Prompt caching", as quoted by portkey.ai/docs, infinitytechstack.uk and the
project's notes, read 2026-11):

- The prefix is built from the tools, then the system prompt, then the messages, one content block after the
  other. A `cache_control` on a block makes it a breakpoint: the prefix up to and including that block is
  written to the cache. A `cache_control` of the request itself is a breakpoint on the last block.
- At most 4 breakpoints. A breakpoint with a lifetime of 1 hour must come before those of 5 minutes.
- A request reads the longest prefix that was written before: at a breakpoint or at one of the 19 blocks
  before it (20 blocks are looked at for each breakpoint).
- A prefix with fewer tokens than the model's minimum is not written. Nothing is reported then.
- A read starts the lifetime again.
- Prices, in units of the input price: read 0.1, write 1.25 (5 minutes) or 2 (1 hour).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass

from tests.support.loopback.writing import Json

LOOKBACK_BLOCKS = 20
MAX_BREAKPOINTS = 4
LIFETIMES_S = {"5m": 300.0, "1h": 3_600.0}
READ_PRICE = 0.1
WRITE_PRICES = {"5m": 1.25, "1h": 2.0}


class RefusedRequest(Exception):
    """The request breaks a rule of the cache. The text is that of the error message."""


@dataclass(frozen=True)
class Billed:
    """What one request is billed for, in tokens."""

    input: int
    """Tokens that are neither read from the cache nor written to it."""
    read: int
    written_5m: int
    written_1h: int
    written_30m: int = 0
    """Only at OpenAI, whose writes cost as much as Anthropic's for 5 minutes."""

    @property
    def written(self) -> int:
        """Return the tokens that were written to the cache."""
        return self.written_5m + self.written_30m + self.written_1h

    @property
    def size(self) -> int:
        """Return the tokens of the whole request."""
        return self.input + self.read + self.written

    def cost(self, input_price: float) -> float:
        """Return the price of the input, in the unit of `input_price` (that of one token)."""
        short = (self.written_5m + self.written_30m) * WRITE_PRICES["5m"]
        written = short + self.written_1h * WRITE_PRICES["1h"]
        return input_price * (self.input + self.read * READ_PRICE + written)


@dataclass(frozen=True)
class _Part:
    """One content block of a request."""

    key: str
    """A hash of this block and of all before it."""
    tokens: int
    """The tokens of this block and of all before it."""
    lifetime: str | None
    """The lifetime that its `cache_control` names; None if it has none."""


def count_tokens(block: object) -> int:
    """Return the tokens of a block: a quarter of its characters as JSON, rounded up."""
    return (len(json.dumps(block, ensure_ascii=False)) + 3) // 4


class PrefixCache:
    """The cache of one workspace."""

    def __init__(
        self,
        clock: Callable[[], float],
        *,
        minimum_tokens: int = 1_024,
        count: Callable[[object], int] = count_tokens,
    ) -> None:
        """`clock` returns the time in seconds. `count` returns the tokens of a block."""
        self._clock, self._minimum, self._count = clock, minimum_tokens, count
        self._ends: dict[str, tuple[float, str]] = {}
        """Key of each written prefix -> (when it ends, its lifetime)."""

    def bill(self, body: Json) -> Billed:
        """Return what a request is billed for, and remember what it writes. Raise `RefusedRequest` if it
        breaks a rule."""
        parts = self._parts(body)
        points = [at for at, part in enumerate(parts) if part.lifetime is not None]
        if len(points) > MAX_BREAKPOINTS:
            raise RefusedRequest(
                f"A maximum of {MAX_BREAKPOINTS} blocks with cache_control may be provided. "
                f"Found {len(points)}."
            )
        lifetimes = [str(parts[at].lifetime) for at in points]
        if lifetimes != sorted(lifetimes, key=("1h", "5m").index):
            raise RefusedRequest("a ttl='1h' cache_control block must not come after a ttl='5m' block")
        now = self._clock()
        read_to = self._longest_prefix(parts, points, now)
        read = parts[read_to].tokens if read_to >= 0 else 0
        if read_to >= 0:
            lifetime = self._ends[parts[read_to].key][1]
            self._ends[parts[read_to].key] = (now + LIFETIMES_S[lifetime], lifetime)
        written = {"5m": 0, "1h": 0}
        done = read
        for at in points:
            part = parts[at]
            lifetime = str(part.lifetime)
            if part.tokens < self._minimum:
                continue
            if at > read_to:
                written[lifetime] += part.tokens - done
                done = part.tokens
            if at >= read_to or self._is_warm(part.key, now):
                self._ends[part.key] = (now + LIFETIMES_S[lifetime], lifetime)
        return Billed(
            input=parts[-1].tokens - done if parts else 0,
            read=read,
            written_5m=written["5m"],
            written_1h=written["1h"],
        )

    def usage(self, body: Json, output_tokens: int) -> Json:
        """Return the usage report of a request, with the fields of the API."""
        billed = self.bill(body)
        return {
            "input_tokens": billed.input,
            "cache_read_input_tokens": billed.read,
            "cache_creation_input_tokens": billed.written_5m + billed.written_1h,
            "cache_creation": {
                "ephemeral_5m_input_tokens": billed.written_5m,
                "ephemeral_1h_input_tokens": billed.written_1h,
            },
            "output_tokens": output_tokens,
        }

    def _longest_prefix(self, parts: list[_Part], points: list[int], now: float) -> int:
        """Return the index of the last block of the longest prefix that can be read; -1 if there is none."""
        looked = {at for point in points for at in range(max(0, point - LOOKBACK_BLOCKS + 1), point + 1)}
        return max((at for at in looked if self._is_warm(parts[at].key, now)), default=-1)

    def _is_warm(self, key: str, now: float) -> bool:
        return key in self._ends and now < self._ends[key][0]

    def _parts(self, body: Json) -> list[_Part]:
        blocks: list[tuple[str, Json]] = [("tools", tool) for tool in body.get("tools") or ()]
        system = body.get("system") or []
        blocks += [
            ("system", block)
            for block in ([{"type": "text", "text": system}] if isinstance(system, str) else system)
        ]
        for message in body["messages"]:
            content = message["content"]
            inner = [{"type": "text", "text": content}] if isinstance(content, str) else content
            blocks += [(message["role"], block) for block in inner]
        digest = hashlib.sha256(str(body.get("model")).encode())
        parts: list[_Part] = []
        tokens = 0
        for place, (where, block) in enumerate(blocks):
            control = block.get("cache_control")
            if control is None and place == len(blocks) - 1:
                control = body.get("cache_control")
            bare = {name: value for name, value in block.items() if name != "cache_control"}
            digest.update(f"{where}\0{json.dumps(bare, ensure_ascii=False)}\0".encode())
            tokens += self._count(bare)
            lifetime = None if control is None else control.get("ttl", "5m")
            parts.append(_Part(digest.hexdigest(), tokens, lifetime))
        return parts
