"""Calibrate token estimates against the provider's usage reports.

If the model's own tokenizer is not available, two numbers are unknown: how many of the model's tokens
correspond to one estimated token, and how many tokens the agent sends in addition to the messages. Two
consecutive usage reports give the first: how much the request grew, compared with the estimate of what was
added. One report gives the second: what remains after the estimate is subtracted (tools and prompts that
compactd never sees). So (docs/dev/behaviour.md, "Tokens"):

    slope     = median of growth ÷ estimate, within 0.7 to 2 tokens per token of o200k
    intercept = reported − slope × estimate, kept across compactions

All numbers follow from the journal's entries in order, so a replay gives the same numbers. The cost is O(1)
per message and O(`MAX_GROWTHS`) per report.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from compactd.core.history.entries import EntryId, UsageReported
from compactd.core.tokens.usage import sent_size, visible_output

MIN_SLOPE = 0.7
MAX_SLOPE = 2.0
"""The bounds of the slope, in tokens of the model per token of o200k (docs/dev/behaviour.md, "Tokens")."""

PLAUSIBLE = (0.35, 4.0)
"""The range in which growth ÷ estimate between two reports is believed. A value outside it says nothing about
the tokenizer: it comes from a sub-agent's report, a pruned context, an inserted reminder, or invented
numbers."""

MIN_ESTIMATE = 100
"""Two reports are compared only if messages of at least this many estimated tokens came between them. With
fewer, the growth depends mostly on what the provider puts around messages."""

MAX_GROWTHS = 63
"""How many values of growth ÷ estimate are kept, the newest ones. Older ones are dropped because the kind of
text in a session may change."""

MAX_SHORT_GROWTHS = 15

SHORT_OUTPUT = 0.5
"""A reported output is short if reported output ÷ estimate of the same answer is below this. Then either the
report or the estimate is wrong."""

MIN_SURE_GROWTHS = 3
"""How many plausible values of growth ÷ estimate are needed before tokens that no estimate explains count as
hidden, or before a short reported output is distrusted."""


class Scale(Struct, frozen=True):
    """How to convert a session's estimates into the model's tokens. The default changes nothing."""

    slope: float = 1.0
    """The model's tokens per estimated token."""
    hidden: int = 0
    """Tokens of each request that no known message, prompt or tool accounts for."""
    trusts_short: bool = True
    """Whether a reported output far below the estimate is believed. If so, it is the size of the answer in
    the next request."""

    def tokens(self, estimate: int) -> int:
        """Return the model's tokens for an estimate, without the hidden ones. A larger estimate never gives
        fewer tokens."""
        return estimate if self.slope == 1.0 else round(self.slope * estimate)

    def limit(self, tokens: int) -> int:
        """Return the largest estimate that fits into `tokens` of a window together with the hidden tokens."""
        return max(0, int((tokens - self.hidden) / max(1.0, self.slope)))


EXACT = Scale()
"""The scale that changes nothing: for a tokenizer that is the model's own, and for a profile whose numbers
follow its specification."""


class AnswerSize(Struct, frozen=True):
    """How many tokens the last reported answer takes in the next request."""

    counted: int = 0
    """What `SessionState.trailing` includes for the answer: its visible output as reported, or the estimate
    if no output was reported."""
    estimate: int = 0
    is_reported: bool = False

    def tokens(self, scale: Scale) -> int:
        """Return what the answer takes in the model's tokens: the reported output if it is trusted, otherwise
        the estimate converted by `scale`."""
        trusts = self.is_reported and (scale.trusts_short or not self.is_short)
        return self.counted if trusts else scale.tokens(self.estimate)

    @property
    def is_short(self) -> bool:
        """Whether the report names less than `SHORT_OUTPUT` (half) of the estimate."""
        return self.counted < SHORT_OUTPUT * self.estimate


class Calibration(Struct, frozen=True, kw_only=True):
    """What the usage reports of one model have taught so far."""

    ratios: tuple[float, ...] = ()
    """How much the request grew between two reports ÷ the estimate of what was added, oldest first."""
    short: tuple[tuple[float, float], ...] = ()
    """For each answer with a short reported output, two relative errors of the predicted growth of the
    request. The first prediction takes the reported output as the answer's size, the second takes the
    estimate."""
    least: tuple[int, int] | None = None
    """(reported size, estimate) of the smallest request. The hidden tokens are computed from this request,
    because an error of the slope matters least for it."""

    def with_growth(self, growth: int, answer: AnswerSize, after: int) -> Calibration:
        """Return this calibration with one more growth: between two reports, the request grew by `growth`
        tokens. Added were `answer` and messages of `after` estimated tokens. An implausible growth is
        ignored."""
        estimate = answer.estimate + after
        if estimate < MIN_ESTIMATE or not PLAUSIBLE[0] <= growth / estimate <= PLAUSIBLE[1]:
            return self
        slope = self.slope()
        short = self.short
        if answer.is_reported and answer.is_short:
            reported = abs(answer.counted + slope * after - growth) / growth
            short = (*short, (reported, abs(slope * estimate - growth) / growth))[-MAX_SHORT_GROWTHS:]
        return replace(self, ratios=(*self.ratios, growth / estimate)[-MAX_GROWTHS:], short=short)

    def with_report(self, size: int, estimate: int) -> Calibration:
        """Return this calibration with one more report: a request of `size` tokens that is estimated at
        `estimate` tokens."""
        if self.least is not None and self.least[1] < estimate:
            return self
        return replace(self, least=(size, estimate))

    def slope(self) -> float:
        """Return the median of the ratios and of one additional 1.0, which assumes that the factor of the
        model family is right."""
        return median((1.0, *self.ratios))

    def scale(self, factor: float) -> Scale:
        """Return the scale for estimates that were already multiplied by the model family's `factor`."""
        if not self.ratios:
            return EXACT
        slope = min(MAX_SLOPE / factor, max(MIN_SLOPE / factor, self.slope()))
        hidden = 0
        if self.least is not None and len(self.ratios) >= MIN_SURE_GROWTHS:
            hidden = max(0, self.least[0] - round(slope * self.least[1]))
        return Scale(slope=slope, hidden=hidden, trusts_short=self._trusts_short())

    def _trusts_short(self) -> bool:
        """Return whether short reported outputs are believed. They are not if the growth of the requests
        contradicts them: some agents record the number from the beginning of a stream, when the answer is not
        complete (Claude Code's files have 1 to 25, seen 2026-01)."""
        if len(self.short) < MIN_SURE_GROWTHS:
            return True
        reported, estimated = (median(miss[i] for miss in self.short) for i in (0, 1))
        return reported <= 2 * estimated


NOTHING_LEARNED = Calibration()


def median(numbers: Iterable[float]) -> float:
    """Return the middle number, or the mean of the two in the middle. `numbers` must not be empty."""
    # `statistics.median` does the same, but importing `statistics` takes 10 ms.
    ordered = sorted(numbers)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


class Calibrator:
    """The calibrations of a session, one per estimator and model. `SessionState` calls its methods."""

    def __init__(self) -> None:
        self.answer = AnswerSize()
        """The answer that the last usage report measured."""
        self._reported: str | None = None
        self._learned: dict[tuple[str, str | None], Calibration] = {}
        self._estimator: str | None = None
        self._is_mixed = False
        """Whether messages were counted by more than one estimator. Then the sum of the view's estimates is
        not used to learn, because no entry says whether the messages were recounted."""
        self._is_broken = True
        """Whether the messages since the last report were counted by two estimators, or there is no last
        report."""
        self._alike: set[EntryId] = set()
        """The messages that were appended since the estimator changed, if it did."""

    def note_counted(self, estimator: str, entry_id: EntryId) -> None:
        """Record that a message was appended and counted by `estimator`."""
        self._note_estimator(estimator)
        if self._is_mixed:
            self._alike.add(entry_id)

    def _note_estimator(self, estimator: str) -> None:
        if estimator != self._estimator:
            self._is_mixed = self._is_mixed or self._estimator is not None
            self._is_broken = True
            self._estimator = estimator
            self._alike.clear()

    def forget(self) -> None:
        """Forget the last report, because the context changed. The next report is then not compared with
        it."""
        self.answer, self._reported = AnswerSize(), None
        self._is_broken = True

    def recount(self, answer: int | None) -> int:
        """Record that another estimator counts the last answer as `answer` tokens (None if it is not in the
        view). Return by how much the answer's part of `SessionState.trailing` changes."""
        last = self.answer
        if answer is None:
            return 0
        counted = last.counted if last.is_reported else answer
        self.answer = AnswerSize(counted, answer, last.is_reported)
        return counted - last.counted

    def note_report(
        self,
        entry: UsageReported,
        model: str | None,
        before: tuple[int | None, int],
        answer: int | None,
        trailing: int,
        estimated: int,
    ) -> None:
        """Learn from the usage report `entry`, on which the context size is now based. All numbers are
        tokens.

        `before` is (`sent_size` of the last report, `SessionState.trailing`) before this report; the first is
        None if the size was not based on a report. What a provider cleared from a request is counted, because
        the estimates include it. `answer` is the estimate of the message that the report belongs to, None if
        it is not in the view. `trailing` is the estimate of everything after the request, the answer
        included. `estimated` is the estimate of the whole context: system prompt, tools, messages and answer.
        """
        if entry.estimator and self._estimator is not None:
            # If no message came since the estimator changed, only the report shows the change.
            self._note_estimator(entry.estimator)
        last, again = self.answer, entry.entry_id == self._reported
        if answer is None or self._estimator is None:
            self.forget()
            return
        size = sent_size(entry.usage)
        counted = visible_output(entry.usage) if entry.reported_output else answer
        self.answer, self._reported = AnswerSize(counted, answer, entry.reported_output), entry.entry_id
        since = trailing - counted + answer
        key = (self._estimator, model)
        learned = self._learned.get(key, NOTHING_LEARNED)
        base, came = before[0], before[1] - last.counted - since
        if base is not None and base < size and not again and not self._is_broken:
            learned = learned.with_growth(size - base, last, came)
        if not self._is_mixed:
            learned = learned.with_report(size, max(0, estimated - since))
        self._learned[key] = learned
        self._is_broken = self._is_mixed and entry.entry_id not in self._alike

    def scale(self, estimator: str, model: str | None, factor: float) -> Scale:
        """Return how to convert what `estimator` counted into tokens of `model`. `factor` is the number by
        which `estimator` already multiplies for the model's family."""
        return self._learned.get((estimator, model), NOTHING_LEARNED).scale(factor)
