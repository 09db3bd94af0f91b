"""Keep what the user asked for and what the agent said about it, request by request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from compactd.core.history.entries import EntryId

MAX_TURNS: Final = 200
"""The newest requests are kept, and the first."""
MAX_STATEMENTS: Final = 40
"""The newest statements of a request are kept."""
MAX_STATEMENT_CHARS: Final = 6_000
"""The most characters of a statement. The end of a longer one is cut."""
REPEATED: Final = 3
"""What is said this many times in the same words says little: `continue`, `Done.`, or what a program
sends."""


class Statement(Struct, frozen=True):
    """What the agent said in one message."""

    text: str
    entry_id: EntryId


class Turn(Struct, frozen=True):
    """A request of the user, and what the agent said until the next one."""

    sentences: tuple[str, ...]
    """The sentences that the user typed; empty before the first request."""
    entry_id: EntryId | None
    statements: tuple[Statement, ...]
    """In order, the newest last."""


class WorkHistory:
    """The requests of a conversation, in order, and what the agent said about each."""

    def __init__(self) -> None:
        self._ended: list[Turn] = []
        self._sentences: tuple[str, ...] = ()
        self._entry_id: EntryId | None = None
        self._statements: list[Statement] = []

    def result(self) -> tuple[Turn, ...]:
        """Return the requests, oldest first. What the agent said before the first has no request."""
        return (*self._ended, *self._newest())

    def _newest(self) -> Iterator[Turn]:
        if self._sentences or self._statements:
            yield Turn(self._sentences, self._entry_id, tuple(self._statements))

    def ask(self, sentences: Sequence[str], entry_id: EntryId) -> None:
        """Take in a request."""
        self._ended += self._newest()
        if len(self._ended) > MAX_TURNS:
            del self._ended[1]
        self._sentences, self._entry_id, self._statements = tuple(sentences), entry_id, []

    def say(self, text: str, entry_id: EntryId) -> None:
        """Take in what the agent said in a text block. Several blocks of a message are one statement."""
        statements = self._statements
        if statements and statements[-1].entry_id == entry_id:
            text = f"{statements.pop().text}\n\n{text}"
        statements.append(Statement(text[:MAX_STATEMENT_CHARS], entry_id))
        if len(statements) > MAX_STATEMENTS:
            # A short statement often says only what is done next, so it goes first.
            del statements[min(range(len(statements) // 2), key=lambda n: len(statements[n].text))]


def find_repeated(turns: Sequence[Turn]) -> frozenset[EntryId]:
    """Return the messages of which the user's or the agent's whole text is said at least `REPEATED` times.
    O(characters)."""
    said: list[tuple[Hashable, EntryId]] = [
        (turn.sentences, turn.entry_id) for turn in turns if turn.entry_id
    ]
    said += [(one.text, one.entry_id) for turn in turns for one in turn.statements]
    times = Counter(words for words, _ in said)
    return frozenset(entry_id for words, entry_id in said if times[words] >= REPEATED)
