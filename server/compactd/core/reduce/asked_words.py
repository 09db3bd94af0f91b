"""The words of earlier calls: what the agent asked for, searched for and wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

from compactd.core.history.entries import EntryId, number_of
from compactd.core.reduce.kinds import recognise
from compactd.core.reduce.output import ToolOutput
from compactd.core.text.lazy_patterns import LazyPattern

MAX_CHARS: Final = 50_000
"""Only so many characters of a call are read."""
MAX_NESTED: Final = 4

_WORD: Final = LazyPattern(r"[A-Za-z_]\w{4,80}")
"""Matches a word that may be a name."""


def words_of(text: str) -> set[str]:
    """Return the words of a text that may be names. O(characters)."""
    return set(_WORD.findall(text))


class Asked(Struct, frozen=True):
    """The newest call with a word."""

    number: int
    """The number of its entry."""
    is_change: bool
    """Whether the call changed a file."""


class AskedWords:
    """An index of the words of calls. The result depends on the calls that were added and not forgotten, and
    not on the order of these steps. Not safe to use from two threads at once."""

    def __init__(self) -> None:
        self._words: dict[EntryId, set[str]] = {}
        self._asked: dict[str, dict[EntryId, Asked]] = {}

    def __len__(self) -> int:
        """Return the number of calls."""
        return len(self._words)

    def add(self, entry_id: EntryId, output: ToolOutput) -> None:
        """Take the call of an entry. O(length of its arguments)."""
        self.forget(entry_id)
        words = words_in_call(output)
        asked = Asked(number_of(entry_id) or 0, is_change(output))
        self._words[entry_id] = words
        for word in words:
            self._asked.setdefault(word, {})[entry_id] = asked

    def forget(self, entry_id: EntryId) -> None:
        """Leave out the call of an entry, if it is there. O(its words)."""
        for word in self._words.pop(entry_id, ()):
            calls = self._asked[word]
            del calls[entry_id]
            if not calls:
                del self._asked[word]

    def newest(self, word: str) -> Asked | None:
        """Return the newest call with a word; None if there is none. O(calls with it)."""
        calls = self._asked.get(word)
        return None if calls is None else max(calls.values(), key=lambda one: one.number)


def words_in_call(output: ToolOutput) -> set[str]:
    """Return the words in the arguments of a call. O(characters)."""
    return words_of("\n".join(_texts(output.arguments))[:MAX_CHARS])


def is_change(output: ToolOutput) -> bool:
    """Return whether a call changes a file."""
    return recognise(output).kind == "edit"


def _texts(value: object, nested: int = 0) -> Iterator[str]:
    if isinstance(value, str):
        yield value[:MAX_CHARS]
    elif nested < MAX_NESTED and isinstance(value, Mapping):
        for one in value.values():
            yield from _texts(one, nested + 1)
    elif nested < MAX_NESTED and isinstance(value, (list, tuple)):
        for one in value:
            yield from _texts(one, nested + 1)
