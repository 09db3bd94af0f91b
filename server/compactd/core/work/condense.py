"""Shorten a text that the agent wrote to the lines that tell the most.

The sentences of the text (`text_outline`) are taken in the order of their worth (`line_worth`) for their
length, each after the titles and items above it. The items of a numbered list are taken together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Final

from compactd.core.work.line_words import is_only_opening, lowered, tells_nothing
from compactd.core.work.line_worth import worths_of
from compactd.core.work.text_outline import (
    HEAD,
    ITEM,
    LEAD,
    PLAIN,
    TITLED,
    Node,
    nodes_of,
    number_of,
    read_lines,
    texts_of,
    with_plain_marker,
)

SHORT_LINE_CHARS: Final = 240
"""If there is no room for all lines, no sentence has more characters than this."""
ITEM_CHARS: Final = 60
"""The items of a numbered list are shortened to this many characters, but no further."""
GAP_CHARS: Final = 3
"""What a line adds to its own characters: a separator and a mark where something is left out."""
SERIES_SHARE: Final = 0.85
"""How much of all room a numbered list takes at most if its items are shortened as far as possible."""
FIRST_SHARE: Final = 0.55
"""How much of all room a numbered list takes at first, if this shortens no item too much."""
SERIES_WORTH: Final = 1.3
"""How much more an item of a numbered list is worth than another line."""

_ENDS: Final = (".", ":", ";", "!", "?", "…", ",", ")", "。", "！", "？", "：")


def condense(text: str, most_chars: int, value: Callable[[str], float] = lambda _: 0.0) -> list[str]:
    """Return lines of `text` in their order, of at most about `most_chars` characters together. `…` stands
    where something is left out that tells something. If no line fits, one is returned. `value` says what the
    names and words in a line are worth, on any scale; the other half of a line's worth is what it says of the
    work. O(length × log length)."""
    return Condensable(text, value).condense(most_chars)


class Condensable:
    """A text that is shortened to several lengths. Its lines are read once."""

    def __init__(self, text: str, value: Callable[[str], float] = lambda _: 0.0) -> None:
        """`value` is explained at `condense`."""
        self._read = read_lines(text)
        self._lines = texts_of(self._read)
        self._value = value

    def condense(self, most_chars: int) -> list[str]:
        """Return what the function `condense` does."""
        lines = self._lines
        if not lines:
            return []
        if sum(len(line) + 1 for line in lines) <= most_chars:
            return [with_plain_marker(line) for line in lines]
        choice = _Choice(self._nodes, self._worths, most_chars)
        choice.fill()
        return _shown(self._nodes, self._worths, choice)

    @cached_property
    def _nodes(self) -> list[Node]:
        return nodes_of(self._read)

    @cached_property
    def _worths(self) -> list[float]:
        return worths_of(self._nodes, self._value)


class _Choice:
    """Which nodes are shown, and in how many characters."""

    def __init__(self, nodes: Sequence[Node], worths: Sequence[float], most_chars: int) -> None:
        self._nodes, self._worths, self._room, self._most = nodes, worths, most_chars, most_chars
        self.sizes: dict[int, int] = {}
        """For each chosen node, how many characters are shown."""
        self._full = [min(len(node.text), SHORT_LINE_CHARS) for node in nodes]
        self._series: dict[int, list[int]] = {}
        for n, node in enumerate(nodes):
            if node.series >= 0:
                self._series.setdefault(node.series, []).append(n)
        self.left_out: set[int] = set()
        """Items of numbered lists for which there is no room."""

    def fill(self) -> None:
        """Choose nodes while there is room, those first that are worth most for their length."""
        worths, full = self._worths, self._full

        def rank(n: int) -> tuple[float, int]:
            series = SERIES_WORTH if self._nodes[n].series >= 0 else 1.0
            return -series * worths[n] / (full[n] + 40) ** 0.5, n

        ranked = sorted((n for n in range(len(worths)) if worths[n] > 0), key=rank) or [0]
        waiting = [n for n in ranked if not self._take(n)]
        self._lengthen()
        for n in waiting:
            self._take(n, is_waiting=False)
        if not self.sizes:
            self._add(ranked[:1], SHORT_LINE_CHARS)
        self._lengthen()

    def _take(self, n: int, *, is_waiting: bool = True) -> bool:
        """Choose a node and its parents, if there is room for them. Of a numbered list, choose all items.
        Return whether this is decided. If `is_waiting` is true, a node waits while its parent is
        shortened."""
        path: list[int] = []
        at = n
        while at >= 0 and at not in self.sizes:
            if at in self.left_out:
                return True
            if at == n or self._is_needed(at, path):
                path.append(at)
            at = self._nodes[at].parent
        if is_waiting and at >= 0 and path and self.sizes[at] < self._full[at]:
            return False
        chosen: list[int] = []
        for at in reversed(path):
            series = self._nodes[at].series
            if series < 0:
                chosen.append(at)
                continue
            self._take_series(self._series[series], chosen)
            if at not in self.sizes:
                return True
            if is_waiting and at != n and self.sizes[at] < self._full[at]:
                return False
            chosen = []
        if sum(self._full[at] + GAP_CHARS for at in chosen) <= self._room:
            self._add(chosen, SHORT_LINE_CHARS)
        elif not self.sizes and self._room > self._full[n] // 2 + GAP_CHARS:
            # What tells most is shown, if half of it fits.
            self._add([n], self._room - GAP_CHARS)
        return True

    def _take_series(self, items: Sequence[int], titles: Sequence[int]) -> None:
        """Choose the items of a numbered list after the titles above it, each shortened as far as needed, and
        only the last ones if there is no room for all."""
        room = min(self._room, int(self._most * SERIES_SHARE))
        room -= sum(self._full[at] + GAP_CHARS for at in titles)
        sizes = [self._full[at] + GAP_CHARS for at in items]
        least = sum(min(size, ITEM_CHARS + GAP_CHARS) for size in sizes)
        fitting = len(items) if least <= room else min(len(items), max(0, room // (ITEM_CHARS + GAP_CHARS)))
        if fitting < min(2, len(items)):
            # One of several tells less than what else there is.
            fitting = 0
        self.left_out.update(items[: len(items) - fitting])
        if fitting:
            self._add(titles, SHORT_LINE_CHARS)
            room = min(room, max(least, int(self._most * FIRST_SHARE)))
            self._add(items[-fitting:], _even(sizes[-fitting:], room) - GAP_CHARS)

    def _add(self, chosen: Sequence[int], most: int) -> None:
        for at in chosen:
            self.sizes[at] = min(self._full[at], most)
            self._room -= self.sizes[at] + GAP_CHARS

    def _lengthen(self) -> None:
        """Use the room that is left for what was shortened."""
        short = [at for at, size in self.sizes.items() if size < self._full[at]]
        if short and self._room > 0:
            most = _even([self._full[at] for at in short], self._room + sum(self.sizes[at] for at in short))
            for at in short:
                longer = max(self.sizes[at], min(self._full[at], most))
                self._room -= longer - self.sizes[at]
                self.sizes[at] = longer

    def _is_needed(self, at: int, path: Sequence[int]) -> bool:
        """Return whether the nodes of a path are not understood without the title above them."""
        node, below = self._nodes[at], self._nodes[path[-1]]
        if node.series >= 0 or node.kind not in (HEAD, TITLED, LEAD):
            return True
        # The nearest title tells enough.
        low = lowered(node.text)
        is_nearest = below.kind != HEAD
        return is_nearest and not (is_only_opening(low) or tells_nothing(low, is_last=False))


def _even(sizes: Sequence[int], room: int) -> int:
    """Return the largest size to which `sizes` can be limited so that their sum is at most `room`."""
    left = room
    for n, size in enumerate(ordered := sorted(sizes)):
        share = left // (len(ordered) - n)
        if size > share:
            return share
        left -= size
    return max(sizes, default=0)


def _shown(nodes: Sequence[Node], worths: Sequence[float], choice: _Choice) -> list[str]:
    """Return the chosen nodes as lines, with `…` where something is left out that tells something."""
    shown: list[str] = []
    line = item = -1
    is_gap = False
    cut: dict[int, list[int]] = {}
    for n, node in enumerate(nodes):
        size = choice.sizes.get(n)
        if size is None:
            if n in choice.left_out:
                cut.setdefault(node.series, []).append(number_of(node))
            is_gap = is_gap or worths[n] > 0
            continue
        if is_gap and shown and not shown[-1].endswith("…"):
            shown[-1] += " …"
        is_gap = False
        if (numbers := cut.pop(node.series, None)) is not None:
            shown.append(f"{numbers[0]}–{numbers[-1]} …" if len(numbers) > 1 else f"{numbers[0]} …")
        text = _shorten(node.text, size)
        is_below = node.kind == PLAIN and node.parent >= 0 and nodes[node.parent].line == item
        if node.line == line or is_below:
            shown[-1] += f"{'' if shown[-1].endswith(_ENDS) else '.'} {text.strip()}"
        else:
            shown.append(with_plain_marker(text))
            item = node.line if node.kind == ITEM else -1
        line = node.line
    if is_gap and shown and not shown[-1].endswith("…"):
        shown[-1] += " …"
    return shown


def _shorten(text: str, most: int) -> str:
    """Return a text of at most about `most` characters, cut at the end of a clause or at white space."""
    if len(text) <= most:
        return text
    end = text.rfind(" ", 0, most - 1)
    clause = max(text.rfind(mark, 0, most - 1) for mark in (", ", "; ", ": ", " — ", " – ", " (", ". "))
    if clause > 4 * most // 5:
        end = clause
    if end > 0 and text.count("`", 0, end) % 2:
        tick = text.rfind("`", 0, end)
        if tick > most // 2:
            end = tick  # Half a name says nothing.
        else:
            # A single sign would make a name of what follows.
            text, end = text[:tick] + text[tick + 1 :], end - 1
    if end < most // 3 and not text.isascii():
        # Some languages are written without white space.
        end = most - 2
    kept = text[: max(0, end)].rstrip(" ,;:—–(")
    return f"{kept} …"
