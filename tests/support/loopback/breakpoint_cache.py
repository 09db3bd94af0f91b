"""OpenAI's prompt cache from GPT-5.6 on, by its documented rules. It shares no code with what it tests.

The rules (developers.openai.com, "Prompt caching", read 2026-11; the types of the SDK openai 3.57.0):

- The prefix is built from the tools, then `instructions`, then the items of `input`, one block after the
  other.
- A `prompt_cache_breakpoint` on an `input_text`, `input_image` or `input_file` is a breakpoint.
  `instructions`, tools and other blocks take none. There may be any number; a request writes the latest.
- In the mode `implicit`, the default, there is another breakpoint at the newest eligible message. Eligible
  are messages of the user, the last of several results of tools, and the last of the developer's messages at
  the beginning. The request then writes at most 3 explicit breakpoints, otherwise 4.
- A request reads the longest prefix that was written before and ends at the first 2 or the latest 50
  explicit breakpoints; in the mode `implicit` also at the implicit breakpoint, at 20 eligible messages before
  it, and at the end of the developer's messages at the beginning.
- A prefix of fewer than 1,024 tokens is neither written nor read.
- A prefix stays for 30 minutes after its last write or read. Requests with different keys share nothing.
- Prices, in units of the input price: read 0.1, write 1.25.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.support.loopback.prefix_cache import Billed, RefusedRequest
from tests.support.loopback.writing import Json

MINIMUM_TOKENS = 1_024
LIFETIME_S = 1_800.0
MAX_WRITES = 4
FIRST_EXPLICIT, LATEST_EXPLICIT = 2, 50
LOOKBACK_MESSAGES = 20
MARKABLE = ("input_text", "input_image", "input_file")
_MARK = "prompt_cache_breakpoint"


@dataclass(frozen=True)
class _Block:
    """One block of a request."""

    key: str
    """A hash of this block and of all before it."""
    tokens: int
    """The tokens of this block and of all before it."""
    is_marked: bool
    kind: str
    """`developer`, `user` or `result` at the end of a message of this kind; empty otherwise."""


class BreakpointCache:
    """The cache of one organisation."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock` returns the time in seconds."""
        self._clock = clock
        self._used: dict[str, float] = {}
        """Key of each written prefix -> when it was written or read last."""

    def bill(self, body: Json) -> Billed:
        """Return what a request is billed for, and remember what it writes. Raise `RefusedRequest` if a
        breakpoint is at a place that takes none."""
        now, blocks = self._clock(), list(_blocks(body))
        explicit = [at for at, block in enumerate(blocks) if block.is_marked]
        options = body.get("prompt_cache_options") or {}
        endings = _endings(blocks) if options.get("mode", "implicit") == "implicit" else []
        writes = {*explicit[-(MAX_WRITES - len(endings[-1:])) :], *endings[-1:]}
        looked = {*explicit[:FIRST_EXPLICIT], *explicit[-LATEST_EXPLICIT:]}
        looked |= {*endings[-1 - LOOKBACK_MESSAGES :]}
        looked |= {at for at in endings[:1] if blocks[at].kind == "developer"}
        found = [at for at in looked if now - self._used.get(blocks[at].key, -1e9) <= LIFETIME_S]
        read = blocks[max(found)].tokens if found else 0
        written = [at for at in writes if blocks[at].tokens >= MINIMUM_TOKENS]
        for at in [*written, *([max(found)] if found else [])]:
            self._used[blocks[at].key] = now
        end = max([read, *(blocks[at].tokens for at in written)])
        size = blocks[-1].tokens if blocks else 0
        return Billed(input=size - end, read=read, written_5m=0, written_1h=0, written_30m=end - read)


def _blocks(body: Json) -> Iterator[_Block]:
    """Yield the blocks of a request in the order of the prefix."""
    digest = hashlib.sha256(json.dumps([body.get("model"), body.get("prompt_cache_key")]).encode())
    tokens = 0
    given: list[tuple[str, object, str]] = [("tools", tool, "") for tool in body.get("tools") or ()]
    if body.get("instructions"):
        given.append(("instructions", body["instructions"], ""))
    items = body.get("input") or []
    for place, item in enumerate(items):
        kind, after = _kind(item), _kind(items[place + 1]) if place + 1 < len(items) else ""
        if kind == "result" and after == "result":
            kind = ""
        content = item.get("output" if item.get("type") == "function_call_output" else "content")
        inner: list[object] = content if isinstance(content, list) else [item]
        given += [(str(item.get("role")), block, "") for block in inner[:-1]]
        given += [(str(item.get("role")), block, kind) for block in inner[-1:]]
    for where, block, kind in given:
        is_marked, bare = False, block
        if isinstance(block, dict) and _MARK in block:
            if block.get("type") not in MARKABLE or block[_MARK] != {"mode": "explicit"}:
                raise RefusedRequest(f"Unknown parameter: '{where}.{_MARK}'.")
            is_marked, bare = True, {name: value for name, value in block.items() if name != _MARK}
        text = json.dumps(bare, ensure_ascii=False)
        digest.update(f"{where}\0{text}\0".encode())
        tokens += (len(text) + 3) // 4
        yield _Block(digest.hexdigest(), tokens, is_marked, kind)


def _kind(item: Json) -> str:
    if item.get("type") == "function_call_output":
        return "result"
    role = str(item.get("role"))
    return role if role in ("developer", "user") else ""


def _endings(blocks: list[_Block]) -> list[int]:
    """Return the places at which eligible messages end, in order."""
    ends = [at for at, block in enumerate(blocks) if block.kind]
    developer = [at for at in ends if blocks[at].kind == "developer"]
    others = [at for at in ends if blocks[at].kind != "developer"]
    initial = [at for at in developer if not others or at < others[0]]
    return [*initial[-1:], *others]
