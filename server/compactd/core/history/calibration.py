"""What a session's usage reports teach about our estimate of its texts.

Where the model's own tokenizer is not at hand, two things are unknown: how many of its tokens one of ours is,
and what the program sends beside the messages. Two reports in a row tell the first: by how much the request
grew, against our estimate of what came between. One report tells the second: what is left of it when our
estimate is taken away, tools and prompts that nobody showed us. So (docs/dev/behaviour.md, "Tokens"):

    slope     = median of growth ÷ estimate, within 0.7 to 2 tokens for each of o200k's
    intercept = reported − slope × estimate, kept across compactions

Everything here follows from the journal's entries, in their order: replaying them gives the same numbers.
Costs are O(1) a message, O(`KEPT`) a report.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from compactd.core.history.entries import EntryId, UsageReported
from compactd.core.tokens.usage import context_size, visible_output

LEAST_SLOPE = 0.7
MOST_SLOPE = 2.0
"""Bounds of the slope, in tokens of the model for each of o200k's (docs/dev/behaviour.md, "Tokens")."""

PLAUSIBLE = (0.35, 4.0)
"""Growth ÷ estimate outside of this says nothing of a tokenizer: a sub-agent's report, a pruned context, a
reminder that was slipped in, or numbers that somebody made up."""

LEAST_ESTIMATE = 100
"""Tokens that must have come between two reports: below it, what a provider puts around a message decides."""

KEPT = 63
"""Growths that are remembered, the newest: a session may change its kind of text."""

KEPT_SHORT = 15

SHORT_OUTPUT = 0.5
"""Reported output ÷ our estimate of the same answer, below which one of the two is wrong."""

SURE = 3
"""Growths that must have been plausible before a remainder is believed to be a hidden prompt, or a reported
output to be none."""


class Scale(Struct, frozen=True):
    """How a session's estimates are read. The identity where nothing was learned, or nothing may be."""

    slope: float = 1.0
    """Tokens of the model for one token of our estimate."""
    hidden: int = 0
    """Tokens of each request that no message, prompt or tool we know accounts for."""
    trusts_short: bool = True
    """A reported output far below our estimate is still what the next request holds of that answer."""

    def tokens(self, estimate: int) -> int:
        """The model's tokens for an estimate, without what is hidden. Never less for a larger estimate."""
        return estimate if self.slope == 1.0 else round(self.slope * estimate)

    def limit(self, tokens: int) -> int:
        """The largest estimate that takes no more than `tokens` of a window, with what is hidden."""
        return max(0, int((tokens - self.hidden) / max(1.0, self.slope)))


EXACT = Scale()
"""Of a tokenizer that is the model's own, and of a profile whose numbers are its spec's."""


class Answer(Struct, frozen=True):
    """What a reported answer takes of the next request. Tokens."""

    counted: int = 0
    """What our trailing estimate holds for it: its visible output as reported, else our estimate."""
    estimate: int = 0
    is_reported: bool = False

    def tokens(self, scale: Scale) -> int:
        """What it takes, as far as the reports are to be believed."""
        trusts = self.is_reported and (scale.trusts_short or not self.is_short)
        return self.counted if trusts else scale.tokens(self.estimate)

    @property
    def is_short(self) -> bool:
        """The report names less than half of what we would have guessed."""
        return self.counted < SHORT_OUTPUT * self.estimate


class Calibration(Struct, frozen=True, kw_only=True):
    """What the reports of one model taught so far."""

    ratios: tuple[float, ...] = ()
    """Growth ÷ estimate, oldest first."""
    short: tuple[tuple[float, float], ...] = ()
    """Of answers whose reported output is short: the share by which growth was missed with that output, and
    with our estimate."""
    least: tuple[int, int] | None = None
    """(reported size, our estimate) of the smallest request: where an error of the slope weighs least."""

    def grown(self, growth: int, answer: Answer, after: int) -> Calibration:
        """With one more growth: the request grew by `growth` tokens with an answer and `after` (estimate)."""
        estimate = answer.estimate + after
        if estimate < LEAST_ESTIMATE or not PLAUSIBLE[0] <= growth / estimate <= PLAUSIBLE[1]:
            return self
        slope = self.slope()
        short = self.short
        if answer.is_reported and answer.is_short:
            reported = abs(answer.counted + slope * after - growth) / growth
            short = (*short, (reported, abs(slope * estimate - growth) / growth))[-KEPT_SHORT:]
        return replace(self, ratios=(*self.ratios, growth / estimate)[-KEPT:], short=short)

    def measured(self, size: int, estimate: int) -> Calibration:
        """With one more report: a request of `size` tokens that we estimate at `estimate`."""
        if self.least is not None and self.least[1] < estimate:
            return self
        return replace(self, least=(size, estimate))

    def slope(self) -> float:
        """Median of the ratios, and of 1.0, the prior of a family's factor, once."""
        return median((1.0, *self.ratios))

    def scale(self, factor: float) -> Scale:
        """How to read estimates that were multiplied by a family's `factor` already."""
        if not self.ratios:
            return EXACT
        slope = min(MOST_SLOPE / factor, max(LEAST_SLOPE / factor, self.slope()))
        hidden = 0
        if self.least is not None and len(self.ratios) >= SURE:
            hidden = max(0, self.least[0] - round(slope * self.least[1]))
        return Scale(slope=slope, hidden=hidden, trusts_short=self._trusts_short())

    def _trusts_short(self) -> bool:
        """False where growth says that short outputs are not what was said: some programs write down the
        first of the numbers that a stream gives (Claude Code's files: 1 to 25, seen 2026-01)."""
        if len(self.short) < SURE:
            return True
        reported, estimated = (median(miss[i] for miss in self.short) for i in (0, 1))
        return reported <= 2 * estimated


NOTHING_LEARNED = Calibration()


def median(numbers: Iterable[float]) -> float:
    """The one in the middle, or the mean of the two; of at least one number."""
    # `statistics` has the same, and takes 10 ms to import.
    ordered = sorted(numbers)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


class Calibrator:
    """The calibrations of a session, one for each estimator and model; its fold tells it what happens."""

    def __init__(self) -> None:
        self.answer = Answer()
        """The answer that the base was reported with."""
        self._reported: str | None = None
        self._learned: dict[tuple[str, str | None], Calibration] = {}
        self._estimator: str | None = None
        self._is_mixed = False
        """Messages were counted by more than one estimator: sums over the view mean nothing until counted
        again, and when that happens no entry tells."""
        self._is_broken = True
        """What came since the last report was counted by two estimators, or there is no last report."""
        self._alike: set[EntryId] = set()
        """The messages since the estimator changed, where it did."""

    def appended(self, estimator: str, entry_id: EntryId) -> None:
        """A message was counted by `estimator`."""
        self._counted_by(estimator)
        if self._is_mixed:
            self._alike.add(entry_id)

    def _counted_by(self, estimator: str) -> None:
        if estimator != self._estimator:
            self._is_mixed = self._is_mixed or self._estimator is not None
            self._is_broken = True
            self._estimator = estimator
            self._alike.clear()

    def forget(self) -> None:
        """The context is another one: the next report is no growth of the last."""
        self.answer, self._reported = Answer(), None
        self._is_broken = True

    def recounted(self, answer: int | None) -> int:
        """Another estimator takes the last answer for `answer` tokens, none where the view lacks it: by how
        much our trailing estimate of it changes."""
        last = self.answer
        if answer is None:
            return 0
        counted = last.counted if last.is_reported else answer
        self.answer = Answer(counted, answer, last.is_reported)
        return counted - last.counted

    def reported(
        self,
        entry: UsageReported,
        model: str | None,
        before: tuple[int | None, int],
        answer: int | None,
        trailing: int,
        estimated: int,
    ) -> None:
        """`entry` is the new base. Estimates in tokens.

        `before`: base and trailing until now. `answer`: our estimate of the message that it was reported
        with, none where that is not in the view. `trailing`: of what follows the request from now on, the
        answer included. `estimated`: of everything, system prompt, tools and answer included.
        """
        if entry.estimator and self._estimator is not None:
            # No message tells that the estimator changed where none came since.
            self._counted_by(entry.estimator)
        last, again = self.answer, entry.entry_id == self._reported
        if answer is None or self._estimator is None:
            self.forget()
            return
        size = context_size(entry.usage)
        counted = visible_output(entry.usage) if entry.reported_output else answer
        self.answer, self._reported = Answer(counted, answer, entry.reported_output), entry.entry_id
        since = trailing - counted + answer
        key = (self._estimator, model)
        learned = self._learned.get(key, NOTHING_LEARNED)
        base, came = before[0], before[1] - last.counted - since
        if base is not None and base < size and not again and not self._is_broken:
            learned = learned.grown(size - base, last, came)
        if not self._is_mixed:
            learned = learned.measured(size, max(0, estimated - since))
        self._learned[key] = learned
        self._is_broken = self._is_mixed and entry.entry_id not in self._alike

    def scale(self, estimator: str, model: str | None, factor: float) -> Scale:
        """How to read what `estimator` counted for `model`, whose family has this `factor`."""
        return self._learned.get((estimator, model), NOTHING_LEARNED).scale(factor)
