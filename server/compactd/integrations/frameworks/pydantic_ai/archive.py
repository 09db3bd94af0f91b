"""The messages that histories held before a summary replaced them (`persistent=True`, the history processor).

The agent's history then begins with a summary. The session still has everything, but it can only follow a
history that begins where it begins itself. So this process remembers what each shortened history stands for.
It holds the agent's own message objects, of the sessions that were used last.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import Final

from pydantic_ai import messages as pai

MAX_SESSIONS: Final = 256
MAX_HISTORIES: Final = 4
"""The most shortened histories of one session that are remembered. Several agents may use one session."""

_Histories = deque[tuple[tuple[pai.ModelMessage, ...], tuple[pai.ModelMessage, ...]]]

_lock = threading.Lock()
_archive: OrderedDict[str, _Histories] = OrderedDict()


def remember(session: str, shortened: Sequence[pai.ModelMessage], whole: Sequence[pai.ModelMessage]) -> None:
    """Note that the history `shortened` stands for `whole`. O(messages)."""
    with _lock:
        histories = _archive.setdefault(session, deque(maxlen=MAX_HISTORIES))
        histories.append((tuple(shortened), tuple(whole)))
        _archive.move_to_end(session)
        while len(_archive) > MAX_SESSIONS:
            _archive.popitem(last=False)


def whole_history(session: str, messages: Sequence[pai.ModelMessage]) -> list[pai.ModelMessage]:
    """Return the history that `messages` stand for: the messages themselves, if they begin with no history
    that this process shortened. O(messages).
    """
    with _lock:
        histories = tuple(_archive.get(session, ()))
    for shortened, whole in reversed(histories):
        count = len(shortened)
        if count <= len(messages) and all(
            one is other or one == other for one, other in zip(shortened, messages, strict=False)
        ):
            return [*whole, *messages[count:]]
    return list(messages)


def forget() -> None:
    """Forget all histories. For the end of a test."""
    with _lock:
        _archive.clear()
