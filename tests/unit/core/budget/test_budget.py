"""The budget equation: thresholds, edges, bounds, what is kept, which setting wins."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from compactd.core.budget.budget import (
    BudgetStatus,
    RequestSize,
    Window,
    compute_budget,
    keep_of,
    largest_request,
    summary_budget,
)
from compactd.core.budget.settings import PROFILES
from compactd.protocol.messages import Decision, Trigger, Usage
from tests.support.dialogue import resolved

FACT = Window(window=200_000, confidence="fact", source="registry", output_limit=64_000)


def at(used: int, window: Window = FACT, **given: object) -> BudgetStatus:
    """Return the budget decision for a session of `used` estimated tokens."""
    return compute_budget(resolved(**given), window, RequestSize(estimated=used))


def known(window: int) -> Window:
    return Window(window=window, confidence="fact", source="registry")


def keep_at(trigger: Trigger, window: int, **given: object) -> int | None:
    """Return the tokens that a compaction of this trigger keeps."""
    settings, found = resolved(**given), at(0, known(window), **given)
    keep = keep_of(settings.settings, trigger, found.window, found.cap, found.threshold)
    return keep.tokens


# --- thresholds -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("profile", "window", "fits", "due"),
    [
        # docs/specs.md, "opal.md", "Auto-Compaction": estimated context ≥ 80 % of the window.
        ("opal", known(200_000), 159_999, 160_000),
        ("default", known(200_000), 159_999, 160_000),
        ("default", known(1001), 800, 801),
        # docs/specs.md, "go-agent.md", "How It Works": context_tokens > 200000 − 16384.
        ("go-agent", known(200_000), 183_616, 183_617),
        # docs/specs.md, "klaude-code.md", "Threshold-based": 25 % of a small limit.
        ("klaude", known(200_000), 183_616, 183_617),
        ("klaude", known(32_000), 24_000, 24_001),
        ("evmts", known(200_000), 160_000, 160_001),
        ("evmts", Window(), 150_000, 150_001),
        # docs/specs-evmts-opencode.md, "opencode.md", "Algorithm": input limit, or context − min(output
        # limit, 32000), or 32000.
        ("opencode", known(200_000), 168_000, 168_001),
        ("opencode", Window(window=200_000, confidence="fact", output_limit=8_000), 192_000, 192_001),
        ("opencode", Window(window=200_000, confidence="fact", output_limit=64_000), 168_000, 168_001),
        ("opencode", Window(window=400_000, confidence="fact", input_limit=272_000), 271_000, 272_001),
    ],
)
def test_a_compaction_is_due_exactly_at_the_profiles_edge(
    profile: str, window: Window, fits: int, due: int
) -> None:
    assert at(fits, window, profile=profile).decision.kind == "fits"
    assert at(due, window, profile=profile).decision.kind in ("due", "over")


def test_a_threshold_of_the_cap_counts_the_input_limit_and_one_of_the_window_does_not() -> None:
    window = Window(window=400_000, confidence="fact", input_limit=272_000)

    assert at(0, window, profile="default").threshold == 217_600
    assert at(0, window, profile="opal").threshold == 320_000


def test_only_a_guessed_window_triggers_at_sixty_percent_and_only_under_default() -> None:
    guess = Window()
    disputed = Window(window=128_000, confidence="disputed", source="registry")

    assert at(0, guess).decision == Decision(kind="fits", used=0, threshold=76_800, window=128_000)
    assert at(0, guess, profile="opal").decision == Decision(
        kind="fits", used=0, threshold=102_400, window=128_000
    )
    assert at(0, disputed).threshold == 102_400


@pytest.mark.parametrize("profile", ["go-agent", "opencode", "klaude"])
def test_without_a_window_these_profiles_never_compact(profile: str) -> None:
    found = at(10_000_000, Window(), profile=profile)

    assert found.decision == Decision(kind="fits", used=10_000_000, threshold=None, window=None)


@pytest.mark.parametrize("profile", PROFILES)
def test_a_window_of_0_is_no_limit_under_any_profile(profile: str) -> None:
    found = at(10_000_000, FACT, profile=profile, context_window=0)

    assert found.decision == Decision(kind="fits", used=10_000_000, threshold=None, window=None)
    assert (found.cap, found.confidence) == (None, "override")


@pytest.mark.parametrize("profile", PROFILES)
def test_a_limit_of_the_user_is_exact_beside_a_window_of_0(profile: str) -> None:
    given = {"profile": profile, "context_window": 0, "model_auto_compact_token_limit": 9_000}

    assert [at(size, FACT, **given).decision.kind for size in (8_999, 9_001)] == ["fits", "due"]


@pytest.mark.parametrize("profile", PROFILES)
def test_what_a_provider_refused_limits_a_window_of_0(profile: str) -> None:
    named = at(10, replace(FACT, observed=64_000), profile=profile, context_window=0)
    unnamed = at(10, replace(FACT, rejected=True), profile=profile, context_window=0)

    assert (named.window, named.cap) == (64_000, 64_000)
    assert "no limit" in named.warnings[0]
    after = PROFILES[profile].rules.unknown.after_rejection
    assert (unnamed.window, unnamed.confidence) == (after, "override" if after is None else "guess")


def test_after_a_rejection_an_unknown_window_is_taken_for_128000() -> None:
    assert at(0, Window(rejected=True), profile="go-agent").window == 128_000
    assert at(0, Window(rejected=True, observed=32_768), profile="go-agent").window == 32_768


def test_klaude_takes_the_window_of_the_last_report() -> None:
    assert at(0, Window(reported=64_000), profile="klaude").window == 64_000


# --- explicit thresholds ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "threshold"),
    [
        ({"model_auto_compact_token_limit": 150_000}, 150_000),
        ({"threshold_ratio": 0.55}, 110_000),
        ({"threshold_ratio": 1.0}, 200_000),
        ({"reserve_tokens": 16_384}, 183_616),
        ({"reserve_tokens": 0}, 200_000),
    ],
)
def test_an_explicit_threshold_replaces_the_profiles_and_keeps_its_comparison(
    given: dict[str, object], threshold: int
) -> None:
    assert at(threshold - 1, **given).threshold == threshold
    assert at(threshold - 1, **given).warnings == ()
    window = known(1_000_000)
    limit = {"model_auto_compact_token_limit": threshold}
    assert at(threshold, window, **limit).decision.kind == "due"
    assert at(threshold, window, profile="go-agent", **limit).decision.kind == "fits"
    assert at(threshold + 1, window, profile="go-agent", **limit).decision.kind == "due"


def test_a_threshold_above_the_cap_is_lowered_to_it_with_a_warning() -> None:
    found = at(0, model_auto_compact_token_limit=300_000)

    assert found.threshold == 200_000
    assert found.warnings == (
        "model_auto_compact_token_limit sets the threshold to 300,000 tokens, but a request may have at most"
        " 200,000; 200,000 is used",
    )


def test_a_reserve_that_leaves_nothing_is_lowered_to_a_quarter_with_a_warning() -> None:
    found = at(0, known(8_000), reserve_tokens=16_384)

    assert found.threshold == 6_000
    assert "leaves nothing" in found.warnings[0]


def test_a_ratio_is_exact_where_floating_point_is_not() -> None:
    assert at(0, known(100), threshold_ratio=0.55).threshold == 55
    assert at(0, known(100), threshold_ratio=0.29).threshold == 29


# --- cap, over --------------------------------------------------------------------------------------


def test_the_cap_is_the_least_of_window_input_limit_and_observed() -> None:
    window = Window(window=400_000, confidence="fact", input_limit=272_000)

    assert at(0, window).cap == 272_000
    assert at(0, Window(window=400_000, confidence="fact", observed=100_000)).cap == 100_000


def test_a_window_that_the_user_set_replaces_window_and_input_limit() -> None:
    window = Window(window=400_000, confidence="fact", input_limit=272_000)

    found = at(0, window, context_window=300_000)

    assert (found.window, found.cap, found.confidence) == (300_000, 300_000, "override")
    assert found.budget.input_limit.value is None


def test_a_rejection_lowers_a_window_that_the_user_set_with_a_warning() -> None:
    found = at(0, Window(observed=100_000), context_window=300_000)

    assert (found.window, found.cap, found.threshold) == (100_000, 100_000, 80_000)
    assert found.warnings == ("context_window is 300,000, but the provider accepts at most 100,000 tokens",)


def test_a_rejection_lowers_a_known_window_and_never_raises_it() -> None:
    assert at(0, Window(window=200_000, confidence="fact", observed=150_000)).window == 150_000
    assert at(0, Window(window=200_000, confidence="fact", observed=500_000)).window == 200_000
    assert at(0, Window(observed=500_000)).window == 500_000


@pytest.mark.parametrize(
    ("used", "window", "kind"),
    [
        (198_976, 200_000, "due"),
        (198_977, 200_000, "over"),
        (938, 1_000, "due"),
        (939, 1_000, "over"),
    ],
)
def test_a_request_is_over_where_it_leaves_no_room_for_an_answer(used: int, window: int, kind: str) -> None:
    assert at(used, known(window)).decision.kind == kind
    assert (used <= (largest_request(window, window) or 0)) == (kind == "due")


def test_a_request_above_the_input_limit_is_over_under_every_profile() -> None:
    window = Window(window=400_000, confidence="fact", input_limit=272_000)

    assert at(272_000, window).decision.kind == "due"
    for profile in PROFILES:
        assert at(272_001, window, profile=profile).decision.kind == "over"


def test_with_compaction_disabled_nothing_is_due() -> None:
    assert at(190_000, enabled=False).decision.kind == "fits"
    assert at(199_990, enabled=False).decision.kind == "over"
    assert at(190_000, enabled=False).enabled is False


def test_the_output_of_the_next_request_never_exceeds_what_is_left() -> None:
    assert at(0).budget.max_output.value == 64_000
    assert at(136_000).budget.max_output.value == 64_000
    assert at(136_001).budget.max_output.value == 63_999
    assert at(300_000).budget.max_output.value == 0


# --- size -------------------------------------------------------------------------------------------

REPORT = Usage(
    input_tokens=1_000, cache_read_tokens=100_000, cache_write_tokens=10_000, output_tokens=5_000,
    reasoning_tokens=2_000,
)  # fmt: skip


@pytest.mark.parametrize(
    ("profile", "size"),
    [
        ("default", 111_000 + 3_000 + 700),
        ("opal", 111_000 + 3_000 + 700),
        ("go-agent", 111_000 + 5_000 + 700),
        ("klaude", 111_000 + 5_000),
        ("opencode", 1_000 + 100_000 + 5_000),
        ("evmts", 90_000),
    ],
)
def test_each_profile_compares_its_own_size_with_the_threshold(profile: str, size: int) -> None:
    told = RequestSize(estimated=90_000, base=111_000, trailing=3_700, report=REPORT)
    inclusive = PROFILES[profile].rules.inclusive
    edge = size if inclusive else size - 1

    below = compute_budget(resolved(profile=profile, model_auto_compact_token_limit=edge + 1), FACT, told)
    reached = compute_budget(resolved(profile=profile, model_auto_compact_token_limit=edge), FACT, told)

    assert (below.decision.kind, reached.decision.kind) == ("fits", "due")
    assert below.decision.used == below.compared == reached.decision.used == size
    assert below.used == (size if profile == "go-agent" else 114_700)


def test_without_a_report_everything_is_estimated() -> None:
    found = at(1234)

    assert (found.budget.base.value, found.budget.trailing.value, found.used) == (0, 1234, 1234)
    assert found.budget.trailing.source == "estimate of the whole request"


def test_a_report_of_an_earlier_context_is_no_base() -> None:
    found = compute_budget(resolved(), FACT, RequestSize(estimated=50, base=None, trailing=9, report=REPORT))

    assert found.used == 50


# --- keep -------------------------------------------------------------------------------------------


def test_opal_keeps_a_quarter_when_automatic_a_fifth_in_an_overflow_20000_when_manual() -> None:
    # docs/specs.md, "opal.md", "Auto-Compaction" (÷ 4), "Overflow Recovery" (÷ 5), "1. Find Cut Point"
    # (20,000).
    assert keep_at("threshold", 200_000, profile="opal") == 50_000
    assert keep_at("overflow", 200_000, profile="opal") == 40_000
    assert keep_at("silent_overflow", 200_000, profile="opal") == 40_000
    assert keep_at("manual", 200_000, profile="opal") == 20_000
    assert keep_at("threshold", 1_003, profile="opal") == 250


def test_go_agents_numbers_are_exact_down_to_twice_their_sum_and_bounded_below() -> None:
    exact = at(0, known(72_768), profile="go-agent")
    small = at(0, known(72_766), profile="go-agent")

    assert (exact.threshold, keep_at("threshold", 72_768, profile="go-agent")) == (56_384, 20_000)
    assert small.threshold == 72_766 - 16_384, "16,384 is less than a quarter: it need not shrink"
    assert keep_at("threshold", 72_766, profile="go-agent") == 20_000, "20,000 is less than threshold ÷ 2"
    assert at(0, known(57_344), profile="go-agent").budget.reserve.value == 14_336
    tiny = at(0, known(16_384), profile="go-agent")
    assert (tiny.budget.reserve.value, tiny.threshold) == (4_096, 12_288)
    assert keep_at("threshold", 16_384, profile="go-agent") == 6_144


@pytest.mark.parametrize("profile", sorted(PROFILES))
@pytest.mark.parametrize("window", [1_000, 4_096, 8_192, 16_384, 32_768, 65_536, 128_000, 1_000_000])
@pytest.mark.parametrize("trigger", ["manual", "threshold", "overflow"])
def test_on_small_windows_keep_is_at_most_half_the_threshold_and_reserve_a_quarter(
    profile: str, window: int, trigger: Trigger
) -> None:
    found = at(0, known(window), profile=profile)
    keep = keep_at(trigger, window, profile=profile) or 0
    reserve, threshold = found.budget.reserve.value, found.threshold

    assert reserve is not None
    assert threshold is not None
    if keep + reserve > window // 2:
        assert keep <= threshold // 2
        assert reserve <= window // 4 or trigger != "threshold", "the automatic keep bounds the reserve"


def test_a_users_keep_is_exact_below_the_threshold_and_half_of_it_above() -> None:
    assert keep_at("threshold", 1_000, keep_recent_tokens=799) == 799
    assert keep_at("threshold", 1_000, keep_recent_tokens=800) == 400
    assert at(0, known(1_000), keep_recent_tokens=800).warnings == (
        "keep_recent_tokens is 800, which is not below the threshold of 800 tokens; 400 is used instead",
    )


def test_a_users_keep_does_not_bind_an_emergency() -> None:
    assert keep_at("overflow", 200_000, keep_recent_tokens=150_000) == 40_000


def test_every_term_says_where_it_comes_from() -> None:
    found = at(10, context_window=1_000)

    assert found.budget.window.source == "context_window (request)"
    assert found.budget.threshold.source == "profile default: 80% of the cap"
    assert found.budget.keep.source == "window ÷ 4"
    assert at(10, threshold_ratio=0.5).budget.threshold.source == "threshold_ratio (request)"


@pytest.mark.parametrize(
    ("window", "tokens"),
    [(1_000, 512), (8_192, 512), (16_384, 1_024), (128_000, 8_000), (1_000_000, 13_107), (None, 13_107)],
)
def test_a_summary_may_take_a_sixteenth_of_the_window_from_512_to_13107(
    window: int | None, tokens: int
) -> None:
    assert summary_budget(resolved().settings, window) == tokens
    assert summary_budget(resolved(summary_tokens=99).settings, window) == 99
