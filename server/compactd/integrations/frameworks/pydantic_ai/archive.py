"""The messages that histories had before a summary replaced them (`persistent=True`, the history processor).

The agent's history then begins with a summary. The session still has everything, but it can only follow a
history that begins where it begins itself. So this process remembers what each shortened history stands for,
as the agent's own message objects, for the sessions that were used last.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pydantic_ai import messages as pai

from compactd.integrations.frameworks.pydantic_ai.messages import is_setup, opening_of

MAX_SESSIONS: Final = 256
MAX_HISTORIES: Final = 4
"""The most shortened histories of one session that are remembered. Several agents may use one session."""

_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class _Remembered:
    said: tuple[object, ...]
    """The parts of the shortened history that say something."""
    whole: tuple[pai.ModelMessage, ...]


_archive: OrderedDict[str, deque[_Remembered]] = OrderedDict()


def remember(session: str, shortened: Sequence[pai.ModelMessage], whole: Sequence[pai.ModelMessage]) -> None:
    """Note that the history `shortened` stands for `whole`. O(parts)."""
    said = tuple(part for _, _, part in _said(shortened))
    with _lock:
        histories = _archive.setdefault(session, deque(maxlen=MAX_HISTORIES))
        histories.append(_Remembered(said, tuple(whole)))
        _archive.move_to_end(session)
        while len(_archive) > MAX_SESSIONS:
            _archive.popitem(last=False)


def whole_history(session: str, messages: Sequence[pai.ModelMessage]) -> list[pai.ModelMessage]:
    """Return the history that `messages` stand for: the messages themselves, if they begin with no history
    that this process shortened. O(parts).

    Only what is said is compared: between two runs, the framework joins requests and renews system prompts.
    """
    with _lock:
        histories = tuple(_archive.get(session, ()))
    if not histories:
        return list(messages)
    given = list(_said(messages))
    for known in reversed(histories):
        count = len(known.said)
        if count <= len(given) and all(
            part is other or part == other for (_, _, part), other in zip(given, known.said, strict=False)
        ):
            at, index = given[count - 1][:2] if count else (-1, 0)
            return [*_with_opening(known.whole, messages), *_after(messages, at, index)]
    return list(messages)


def forget() -> None:
    """Forget all histories. For the end of a test."""
    with _lock:
        _archive.clear()


def _said(messages: Sequence[pai.ModelMessage]) -> Iterator[tuple[int, int, object]]:
    """Yield the parts that say something, each with the index of its message and its own."""
    for at, message in enumerate(messages):
        for index, part in enumerate(message.parts):
            if not isinstance(part, pai.SystemPromptPart) and not is_setup(part):
                yield at, index, part


def _after(messages: Sequence[pai.ModelMessage], at: int, index: int) -> list[pai.ModelMessage]:
    """Return what follows the part `index` of the message `at`."""
    rest = list(messages[at + 1 :])
    last = messages[at] if at >= 0 else None
    if isinstance(last, pai.ModelRequest) and len(last.parts) > index + 1:
        return [replace(last, parts=last.parts[index + 1 :]), *rest]
    return rest


def _with_opening(
    whole: Sequence[pai.ModelMessage], messages: Sequence[pai.ModelMessage]
) -> list[pai.ModelMessage]:
    """Return `whole` with the system prompt with which `messages` open."""
    old, new = whole[0] if whole else None, messages[0] if messages else None
    if not isinstance(old, pai.ModelRequest) or not isinstance(new, pai.ModelRequest):
        return list(whole)
    mine, theirs = old.parts[: opening_of(old)], new.parts[: opening_of(new)]
    if mine == theirs:
        return list(whole)
    return [replace(old, parts=[*theirs, *old.parts[len(mine) :]]), *whole[1:]]
