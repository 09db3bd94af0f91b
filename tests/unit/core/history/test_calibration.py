"""What usage reports teach about compactd's token estimates, and what they must never teach."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from compactd.core.budget.budget import RequestSize, Window, compute_budget, in_estimates
from compactd.core.budget.usage_report import scale_of, size_of
from compactd.core.history.calibration import EXACT, MAX_SLOPE, MIN_SLOPE, Scale, median
from compactd.core.history.entries import Appended, Compacted, Entry, ModelSet, UsageReported
from compactd.core.history.state import SessionState, replay
from compactd.core.tokens.counting import Chars4, Counter, ScriptAware, script_aware
from compactd.core.tokens.usage import normalise
from compactd.formats.messages.neutral import decode_message
from compactd.protocol.errors import InvalidParams
from compactd.protocol.messages import CompactionResult, Usage
from tests.support.dialogue import resolved

PLAIN = ScriptAware(1.0, "plain")
CLAUDE = script_aware("claude")

TEXTS = {role: Raw(msgspec.json.encode({"role": role, "content": "…"})) for role in ("user", "assistant")}


class Told:
    """A fold that is told a conversation whose messages have any number of tokens."""

    def __init__(self, counter: Counter = PLAIN, model: str | None = "m") -> None:
        self.counter = counter
        self.entries: list[Entry] = []
        self.fold = SessionState(decode_message)
        self.tell(ModelSet(at=0.0, model=model))

    def tell(self, entry: Entry) -> None:
        self.entries.append(entry)
        self.fold.apply(entry)

    def say(self, tokens: int, role: str = "user") -> str:
        entry_id = self.fold.next_id
        self.tell(
            Appended(
                id=entry_id,
                at=0.0,
                tokens=(tokens, self.counter.name),
                message=TEXTS[role],
                parent=self.fold.leaf,
            )
        )
        return entry_id

    def answer(self, tokens: int, reported: int, output: int | None = None) -> str:
        """An answer of `tokens` (estimate) to a request that was reported with `reported`."""
        entry_id = self.say(tokens, "assistant")
        self.report(entry_id, reported, output)
        return entry_id

    def report(self, entry_id: str | None, reported: int, output: int | None = None) -> None:
        self.tell(
            UsageReported(
                at=0.0,
                usage=Usage(input_tokens=reported, output_tokens=output or 0),
                epoch=self.fold.epoch,
                entry_id=entry_id,
                reported_output=output is not None,
            )
        )

    def compact(self, summary_tokens: int) -> None:
        self.tell(
            Compacted(
                id=self.fold.next_id,
                at=0.0,
                compaction_id="c1",
                epoch=self.fold.epoch + 1,
                summary="…",
                summary_tokens=summary_tokens,
                result=CompactionResult(compacted=True),
                parent=self.fold.leaf,
            )
        )

    def grow(self, slope: float, turns: int, *, hidden: int = 0, tokens: int = 1000) -> None:
        """Turns of an answer and a message of `tokens` (estimate) each, at `slope` real tokens for each."""
        for _ in range(turns):
            self.answer(tokens, hidden + round(slope * self.fold.estimated_size))
            self.say(tokens)

    @property
    def scale(self) -> Scale:
        return scale_of(self.fold, self.counter)

    @property
    def size(self) -> RequestSize:
        return size_of(self.fold, self.scale)


# --- what a provider cleared ---


def test_what_the_provider_cleared_changes_the_size_and_not_what_is_learned() -> None:
    plain, cleared = Told(), Told()
    for told, share in ((plain, 0.0), (cleared, 0.4)):
        told.say(500)
        for _ in range(5):
            entry_id = told.say(1_000, "assistant")
            whole = round(1.2 * (told.fold.estimated_size - 1_000))
            gone = round(share * whole)
            usage = Usage(input_tokens=whole - gone, **({"cleared_tokens": gone} if gone else {}))
            told.tell(
                UsageReported(
                    at=0.0, usage=usage, epoch=1, entry_id=entry_id, reported_output=False, estimator="plain"
                )
            )
            told.say(1_000)

    assert cleared.scale == plain.scale
    assert cleared.fold.base == round(0.6 * (plain.fold.base or 0))


# --- the slope --------------------------------------------------------------------------------------------


def test_nothing_is_learned_from_one_report() -> None:
    told = Told()
    told.say(500)
    told.answer(100, 9_000)

    assert told.scale == EXACT


def test_the_slope_is_the_median_ratio_of_growth_with_a_prior_of_one() -> None:
    slopes = []
    for turns in (2, 3, 4):
        told = Told()
        told.say(1000)
        told.grow(1.4, turns)
        slopes.append(round(told.scale.slope, 3))

    assert slopes == [1.2, 1.4, 1.4]


def test_one_report_that_is_far_off_does_not_move_the_slope() -> None:
    told = Told()
    told.say(1000)
    told.grow(1.3, 4)
    told.answer(1000, 3 * told.fold.estimated_size)
    told.say(1000)
    told.grow(1.3, 3, hidden=17_000)

    assert told.scale.slope == pytest.approx(1.3, abs=0.001)


def test_the_slope_stays_within_its_bounds_for_o200ks_tokens() -> None:
    def slope(ratio: float, counter: ScriptAware) -> float:
        told = Told(counter)
        told.say(1000)
        told.grow(ratio, 9)
        return told.scale.slope * counter.factor

    assert [round(slope(ratio, PLAIN), 6) for ratio in (0.4, 0.9, 3.5)] == [MIN_SLOPE, 0.9, MAX_SLOPE]
    assert [round(slope(ratio, CLAUDE), 6) for ratio in (0.4, 3.5)] == [MIN_SLOPE, MAX_SLOPE]


def test_a_sub_agents_report_teaches_nothing() -> None:
    told = Told()
    told.say(1000)
    told.grow(1.2, 5)
    before = told.scale
    told.answer(300, 9_000)
    told.say(200)
    told.answer(300, 1_000_000)

    assert told.scale == before


def test_the_same_answers_report_again_is_no_growth() -> None:
    told = Told()
    told.say(1000)
    told.grow(1.2, 4)
    before = told.scale
    answer = told.answer(1000, round(1.2 * told.fold.estimated_size))
    learned = told.scale
    told.say(400)
    told.report(answer, 20_000)

    assert learned.slope == before.slope
    assert told.scale == learned


def test_what_came_between_is_read_by_the_slope() -> None:
    told = Told()
    told.say(1000)
    told.grow(1.5, 6)
    base = told.fold.base

    assert told.size.trailing == 3000
    assert told.size.base == base
    assert told.size.estimated == round(1.5 * told.fold.estimated_size)


def test_each_model_has_its_own_slope_and_finds_it_again() -> None:
    told = Told(model="one")
    told.say(1000)
    told.grow(1.5, 6)
    first = told.scale
    told.tell(ModelSet(at=0.0, model="two", epoch=2))
    second = told.scale
    told.tell(ModelSet(at=0.0, model="one", epoch=3))

    assert (second, told.scale) == (EXACT, first)


def test_growth_that_two_estimators_counted_teaches_nothing() -> None:
    told = Told()
    told.say(1000)
    told.answer(1000, 2000)
    told.counter = CLAUDE
    told.say(1000)
    told.answer(1000, 5000)

    assert told.scale == EXACT
    assert scale_of(told.fold, PLAIN) == EXACT


def test_a_counter_of_a_spec_is_never_calibrated() -> None:
    told = Told(Chars4())
    told.say(1000)
    told.grow(1.7, 9)

    assert told.scale == EXACT
    assert told.size == RequestSize(
        estimated=told.fold.estimated_size,
        base=told.fold.base,
        trailing=told.fold.trailing,
        report=told.fold.last_report.usage if told.fold.last_report else None,
        reported_estimate=told.fold.estimated_size - 2000,
    )


# --- what answers take ------------------------------------------------------------------------------------


def test_a_reported_output_is_what_the_answer_takes() -> None:
    told = Told()
    told.say(1000)
    told.grow(1.2, 5)
    told.answer(1000, 30_000, output=1111)
    told.say(500)

    assert told.size.trailing == 1111 + 600


def test_outputs_that_growth_proves_to_be_fragments_are_replaced_by_our_estimate() -> None:
    told = Told()
    told.say(1000)
    trailing = []
    for _ in range(5):
        told.answer(1000, told.fold.estimated_size, output=3)
        trailing.append(told.size.trailing)
        told.say(100)

    assert trailing == [3, 3, 3, 1000, 1000]


def test_outputs_of_more_than_half_of_our_estimate_are_believed_whatever_growth_says() -> None:
    told = Told()
    told.say(1000)
    for _ in range(8):
        told.answer(1000, told.fold.estimated_size, output=600)
        told.say(1000)

    assert told.size.trailing == 600 + 1000


# --- what is hidden ---------------------------------------------------------------------------------------


def test_a_hidden_prompt_is_an_intercept_and_is_kept_across_a_compaction() -> None:
    told = Told()
    told.say(100)
    told.grow(1.2, 6, hidden=20_000)
    hidden = told.size.hidden
    told.compact(500)
    after = compute_budget(resolved(), Window(window=200_000, confidence="fact"), told.size)

    assert hidden == 20_000
    assert after.used == round(1.2 * 500) + 20_000
    assert "20,000" in after.budget.trailing.source
    assert after.budget.base.value == 0


def test_nothing_is_hidden_until_three_growths_were_plausible() -> None:
    hidden = []
    for turns in (1, 2, 3, 4):
        told = Told()
        told.say(100)
        told.grow(1.2, turns, hidden=20_000)
        hidden.append(told.size.hidden)

    assert hidden == [0, 0, 0, 20_000]


def test_reports_that_nobodys_messages_explain_hide_nothing() -> None:
    told = Told()
    for reported in (50_000, 100_000, 150_000, 190_000):
        told.say(20)
        told.answer(20, reported)
    told.compact(30)

    assert told.scale == EXACT
    assert told.size == RequestSize(estimated=30)


def test_a_hidden_prompt_never_takes_more_than_half_of_the_window() -> None:
    size = RequestSize(estimated=100, slope=1.2, hidden=150_000)

    assert compute_budget(resolved(), Window(window=200_000, confidence="fact"), size).used == 100_100


# --- what a plan is told ----------------------------------------------------------------------------------


def test_a_plan_gets_limits_in_estimates_none_of_them_larger() -> None:
    window = Window(window=200_000, confidence="fact")
    standing = compute_budget(resolved(), window, RequestSize(estimated=100, hidden=20_000))

    read = [in_estimates(standing, Scale(slope, 20_000)) for slope in (0.8, 1.25)]

    assert in_estimates(standing, EXACT) is standing
    assert [(s.window, s.cap, s.threshold) for s in read] == [
        (180_000, 180_000, 140_000),
        (144_000, 144_000, 112_000),
    ]


# --- what the budget says ---------------------------------------------------------------------------------


def test_the_budget_says_where_report_and_estimate_differ_by_more_than_half() -> None:
    def source(base: int, ours: int) -> str:
        size = RequestSize(
            estimated=ours, base=base, trailing=0, report=Usage(input_tokens=base), reported_estimate=ours
        )
        return compute_budget(resolved(), Window(window=200_000, confidence="fact"), size).budget.base.source

    near = {source(*sizes) for sizes in ((10_000, 10_000), (15_000, 10_000), (10_000, 15_000), (2_000, 10))}

    assert near == {"the last usage report"}
    assert "compactd's estimate of that request, 10,000" in source(15_001, 10_000)
    assert "compactd's estimate of that request, 15,001" in source(10_000, 15_001)


def test_the_budget_says_where_a_report_is_far_above_the_window() -> None:
    def source(base: int) -> str:
        size = RequestSize(
            estimated=base, base=base, trailing=0, report=Usage(input_tokens=base), reported_estimate=base
        )
        return compute_budget(
            resolved(), Window(window=200_000, source="registry", confidence="fact"), size
        ).budget.window.source

    assert source(300_000) == source(1) == "registry"
    assert source(300_001) == "registry; the last usage report, 300,001, is more than half above it"


# --- laws -------------------------------------------------------------------------------------------------

SLOPES = st.floats(MIN_SLOPE, MAX_SLOPE)

EVENTS = st.lists(
    st.tuples(
        st.sampled_from(("say", "answer", "answer", "report", "compact", "model", "estimator")),
        st.integers(0, 5_000),
        st.integers(0, 2**53) | st.integers(0, 50_000),
        st.none() | st.integers(0, 10_000),
    ),
    max_size=40,
)  # fmt: skip


def played(events: list[tuple[str, int, int, int | None]]) -> Iterator[Told]:
    """The conversation after each event."""
    told = Told()
    answer = None
    for kind, tokens, reported, output in events:
        match kind:
            case "say":
                told.say(tokens)
            case "answer":
                answer = told.answer(tokens, reported, output)
            case "report":
                told.report(answer, reported, output)
            case "compact":
                told.compact(tokens)
            case "model":
                told.tell(ModelSet(at=0.0, model=f"m{tokens % 2}", epoch=told.fold.epoch + 1))
            case "estimator":
                told.counter = CLAUDE if tokens % 2 else PLAIN
        yield told


@given(EVENTS)
def test_whatever_is_reported_slope_and_size_stay_sane(
    events: list[tuple[str, int, int, int | None]],
) -> None:
    for told in played(events):
        scale, size = told.scale, told.size
        factor = told.counter.factor if isinstance(told.counter, ScriptAware) else 1.0

        assert MIN_SLOPE - 1e-9 <= scale.slope * factor <= MAX_SLOPE + 1e-9 or scale == EXACT
        assert 0 <= scale.hidden <= 2**53
        assert size.base == told.fold.base
        assert size.estimated >= 0
        assert size.trailing >= 0


@given(EVENTS)
def test_replaying_a_journal_teaches_the_same(events: list[tuple[str, int, int, int | None]]) -> None:
    told = Told()
    for last in played(events):
        told = last
    written = msgspec.json.encode(told.entries)
    again = replay(msgspec.json.decode(written, type=list[Entry]), decode_message)

    for counter in (PLAIN, CLAUDE):
        assert scale_of(again, counter) == scale_of(told.fold, counter)
        assert size_of(again, told.scale) == size_of(told.fold, told.scale)


@given(SLOPES, st.integers(0, 10**7), st.integers(0, 10**7))
def test_more_text_is_never_predicted_to_be_fewer_tokens(slope: float, one: int, other: int) -> None:
    scale = Scale(slope)
    small, large = sorted((one, other))

    assert scale.tokens(small) <= scale.tokens(large)


@given(SLOPES, st.text(max_size=200), st.text(max_size=200))
def test_a_longer_text_is_never_predicted_to_be_much_smaller(slope: float, text: str, more: str) -> None:
    # Two pieces that are joined can become one word: that is the four tokens.
    scale, counter = Scale(slope), ScriptAware(1.15)

    assert scale.tokens(counter.count(text + more)) >= scale.tokens(counter.count(text)) - 4 * slope * 1.15


@given(SLOPES, st.integers(0, 100_000), st.integers(0, 10**6))
def test_an_estimate_within_the_limit_takes_no_more_than_the_window(
    slope: float, hidden: int, window: int
) -> None:
    scale = Scale(slope, hidden)
    most = scale.limit(window)

    assert most == 0 or scale.tokens(most) + hidden <= window
    assert most <= window


@given(
    st.dictionaries(
        st.sampled_from(
            (
                "input_tokens",
                "output_tokens",
                "cache_read_tokens",
                "prompt_tokens",
                "completion_tokens",
                "input",
            )
        ),
        st.none() | st.integers(-5, 2**60) | st.text(max_size=3) | st.floats() | st.booleans(),
        max_size=5,
    )
)
def test_a_report_of_absurd_numbers_is_refused_or_poisons_nothing(raw: dict[str, object]) -> None:
    told = Told()
    told.say(1000)
    told.grow(1.2, 5)
    before = told.scale
    try:
        usage, named = normalise(msgspec.json.encode(raw))
    except InvalidParams:
        return
    entry_id = told.say(10, "assistant")
    told.tell(
        UsageReported(at=0.0, usage=usage, epoch=1, entry_id=entry_id, reported_output=named, is_base=True)
    )
    told.say(100)

    assert abs(told.scale.slope - before.slope) <= 0.2
    assert told.size.trailing <= usage.output_tokens + 400


@given(st.lists(st.floats(0, 10), min_size=1, max_size=20))
def test_the_median_has_as_many_below_as_above(numbers: list[float]) -> None:
    middle = median(numbers)

    assert sum(number < middle for number in numbers) <= len(numbers) // 2
    assert sum(number > middle for number in numbers) <= len(numbers) // 2
