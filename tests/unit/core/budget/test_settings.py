"""Settings: the profiles' values, layers, aliases, ranges."""

from __future__ import annotations

import msgspec
import pytest

from compactd.core.budget.profiles import PROFILES
from compactd.core.budget.rules import (
    KeepMessages,
    KeepRequest,
    KeepShare,
    KeepTokens,
    Ratio,
    Reserve,
    Usable,
)
from compactd.core.budget.settings import (
    NAMES,
    merge,
    validate,
    values_of,
)
from compactd.protocol.errors import InvalidParams
from compactd.protocol.settings import GivenSettings


def test_without_layers_the_settings_are_those_of_default_and_say_so() -> None:
    found = merge([])

    assert found.settings == PROFILES["default"]
    assert set(found.sources) == set(NAMES)
    assert set(found.sources.values()) == {"profile default"}


def test_default_is_opals_numbers_with_the_guess_at_sixty_percent_and_extract_without_a_model() -> None:
    default, opal = PROFILES["default"], PROFILES["opal"]

    # docs/specs.md, "opal.md", "Auto-Compaction", "1. Find Cut Point", "2. Detect Split Turns", "Overflow
    # Recovery", "Context Window Sizes", "3. Generate Summary".
    assert opal.rules.trigger == Ratio(ratio=0.8, of="window")
    assert opal.rules.inclusive
    assert opal.rules.keep == KeepShare(divisor=4, manual_tokens=20_000)
    assert opal.rules.overflow_keep == KeepShare(divisor=5)
    assert opal.split_min_messages == 5
    assert opal.rules.unknown.window == 128_000
    assert opal.rules.without_model == "truncate"
    assert opal.estimator == "chars4"
    assert default.rules.trigger == Ratio(ratio=0.8, of="cap", guess_ratio=0.6)
    assert default.rules.without_model == "extract"
    assert default.estimator == "auto"
    assert default.rules.keep == opal.rules.keep
    assert default.rules.moves[2:] == opal.rules.moves


def test_the_other_rows_are_those_of_the_table() -> None:
    rows = {name: PROFILES[name].rules for name in PROFILES}

    assert set(rows) == {"default", "opal", "go-agent", "klaude", "evmts", "opencode"}
    assert rows["go-agent"].trigger == Reserve(tokens=16_384)
    assert rows["klaude"].trigger == Reserve(tokens=16_384, divisor=4)
    assert rows["evmts"].trigger == Ratio(ratio=0.8, unknown=150_000)
    assert rows["opencode"].trigger == Usable(output_tokens=32_000)
    assert {name for name, rules in rows.items() if rules.inclusive} == {"default", "opal"}
    assert rows["go-agent"].keep == KeepTokens(tokens=20_000)
    assert rows["klaude"].keep == KeepTokens(tokens=20_000, ratio=0.35)
    assert rows["evmts"].keep == KeepMessages(messages=5)
    assert rows["opencode"].keep == KeepRequest()
    assert {name for name, row in PROFILES.items() if row.prune} == {"opencode"}
    assert {name for name, rules in rows.items() if rules.splits} == {"default", "opal", "go-agent", "klaude"}
    assert {name for name, rules in rows.items() if not rules.sub_agents_compact} == {"klaude"}
    assert rows["opencode"].chars4 == "chars4_utf16"


def test_a_higher_layer_beats_a_lower_one_setting_by_setting() -> None:
    configure = GivenSettings(summary_tokens=700)
    start = GivenSettings(profile="opal", summary_tokens=900, prune=True)
    file = GivenSettings(profile="klaude", prune=False, tool_output_chars=10)

    found = merge([("session/configure", configure), ("session/start", start), ("file", file)])

    assert found.settings.profile == "opal"
    assert found.settings.summary_tokens == 700
    assert found.settings.prune is True
    assert found.settings.tool_output_chars == 10
    assert [found.source(n) for n in ("summary_tokens", "prune", "tool_output_chars", "model")] == [
        "session/configure",
        "session/start",
        "file",
        "profile opal",
    ]


def test_what_the_profile_sets_can_be_set_back() -> None:
    found = merge([("request", GivenSettings(prune=False, auto_continue=False, profile="opencode"))])

    assert (found.settings.prune, found.settings.auto_continue) == (False, False)


def test_the_highest_layer_that_names_any_threshold_or_keep_decides_for_the_whole_group() -> None:
    high = GivenSettings(threshold_ratio=0.5, keep_messages=4)
    low = GivenSettings(model_auto_compact_token_limit=9, reserve_tokens=7, keep_recent_tokens=5)

    found = merge([("high", high), ("low", low)]).settings

    assert (found.model_auto_compact_token_limit, found.threshold_ratio, found.reserve_tokens) == (
        None,
        0.5,
        None,
    )
    assert (found.keep_recent_tokens, found.keep_messages) == (None, 4)


def test_within_one_layer_limit_counts_before_ratio_before_reserve() -> None:
    given = GivenSettings(threshold_ratio=0.5, reserve_tokens=7, model_auto_compact_token_limit=9)

    found = merge([("request", given)]).settings

    assert (found.model_auto_compact_token_limit, found.threshold_ratio, found.reserve_tokens) == (
        9,
        None,
        None,
    )


def test_auto_and_preserve_count_are_other_names() -> None:
    given = msgspec.json.decode(b'{"auto": false, "preserve_count": 7, "prune": null}', type=GivenSettings)

    found = merge([("request", given)])

    assert (found.settings.enabled, found.settings.keep_messages) == (False, 7)
    assert found.source("enabled") == found.source("keep_messages") == "request"
    assert found.source("prune") == "profile default"


def test_a_settings_own_name_counts_before_its_other_name() -> None:
    found = merge([("request", GivenSettings(auto=True, enabled=False, preserve_count=1, keep_messages=2))])

    assert (found.settings.enabled, found.settings.keep_messages) == (False, 2)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("context_window", -1),
        ("model_auto_compact_token_limit", 0),
        ("threshold_ratio", 0.0),
        ("threshold_ratio", 1.01),
        ("threshold_ratio", float("nan")),
        ("reserve_tokens", -1),
        ("keep_recent_tokens", 0),
        ("keep_recent_tokens", -5),
        ("keep_recent_tokens", 2**60),
        ("keep_messages", 0),
        ("preserve_count", -1),
        ("split_min_messages", 0),
        ("prune_minimum", -1),
        ("prune_protect", -1),
        ("tool_output_chars", 0),
        ("summary_tokens", 0),
        ("max_cost", -0.5),
        ("max_cost", float("inf")),
        ("profile", "pi"),
        ("strategy", "drop"),
        ("estimator", "words"),
        ("model", "  "),
    ],
)
def test_a_value_out_of_its_range_is_refused_with_the_path_of_its_field(field: str, value: object) -> None:
    given = msgspec.structs.replace(GivenSettings(), **{field: value})

    with pytest.raises(InvalidParams) as refused:
        validate(given)

    assert refused.value.data["path"] == f"$.compaction.{field}"


def test_the_edges_of_the_ranges_are_taken() -> None:
    given = GivenSettings(
        context_window=1,
        threshold_ratio=1.0,
        reserve_tokens=0,
        keep_recent_tokens=1,
        prune_minimum=0,
        max_cost=0.0,
    )

    assert validate(given) is given


def test_every_setting_has_a_value_under_its_own_name() -> None:
    assert tuple(values_of(PROFILES["opencode"])) == NAMES
    assert values_of(PROFILES["opencode"])["protected_tools"] == ("skill",)
