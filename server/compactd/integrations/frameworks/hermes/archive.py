"""The messages that histories had before a summary replaced them.

Hermes keeps the shortened history that it gets. compactd's session still has everything, but it can only
follow a history that begins where it begins itself. So this process remembers what each shortened history
stands for, for the sessions that were used last.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final

from compactd.integrations.frameworks.hermes.messages import Message, key_of
from compactd.integrations.frameworks.hermes.shown import Placed
from compactd.integrations.frameworks.history import common_length

MAX_SESSIONS: Final = 256
MAX_HISTORIES: Final = 4
"""The most shortened histories of one session that are remembered. Several agents may use one session."""

_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class _Remembered:
    keys: tuple[Hashable, ...]
    """What the messages of the shortened history say."""
    places: tuple[int | None, ...]
    """Their indices in `whole`."""
    whole: tuple[Message, ...]
    dropped: int
    """The index of the newest message in `whole` that the shortened history does not have; -1 if it has
    all.
    """

    def replaced(self, messages: Sequence[Message], keys: Sequence[Hashable]) -> list[Message] | None:
        """Return the history that `messages` stand for; None if they do not begin with this one, as far as it
        is needed to know what was left out.
        """
        count = common_length(self.keys, keys)
        while count and self.places[count - 1] is None:
            count -= 1
        place = self.places[count - 1] if count else None
        if place is None or place <= self.dropped:
            return None
        return [*self.whole[: place + 1], *messages[count:]]


_archive: OrderedDict[str, deque[_Remembered]] = OrderedDict()
_roots: OrderedDict[str, str] = OrderedDict()
"""Hermes' id -> the id that the conversation began with, if Hermes changed it at a compaction."""


def root_of(session_id: str) -> str:
    """Return the id that a conversation began with."""
    return _roots.get(session_id, session_id)


def continue_as(session_id: str, old: str) -> None:
    """Note that the conversation `old` goes on with the id `session_id`."""
    with _lock:
        if session_id != (root := root_of(old)):
            _roots[session_id] = root
        while len(_roots) > MAX_SESSIONS:
            _roots.popitem(last=False)


def remember(session: str, placed: Sequence[Placed], whole: Sequence[Message]) -> None:
    """Note that the messages `placed` stand for the history `whole`. O(messages)."""
    places = tuple(place for _, place in placed)
    missing = set(range(len(whole))).difference(place for place in places if place is not None)
    known = _Remembered(
        tuple(key_of(message) for message, _ in placed), places, tuple(whole), max(missing, default=-1)
    )
    with _lock:
        histories = _archive.setdefault(session, deque(maxlen=MAX_HISTORIES))
        histories.append(known)
        _archive.move_to_end(session)
        while len(_archive) > MAX_SESSIONS:
            _archive.popitem(last=False)


def whole_history(session: str, messages: Sequence[Message]) -> list[Message]:
    """Return the history that `messages` stand for: the messages themselves, if they begin with no history
    that this process shortened. O(messages).
    """
    with _lock:
        histories = tuple(_archive.get(session, ()))
    if histories:
        keys = [key_of(message) for message in messages]
        for known in reversed(histories):
            whole = known.replaced(messages, keys)
            if whole is not None:
                return whole
    return list(messages)


def forget() -> None:
    """Forget all histories. For the end of a test."""
    with _lock:
        _archive.clear()
        _roots.clear()
