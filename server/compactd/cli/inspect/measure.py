"""How full a context is, message by message, as a session grows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Raw, Struct

from compactd.cli.inspect.growth import Forecast, Growth, Size, forecast
from compactd.core.budget.usage_report import scale_of, size_of
from compactd.core.history.append import UNFINISHED, Report
from compactd.core.history.entries import Appended, SettingsSet, UsageReported, is_summary
from compactd.core.history.message_kinds import is_request
from compactd.core.history.state import Fold
from compactd.core.tokens.counting import Counter, message_tokens
from compactd.core.tokens.usage import context_size, normalise, visible_output
from compactd.formats.files.session_file import Line, live_places
from compactd.formats.messages.neutral import decode_message
from compactd.formats.messages.neutral_out import encode_message
from compactd.protocol.errors import CompactdError
from compactd.protocol.messages import Message

LOOKED_BACK = 64
"""Messages at the end that may have changed since the last look: an answer's report comes after its calls."""


class Weighed(Struct, frozen=True):
    """A message with what is known of it by itself."""

    message: Message
    raw: Raw
    tokens: int
    """Estimated."""
    report: Report | None
    turn: int

    @property
    def request(self) -> int:
        """Tokens of the request that it answered, by its report; 0 if it has none."""
        return context_size(self.report[0]) if self.report is not None else 0


class Meter:
    """Takes the messages of one session as they come. Its sizes are those that a daemon has for the messages
    that are in the context."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self._all: list[Weighed] = []
        self._live: list[int] = []
        """Places of the messages that are in the context."""
        self._fixed = 0
        self._fold = Fold(decode_message)
        """Of those messages."""

    def take(
        self,
        lines: Sequence[Line],
        begun: Message | None,
        kept: Mapping[int, int],
        pinned: Mapping[int, Sequence[int]],
        fixed_tokens: int,
    ) -> None:
        """All messages so far; `begun`: an answer that is not whole. O(new messages), and after a change of
        what was there O(messages in the context).

        `kept`, `pinned`: of a summary's place, that of the first message before it that stayed, and those of
        older ones. `fixed_tokens`: of the system prompt and tools.
        """
        unchanged = self._unchanged(lines)
        for message, raw in lines[unchanged:]:
            self._add(message, raw)
        if begun is not None:
            self._add(begun, Raw(encode_message(begun)))
        live = live_places([one.message for one in self._all], kept, pinned)
        done = len(self._live)
        is_same = live[:done] == self._live and all(at < unchanged for at in self._live)
        if not is_same or fixed_tokens != self._fixed:
            done, self._fixed, self._fold = 0, fixed_tokens, Fold(decode_message)
            self._fold.apply(SettingsSet(at=0.0, fixed_tokens=(fixed_tokens, 0)))
        self._live = live
        for at in live[done:]:
            self._weigh(self._all[at])

    def _unchanged(self, lines: Sequence[Line]) -> int:
        """Drops what is not so any more; how many messages are known."""
        known = min(len(self._all), len(lines))
        for at in range(max(0, known - LOOKED_BACK), known):
            if self._all[at].message is not lines[at][0]:
                known = at
                break
        del self._all[known:]
        return known

    def _add(self, message: Message, raw: Raw) -> None:
        turn = (self._all[-1].turn if self._all else 0) + is_request(message)
        tokens = message_tokens(message, self._counter)
        self._all.append(Weighed(message, raw, tokens, _report_of(message), turn))

    def _weigh(self, one: Weighed) -> None:
        """Takes a message into the context, as a daemon does."""
        fold, estimator = self._fold, self._counter.name
        entry_id = fold.next_id
        entry = Appended(
            id=entry_id, at=0.0, tokens=(one.tokens, estimator), message=one.raw, parent=fold.leaf
        )
        fold.apply(entry, one.message)
        if one.report is not None:
            usage, reported_output = one.report
            fold.apply(
                UsageReported(
                    at=0.0,
                    usage=usage,
                    epoch=fold.epoch,
                    entry_id=entry_id,
                    reported_output=reported_output,
                    is_base=one.message.stop_reason not in UNFINISHED and one.request > 0,
                    estimator=estimator,
                )
            )

    @property
    def used(self) -> int:
        """Tokens of the next request: the last report in the context and what came after it, or an estimate
        of all of it."""
        size = size_of(self._fold, scale_of(self._fold, self._counter))
        return max(0, size.estimated if size.base is None else size.base + size.trailing)

    @property
    def source(self) -> str:
        """`measured`, `mixed`: a report and what came after it, or `estimated`."""
        if self._fold.base is None:
            return "estimated"
        return "measured" if self._all[-1].request else "mixed"

    @property
    def count(self) -> int:
        """Messages so far."""
        return len(self._all)

    def accepted(self, start: int) -> list[int]:
        """The sizes of the requests that were answered, from the message at `start` on."""
        return [one.request for one in self._all[start:] if one.request]

    def forecast(self, threshold: int | None) -> Forecast | None:
        """When a compaction comes, as the context grew since the last one. O(messages)."""
        answers = [one for one in self._all if one.message.role == "assistant"]
        measured = 2 * sum(one.request > 0 for one in answers) > len(answers)
        start = max((at for at, one in enumerate(self._all) if is_summary(one.message)), default=0)
        sizes: list[Size] = []
        total = self._fixed
        for one in self._all[start:]:
            total += one.tokens
            if one.message.role != "assistant":
                continue
            if not measured:
                sizes.append(Size(one.turn, total, 0))
            elif one.report is not None and one.request:
                sizes.append(Size(one.turn, one.request + visible_output(one.report[0]), 0))
        growth = Growth(sizes=tuple(sizes), compactions=(), measured=measured)
        return forecast(growth, self.used, threshold) if self._all else None


def _report_of(message: Message) -> Report | None:
    if message.role != "assistant" or message.usage is None:
        return None
    try:
        return normalise(message.usage)
    except CompactdError:
        return None
