"""Forms of model names that were seen in use, looked up in the packaged rows, for many vendors.

The forms and where they were seen are in the research of this project (dated ids, gateways, selectors,
Bedrock, Vertex, Azure, files of open weights …). Windows are those of the named sources of each row, 2026-11.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactd.core.models.registry import FALLBACK_WINDOW, Registry
from compactd.models.registry_files import read_packaged

REGISTRY = Registry(read_packaged()[0])

Asked = tuple[str, str | None]
Seen = tuple[int, str, str]
"""Window, confidence, the word of `how` that tells the step."""


def seen(asked: Asked, base_url: str | None = None) -> Seen:
    answer = REGISTRY.lookup(*asked, base_url)
    return answer.context_window, answer.confidence, answer.how


def check(asked: Asked, expected: Seen, base_url: str | None = None) -> None:
    window, confidence, how = seen(asked, base_url)
    assert (window, confidence) == expected[:2]
    assert expected[2] in how


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (("claude-haiku-4-5-20251001", "anthropic"), (200_000, "fact", "exact")),
        (("claude-opus-4-5-20251101", None), (200_000, "fact", "first-party")),
        (("gpt-4.1-2025-04-14", None), (1_047_576, "fact", "first-party")),
        (("o3-2025-04-16", "openai"), (200_000, "fact", "exact")),
        (("gpt-5.1-2025-11-13", "openai"), (400_000, "fact", "")),
        (("command-r-plus-08-2024", "cohere"), (128_000, "fact", "exact")),
        (("claude-opus-4-7-20260416", "anthropic"), (1_000_000, "fact", "")),
        (("kimi-k2.6-20260501", "moonshotai"), (262_144, "fact", "without date")),
        (("glm-4.6@20251001", "zai"), (204_800, "fact", "without date")),
        (("gpt-4o-2031-01-01", None), (128_000, "guess", "family gpt-4o")),
        (("claude-sonnet-7-20280101", "anthropic"), (200_000, "guess", "family claude-sonnet")),
    ],
)
def test_a_date_is_taken_off_where_the_dated_id_has_no_row_and_no_date_of_the_future_is(
    asked: Asked, expected: Seen
) -> None:
    check(asked, expected)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (("mistral-large-latest", "mistral"), (262_144, "fact", "exact")),
        (("claude-opus-4-5-latest", "anthropic"), (200_000, "fact", "without -latest")),
        (("~google/gemini-pro-latest", "openrouter"), (1_048_576, "fact", "exact")),
        (("gemini-flash-latest", None), (1_048_576, "fact", "first-party")),
        (("kimi-k2.6-latest", "moonshotai"), (262_144, "fact", "without -latest")),
    ],
)
def test_latest_is_a_row_of_its_own_or_taken_off(asked: Asked, expected: Seen) -> None:
    check(asked, expected)


@pytest.mark.parametrize(
    ("asked", "window"),
    [
        (("GPT_4o_mini", None), 128_000),
        (("gpt-5-2", "azure"), 400_000),
        (("Claude Opus 4.6", None), 1_000_000),
        (("claude-haiku-4.5", "anthropic"), 200_000),
        (("GEMINI-2.5-FLASH", "google"), 1_048_576),
        (("glm-4-6", "zai"), 204_800),
        (("KIMI K2.6", None), 262_144),
        (("minimax-m3", "minimax"), 1_000_000),
    ],
)
def test_dots_dashes_spaces_and_case_mean_the_same(asked: Asked, window: int) -> None:
    assert seen(asked)[:2] == (window, "fact")


@pytest.mark.parametrize(
    ("asked", "window", "model"),
    [
        (("claude-4.5-sonnet", None), 200_000, "claude-sonnet-4-5"),
        (("claude-4-5-haiku", "anthropic"), 200_000, "claude-haiku-4-5"),
        (("claude-4.5-haiku-20251001", None), 200_000, "claude-haiku-4-5"),
        (("anthropic/claude-4.1-opus", None), 200_000, "claude-opus-4-1"),
        (("claude-sonnet-3-7", "anthropic"), 200_000, "claude-3-7-sonnet-20250219"),
    ],
)
def test_the_words_of_a_claude_model_may_stand_in_either_order(asked: Asked, window: int, model: str) -> None:
    answer = REGISTRY.lookup(*asked)

    assert (answer.context_window, answer.confidence, answer.model) == (window, "fact", model)
    assert "words reordered" in answer.how


@pytest.mark.parametrize(
    ("model", "provider", "window"),
    [
        ("openrouter/x-ai/grok-4.3", "openrouter", 1_000_000),
        ("github_copilot/claude-sonnet-4.5", "github-copilot", 200_000),
        ("chatgpt/gpt-6-luna", "openai-codex", 272_000),
        ("vertex_ai/claude-sonnet-4-5@20250929", "google-vertex", 200_000),
        ("litellm_proxy/openrouter/anthropic/claude-haiku-4.5", "openrouter", 200_000),
        ("litellm_proxy/anthropic/claude-opus-4-6", "anthropic", 1_000_000),
        ("groq/llama-3.3-70b-versatile", "groq", 131_072),
        ("together_ai/meta-llama/Llama-3.3-70B-Instruct-Turbo", "togetherai", 131_072),
        ("fireworks_ai/accounts/fireworks/models/deepseek-v3p1", "fireworks-ai", 128_000),
        ("nvidia_nim/meta/llama-3.3-70b-instruct", "nvidia", 128_000),
        ("moonshot/kimi-k2-0905-preview", "moonshotai", 262_144),
        ("openai/responses/gpt-5", "openai", 400_000),
        ("google:gemini-2.5-pro", "google", 1_048_576),
        ("@cf/meta/llama-3.3-70b-instruct-fp8-fast", "cloudflare-workers-ai", 24_000),
        ("accounts/fireworks/models/gpt-oss-120b", "fireworks-ai", 131_072),
    ],
)
def test_a_gateway_before_the_name_is_who_serves_it(model: str, provider: str, window: int) -> None:
    answer = REGISTRY.lookup(model)

    assert (answer.provider, answer.context_window, answer.confidence) == (provider, window, "fact")


@pytest.mark.parametrize(
    ("model", "window", "confidence"),
    [
        ("nvidia/nemotron-3-super-120b-a12b:free", 262_144, "fact"),
        ("qwen/qwen3-coder:nitro", 262_144, "disputed"),
        ("openai/gpt-5:online", 400_000, "disputed"),
        ("anthropic/claude-opus-4.6:thinking", 1_000_000, "disputed"),
        ("moonshotai/kimi-k2.6:exacto", 262_144, "disputed"),
    ],
)
def test_a_variant_of_openrouter_is_a_fact_only_where_it_has_a_row(
    model: str, window: int, confidence: str
) -> None:
    assert seen((model, "openrouter"))[:2] == (window, confidence)


def test_the_provider_that_hugging_faces_router_is_told_to_use_is_no_part_of_the_model() -> None:
    check(("zai-org/GLM-4.7:novita", "huggingface"), (204_800, "disputed", "without variant"))


@pytest.mark.parametrize(
    ("asked", "window"),
    [
        (("claude-opus-4-6[1m]", None), 1_000_000),
        (("claude-sonnet-4-5[1M]", "anthropic"), 1_000_000),
        (("claude-sonnet-4-5[1m][1m]", None), 1_000_000),
        (("claude-opus-4-6[200k]", "anthropic"), 200_000),
        (("us.anthropic.claude-opus-4-6-v1[200k]", "bedrock"), 200_000),
        (("anthropic.claude-3-sonnet-20240229-v1:0:28k", "bedrock"), 28_000),
    ],
)
def test_a_selector_in_the_name_is_the_window(asked: Asked, window: int) -> None:
    check(asked, (window, "fact", "window as selected"))
    assert REGISTRY.lookup(*asked).source == "selector"


def test_a_selector_makes_no_fact_of_a_model_that_nobody_knows() -> None:
    assert seen(("acme-large[1m]", None))[:2] == (1_000_000, "guess")
    assert seen(("claude-opus-4-6[0k]", None))[:2] == (1_000_000, "fact")


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (("jp.anthropic.claude-haiku-4-5-20251001-v1:0", None), (200_000, "fact", "exact")),
        (("us-gov.anthropic.claude-3-5-sonnet-20240620-v1:0", None), (200_000, "fact", "without region")),
        (("apac.amazon.nova-lite-v1:0", "bedrock"), (300_000, "fact", "exact")),
        (("meta.llama3-1-70b-instruct-v1:0", "aws"), (128_000, "fact", "exact")),
        (("claude-opus-4-6", "bedrock"), (1_000_000, "fact", "")),
        (("bedrock/converse/us.anthropic.claude-opus-4-6-v1", None), (1_000_000, "fact", "without route")),
        (
            ("arn:aws:bedrock:eu-west-1::foundation-model/anthropic.claude-3-haiku-20240307-v1:0", None),
            (200_000, "fact", "exact"),
        ),
        (
            ("arn:aws:bedrock:us-east-1:123:inference-profile/us.meta.llama3-3-70b-instruct-v1:0", None),
            (128_000, "fact", "exact"),
        ),
        (
            ("arn:aws:bedrock:us-east-1:123:provisioned-model/claude-opus-4-6", None),
            (128_000, "guess", "unknown"),
        ),
        (
            ("arn:aws:bedrock:us-east-1:1:application-inference-profile/ab", "bedrock"),
            (128_000, "guess", "unknown"),
        ),
        (("anthropic.claude-opus-9-v1:0", "bedrock"), (200_000, "guess", "family anthropic-claude-opus")),
    ],
)
def test_bedrocks_regions_revisions_and_arns_are_read_and_opaque_ones_are_guesses(
    asked: Asked, expected: Seen
) -> None:
    check(asked, expected)


@pytest.mark.parametrize(
    ("asked", "window"),
    [
        (("claude-opus-4-1@20250805", "vertex_ai"), 200_000),
        (("gemini-2.5-pro@default", "vertex"), 1_048_576),
        (("publishers/anthropic/models/claude-sonnet-4-5@20250929", None), 200_000),
        (("projects/p/locations/l/publishers/google/models/gemini-2.5-flash", None), 1_048_576),
        (("claude-opus-4-6@default", "google-vertex-anthropic"), 1_000_000),
        (("publishers/meta/models/llama-3.3-70b-instruct-maas", "google-vertex"), 128_000),
    ],
)
def test_vertex_names_are_found_with_and_without_their_version(asked: Asked, window: int) -> None:
    assert seen(asked)[:2] == (window, "fact")


@pytest.mark.parametrize(
    ("asked", "base_url", "expected"),
    [
        (("GPT-4.1", "azure"), None, (1_047_576, "fact", "exact")),
        (("gpt-5.4", None), "https://acme.openai.azure.com/openai/v1", (1_050_000, "fact", "exact")),
        (("azure/eu/gpt-4o-2024-08-06", None), None, (128_000, "fact", "without region")),
        (("gpt-5.1-qinhao", "azure"), None, (400_000, "guess", "family gpt-5-1")),
        (("gpt-4o-prod", "azure"), None, (128_000, "guess", "family gpt-4o")),
        (("my-gpt-4o", "azure"), None, (128_000, "guess", "unknown")),
        (("chat-prod-v2", "azure"), None, (128_000, "guess", "unknown")),
    ],
)
def test_an_azure_deployment_is_a_fact_only_where_its_whole_name_is_a_model(
    asked: Asked, base_url: str | None, expected: Seen
) -> None:
    check(asked, expected, base_url)


@pytest.mark.parametrize(
    ("asked", "window"),
    [
        (("llama3.1", "ollama"), 131_072),
        (("llama3.1:8b-instruct-q4_K_M", "ollama"), 131_072),
        (("gemma3:1b-it-qat", "ollama"), 32_768),
        (("gemma3:4b", "ollama"), 131_072),
        (("qwen3:32b-q8_0", "ollama"), 40_960),
        (("qwen2.5vl:7b", "ollama"), 128_000),
        (("deepseek-r1:671b", "ollama"), 163_840),
        (("llama2:13b-chat-q4_0", "ollama"), 4_096),
        (("gpt-oss:latest", "ollama"), 131_072),
        (("mistral:7b-instruct-v0.3-q4_K_M", None), 32_768),
        (("bartowski/Meta-Llama-3.1-8B-Instruct-GGUF", None), 131_072),
        (("lmstudio-community/Qwen3-30B-A3B-Instruct-2507-GGUF", None), 262_144),
        (("unsloth/gemma-3-27b-it-GGUF:Q6_K", None), 131_072),
        (("bartowski/google_gemma-3-27b-it-GGUF", None), 131_072),
        (("mlx-community/Llama-3.3-70B-Instruct-4bit", None), 131_072),
        (("mlx-community/gpt-oss-20b-MXFP4-Q8", None), 131_072),
        (("Qwen3.6-35B-A3B-UD-Q4_K_XL.gguf", None), 262_144),
        (("Mistral-7B-Instruct-v0.3.Q5_K_S.gguf", None), 32_768),
        (("DeepSeek-R1-Distill-Qwen-14B-Q4_K_M.gguf", "llama.cpp"), 131_072),
        (("Qwen/Qwen3-235B-A22B-Thinking-2507-FP8", "vllm"), 262_144),
        (("meta-llama/Llama-3.1-8B-Instruct", "hosted_vllm"), 131_072),
        (("google/gemma-4-26B-A4B-it", "sglang"), 262_144),
        (("Qwen/Qwen2.5-Coder-32B-Instruct-AWQ", None), 32_768),
        (("qwen2.5-coder:32b", "openai-compatible"), 32_768),
    ],
)
def test_a_file_of_open_weights_has_the_native_window_as_an_upper_bound(asked: Asked, window: int) -> None:
    answer = REGISTRY.lookup(*asked)

    assert (answer.context_window, answer.confidence, answer.upper_bound) == (window, "fact", True)
    assert answer.how.startswith("open weights, family ")


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("qwen3:13b", 40_960),
        ("qwen2.5-coder:33b", 32_768),
        ("gpt-oss:30b", 131_072),
        ("llama3.1:9b-instruct-q4_0", 131_072),
        ("Qwen3-Coder-30B-A3B-Instruct-heretic-Q4_K_M.gguf", 262_144),
        ("llama3.3-acme:70b", 131_072),
    ],
)
def test_a_size_that_does_not_exist_and_a_word_more_are_guesses(model: str, window: int) -> None:
    check((model, "ollama"), (window, "guess", "family "))


def test_ollamas_own_service_is_not_a_machine_at_home() -> None:
    answer = REGISTRY.lookup("gpt-oss:120b-cloud", "ollama")

    assert (answer.provider, answer.model, answer.upper_bound) == ("ollama-cloud", "gpt-oss:120b", False)
    assert (answer.context_window, answer.confidence) == (131_072, "fact")


@pytest.mark.parametrize(
    ("model", "provider", "window", "cap"),
    [
        ("claude-opus-4.6", "github-copilot", 200_000, 168_000),
        ("claude-opus-4-6", "anthropic", 1_000_000, None),
        ("gpt-5-mini", "copilot", 264_000, 128_000),
        ("gpt-5-mini", "openai", 400_000, 272_000),
        ("gpt-6-sol", "openai-codex", 272_000, None),
        ("gpt-6-sol", "openai", 1_050_000, 922_000),
    ],
)
def test_one_model_has_the_window_of_whoever_serves_it(
    model: str, provider: str, window: int, cap: int | None
) -> None:
    answer = REGISTRY.lookup(model, provider)

    assert (answer.context_window, answer.input_limit, answer.confidence) == (window, cap, "fact")


def test_a_model_that_a_named_gateway_does_not_list_is_a_guess_no_larger_than_any_row() -> None:
    smallest = min(row.context for row in REGISTRY.rows() if row.id == "anthropic/claude-opus-4.6")

    for provider in ("acme-gateway", "github-copilot-enterprise", "groq"):
        answer = REGISTRY.lookup("claude-opus-4.6", provider)

        assert answer.confidence == "guess"
        assert answer.context_window <= smallest


def test_a_disputed_cell_answers_the_smaller_number() -> None:
    answer = REGISTRY.lookup("deepseek-chat", "deepseek")

    assert (answer.context_window, answer.confidence) == (131_072, "disputed")


@pytest.mark.parametrize(
    "model",
    ["gpt-7", "claude-opus-9", "llama-9-70b-instruct", "gpt-4x", "gpt-45", "o9", "claude", "qwen", "4o",
     "абв", "gpt-4o模型", "gpt-4o\x00", "🤖", "gpt-image-1", "text-embedding-3-large", "prod-chat",
     "acme/gpt-5", "grok-99", "deepseek-v33", "gemini-9-ultra", "claude-opus-4-6-heretic", "gpt-5-acme",
     "kimi-k2.6-v2", "mixtral-99"],
)  # fmt: skip
def test_no_number_of_a_model_that_nobody_knows_is_more_than_a_guess(model: str) -> None:
    assert seen((model, None))[1] == "guess"


@pytest.mark.parametrize(
    ("model", "provider", "base_url", "window"),
    [
        ("acme-large", None, None, 128_000),
        ("acme-large", "openrouter", None, 128_000),
        ("acme-large", "lmstudio", None, 32_768),
        ("acme-large", None, "http://localhost:8080/v1", 32_768),
        ("acme-large", "openai", "http://127.0.0.1:11434/v1", 32_768),
        ("acme-large", None, "http://[::1]:8000", 32_768),
    ],
)
def test_a_model_that_nobody_knows_is_a_guess_of_128000_and_of_less_on_ones_own_machine(
    model: str, provider: str | None, base_url: str | None, window: int
) -> None:
    check((model, provider), (window, "guess", "unknown model"), base_url)


SOME = REGISTRY.rows()[::97]
PIECES = st.sampled_from(
    [piece for row in SOME for piece in (row.id, row.provider, row.id.rpartition("/")[2])]
    + [
        "/",
        ":",
        "-",
        "@",
        "[1m]",
        ":free",
        "-latest",
        "-20250101",
        "us.",
        "Q4_K_M",
        ".gguf",
        "-GGUF",
        ":8b",
        "x",
    ]
)


@given(st.lists(PIECES, max_size=5).map("".join), st.none() | PIECES, st.booleans())
def test_the_limits_of_any_answer_fit_its_window(model: str, provider: str | None, at_home: bool) -> None:
    answer = REGISTRY.lookup(model, provider, "http://localhost:1234/v1" if at_home else None)

    assert answer.context_window >= 1000
    assert answer.input_limit is None or 0 < answer.input_limit < answer.context_window
    assert answer.output_limit is None or 0 < answer.output_limit < answer.context_window


def test_every_row_is_found_by_its_own_name_and_behind_its_providers() -> None:
    rows = [row for row in REGISTRY.rows() if row.provider != "open-weights"][::7]

    for row in rows:
        window, confidence = row.context, "disputed" if row.disputed else "fact"
        if row.is_router:
            window, confidence = min(row.context, FALLBACK_WINDOW), "guess"
        for asked in (
            (row.id, row.provider),
            (f"{row.provider}/{row.id}", None),
            (row.id.upper(), row.provider),
        ):
            assert seen(asked)[:2] == (window, confidence), asked
