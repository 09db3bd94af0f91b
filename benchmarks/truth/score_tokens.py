"""Scores the predicted context size: `python -m benchmarks.truth.score_tokens SESSIONS [--svg FILE]`.

SESSIONS is a folder with MANIFEST.json and session files that contain usage reports. Each session is fed to
the daemon's own fold, message by message and report by report. At each report, the fold predicts the size
that the tenth report after it will give, from that report and the messages alone. It also predicts the growth
until the next report, if that is 500 tokens or more. It is compared with three baselines: no change;
o200k_base alone; o200k_base × the median ratio of growth so far, as a plain slope would do.

"After n reports": a session may begin at any of its reports, and n reports were seen when the prediction is
made. Ten reports between which the model changes, or the other program compacts, are left out. 40 % of the
sessions are held out by the hash of their name: nothing was tuned on them.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Raw, Struct

from benchmarks.truth.picture import picture
from benchmarks.truth.reported import Recorded, Step, recorded
from benchmarks.truth.shares import at_share
from compactd.core.budget.usage_report import size_of
from compactd.core.history.calibration import PLAUSIBLE, Scale, median
from compactd.core.history.entries import Appended, ModelSet, UsageReported, is_summary
from compactd.core.history.state import SessionState
from compactd.core.tokens.counting import Counter, ScriptAware, message_tokens
from compactd.core.tokens.usage import context_size
from compactd.models.catalog import Catalogue
from compactd.models.tokenizers.counters import Bpe, counter_for

AHEAD = 10
"""Reports from the last one known to the one that is predicted."""

LEAST_GROWTH = 500

STARTS = 4
"""One of this many reports is also used as the beginning of a session."""

AFTER = (1, 3, 10)

METHODS = ("no change", "o200k alone", "plain slope", "ours")

Errors = dict[str, list[float]]


class Counted(Struct, frozen=True):
    """A step with two estimates of its tokens: compactd's and o200k_base's."""

    step: Step
    ours: int
    o200k: int


class Moment(Struct, frozen=True):
    """What is known at the moment when a report arrives."""

    size: int
    answer: int
    """The tokens of the answer in the next request, counted by the model."""
    scale: Scale
    plain: float
    at: int
    """Index of the answer among the steps."""


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--svg", type=Path, help="where the picture is written")
    options = parser.parse_args()

    sessions = recorded(options.folder)
    scored = {s.name: scores(s) for s in sessions}
    for title, chosen in (
        ("tuned on", [s for s in sessions if not s.is_aside]),
        ("put aside", [s for s in sessions if s.is_aside]),
        ("all", sessions),
    ):
        print(f"\n{title}: {len(chosen)} sessions, {sum(reports(s) for s in chosen)} reports")
        print_table(merged(scored[s.name] for s in chosen))
    if options.svg is not None:
        options.svg.write_text(picture(merged(scored.values()), METHODS), "utf-8")


def reports(session: Recorded) -> int:
    """Return the number of steps of a session that have a usage report."""
    return sum(step.usage is not None for step in session.steps)


def merged(each: Iterable[dict[str, Errors]]) -> dict[str, Errors]:
    """The errors of several sessions together: situation → method → errors."""
    together: dict[str, Errors] = defaultdict(lambda: defaultdict(list))
    for scored in each:
        for situation, errors in scored.items():
            for method, found in errors.items():
                together[situation][method] += found
    return together


def scores(session: Recorded) -> dict[str, Errors]:
    """Relative errors of one session: situation → method → errors."""
    found: dict[str, Errors] = defaultdict(lambda: defaultdict(list))
    for part in one_model(counted(session)):
        whole = list(told(part))
        for index, moment in enumerate(whole):
            _tenth(found["any report"], part, whole, index, moment)
            if index:
                _growth(found["growth"], part, whole[index - 1], moment)
        starts = [m.at for m in whole[::STARTS]]
        for start in starts:
            begun = list(told(part, start, AFTER[-1] + AHEAD))
            for after in AFTER:
                if len(begun) >= after:
                    _tenth(found[f"after {after}"], part, begun, after - 1, begun[after - 1])
            _tenth_of_nothing(found["after 0"], part, begun)
    return found


def counted(session: Recorded) -> list[Counted]:
    """Return the steps of a session with their estimates. O(text)."""
    model = next((step.model for step in session.steps if step.model), None)
    ours, o200k = counter_of(model), Bpe("o200k_base", exact=False)
    return [
        Counted(step, message_tokens(step.message, ours), message_tokens(step.message, o200k))
        for step in session.steps
    ]


def counter_of(model: str | None) -> Counter:
    """Return the token counter that the daemon would use for a model."""
    found = Catalogue().lookup(model) if model else None
    return counter_for("auto", found.tokenizer if found else None, model)


def one_model(steps: list[Counted]) -> list[list[Counted]]:
    """Split a session where the model changes or the other program compacted."""
    parts: list[list[Counted]] = [[]]
    model = None
    for counted_step in steps:
        step = counted_step.step
        if is_summary(step.message) or (step.model is not None and model not in (None, step.model)):
            parts.append([])
        model = step.model or model
        parts[-1].append(counted_step)
    return [part for part in parts if sum(c.step.usage is not None for c in part) > 1]


def told(part: list[Counted], start: int = 0, most: int | None = None) -> Iterator[Moment]:
    """Feed the steps from `start` on to a fold. Yield what it knows at each of the first `most` reports."""
    fold = SessionState(lambda raw: part[int(bytes(raw))].step.message)
    model = next(c.step.model for c in part if c.step.model)
    counter = counter_of(model)
    fold.apply(ModelSet(at=0.0, model=model))
    ratios: list[float] = []
    last, between, seen = None, 0, 0
    for at in range(start, len(part)):
        step, estimate = part[at].step, (part[at].ours, counter.name)
        entry_id = fold.next_id
        fold.apply(
            Appended(id=entry_id, at=0.0, tokens=estimate, message=Raw(b"%d" % at), parent=fold.leaf),
            step.message,
        )
        if step.usage is None:
            between += part[at].o200k
            continue
        fold.apply(
            UsageReported(
                at=0.0, usage=step.usage, epoch=1, entry_id=entry_id, reported_output=step.named_output
            )
        )
        size = context_size(step.usage)
        if last is not None and between and PLAUSIBLE[0] <= (size - last) / between <= PLAUSIBLE[1]:
            ratios.append((size - last) / between)
        last, between, seen = size, part[at].o200k, seen + 1
        factor = counter.factor if isinstance(counter, ScriptAware) else 1.0
        scale = fold.calibrator.scale(counter.name, model, factor)
        now = size_of(fold, scale)
        yield Moment(size, now.trailing, scale, median(ratios) if ratios else 1.0, at)
        if seen == most:
            return


def _ahead(part: list[Counted], at: int) -> tuple[int, int, int, int] | None:
    """Return what is known about the tenth report after the one at `at`; None if there are fewer.

    The tuple: the size that it reports, compactd's estimate of the messages between without the answer at
    `at`, o200k_base's estimate of the same messages, and o200k_base's estimate of that answer.
    """
    ours = o200k = left = 0
    for step in part[at + 1 :]:
        if step.step.usage is not None:
            left += 1
            if left == AHEAD:
                return context_size(step.step.usage), ours, o200k, part[at].o200k
        ours, o200k = ours + step.ours, o200k + step.o200k
    return None


def _tenth(errors: Errors, part: list[Counted], moments: list[Moment], index: int, moment: Moment) -> None:
    ahead = _ahead(part, moment.at)
    if ahead is None:
        return
    truth, ours, o200k, answer = ahead
    _add(
        errors,
        truth,
        moment.size,
        moment.size + answer + o200k,
        moment.size + moment.plain * (answer + o200k),
        moment.size + moment.answer + moment.scale.tokens(ours),
    )


def _tenth_of_nothing(errors: Errors, part: list[Counted], moments: list[Moment]) -> None:
    """Add the error without any report: the estimate of all messages against the reported size."""
    ahead = _ahead(part, moments[0].at) if moments else None
    if ahead is None:
        return
    truth, ours, o200k, answer = ahead
    _add(errors, truth, 0, answer + o200k, answer + o200k, part[moments[0].at].ours + ours)


def _growth(errors: Errors, part: list[Counted], before: Moment, now: Moment) -> None:
    growth = now.size - before.size
    if growth < LEAST_GROWTH:
        return
    between = part[before.at + 1 : now.at]
    ours, o200k = sum(c.ours for c in between), sum(c.o200k for c in between) + part[before.at].o200k
    guess = before.answer + before.scale.tokens(ours)
    _add(errors, growth, 0, o200k, before.plain * o200k, guess)


def _add(errors: Errors, truth: int, *guesses: float) -> None:
    for method, guess in zip(METHODS, guesses, strict=True):
        errors[method].append(abs(guess - truth) / truth)


def print_table(scored: dict[str, Errors]) -> None:
    """Print the median and 90th percentile of the errors, by situation and method."""
    print(
        f"{'median / 90th percentile, %':28}" + "".join(f"{method:>17}" for method in METHODS) + "        n"
    )
    for situation in ("after 0", *(f"after {after}" for after in AFTER), "any report", "growth"):
        errors = scored.get(situation)
        if not errors:
            continue
        name = "growth of 500 and more" if situation == "growth" else f"tenth report, {situation}"
        cells = (f"{at_share(errors[m], 0.5):8.2f} /{at_share(errors[m], 0.9):6.2f} " for m in METHODS)
        print(f"{name:28}" + "".join(cells) + f"{len(errors['ours']):8}")


if __name__ == "__main__":
    main()
