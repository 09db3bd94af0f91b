"""The reason that a model look-up gives for its answer; and strings that are no model names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactd.core.models.names import MAX_MODEL_NAME_CHARS, keys_of, name_key
from compactd.core.models.registry import FALLBACK_WINDOW, ModelRow, Override, Registry, Tried

ROWS = (
    ModelRow(provider="openai", id="gpt-4o", context=128_000, output=16_384, src=("a",)),
    ModelRow(provider="openai", id="gpt-4", context=8192, src=("a",)),
    ModelRow(provider="openai", id="gpt-5.1", context=400_000, input=272_000, output=128_000, src=("a",)),
    ModelRow(
        provider="github-copilot", id="gpt-5.1", context=264_000, input=128_000, disputed=True, src=("a",)
    ),
    ModelRow(provider="openrouter", id="x-ai/grok-9", context=1_000_000, src=("a",)),
)
REGISTRY = Registry(ROWS)


def seen(model: str) -> tuple[int, str, str | None]:
    """(window, confidence, provider) of the answer."""
    answer = REGISTRY.lookup(model)
    return answer.context_window, answer.confidence, answer.provider


# --- why ------------------------------------------------------------------------------------------------


def test_the_steps_of_a_lookup_can_be_told() -> None:
    assert REGISTRY.explain("openrouter/openai/gpt-5.1-2025-11-13") == (
        Tried(
            "name",
            ("openrouter/openai/gpt-5.1-2025-11-13",),
            "provider openrouter, model openai/gpt-5-1-2025-11-13",
        ),
        Tried("exact", ("openrouter/openai/gpt-5-1-2025-11-13",), "nothing"),
        Tried(
            "provider's variants",
            (
                "openrouter/openai/gpt-5-1-2025-11-13",
                "openrouter/openai/gpt-5-1",
                "openrouter/gpt-5-1",
            ),
            "nothing",
        ),
        Tried("own machine", (), "does not apply"),
        Tried("maker", (), "does not apply"),
        Tried(
            "consensus",
            ("*/gpt-5-1-2025-11-13", "*/gpt-5-1"),
            "264000 tokens, guess (a; consensus of 2, without date)",
        ),
    )


def test_the_users_word_is_the_last_step_told() -> None:
    registry = Registry(ROWS, (Override(match="gpt-4o", context=9000),))

    assert registry.explain("gpt-4o")[-1] == Tried("models.toml", (), "9000 tokens (override gpt-4o)")
    assert [step.step for step in registry.explain("gpt-4")] == ["name", "exact", "provider's variants",
                                                                 "own machine", "maker"]  # fmt: skip


# --- names that are none ----------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["x" * 1_000_000, "gpt-4o" * 200_000, "openai/" * 150_000, "[1m]" * 300_000,
                                   "-" * 1_000_000, "\x00" * 1_000_000, "模" * 300_000])  # fmt: skip
def test_a_name_of_a_megabyte_is_nobodys_and_is_not_kept_whole(model: str) -> None:
    answer = REGISTRY.lookup(model)

    assert (answer.context_window, answer.confidence, answer.how) == (
        FALLBACK_WINDOW,
        "guess",
        "unknown model",
    )
    assert len(answer.model) <= MAX_MODEL_NAME_CHARS + 1


def test_white_space_around_a_name_is_no_part_of_it_however_much_there_is() -> None:
    assert seen(" " * 500_000 + "gpt-4o" + "\n" * 500_000) == (128_000, "fact", "openai")


@pytest.mark.parametrize("model", ["gpt-4o\x00", "gpt\n4o", "gpt-4o\x7f", "gpt-4oé", "gpt-4o型", "ｇｐｔ-4o"])
def test_control_characters_and_letters_of_other_scripts_are_no_separators(model: str) -> None:
    assert seen(model)[:2] == (FALLBACK_WINDOW, "guess")


@given(st.lists(st.text(st.characters(exclude_characters="\n"), max_size=12), max_size=6))
def test_many_keys_together_are_the_same_as_one_by_one(names: list[str]) -> None:
    assert keys_of(names) == [name_key(name) for name in names]
