"""Measure how full a context is, message by message, as a session grows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Raw, Struct

from compactd.cli.inspect.growth import Forecast, Growth, GrowthPoint, forecast
from compactd.core.budget.usage_report import scale_of, size_of
from compactd.core.history.append import UNFINISHED, Report
from compactd.core.history.entries import Appended, SettingsSet, UsageReported, is_summary
from compactd.core.history.message_kinds import is_request
from compactd.core.history.state import SessionState
from compactd.core.tokens.counting import Counter, message_tokens
from compactd.core.tokens.usage import context_size, normalise, visible_output
from compactd.formats.files.session_file import MessageLine, live_places
from compactd.formats.messages.neutral import decode_message
from compactd.formats.messages.neutral_out import encode_message
from compactd.protocol.errors import CompactdError
from compactd.protocol.messages import Message

RECHECKED_MESSAGES = 64
"""How many of the newest messages from the previous call of `Meter.take` are compared with the new ones. They
may have changed: an answer's usage report comes after its tool calls.
"""


class MeasuredMessage(Struct, frozen=True):
    """A message with its token estimate, its usage report and its turn."""

    message: Message
    raw: Raw
    tokens: int
    """The message's own tokens, as an estimate."""
    report: Report | None
    turn: int

    @property
    def request(self) -> int:
        """Tokens of the request that the message answered, from its usage report; 0 if it has no report."""
        return context_size(self.report[0]) if self.report is not None else 0


class Meter:
    """A meter for the context of one session. It takes the messages as they arrive, and computes the same
    sizes as a daemon with the same context.
    """

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self._all: list[MeasuredMessage] = []
        self._live: list[int] = []
        """Positions of the messages that are in the context."""
        self._fixed = 0
        self._fold = SessionState(decode_message)
        """The session state that results from the messages in the context."""

    def take(
        self,
        lines: Sequence[MessageLine],
        begun: Message | None,
        kept: Mapping[int, int],
        pinned: Mapping[int, Sequence[int]],
        fixed_tokens: int,
    ) -> None:
        """Take `lines`, all messages so far.

        Costs O(new messages); if earlier messages changed, O(messages in the context). `begun`: an answer
        that is not complete yet. `kept`: position of a summary -> position of the first message before it
        that stays in the context. `pinned`: position of a summary -> positions of older messages that stay.
        `fixed_tokens`: tokens of the system prompt and tools.
        """
        unchanged = self._drop_changed(lines)
        for message, raw in lines[unchanged:]:
            self._add(message, raw)
        if begun is not None:
            self._add(begun, Raw(encode_message(begun)))
        live = live_places([one.message for one in self._all], kept, pinned)
        done = len(self._live)
        is_same = live[:done] == self._live and all(at < unchanged for at in self._live)
        if not is_same or fixed_tokens != self._fixed:
            done, self._fixed, self._fold = 0, fixed_tokens, SessionState(decode_message)
            self._fold.apply(SettingsSet(at=0.0, fixed_tokens=(fixed_tokens, 0)))
        self._live = live
        for at in live[done:]:
            self._add_to_context(self._all[at])

    def _drop_changed(self, lines: Sequence[MessageLine]) -> int:
        """Compare the messages of the previous call with `lines`, and drop them from the first one on that
        differs. Return how many remain.
        """
        known = min(len(self._all), len(lines))
        for at in range(max(0, known - RECHECKED_MESSAGES), known):
            if self._all[at].message is not lines[at][0]:
                known = at
                break
        del self._all[known:]
        return known

    def _add(self, message: Message, raw: Raw) -> None:
        turn = (self._all[-1].turn if self._all else 0) + is_request(message)
        tokens = message_tokens(message, self._counter)
        self._all.append(MeasuredMessage(message, raw, tokens, _report_of(message), turn))

    def _add_to_context(self, one: MeasuredMessage) -> None:
        """Add a message, and its usage report, to the state as a daemon would."""
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
        """Tokens of the next request: the last usage report in the context plus an estimate of the messages
        after it. Without a report, everything is estimated.
        """
        size = size_of(self._fold, scale_of(self._fold, self._counter))
        return max(0, size.estimated if size.base is None else size.base + size.trailing)

    @property
    def source(self) -> str:
        """Where `used` comes from: `measured` (a usage report), `mixed` (a report plus an estimate of the
        messages after it) or `estimated`.
        """
        if self._fold.base is None:
            return "estimated"
        return "measured" if self._all[-1].request else "mixed"

    @property
    def count(self) -> int:
        """The number of messages so far."""
        return len(self._all)

    def accepted_sizes(self, start: int) -> list[int]:
        """Return the sizes in tokens of the answered requests, from the message at position `start` on, as
        usage reports say them.
        """
        return [one.request for one in self._all[start:] if one.request]

    def forecast(self, threshold: int | None) -> Forecast | None:
        """Return when the next compaction is due, from the growth since the last compaction; None if too
        little is known or the context does not grow. O(messages).
        """
        answers = [one for one in self._all if one.message.role == "assistant"]
        measured = 2 * sum(one.request > 0 for one in answers) > len(answers)
        start = max((at for at, one in enumerate(self._all) if is_summary(one.message)), default=0)
        sizes: list[GrowthPoint] = []
        total = self._fixed
        for one in self._all[start:]:
            total += one.tokens
            if one.message.role != "assistant":
                continue
            if not measured:
                sizes.append(GrowthPoint(one.turn, total, 0))
            elif one.report is not None and one.request:
                sizes.append(GrowthPoint(one.turn, one.request + visible_output(one.report[0]), 0))
        growth = Growth(sizes=tuple(sizes), compactions=(), measured=measured)
        return forecast(growth, self.used, threshold) if self._all else None


def _report_of(message: Message) -> Report | None:
    if message.role != "assistant" or message.usage is None:
        return None
    try:
        return normalise(message.usage)
    except CompactdError:
        return None
