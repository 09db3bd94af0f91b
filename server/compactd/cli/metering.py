"""How full a context is, message by message, as a session grows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from compactd.cli.growth import Forecast, Growth, Size, forecast
from compactd.core.cuts import is_request
from compactd.core.entries import is_summary
from compactd.core.tokens import Counter, message_tokens
from compactd.core.usage import context_size, normalise, visible_output
from compactd.errors import CompactdError
from compactd.formats.session_file import Line
from compactd.messages import Message

LOOKED_BACK = 64
"""Messages at the end that may have changed since the last look: an answer's report comes after its calls."""


class Reckoned(Struct, frozen=True):
    """The context after a message."""

    message: Message
    tokens: int
    """Of the message, estimated."""
    used: int
    """Of the context: the provider's report and what came after it, or an estimate of all of it."""
    is_measured: bool
    """A report stands behind `used`."""
    is_reported: bool
    """This message's own."""
    turn: int
    since: int
    """Compactions before it."""


class Meter:
    """Takes the messages of one session as they come."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self._all: list[Reckoned] = []

    def take(
        self,
        lines: Sequence[Line],
        begun: Message | None,
        kept: Mapping[int, int],
        pinned: Mapping[int, Sequence[int]],
        fixed_tokens: int,
    ) -> None:
        """All messages so far; `begun`: an answer that is not whole. O(new messages).

        `kept`, `pinned`: of a summary's place, that of the first message before it that stayed, and those of
        older ones. `fixed_tokens`: of the system prompt.
        """
        for at in range(self._unchanged(lines), len(lines)):
            self._add(lines[at][0], at, kept, pinned, fixed_tokens)
        if begun is not None:
            self._add(begun, len(lines), kept, pinned, fixed_tokens)

    def _unchanged(self, lines: Sequence[Line]) -> int:
        """Drops what is not so any more; how many messages are known."""
        known = min(len(self._all), len(lines))
        for at in range(max(0, known - LOOKED_BACK), known):
            if self._all[at].message is not lines[at][0]:
                known = at
                break
        del self._all[known:]
        return known

    def _add(
        self,
        message: Message,
        at: int,
        kept: Mapping[int, int],
        pinned: Mapping[int, Sequence[int]],
        fixed_tokens: int,
    ) -> None:
        last = self._all[-1] if self._all else None
        tokens = message_tokens(message, self._counter)
        turn = (last.turn if last else 0) + is_request(message)
        since = last.since if last else 0
        used = (last.used if last else fixed_tokens) + tokens
        is_measured = last.is_measured if last else False
        if is_summary(message):
            places = {*range(kept.get(at, at), at), *pinned.get(at, ())}
            used = fixed_tokens + tokens + sum(self._all[place].tokens for place in places if place < at)
            since, is_measured = since + 1, False
        reported = _reported(message)
        if reported is not None:
            # Claude Code's records hold the output as counted when the answer began, a token or two.
            used, is_measured = reported[0] + max(reported[1], tokens), True
        self._all.append(Reckoned(message, tokens, used, is_measured, reported is not None, turn, since))

    @property
    def last(self) -> Reckoned | None:
        """The context as it is; none before the first message."""
        return self._all[-1] if self._all else None

    @property
    def count(self) -> int:
        """Messages so far."""
        return len(self._all)

    def forecast(self, threshold: int | None) -> Forecast | None:
        """When a compaction comes, as the context grew since the last one. O(messages since)."""
        answers = [one for one in self._segment() if one.message.role == "assistant"]
        measured = 2 * sum(one.is_reported for one in answers) > len(answers)
        sizes = tuple(Size(one.turn, one.used, 0) for one in answers if one.is_reported or not measured)
        growth = Growth(sizes=sizes, compactions=(), measured=measured)
        return forecast(growth, self._all[-1].used, threshold) if self._all else None

    def _segment(self) -> list[Reckoned]:
        """Since the last compaction."""
        since = self._all[-1].since if self._all else 0
        start = len(self._all)
        while start and self._all[start - 1].since == since:
            start -= 1
        return self._all[start:]


def _reported(message: Message) -> tuple[int, int] | None:
    """(tokens of the request, those of its answer that stay) by the report; none where there is none."""
    if message.usage is None:
        return None
    try:
        usage, _ = normalise(message.usage)
    except CompactdError:
        return None
    size = context_size(usage)
    return (size, visible_output(usage)) if size else None
