"""Old tool output replaced by one-line stubs: the rules of when, and the words.

A stub is what the view shows; the journal keeps the output, `session/expand` gives it back. (Source:
docs/specs-evmts-opencode.md, "opencode.md", "Phase 2: Pruning"; where its pseudo-code and its source differ,
its source.)
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from msgspec import Struct

from compactd.core.budget.rules import Settings
from compactd.core.extract.file_operations import PATH_ARGUMENTS, arguments_of
from compactd.core.history.entries import EntryId, Item, Stub, is_summary
from compactd.core.history.message_kinds import kind_of
from compactd.core.history.pins import is_pinned
from compactd.core.history.tool_pairs import Matched, match
from compactd.core.text.atoms import ERROR
from compactd.core.text.quoting import quoted_line
from compactd.core.tokens.counting import Counter, block_tokens
from compactd.protocol.messages import Text, ToolCall, ToolResult

PROTECTED_TURNS = 2
"""The newest user turns whose tool output is never pruned."""

MARK = "[pruned: "
"""How every stub begins."""

TARGET_CHARS = 80
"""Of a call's argument, as a stub names it."""

_RAISED = re.compile(r"\b[A-Z]\w*(?:Error|Fault|Panic)\b")
"""`KeyError`, `TypeError`: beside what `ERROR` finds, which the quality of a record is measured by."""

LOOKED_AT = 20_000
ERROR_CHARS = 400

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
    shorten, and results that no request holds (orphans and duplicates). Ends at a summary or at output that
    is pruned already. Done only if more than `prune_minimum` tokens of output would go (strict).
    `settings.prune` is for the caller to ask. O(blocks), and `counter` once a tool result.
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
    """Stubs for the tool results at these places (message, block), but those that they would not shorten, and
    those that no request holds: what the stubs save is what the request loses."""
    matched = match(items)
    calls = _calls(items, matched)
    texts: dict[int, list[tuple[int, str]]] = {}
    saved: dict[int, int] = {}
    for index, at in sorted(places):
        item = items[index]
        block = item.message.content[at]
        if not isinstance(block, ToolResult) or is_pruned(item, block) or (index, at) in matched.unpaired:
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
    """The line that stands for a result: its tool, what it was about, its size, the first error in it, how to
    see it."""
    name = call.name if call is not None else result.name or "tool"
    target = "" if call is None else target_of(call)
    about = f"{name} {target}" if target else name
    said = result.content if isinstance(result.content, str) else _said(result.content)
    lines = said.count("\n") + 1
    size = f"{tokens:,} tokens" if lines < 2 else f"{tokens:,} tokens, {lines:,} lines"
    error = first_error(said)
    size += f"; {quoted_line(error, 'tool')}" if error else ""
    return f"{MARK}{quoted_line(about, 'assistant')} — {size}; session/expand {entry_id} shows it]"


def first_error(text: str) -> str:
    """The first line that reports an error, of at most `TARGET_CHARS` characters; empty for none. Looked for
    in the first and the last `LOOKED_AT` code points: where commands say how they came out."""
    parts = (text,) if len(text) <= 2 * LOOKED_AT else (text[:LOOKED_AT], text[-LOOKED_AT:])
    for part in parts:
        for line in part.split("\n"):
            seen = line[:ERROR_CHARS]
            if ERROR.search(seen) is not None or _RAISED.search(seen) is not None:
                bare = " ".join("".join(c if c.isprintable() else " " for c in line[:ERROR_CHARS]).split())
                return shortened(bare, TARGET_CHARS)
    return ""


def target_of(call: ToolCall) -> str:
    """What a call was about, in one line of at most `TARGET_CHARS` characters; empty where nothing tells."""
    arguments = arguments_of(call)
    named = [arguments[name] for name in TARGET_ARGUMENTS if name in arguments]
    texts = [value for value in (*named, *arguments.values()) if isinstance(value, str) and value.strip()]
    if not texts:
        return ""
    line = texts[0].strip().splitlines()[0].strip()
    return shortened(line, TARGET_CHARS)


def shortened(line: str, chars: int) -> str:
    """`line` in at most `chars` characters, a `…` where something is missing. It is cut at white space, and a
    path before one of its folders: half a name would be another name."""
    if len(line) <= chars:
        return line
    head = line[:chars]
    space = max(head.rfind(" "), head.rfind("\t"))
    if space > 0:
        return head[:space].rstrip() + "…"
    chunk = line.split(None, 1)[0]
    slash = chunk.find("/", max(1, len(chunk) - chars + 1))
    if 0 < slash < len(chunk) - 1:
        return "…" + chunk[slash + 1 :]
    return line[: chars - 1] + "…"


def _said(blocks: Iterable[object]) -> str:
    return "\n".join(block.text for block in blocks if isinstance(block, Text))


def _results_backwards(
    items: Sequence[Item], protected: Collection[str]
) -> Iterable[tuple[int, int, ToolResult | None]]:
    """Newest first: (message, block, result) of each result of an unprotected tool, but those that no request
    holds, and (message, 0, None) at each user message. Ends at a summary."""
    matched = match(items)
    calls = _calls(items, matched)
    for index in range(len(items) - 1, -1, -1):
        message = items[index].message
        if is_summary(message):
            return
        if kind_of(message) in ("user", "bash"):
            yield index, 0, None
        for at in range(len(message.content) - 1, -1, -1):
            block = message.content[at]
            if isinstance(block, ToolResult) and (index, at) not in matched.unpaired:
                call = calls.get((index, at))
                if (call.name if call is not None else block.name) not in protected:
                    yield index, at, block


def _calls(items: Sequence[Item], matched: Matched) -> dict[tuple[int, int], ToolCall]:
    """The call of each result, by the result's (message, block)."""
    found: dict[tuple[int, int], ToolCall] = {}
    for (index, at), result in matched.result_of.items():
        call = items[index].message.content[at]
        if isinstance(call, ToolCall):
            found[result] = call
    return found
