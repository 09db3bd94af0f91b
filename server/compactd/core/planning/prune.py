"""Prune old tool output: decide which results are replaced by a one-line stub in the view, and write the
stubs.

Only the view shows the stub. The journal keeps the output, and `session/expand` returns it. (Source:
docs/specs-evmts-opencode.md, "opencode.md", "Phase 2: Pruning". If its pseudo-code and its source differ,
this module follows the source.)
"""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Collection, Iterable, Sequence

from msgspec import Struct

from compactd.core.budget.rules import Settings
from compactd.core.history.entries import EntryId, Item, Stub, is_summary
from compactd.core.history.message_kinds import kind_of
from compactd.core.history.pins import is_pinned
from compactd.core.history.tool_pairs import Matched, match
from compactd.core.text.atoms import ERROR
from compactd.core.text.lazy_patterns import LazyPattern
from compactd.core.text.message_text import join_text_blocks
from compactd.core.text.quoting import quote_line
from compactd.core.tokens.counting import Counter, block_tokens
from compactd.core.work.file_operations import PATH_ARGUMENTS, arguments_of
from compactd.protocol.messages import Text, ToolCall, ToolResult

PROTECTED_TURNS = 2
"""The tool output of the newest user turns, this many, is never pruned."""

MARK = "[pruned: "
"""The text that every stub starts with."""

SHOWS_ALL = "session/expand {} shows all"
"""What the mark in a clipped text says about the entry that contains the whole text."""

TARGET_CHARS = 80
"""In a stub, a call's argument and an error line have at most this many characters each."""

_RAISED = LazyPattern(r"\b[A-Z]\w*(?:Error|Fault|Panic)\b")
"""Matches names of errors such as `KeyError` and `TypeError`, which `ERROR` does not match. `ERROR` stays as
it is because the measured quality of summaries depends on it."""

MAX_SEARCHED_CHARS = 20_000
"""A stub's error line is looked for in this many code points at the start and at the end of a result."""
ERROR_CHARS = 400
"""Only this many code points of a line are checked for an error."""

TARGET_ARGUMENTS = ("command", "cmd", *PATH_ARGUMENTS, "pattern", "query", "url")
"""Names of arguments that show what a call was about, the most informative first."""


class Pruning(Struct, frozen=True, kw_only=True):
    """Tool results to show shortened: the stubs and how many tokens they save."""

    stubs: tuple[Stub, ...] = ()
    """The stubs, in the order of the messages."""
    results: int = 0
    """How many tool results the stubs shorten."""
    tokens_saved: int = 0

    @property
    def entry_ids(self) -> tuple[EntryId, ...]:
        """The ids of the messages that contain pruned results."""
        return tuple(stub.entry_id for stub in self.stubs)


def prune(
    items: Sequence[Item], settings: Settings, counter: Counter, pinned: Collection[EntryId] = ()
) -> Pruning:
    """Return stubs for old tool output if they save enough; otherwise an empty `Pruning`.

    The search goes back from the newest message. It skips the last `PROTECTED_TURNS` user turns and then
    `prune_protect` tokens of tool output; the result with which this number is exceeded is the first to be
    pruned. It stops at a summary or at output that is already pruned. It leaves alone: failed results,
    results of `protected_tools`, messages in `pinned` or pinned by their `meta`, output that a stub would not
    shorten, and results that no request contains (orphans and duplicates). Nothing is pruned unless the
    results to prune have more than `prune_minimum` tokens.

    It does not look at `settings.prune`; the caller does. O(blocks), with one token count per tool result.
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
    """Write stubs for the tool results at these places (message index, block index). Results that a stub
    would not shorten, and results that no request contains, get none, so the request becomes smaller by
    exactly `tokens_saved`."""
    matched = match(items)
    calls = _calls(items, matched)
    shown: list[tuple[int, int, str, int]] = []
    for index, at in sorted(places):
        item = items[index]
        block = item.message.content[at]
        if not isinstance(block, ToolResult) or is_pruned(item, block) or (index, at) in matched.unpaired:
            continue
        tokens = block_tokens(block, counter)
        text = stub_text(block, calls.get((index, at)), tokens, item.entry_id)
        gain = tokens - counter.count(text)
        if gain > 0:
            shown.append((index, at, text, gain))
    return pruning_of(items, shown)


def pruning_of(items: Sequence[Item], shown: Iterable[tuple[int, int, str, int]]) -> Pruning:
    """Return the stubs that show these texts, each given as (message index, block index, text, tokens that
    the text saves)."""
    texts: dict[int, list[tuple[int, str]]] = {}
    saved: Counts[int] = Counts()
    for index, at, text, gain in shown:
        texts.setdefault(index, []).append((at, text))
        saved[index] += gain
    return Pruning(
        stubs=tuple(
            Stub(
                items[index].entry_id,
                restate_stub(items[index], found),
                max(0, items[index].tokens - saved[index]),
            )
            for index, found in texts.items()
        ),
        results=sum(map(len, texts.values())),
        tokens_saved=saved.total(),
    )


def result_places(items: Sequence[Item], first: int, last: int) -> list[tuple[int, int]]:
    """Return (message index, block index) of every tool result in the messages `first` (inclusive) to `last`
    (exclusive)."""
    return [
        (index, at)
        for index in range(first, last)
        for at, block in enumerate(items[index].message.content)
        if isinstance(block, ToolResult)
    ]


def restate_stub(item: Item, texts: Sequence[tuple[int, str]]) -> tuple[tuple[int, str], ...]:
    """Return the texts of a new stub of `item`, as pairs of (block index, text): the given ones and, for
    other blocks, those of the stub that the view already shows for `item`."""
    shown = dict(texts)
    if item.kind == "stub":
        is_condensed = SHOWS_ALL.format(item.entry_id) in join_text_blocks(item.message.content)
        for at, block in enumerate(item.message.content):
            if isinstance(block, ToolResult) and isinstance(block.content, str):
                shown.setdefault(at, block.content)
            elif isinstance(block, Text) and is_condensed:
                shown.setdefault(at, block.text)
    return tuple(sorted(shown.items()))


def is_pruned(item: Item, result: ToolResult) -> bool:
    """Return whether the view already shows a stub instead of this result."""
    return item.kind == "stub" and isinstance(result.content, str) and result.content.startswith(MARK)


def stub_text(result: ToolResult, call: ToolCall | None, tokens: int, entry_id: EntryId) -> str:
    """Write the one-line stub for a result. It contains the tool, what the call was about, the result's size,
    its first error line, and how to see the whole result."""
    name = call.name if call is not None else result.name or "tool"
    target = "" if call is None else call_target(call)
    about = f"{name} {target}" if target else name
    said = result.content if isinstance(result.content, str) else join_text_blocks(result.content)
    lines = said.count("\n") + 1
    size = f"{tokens:,} tokens" if lines < 2 else f"{tokens:,} tokens, {lines:,} lines"
    error = first_error(said)
    size += f"; {quote_line(error, 'tool')}" if error else ""
    return f"{MARK}{quote_line(about, 'assistant')} — {size}; session/expand {entry_id} shows it]"


def first_error(text: str) -> str:
    """Return the first line of `text` that reports an error, in at most `TARGET_CHARS` characters; empty if
    there is none. Only the first and the last `MAX_SEARCHED_CHARS` code points are searched, because commands
    report their outcome there."""
    parts = (
        (text,)
        if len(text) <= 2 * MAX_SEARCHED_CHARS
        else (text[:MAX_SEARCHED_CHARS], text[-MAX_SEARCHED_CHARS:])
    )
    for part in parts:
        for line in part.split("\n"):
            seen = line[:ERROR_CHARS]
            if ERROR.search(seen) is not None or _RAISED.search(seen) is not None:
                bare = " ".join("".join(c if c.isprintable() else " " for c in line[:ERROR_CHARS]).split())
                return shorten(bare, TARGET_CHARS)
    return ""


def call_target(call: ToolCall) -> str:
    """Return what a call was about (its command, file, pattern or first text), as one line of at most
    `TARGET_CHARS` characters; empty if it has no such argument."""
    arguments = arguments_of(call)
    named = [arguments[name] for name in TARGET_ARGUMENTS if name in arguments]
    texts = [value for value in (*named, *arguments.values()) if isinstance(value, str) and value.strip()]
    if not texts:
        return ""
    line = texts[0].strip().splitlines()[0].strip()
    return shorten(line, TARGET_CHARS)


def shorten(line: str, chars: int) -> str:
    """Return `line` in at most `chars` characters, with `…` in place of what is missing. The line is cut at
    white space, and a path before a folder's name, because half of a name would be another name."""
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


def _results_backwards(
    items: Sequence[Item], protected: Collection[str]
) -> Iterable[tuple[int, int, ToolResult | None]]:
    """Yield the tool results and the user messages, from newest to oldest, until there is a summary.

    A result is yielded as (message index, block index, result) if a request contains it and its tool is not
    `protected`. A user message is yielded as (message index, 0, None).
    """
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
    """Return the call that each result answers, by the result's (message index, block index)."""
    found: dict[tuple[int, int], ToolCall] = {}
    for (index, at), result in matched.result_of.items():
        call = items[index].message.content[at]
        if isinstance(call, ToolCall):
            found[result] = call
    return found
