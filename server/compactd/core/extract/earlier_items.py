"""Write the items of an earlier summary as lines of compactd's own summary.

Each item is one line that names the entry of the earlier summary and says that a summary wrote it. Neither
the user nor the agent of this conversation did, whatever the summary says in their name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from compactd.core.extract.earlier import Earlier
from compactd.core.history.entries import EntryId
from compactd.core.text.summary_format import (
    BLOCKED,
    CONSTRAINTS,
    CONTEXT,
    DECISIONS,
    DONE,
    FAILURES,
    GOAL,
    IN_PROGRESS,
    NEXT,
)
from compactd.core.work.line_words import names_something

SUMMARY_MARK: Final = "(summary) "
"""The mark of an item that an earlier summary wrote."""
WEIGHTS: Final = {
    GOAL: 6,
    CONSTRAINTS: 4,
    NEXT: 3,
    DECISIONS: 4,
    DONE: 4,
    BLOCKED: 2,
    FAILURES: 3,
    IN_PROGRESS: 2,
    CONTEXT: 4,
}
"""How the sections share the room, in the order in which they are served."""
LEADS: Final = {IN_PROGRESS: "At that time: ", NEXT: "Open at that time: ", BLOCKED: "At that time: "}
"""The sections about a state that has passed, and what precedes their items."""
MAX_ITEM_CHARS: Final = 450
MIN_ITEM_CHARS: Final = 220
ENDS: Final = (".", ":", ";", "!", "?", "…", ",")


def earlier_lines(
    entry_id: EntryId,
    earlier: Earlier,
    most: int,
    *,
    condense: Callable[[str, int], Sequence[str]],
    value: Callable[[str], float],
) -> Iterator[tuple[str, int, str]]:
    """Yield (section, place in the section, line) for the items of an earlier summary.

    First come those of each section that say most, in its share of `most` characters, but at least one; then
    the others, those about a state that has passed last. The goal and what comes next keep their order.
    `condense` returns the lines of a text that tell the most, in a number of characters; `value` says what a
    text's names and words are worth. O(items × log items).
    """
    total = sum(weight for section, weight in WEIGHTS.items() if earlier.sections.get(section)) or 1
    rest: list[tuple[str, int, str]] = []
    passed: list[tuple[str, int, str]] = []
    for section, weight in WEIGHTS.items():
        items = earlier.sections.get(section, ())
        left = most * weight // total
        each = min(MAX_ITEM_CHARS, max(MIN_ITEM_CHARS, left // max(1, len(items))))
        if section == GOAL:
            each = MAX_ITEM_CHARS
        is_first = True
        for n in range(len(items)) if section in (GOAL, NEXT) else _by_value(items, value):
            lines = condense("\n".join(items[n]), each)
            if len(lines) == 1 and len(items[n]) > 1 and len(lines[0]) < MIN_ITEM_CHARS // 2:
                # What it introduces was left out.
                continue
            text = _on_one_line(lines)
            if not text:
                continue
            line = f"- [{entry_id}] {SUMMARY_MARK}{LEADS.get(section, '')}{text}"
            if len(line) <= left or is_first:
                left -= len(line)
                yield section, n, line
            else:
                (passed if section in LEADS else rest).append((section, n, line))
            is_first = False
    yield from (*rest, *passed)


def _by_value(items: Sequence[Sequence[str]], value: Callable[[str], float]) -> list[int]:
    """Return the places of the items: those first that name something exactly, and of these those that are
    worth most for their length."""
    worth = [value(" ".join(item)) / (sum(map(len, item)) + 40) ** 0.5 for item in items]
    names = [any(map(names_something, item)) for item in items]
    return sorted(range(len(items)), key=lambda n: (not names[n], -worth[n], n))


def _on_one_line(lines: Sequence[str]) -> str:
    """Return an item on one line. Its first line may introduce the others."""
    text = ""
    for n, line in enumerate(lines):
        if not text:
            text = line
        elif text.endswith(ENDS):
            text += f" {line}"
        else:
            text += f"{': ' if n == 1 else '; '}{line}"
    return f"{text[:-1]}." if text.endswith((":", "：")) else text
