"""Short names of models that agents accept."""

from __future__ import annotations

import pytest

from compactd.core.models.aliases import newest
from compactd.core.models.registry import Registry
from compactd.core.models.rows import ModelRow


def row(provider: str, model: str, context: int = 200_000, *, retired: bool = False) -> ModelRow:
    return ModelRow(provider=provider, id=model, context=context, src=("models.dev",), retired=retired)


REGISTRY = Registry(
    [
        row("anthropic", "claude-opus-4-5"),
        row("anthropic", "claude-opus-4-5-20251101"),
        row("anthropic", "claude-opus-5", 1_000_000),
        row("anthropic", "claude-opus-6", 2_000_000, retired=True),
        row("anthropic", "claude-sonnet-4-5"),
        row("google", "gemini-2.5-pro", 1_048_576),
        row("google", "gemini-3.1-pro-preview", 1_048_577),
        row("google", "gemini-3.5-flash", 1_000_001),
        row("google", "gemini-3.5-flash-lite", 1_000_002),
        ModelRow(
            provider="amazon-bedrock",
            id="anthropic.claude-opus-5-v1:0",
            canonical="claude-opus-5",
            context=900_000,
            src=("models.dev",),
        ),
        row("acme", "haiku", 4_242),
    ]
)


@pytest.mark.parametrize(
    ("name", "provider", "model", "window"),
    [
        ("opus", "anthropic", "claude-opus-5", 1_000_000),
        ("Opus", "anthropic", "claude-opus-5", 1_000_000),
        ("anthropic/opus", "anthropic", "claude-opus-5", 1_000_000),
        ("sonnet", "anthropic", "claude-sonnet-4-5", 200_000),
        ("sonnet[1m]", "anthropic", "claude-sonnet-4-5", 1_000_000),
        ("opusplan", "anthropic", "claude-sonnet-4-5", 200_000),
        ("pro", "google", "gemini-3.1-pro-preview", 1_048_577),
        ("flash", "google", "gemini-3.5-flash", 1_000_001),
        ("flash-lite", "google", "gemini-3.5-flash-lite", 1_000_002),
        ("bedrock/opus", "amazon-bedrock", "anthropic.claude-opus-5-v1:0", 900_000),
    ],
)
def test_an_alias_means_the_newest_model_that_is_served(
    name: str, provider: str, model: str, window: int
) -> None:
    found = REGISTRY.lookup(name)

    assert (found.provider, found.model, found.context_window) == (provider, model, window)
    assert found.confidence == "fact"
    assert "alias" in found.how


def test_a_model_that_has_the_name_itself_comes_first() -> None:
    found = REGISTRY.lookup("haiku")

    assert found.context_window == 4_242
    assert "alias" not in found.how


@pytest.mark.parametrize("name", ["fable", "openai/opus", "ollama/opus", "opus-mini", "my-pro"])
def test_what_is_no_alias_here_stays_a_guess(name: str) -> None:
    assert REGISTRY.lookup(name).confidence == "guess"


def test_versions_are_compared_as_numbers() -> None:
    keys = ("grok-4-20", "grok-4-7", "grok-4", "grok-10", "grok-4-7-latest")

    assert newest(keys, r"grok-(\d{1,2}(?:-\d)?)") == "grok-10"
    assert newest(keys[:3], r"grok-(\d{1,2}(?:-\d)?)") == "grok-4-7"
    assert newest((), r"grok-(\d)") is None
