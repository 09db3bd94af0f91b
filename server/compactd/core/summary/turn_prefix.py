"""Summarise the beginning of a split turn without a model: one line per step, with the outcome of each call.

A turn is split if the cut is inside it; then its beginning gets a summary of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compactd.core.authors.authors import USER, stretches_of
from compactd.core.history.entries import Item
from compactd.core.history.message_kinds import kind_of
from compactd.core.history.tool_pairs import match as pair
from compactd.core.planning.prune import call_target, shorten
from compactd.core.text.atoms import ERROR
from compactd.core.text.quoting import quote_line
from compactd.core.text.tool_results import text_of_result
from compactd.protocol.messages import Block, Text, ToolCall, ToolResult

HEADING = "## Turn Context (split turn)"
"""The heading above the summary of a split turn's beginning (as in Opal's source)."""

MAX_TEXT_CHARS = 120
"""The most characters of a text in a step's line."""
OUTCOME_CHARS = 80
"""The most characters of a call's outcome in a step's line."""

OUTCOME_LINES = 400
"""Only the last lines of a result, this many, are searched for an error, because outcomes are at the end."""


def list_steps(prefix: Sequence[Item], most_tokens: int, count: Callable[[str], int]) -> str:
    """Return the heading and one line per step of `prefix`, oldest first, in at most `most_tokens`. A step is
    a text or a call.

    If not all steps fit, the newest ones stay and the number of messages in the prefix is added. If none
    fits, the heading and that number are returned, even if they take more tokens.
    """
    lines = _lines(prefix)
    shown: list[str] = []
    used = count(f"{HEADING}\n({len(prefix)} messages of the turn in progress)\n")
    for line in reversed(lines):
        used += count(line + "\n")
        if used > most_tokens:
            break
        shown.append(line)
    if len(shown) < len(lines) or not shown:
        shown.append(f"({len(prefix)} messages of the turn in progress)")
    return "\n".join((HEADING, *reversed(shown)))


def _lines(prefix: Sequence[Item]) -> list[str]:
    """Return a line for each text and each call, with the outcome of the call."""
    results = pair(prefix).result_of
    lines: list[str] = []
    for index, item in enumerate(prefix):
        if kind_of(item.message) == "result":
            continue
        for at, block in enumerate(item.message.content):
            match block:
                case Text(text=text) if text.strip():
                    lines.append(f"- [{item.entry_id}] {_first_line(item, block, text)}")
                case ToolCall():
                    about = quote_line(f"{block.name} {call_target(block)}".rstrip(), "assistant")
                    place = results.get((index, at))
                    outcome = _outcome(prefix[place[0]], place[1]) if place is not None else ""
                    lines.append(f"- [{item.entry_id}] {about}{outcome}")
                case _:
                    pass
    return lines


def _first_line(item: Item, block: Block, text: str) -> str:
    """Return the first line that the user typed in this block, after `User:`. If the user typed nothing in
    it, return the block's first line as a quotation."""
    told = [stretch for stretch in stretches_of(item.message, block) if stretch.text.strip()]
    typed = next((stretch for stretch in told if stretch.author == USER), None)
    if typed is not None:
        return f"User: {quote_line(_one_line(typed.text, MAX_TEXT_CHARS), USER)}"
    author = told[0].author if told else "unknown"
    return quote_line(_one_line(told[0].text if told else text, MAX_TEXT_CHARS), author)


def _outcome(item: Item, at: int) -> str:
    """Return how a call ended: the last error line of its result or, without an error, the last line. It is
    marked as tool output. `at` is the index of the result's block."""
    block = item.message.content[at]
    if not isinstance(block, ToolResult):
        return ""
    text = text_of_result(block)
    lines = [line.strip() for line in text[-20_000:].splitlines()[-OUTCOME_LINES:] if line.strip()]
    if not lines:
        return " → (tool) failed" if block.is_error else ""
    errors = [line for line in lines if ERROR.search(line[:MAX_TEXT_CHARS])]
    return f" → {quote_line(_one_line(errors[-1] if errors else lines[-1], OUTCOME_CHARS), 'tool')}"


def _one_line(text: str, chars: int) -> str:
    """Return the first line of a text in at most `chars` characters."""
    line = text.strip()[: chars * 8].split("\n", 1)[0]
    return shorten(" ".join(line.split()), chars)
