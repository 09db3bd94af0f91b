"""The steps of a model look-up, on rows made for the test."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactd.core.models.names import name_key, tokenizer_of
from compactd.core.models.registry import (
    FALLBACK_WINDOW,
    Lookup,
    ModelRow,
    ModelRows,
    Override,
    Pricing,
    Registry,
)

PRICES = Pricing(input=3.0, output=15.0)

ROWS = (
    ModelRow(provider="anthropic", id="claude-opus-4-6", context=1_000_000, output=128_000, src=("a", "b")),
    ModelRow(
        provider="anthropic",
        id="claude-sonnet-4-5",
        context=200_000,
        output=64_000,
        prices=PRICES,
        src=("a",),
    ),
    ModelRow(
        provider="anthropic", id="claude-sonnet-4-20250514", context=200_000, retired=True, src=("old",)
    ),
    ModelRow(provider="anthropic", id="claude-opus-3-20240229", context=200_000, retired=True, src=("old",)),
    ModelRow(provider="openai", id="gpt-4o", context=128_000, output=16_384, src=("a",)),
    ModelRow(provider="openai", id="gpt-5.1", context=400_000, input=272_000, output=128_000, src=("a",)),
    ModelRow(provider="openai", id="gpt-4", context=8192, src=("a",)),
    ModelRow(provider="azure", id="gpt-4o", context=64_000, src=("a",)),
    ModelRow(provider="openrouter", id="anthropic/claude-opus-4.6", context=900_000, src=("a",)),
    ModelRow(provider="openrouter", id="qwen/qwen3-coder", context=262_144, src=("a",)),
    ModelRow(provider="openrouter", id="qwen/qwen3-coder:fast", context=100_000, src=("a",)),
    ModelRow(provider="groq", id="openai/gpt-oss-20b", context=131_072, src=("a",)),
    ModelRow(provider="togetherai", id="openai/gpt-oss-20b", context=131_000, src=("a",)),
    ModelRow(provider="groq", id="llama-9", context=131_072, src=("a",)),
    ModelRow(provider="togetherai", id="meta/llama-9", context=32_768, src=("a",)),
    ModelRow(
        provider="github-copilot", id="gpt-5.1", context=264_000, input=128_000, disputed=True, src=("a",)
    ),
    ModelRow(provider="amazon-bedrock", id="anthropic.claude-opus-4-6-v1", context=1_000_000, src=("a",)),
    ModelRow(provider="google-vertex-anthropic", id="claude-opus-4-5@20251101", context=200_000, src=("a",)),
)
REGISTRY = Registry(ROWS)


def seen(model: str, provider: str | None = None, base_url: str | None = None) -> tuple[int, str, str | None]:
    """(window, confidence, provider) of the answer."""
    answer = REGISTRY.lookup(model, provider, base_url)
    return answer.context_window, answer.confidence, answer.provider


def test_an_exact_row_is_a_fact_with_all_that_it_says() -> None:
    assert REGISTRY.lookup("anthropic/claude-sonnet-4-5") == Lookup(
        model="claude-sonnet-4-5",
        provider="anthropic",
        context_window=200_000,
        input_limit=None,
        output_limit=64_000,
        upper_bound=False,
        confidence="fact",
        source="a",
        how="exact",
        tokenizer="claude",
        pricing=PRICES,
        retired=False,
        pricing_source="a",
    )


def test_an_unknown_model_answers_128000_as_a_guess() -> None:
    answer = REGISTRY.lookup("acme/frontier-1", "openrouter")

    assert (answer.context_window, answer.confidence, answer.how) == (128_000, "guess", "unknown model")
    assert (answer.model, answer.provider, answer.pricing) == ("acme/frontier-1", "openrouter", None)


@pytest.mark.parametrize(
    "spelling",
    [
        "gpt-5.1",
        "GPT-5.1",
        "gpt-5-1",
        "gpt_5.1",
        " gpt-5.1 ",
        "openai/gpt-5.1",
        "openai:gpt-5.1",
        "gpt-5.1-2025-11-13",
        "gpt-5.1-latest",
        "litellm_proxy/openai/gpt-5.1",
        "ft:gpt-5.1:acme::id",
        "models/gpt-5.1",
    ],
)
def test_every_spelling_of_a_model_finds_its_makers_row(spelling: str) -> None:
    answer = REGISTRY.lookup(spelling)

    assert (answer.model, answer.provider, answer.confidence) == ("gpt-5.1", "openai", "fact")
    assert (answer.context_window, answer.input_limit, answer.output_limit) == (400_000, 272_000, 128_000)


def test_a_gateways_own_row_stands_before_the_makers() -> None:
    assert seen("openrouter/anthropic/claude-opus-4.6") == (900_000, "fact", "openrouter")
    assert seen("anthropic/claude-opus-4-6", "openrouter") == (900_000, "fact", "openrouter")
    assert seen("gpt-4o", "azure") == (64_000, "fact", "azure")
    assert seen("gpt-4o", None, "https://acme.openai.azure.com/openai/v1") == (64_000, "fact", "azure")


def test_a_gateway_without_a_row_gets_the_smallest_known_window_as_a_guess() -> None:
    answer = REGISTRY.lookup("gpt-4o", "acme-gateway")

    assert (answer.context_window, answer.confidence, answer.provider) == (64_000, "guess", "acme-gateway")
    assert answer.pricing is None


def test_other_names_of_a_provider_mean_the_same_rows() -> None:
    assert seen("claude-opus-4-5@20251101", "vertex_ai") == (200_000, "fact", "google-vertex-anthropic")
    assert seen("us.anthropic.claude-opus-4-6-v1", "bedrock") == (1_000_000, "fact", "amazon-bedrock")
    arn = "arn:aws:bedrock:us-east-1:123456789012:inference-profile/eu.anthropic.claude-opus-4-6-v1"
    assert seen(arn, "amazon-bedrock") == (1_000_000, "fact", "amazon-bedrock")


def test_an_arn_that_names_no_model_is_a_guess() -> None:
    arn = "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/claude-opus-4-6"

    assert seen(arn, "amazon-bedrock") == (128_000, "guess", "amazon-bedrock")


def test_a_selector_sets_the_window_and_is_no_part_of_the_name() -> None:
    answer = REGISTRY.lookup("claude-sonnet-4-5[1m]")

    assert (answer.context_window, answer.confidence, answer.model) == (
        1_000_000,
        "fact",
        "claude-sonnet-4-5",
    )
    assert REGISTRY.lookup("claude-opus-4-6[200K][200k]", "anthropic").context_window == 200_000


def test_an_id_without_its_date_finds_the_dated_row() -> None:
    answer = REGISTRY.lookup("claude-sonnet-4")

    assert (answer.model, answer.context_window, answer.retired) == (
        "claude-sonnet-4-20250514",
        200_000,
        True,
    )
    assert REGISTRY.lookup("claude-4-sonnet").model == "claude-sonnet-4-20250514"


def test_providers_that_agree_make_a_fact_of_the_smallest_and_others_a_dispute() -> None:
    assert seen("gpt-oss-20b") == (131_000, "fact", None)
    assert seen("openai/gpt-oss-20b") == (131_000, "fact", "openai")
    assert seen("llama-9") == (32_768, "disputed", None)


def test_a_disputed_row_says_so() -> None:
    assert seen("gpt-5.1", "github_copilot") == (264_000, "disputed", "github-copilot")


def test_a_variant_has_its_own_row_or_a_disputed_one() -> None:
    assert seen("qwen/qwen3-coder:fast", "openrouter") == (100_000, "fact", "openrouter")
    assert seen("qwen/qwen3-coder:free", "openrouter") == (262_144, "disputed", "openrouter")


def test_more_words_behind_a_known_model_are_a_guess_of_that_model() -> None:
    answer = REGISTRY.lookup("gpt-5.1-acme-tuned")

    assert (answer.context_window, answer.confidence, answer.how) == (400_000, "guess", "family gpt-5-1")
    assert (answer.model, answer.pricing) == ("gpt-5.1-acme-tuned", None)
    assert REGISTRY.lookup("gpt-5.1-acme-tuned", "github-copilot").context_window == 264_000
    assert REGISTRY.lookup("gpt-5.1-acme-tuned", "acme-gateway").context_window == 264_000


def test_a_new_member_of_a_family_is_guessed_from_the_smallest_that_is_not_retired() -> None:
    assert seen("claude-opus-9") == (1_000_000, "guess", None)
    assert seen("claude-opus") == (1_000_000, "guess", None)


@pytest.mark.parametrize("model", ["gpt-4x", "gpt-45", "xgpt-4", "gpt", "claude", "llama-90", "", "4o", "o"])
def test_a_part_of_a_word_finds_nothing(model: str) -> None:
    assert seen(model)[:2] == (FALLBACK_WINDOW, "guess")


def test_a_local_server_may_load_less_than_the_window() -> None:
    assert REGISTRY.lookup("gpt-oss-20b", "ollama").upper_bound
    assert REGISTRY.lookup("gpt-oss-20b", None, "http://127.0.0.1:11434/v1").upper_bound
    assert not REGISTRY.lookup("gpt-oss-20b", "groq").upper_bound


def test_the_users_word_beats_every_row() -> None:
    registry = Registry(
        ROWS,
        (
            Override(match="claude-*", context=500_000),
            Override(match="Claude-Sonnet-4.5", context=150_000, output=8_000),
            Override(match="gpt-5.1", provider="copilot", input=99_000),
            Override(match="acme/*", context=32_000),
        ),
    )
    answers = {
        model: registry.lookup(model, provider)
        for model, provider in (
            ("claude-sonnet-4-5", None),
            ("claude-opus-4-6", None),
            ("gpt-5.1", None),
            ("acme/x", "openrouter"),
        )
    }

    assert {model: (a.context_window, a.output_limit, a.confidence) for model, a in answers.items()} == {
        "claude-sonnet-4-5": (150_000, 8_000, "override"),
        "claude-opus-4-6": (500_000, 128_000, "override"),
        "gpt-5.1": (400_000, 128_000, "fact"),
        "acme/x": (32_000, None, "override"),
    }
    assert answers["claude-sonnet-4-5"].pricing == PRICES
    copilot = registry.lookup("gpt-5.1", "github-copilot")
    assert (copilot.context_window, copilot.input_limit, copilot.confidence) == (264_000, 99_000, "disputed")


def test_rows_are_listed_by_provider_under_any_of_its_names() -> None:
    assert [row.id for row in REGISTRY.rows("copilot")] == ["gpt-5.1"]
    assert REGISTRY.rows() == tuple(sorted(ROWS, key=lambda row: (row.provider, row.id)))
    assert REGISTRY.rows("nobody") == ()


@pytest.mark.parametrize(
    ("tokenizer", "models"),
    [
        ("o200k_base", "gpt-4o openai/gpt-4o-mini gpt-4.1 gpt-4.5-preview o1 o3-mini gpt-5 gpt-oss:20b"),
        ("cl100k_base", "gpt-4 gpt-4-turbo gpt-4-0613 gpt-4-1106-preview gpt-3.5-turbo gpt-35-turbo"),
        ("openai", "gpt-6-sol chatgpt-image gpt-4x gpt-50"),
        ("claude", "claude-opus-4-6 us.anthropic.claude-3-haiku-20240307-v1:0 databricks-claude-sonnet-4"),
        ("gemini", "gemini-2.5-pro gemma-3-27b-it"),
        (None, "my-model foo1 octo3 solar-pro"),
    ],
)  # fmt: skip
def test_the_tokenizer_is_told_by_whole_words_of_the_name(tokenizer: str | None, models: str) -> None:
    assert {model: tokenizer_of(name_key(model)) for model in models.split()} == dict.fromkeys(
        models.split(), tokenizer
    )


PARTS = st.sampled_from(
    (
        "openai",
        "openrouter",
        "gpt",
        "5.1",
        "4o",
        "claude",
        "opus",
        "4-6",
        ":free",
        "[1m]",
        "/",
        "-",
        "@",
        "x",
        "é",
    )
)


@given(
    st.lists(PARTS, max_size=8).map("".join) | st.text(max_size=30),
    st.none() | PARTS,
    st.none() | st.text(max_size=20),
)
def test_any_name_gets_an_answer_whose_limits_fit_its_window(
    model: str, provider: str | None, base_url: str | None
) -> None:
    answer = REGISTRY.lookup(model, provider, base_url)

    assert answer.context_window > 0
    assert answer.input_limit is None or answer.input_limit < answer.context_window
    assert answer.output_limit is None or answer.output_limit < answer.context_window


@given(st.sampled_from(ROWS), st.text(alphabet="abcz019-", min_size=1, max_size=8))
def test_a_name_that_goes_on_after_a_model_is_never_a_fact_unless_it_is_a_row_or_a_date(
    row: ModelRow, more: str
) -> None:
    model = f"{last(row.id)}-{more}x"

    answer = REGISTRY.lookup(model, row.provider)

    known = {name_key(last(other.id)) for other in ROWS}
    assert answer.confidence == "guess" or name_key(model) in known


# --- what most say, native windows ------------------------------------------------------------------------


def test_a_host_that_loads_less_than_most_says_nothing_of_the_model() -> None:
    hosts = [ModelRow(provider=f"host-{n}", id="acme/large-2", context=262_144) for n in range(5)]
    registry = Registry([*hosts, ModelRow(provider="small", id="large-2", context=16_384)])

    answer = registry.lookup("large-2")

    assert (answer.context_window, answer.confidence) == (262_144, "disputed")
    assert registry.lookup("large-2", "acme-gateway").context_window == 16_384


def test_open_weights_are_found_by_family_and_size_and_an_invented_size_is_a_guess() -> None:
    registry = Registry(
        (
            ModelRow(
                provider="open-weights", id="gemma-3@131072", context=131_072, sizes=("4b", "27b"), src=("x",)
            ),
            ModelRow(provider="open-weights", id="gemma-3@32768", context=32_768, sizes=("1b",), src=("x",)),
            ModelRow(provider="open-weights", id="glm-5", context=202_752, sizes=("", "744b"), src=("x",)),
        )
    )

    assert {
        name: (answer.context_window, answer.confidence)
        for name in ("gemma3:27b", "gemma3:1b", "gemma3:9b", "gemma3", "GLM-5-Q4_K_M.gguf", "gemma3:27b-acme")
        for answer in (registry.lookup(name, "ollama"),)
    } == {
        "gemma3:27b": (131_072, "fact"),
        "gemma3:1b": (32_768, "fact"),
        "gemma3:9b": (32_768, "guess"),
        "gemma3": (32_768, "disputed"),
        "GLM-5-Q4_K_M.gguf": (202_752, "fact"),
        "gemma3:27b-acme": (131_072, "guess"),
    }


def test_rows_that_are_not_decoded_answer_as_those_that_are() -> None:
    ordered = sorted(ROWS, key=lambda row: (row.provider, row.id))
    lines = [msgspec.json.encode(row) for row in ordered]
    registry = Registry(ModelRows.of_lines(lines))

    for row in ROWS:
        for asked in ((row.id, row.provider), (row.id, None), (row.id, "acme")):
            assert registry.lookup(*asked) == REGISTRY.lookup(*asked)
    assert registry.rows() == tuple(ordered)


def last(model: str) -> str:
    return model.rpartition("/")[2]


def test_a_row_survives_its_own_json() -> None:
    for row in ROWS:
        assert msgspec.json.decode(msgspec.json.encode(row), type=ModelRow) == row
