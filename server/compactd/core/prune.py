"""Old tool output replaced by one-line stubs: the rules of when, and the words.

A stub is what the view shows; the journal keeps the output, `session/expand` gives it back. (Source:
opencode.md, "Phase 2: Pruning"; where its pseudo-code and its source differ, its source.)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from msgspec import Struct

from compactd.core.cuts import kind_of
from compactd.core.entries import EntryId, Item, Stub, is_summary
from compactd.core.fileops import PATH_ARGUMENTS, arguments_of
from compactd.core.pairs import match
from compactd.core.pins import is_pinned
from compactd.core.rules import Settings
from compactd.core.tokens import Counter, block_tokens
from compactd.messages import ToolCall, ToolResult

PROTECTED_TURNS = 2
"""The newest user turns whose tool output is never pruned."""

MARK = "[pruned: "
"""How every stub begins."""

TARGET_CHARS = 80
"""Of a call's argument, as a stub names it."""

TARGET_ARGUMENTS = ("command", "cmd", *PATH_ARGUMENTS, "pattern", "query", "url")
"""Arguments that tell what a call was about, the most telling first."""


class Pruning(Struct, frozen=True, kw_only=True):
    """What a prune would do."""

    stubs: tuple[Stub, ...] = ()
    """By rising message."""
    results: int = 0
    """Tool results that the stubs replace."""
    tokens_saved: int = 0

    @property
    def entry_ids(self) -> tuple[EntryId, ...]:
        """The messages that are shown shortened."""
        return tuple(stub.entry_id for stub in self.stubs)


def prune(
    items: Sequence[Item], settings: Settings, counter: Counter, pinned: Collection[EntryId] = ()
) -> Pruning:
    """Stubs for old tool output, if they save enough; nothing otherwise.

    Walks back from the newest message past the last `PROTECTED_TURNS` user turns, and from there past
    `prune_protect` tokens of output (strict: the output that passes it is pruned). Left alone: failed
    results, `protected_tools`, messages in `pinned` or pinned by their `meta`, output that a stub would not
    shorten. Ends at a summary or at output that is pruned already. Done only if more than `prune_minimum`
    tokens of output would go (strict). `settings.prune` is for the caller to ask. O(blocks), and `counter`
    once a tool result.
    """
    chosen: list[tuple[int, int]] = []
    turns = total = found = 0
    for index, at, result in _results_backwards(items, settings.protected_tools):
        if result is None:
            turns += 1
            continue
        if turns < PROTECTED_TURNS or result.is_error:
            continue
        if is_pruned(items[index], result):
            break
        tokens = block_tokens(result, counter)
        total += tokens
        stays = items[index].entry_id in pinned or is_pinned(items[index].message)
        if total > settings.prune_protect and not stays:
            found += tokens
            chosen.append((index, at))
    if found <= settings.prune_minimum:
        return Pruning()
    return stubs_for(items, chosen, counter)


def stubs_for(items: Sequence[Item], places: Iterable[tuple[int, int]], counter: Counter) -> Pruning:
    """Stubs for the tool results at these places (message, block), but those that they would not shorten."""
    calls = _calls(items)
    texts: dict[int, list[tuple[int, str]]] = {}
    saved: dict[int, int] = {}
    for index, at in sorted(places):
        item = items[index]
        block = item.message.content[at]
        if not isinstance(block, ToolResult) or is_pruned(item, block):
            continue
        tokens = block_tokens(block, counter)
        text = stub_text(block, calls.get((index, at)), tokens, item.entry_id)
        gain = tokens - counter.count(text)
        if gain > 0:
            texts.setdefault(index, []).append((at, text))
            saved[index] = saved.get(index, 0) + gain
    return Pruning(
        stubs=tuple(
            Stub(
                items[index].entry_id,
                restated(items[index], found),
                max(0, items[index].tokens - saved[index]),
            )
            for index, found in texts.items()
        ),
        results=sum(len(found) for found in texts.values()),
        tokens_saved=sum(saved.values()),
    )


def result_places(items: Sequence[Item], first: int, last: int) -> list[tuple[int, int]]:
    """(message, block) of every tool result in the messages from `first` up to, not including, `last`."""
    return [
        (index, at)
        for index in range(first, last)
        for at, block in enumerate(items[index].message.content)
        if isinstance(block, ToolResult)
    ]


def restated(item: Item, texts: Sequence[tuple[int, str]]) -> tuple[tuple[int, str], ...]:
    """`texts` (block, text) as a stub of `item` names them: with those of the stub that it replaces."""
    shown = dict(texts)
    if item.kind == "stub":
        for at, block in enumerate(item.message.content):
            if isinstance(block, ToolResult) and isinstance(block.content, str):
                shown.setdefault(at, block.content)
    return tuple(sorted(shown.items()))


def is_pruned(item: Item, result: ToolResult) -> bool:
    """True where the view shows a stub for this result already."""
    return item.kind == "stub" and isinstance(result.content, str) and result.content.startswith(MARK)


def stub_text(result: ToolResult, call: ToolCall | None, tokens: int, entry_id: EntryId) -> str:
    """The line that stands for a result: its tool, what it was about, its size, how to see it."""
    name = call.name if call is not None else result.name or "tool"
    target = "" if call is None else target_of(call)
    about = f"{name} {target}" if target else name
    return f"{MARK}{about} — {tokens:,} tokens; session/expand {entry_id} shows it]"


def target_of(call: ToolCall) -> str:
    """What a call was about, in one line of at most `TARGET_CHARS` characters; empty where nothing tells."""
    arguments = arguments_of(call)
    named = [arguments[name] for name in TARGET_ARGUMENTS if name in arguments]
    texts = [value for value in (*named, *arguments.values()) if isinstance(value, str) and value.strip()]
    if not texts:
        return ""
    line = texts[0].strip().splitlines()[0].strip()
    return line if len(line) <= TARGET_CHARS else line[: TARGET_CHARS - 1] + "…"


def _results_backwards(
    items: Sequence[Item], protected: Collection[str]
) -> Iterable[tuple[int, int, ToolResult | None]]:
    """Newest first: (message, block, result) of each result of an unprotected tool, and (message, 0, None)
    at each user message. Ends at a summary."""
    calls = _calls(items)
    for index in range(len(items) - 1, -1, -1):
        message = items[index].message
        if is_summary(message):
            return
        if kind_of(message) in ("user", "bash"):
            yield index, 0, None
        for at in range(len(message.content) - 1, -1, -1):
            block = message.content[at]
            if isinstance(block, ToolResult):
                call = calls.get((index, at))
                if (call.name if call is not None else block.name) not in protected:
                    yield index, at, block


def _calls(items: Sequence[Item]) -> dict[tuple[int, int], ToolCall]:
    """The call of each result, by the result's (message, block)."""
    found: dict[tuple[int, int], ToolCall] = {}
    for (index, at), result in match(items).result_of.items():
        call = items[index].message.content[at]
        if isinstance(call, ToolCall):
            found[result] = call
    return found
