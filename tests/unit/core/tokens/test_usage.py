"""Every provider's usage report becomes the same value."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactd.core.tokens.usage import (
    MAX_TOKENS,
    billed_input,
    context_size,
    normalise,
    sent_size,
    visible_output,
)
from compactd.protocol.errors import InvalidParams
from compactd.protocol.messages import SummaryUsage, Usage


def read(**fields: object) -> Usage:
    return normalise(msgspec.json.encode(fields))[0]


THE_SAME = Usage(
    input_tokens=100, output_tokens=50, cache_read_tokens=800, cache_write_tokens=60, reasoning_tokens=20
)


@pytest.mark.parametrize(
    "report",
    [
        pytest.param(
            {
                "input_tokens": 100,
                "output_tokens": 50,
                "cache_read_tokens": 800,
                "cache_write_tokens": 60,
                "reasoning_tokens": 20,
            },
            id="ours",
        ),
        pytest.param(
            {"input": 100, "output": 50, "reasoning": 20, "cache": {"read": 800, "write": 60}}, id="opencode"
        ),
        pytest.param(
            {"input": 100, "output": 50, "cacheRead": 800, "cacheWrite": 60, "reasoning": 20}, id="pi"
        ),
        pytest.param(
            {"input": 100, "output": 50, "cache_read": 800, "cache_write": 60, "reasoning": 20}, id="neutral"
        ),
        pytest.param(
            {
                "prompt_tokens": 960,
                "completion_tokens": 50,
                "total_tokens": 1010,
                "prompt_tokens_details": {"cached_tokens": 800, "cache_write_tokens": 60, "audio_tokens": 0},
                "completion_tokens_details": {"reasoning_tokens": 20},
            },
            id="openai chat",
        ),
        pytest.param(
            {
                "prompt_tokens": 960,
                "completion_tokens": 50,
                "cache_creation_input_tokens": 60,
                "cache_read_input_tokens": 800,
                "completion_tokens_details": {"reasoning_tokens": 20},
            },
            id="litellm",
        ),
        pytest.param(
            {
                "input_tokens": 960,
                "input_tokens_details": {"cached_tokens": 800, "cache_write_tokens": 60},
                "output_tokens": 50,
                "output_tokens_details": {"reasoning_tokens": 20},
            },
            id="openai responses",
        ),
        pytest.param(
            {
                "input_tokens": 100,
                "output_tokens": 50,
                "cache_creation_input_tokens": 60,
                "cache_read_input_tokens": 800,
                "cache_creation": {"ephemeral_5m_input_tokens": 60},
                "service_tier": "standard",
                "reasoning_tokens": 20,
            },
            id="anthropic",
        ),
        pytest.param(
            {
                "inputTokens": 100,
                "outputTokens": 50,
                "cacheReadInputTokens": 800,
                "cacheWriteInputTokens": 60,
                "reasoningTokens": 20,
            },
            id="bedrock",
        ),
    ],
)
def test_the_same_request_reads_the_same_in_every_shape(report: dict[str, object]) -> None:
    assert normalise(msgspec.json.encode(report)) == (THE_SAME, True)


def test_geminis_prompt_includes_its_cache_and_its_candidates_exclude_thoughts() -> None:
    seen = read(
        promptTokenCount=900,
        cachedContentTokenCount=800,
        candidatesTokenCount=30,
        thoughtsTokenCount=20,
        totalTokenCount=950,
    )

    assert seen == Usage(input_tokens=100, output_tokens=50, cache_read_tokens=800, reasoning_tokens=20)
    assert read(promptTokenCount=10, toolUsePromptTokenCount=5) == Usage(input_tokens=15)


def test_ollama_reports_what_it_evaluated() -> None:
    assert read(prompt_eval_count=26, eval_count=298, done=True) == Usage(input_tokens=26, output_tokens=298)


def test_deepseek_codex_and_the_ai_sdk_count_the_cache_in_the_input() -> None:
    wanted = Usage(input_tokens=100, output_tokens=5, cache_read_tokens=800)

    assert read(prompt_tokens=900, completion_tokens=5, prompt_cache_hit_tokens=800) == wanted
    assert read(input_tokens=900, output_tokens=5, cached_input_tokens=800) == wanted
    assert read(inputTokens=900, outputTokens=5, cachedInputTokens=800) == wanted


def test_more_cached_than_read_leaves_no_input_and_no_more_than_was_read() -> None:
    seen = read(prompt_tokens=100, completion_tokens=1, prompt_tokens_details={"cached_tokens": 150})

    assert seen == Usage(output_tokens=1, cache_read_tokens=100)


LASTING = Usage(input_tokens=100, output_tokens=5, cache_write_tokens=900, cache_write_1h_tokens=600)


@pytest.mark.parametrize(
    "report",
    [
        pytest.param(
            {
                "input_tokens": 100,
                "output_tokens": 5,
                "cache_creation_input_tokens": 900,
                "cache_creation": {"ephemeral_5m_input_tokens": 300, "ephemeral_1h_input_tokens": 600},
            },
            id="anthropic",
        ),
        pytest.param(
            {
                "input_tokens": 100,
                "output_tokens": 5,
                "cache_creation": {"ephemeral_5m_input_tokens": 300, "ephemeral_1h_input_tokens": 600},
            },
            id="anthropic without the sum",
        ),
        pytest.param(
            {
                "prompt_tokens": 1000,
                "completion_tokens": 5,
                "cache_creation_input_tokens": 900,
                "prompt_tokens_details": {"cache_creation_token_details": {"ephemeral_1h_input_tokens": 600}},
            },
            id="litellm",
        ),
        pytest.param(
            {
                "input_tokens": 1000,
                "output_tokens": 5,
                "input_tokens_details": {
                    "cached_tokens": 0,
                    "cache_write_tokens": 900,
                    "cache_write_tokens_details": {"ttl_30m_tokens": 300, "ttl_12h_tokens": 600},
                },
            },
            id="openai responses",
        ),
        pytest.param(
            {
                "inputTokens": 100,
                "outputTokens": 5,
                "cacheWriteInputTokens": 900,
                "cacheDetails": [{"ttl": "5m", "inputTokens": 300}, {"ttl": "1h", "inputTokens": 600}],
            },
            id="bedrock",
        ),
        pytest.param(
            {
                "input_tokens": 100,
                "output_tokens": 5,
                "cache_write_tokens": 900,
                "cache_write_1h_tokens": 600,
            },
            id="ours",
        ),
    ],
)
def test_what_stays_in_the_cache_for_an_hour_is_read_in_every_shape(report: dict[str, object]) -> None:
    assert normalise(msgspec.json.encode(report)) == (LASTING, True)


def test_a_compaction_by_the_provider_is_billed_and_is_no_context() -> None:
    seen = read(
        input_tokens=300,
        output_tokens=70,
        cache_read_input_tokens=40_000,
        cache_creation_input_tokens=9_000,
        iterations=[
            {
                "type": "compaction",
                "input_tokens": 50,
                "cache_read_input_tokens": 40_000,
                "cache_creation": {"ephemeral_1h_input_tokens": 7},
                "output_tokens": 2_000,
            },
            {"type": "message", "input_tokens": 200, "cache_read_input_tokens": 40_000, "output_tokens": 60},
            {"type": "advisor_message", "input_tokens": 5_000, "output_tokens": 1},
            {
                "type": "message",
                "input_tokens": 100,
                "cache_creation_input_tokens": 9_000,
                "output_tokens": 10,
            },
        ],
    )

    assert billed_input(seen) == 49_300
    assert context_size(seen) == 9_100
    assert seen.summary == SummaryUsage(
        input_tokens=50,
        output_tokens=2_000,
        cache_read_tokens=40_000,
        cache_write_tokens=7,
        cache_write_1h_tokens=7,
    )
    # A client may send back what compactd made of it.
    assert normalise(msgspec.json.encode(seen)) == (seen, True)


@pytest.mark.parametrize("iterations", [None, [], [{"type": "message", "input_tokens": 7}], [{"type": "x"}]])
def test_one_iteration_says_nothing_new(iterations: object) -> None:
    assert read(input_tokens=7, iterations=iterations) == Usage(input_tokens=7)


def test_what_the_provider_cleared_was_sent_and_not_read() -> None:
    edits = [{"type": "clear_tool_uses_20250919", "cleared_input_tokens": 50}, {"cleared_input_tokens": 20}]
    seen = read(input_tokens=30, output_tokens=1, context_management={"applied_edits": edits})

    assert (context_size(seen), sent_size(seen), seen.cleared_tokens) == (30, 100, 70)
    assert normalise(msgspec.json.encode(seen)) == (seen, True)


def test_a_part_is_never_larger_than_its_whole() -> None:
    seen = read(
        input_tokens=10,
        output_tokens=5,
        cache_creation_input_tokens=100,
        cache_creation={"ephemeral_5m_input_tokens": 900, "ephemeral_1h_input_tokens": 700},
        output_tokens_details={"thinking_tokens": 9},
        iterations=[{"type": "message", "input_tokens": 999}],
    )

    assert seen == Usage(
        input_tokens=10,
        output_tokens=5,
        cache_write_tokens=100,
        cache_write_1h_tokens=100,
        reasoning_tokens=5,
    )


def test_null_is_absent_and_zero_is_a_report() -> None:
    assert normalise(b'{"input_tokens": 7, "output_tokens": null}') == (Usage(input_tokens=7), False)
    assert normalise(b'{"input_tokens": 7, "output_tokens": 0}') == (Usage(input_tokens=7), True)
    assert normalise(b'{"prompt_tokens": 7, "prompt_tokens_details": null}') == (Usage(input_tokens=7), False)
    assert normalise(b"{}") == (Usage(), False)


def test_the_window_is_taken_from_the_report_where_it_names_one() -> None:
    assert read(input_tokens=1, context_window=200000).context_window == 200000
    assert read(input_tokens=1, context_window=0).context_window is None


def test_the_context_is_input_and_cache_and_the_visible_answer_is_without_reasoning() -> None:
    assert context_size(THE_SAME) == 960
    assert visible_output(THE_SAME) == 30
    assert visible_output(Usage(output_tokens=5, reasoning_tokens=9)) == 0


@pytest.mark.parametrize(
    ("report", "path"),
    [
        (b'{"input_tokens": -1}', "$.usage.input_tokens"),
        (b'{"prompt_tokens": 1, "completion_tokens": "12"}', "$.usage.completion_tokens"),
        (b'{"prompt_tokens": true}', "$.usage.prompt_tokens"),
        (b'{"input": 1.5}', "$.usage.input"),
        (b'{"input": 1e300}', "$.usage.input"),
        (b'{"eval_count": 9007199254740993}', "$.usage.eval_count"),
        (
            b'{"prompt_tokens": 1, "prompt_tokens_details": {"cached_tokens": []}}',
            "$.usage.prompt_tokens_details.cached_tokens",
        ),
        (b'{"prompt_tokens": 1, "prompt_tokens_details": 5}', "$.usage.prompt_tokens_details"),
        (b'{"input": 1, "cache": {"read": -5}}', "$.usage.cache.read"),
        (b'{"input_tokens": 1, "iterations": {}}', "$.usage.iterations"),
        (b'{"input_tokens": 1, "iterations": [4]}', "$.usage.iterations[0]"),
        (
            b'{"input_tokens": 1, "iterations": [{"type": "message", "input_tokens": -4}]}',
            "$.usage.iterations[0].input_tokens",
        ),
        (
            b'{"input_tokens": 1, "cache_creation": {"ephemeral_1h_input_tokens": -1}}',
            "$.usage.cache_creation.ephemeral_1h_input_tokens",
        ),
        (b"[]", "$.usage"),
        (b"12", "$.usage"),
        (b'{"input_tokens": ', "$.usage"),
    ],
)
def test_a_number_that_cannot_be_is_refused_with_its_path(report: bytes, path: str) -> None:
    with pytest.raises(InvalidParams) as refused:
        normalise(report)

    assert refused.value.data["path"] == path


def test_the_path_begins_where_the_caller_says() -> None:
    with pytest.raises(InvalidParams) as refused:
        normalise(b'{"output_tokens": -2}', "$.messages[3].usage")

    assert refused.value.data["path"] == "$.messages[3].usage.output_tokens"


def test_a_whole_number_with_a_point_is_a_number() -> None:
    assert read(input_tokens=12.0, output_tokens=3e2) == Usage(input_tokens=12, output_tokens=300)


NAMES = st.sampled_from(
    (
        *("input_tokens", "output_tokens", "prompt_tokens", "completion_tokens", "prompt_tokens_details"),
        *("input", "output", "cache", "cacheRead", "reasoning", "eval_count", "inputTokens"),
        *("promptTokenCount", "candidatesTokenCount", "cachedContentTokenCount", "cachedInputTokens"),
    )
)
NUMBERS = (
    st.none()
    | st.booleans()
    | st.integers(-10, MAX_TOKENS + 10)
    | st.floats(allow_nan=False, allow_infinity=False)
)
JSON = st.dictionaries(
    NAMES, NUMBERS | st.text(max_size=3) | st.dictionaries(NAMES | st.just("cached_tokens"), NUMBERS)
)


@given(JSON)
def test_any_report_is_read_with_no_part_negative_or_refused_with_a_path(report: dict[str, object]) -> None:
    try:
        usage, _ = normalise(msgspec.json.encode(report))
        parts = (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens)
        path = "$.usage"
    except InvalidParams as refused:
        parts = (0,)
        path = str(refused.data["path"])

    assert min(parts) >= 0
    assert path.startswith("$.usage")
