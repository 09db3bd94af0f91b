"""Which rules apply to which model. The numbers are those of the sources that the module names."""

from __future__ import annotations

import pytest

from compactd.core.cost.cache_rules import cache_rules, has_breakpoints


@pytest.mark.parametrize(
    ("provider", "model", "minimum"),
    [
        ("anthropic", "claude-opus-5", 512),
        ("anthropic", "claude-fable-5", 512),
        ("anthropic", "claude-opus-4-8", 1_024),
        ("anthropic", "claude-sonnet-5-5", 1_024),
        ("anthropic", "claude-sonnet-4-5-20250929", 1_024),
        ("anthropic", "claude-opus-4-7", 2_048),
        ("anthropic", "claude-opus-4-6", 4_096),
        ("anthropic", "claude-opus-4-5-20251101", 4_096),
        ("anthropic", "claude-opus-4-1-20250805", 1_024),
        ("anthropic", "claude-haiku-4-5", 4_096),
        ("anthropic", "claude-3-5-haiku-latest", 2_048),
        ("openrouter", "anthropic/claude-opus-4.6", 4_096),
        ("amazon-bedrock", "eu.anthropic.claude-haiku-4-5-20251001-v1:0", 4_096),
        ("amazon-bedrock", "anthropic.claude-opus-4-7-v1", 4_096),
        ("google-vertex-anthropic", "claude-opus-4-7@default", 2_048),
        (None, "claude-haiku-4-5", 4_096),
    ],
)
def test_claude_needs_marks_and_a_minimum_and_reports_what_it_writes(
    provider: str | None, model: str, minimum: int
) -> None:
    rules = cache_rules(provider, model)

    assert rules is not None
    assert (rules.minimum_tokens, rules.lifetime_s) == (minimum, 300.0)
    assert rules.needs_marks
    assert rules.reports_writes


@pytest.mark.parametrize(
    ("model", "breakpoints"),
    [
        ("gpt-5.6", True),
        ("gpt-5.6-sol", True),
        ("openai/gpt-5.6-terra", True),
        ("gpt-5.10", True),
        ("gpt-6", True),
        ("gpt-5.5-pro", False),
        ("gpt-5", False),
        ("gpt-5-2025-08-07", False),
        ("gpt-4.1", False),
        ("gpt-4o-2024-11-20", False),
        ("o3", False),
        ("gpt-oss-120b", False),
    ],
)
def test_openai_bills_writes_from_gpt_5_6_on(model: str, breakpoints: bool) -> None:
    rules = cache_rules("openai", model)

    assert rules is not None
    assert not rules.needs_marks
    assert rules.minimum_tokens == 1_024
    assert rules.reports_writes is breakpoints
    assert has_breakpoints(model) is has_breakpoints(f"openai/{model}") is breakpoints
    assert (rules.keeps_head, rules.head_needs_mark) == (True, breakpoints)
    assert (rules.lifetime_s, rules.step_tokens) == ((1_800.0, 1) if breakpoints else (None, 128))


def test_the_other_caches_and_no_rule_for_a_model_that_nobody_documents() -> None:
    minimums = {
        model: rules.minimum_tokens
        for provider, model in (
            ("google", "gemini-2.5-pro"),
            ("google", "gemini-3.8-flash"),
            ("google", "gemini-4-argon"),
            ("deepseek", "deepseek-chat"),
            ("amazon-bedrock", "amazon.nova-pro-v1:0"),
        )
        if (rules := cache_rules(provider, model))
    }

    assert minimums == {
        "gemini-2.5-pro": 2_048,
        "gemini-3.8-flash": 4_096,
        "gemini-4-argon": 4_096,
        "deepseek-chat": 64,
        "amazon.nova-pro-v1:0": 1_000,
    }
    assert cache_rules("amazon-bedrock", "qwen.qwen3-coder-480b-a35b-v1:0") is None
    assert cache_rules("ollama", "qwen2.5-coder:7b") is None
    assert cache_rules(None, "") is None
    assert not any(map(has_breakpoints, ("", "claude-opus-5-6", "gemini-6", "my-gpt-6")))
