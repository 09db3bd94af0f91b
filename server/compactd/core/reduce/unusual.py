"""Find the unusual ones among texts of one shape: a rare status, a number far from the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Final

from compactd.core.text.lazy_patterns import LazyPattern

MAX_CHARS: Final = 300
"""Only so many characters of a text are read."""
MAX_COLUMNS: Final = 16
MAX_KINDS: Final = 8
"""With at most so many different values, numbers or words say what kind of thing a text is about."""
RARE: Final = 0.02
"""A kind is rare if at most this share of the texts is of it, or only one of at least `MIN_TEXTS`."""
MIN_TEXTS: Final = 8
FAR: Final = 5.0
"""A number is far from the others if it is more than this many times their median, or less than the median
divided by it, and if at most the share `RARE` of the numbers is."""

_NUMBER: Final = LazyPattern(r"\d+(?:\.\d+)?")
_WORD: Final = LazyPattern(r'"(?P<name>[^"\\\n]{1,40})"\s*:\s*(?P<value>"[^"\\\n]{0,40}"|true|false|null)')
"""Matches a field of a JSON object with a short value."""


def unusual(texts: Sequence[str]) -> list[int]:
    """Return the indexes of those texts of one shape that have an unusual number. O(characters)."""
    rows = [[found[0] for found in _NUMBER.finditer(text, 0, MAX_CHARS)] for text in texts]
    count = min(map(len, rows), default=0)
    found: set[int] = set()
    for column in range(min(count, MAX_COLUMNS)):
        found.update(_in_column([row[column] for row in rows]))
    return sorted(found)


def _in_column(values: Sequence[str]) -> Iterator[int]:
    counts = Counter(values)
    if len(counts) <= MAX_KINDS:
        yield from _rare(values, counts)
        return
    numbers = [float(value) if len(value) <= 15 else 0.0 for value in values]
    middle, limit = median(numbers), max(1, int(RARE * len(numbers)))
    if 0 < sum(number > FAR * middle for number in numbers) <= limit:
        yield numbers.index(max(numbers))
    if 0 < sum(number * FAR < middle for number in numbers) <= limit:
        yield numbers.index(min(numbers))


def _rare(values: Sequence[str], counts: Counter[str]) -> Iterator[int]:
    """Yield the first text of each rare kind."""
    limit = max(1, int(RARE * len(values)))
    if len(values) >= MIN_TEXTS and max(counts.values()) > len(values) // 2:
        yield from (values.index(value) for value, count in counts.items() if count <= limit)


def unusual_items(items: Sequence[str]) -> list[int]:
    """Return the indexes of those items of a JSON list that have a rare value in a field. O(characters)."""
    fields: dict[str, list[tuple[str, int]]] = {}
    for at, item in enumerate(items):
        for found in _WORD.finditer(item):
            fields.setdefault(found["name"], []).append((found["value"], at))
    rare: set[int] = set()
    for values in fields.values():
        counts = Counter(value for value, _ in values)
        if len(counts) <= MAX_KINDS:
            rare.update(values[one][1] for one in _rare([value for value, _ in values], counts))
    return sorted(rare)
