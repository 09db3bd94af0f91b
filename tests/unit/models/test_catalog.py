"""The catalogue: the packaged models plus the user's own."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from compactd.core.models.names import name_key
from compactd.core.models.open_weights import OPEN_WEIGHTS
from compactd.models.catalog import Catalogue

ROOT = Path(__file__).resolve().parents[3]
CATALOGUE = Catalogue()


def test_every_packaged_row_could_be_believed() -> None:
    rows = CATALOGUE.rows()

    assert len(rows) > 10_000
    assert [row for row in rows if row.context < 1024] == []
    assert [row for row in rows if row.input is not None and not 0 < row.input < row.context] == []
    assert [row for row in rows if row.output is not None and not 0 < row.output < row.context] == []
    assert [row for row in rows if not row.src] == []


def test_the_packaged_rows_are_sorted_and_each_model_is_there_once() -> None:
    rows = CATALOGUE.rows()

    assert [(row.provider, row.id) for row in rows] == sorted((row.provider, row.id) for row in rows)
    assert len({(row.provider, name_key(row.id)) for row in rows}) == len(rows)
    assert [row for row in rows if row.provider == OPEN_WEIGHTS and not row.sizes] == []
    assert [row for row in rows if not row.provider.isascii()] == []
    assert [row for row in rows if set('"\\\n') & set(row.provider + row.id + (row.canonical or ""))] == []


def test_the_file_holds_one_model_a_line_in_the_order_that_a_build_writes() -> None:
    file = ROOT / "server" / "compactd" / "models" / "data" / "models.jsonl"

    assert msgspec.json.Encoder().encode_lines(CATALOGUE.rows()) == file.read_bytes()
    assert file.stat().st_size <= 2_500_000


@pytest.mark.parametrize(
    ("model", "provider", "window", "cap", "output"),
    [
        # Anthropic: a million only with the context-1m beta; models.dev of August 2026 says otherwise.
        ("claude-sonnet-4-5", None, 200_000, None, 64_000),
        ("claude-sonnet-4-5-20250929", "anthropic", 200_000, None, 64_000),
        ("claude-opus-4-6", "anthropic", 1_000_000, None, 128_000),
        ("claude-3-opus-20240229", "anthropic", 200_000, None, 4096),
        ("claude-3-5-sonnet-20241022", None, 200_000, None, 8192),
        ("claude-sonnet-4-20250514", None, 200_000, None, 64_000),
        ("claude-opus-4-1", "anthropic", 200_000, None, 32_000),
        ("openai/gpt-4o", None, 128_000, None, 16_384),
        ("gpt-5-2025-08-07", "openai", 400_000, 272_000, 128_000),
        ("gpt-6-sol", "openai", 1_050_000, 922_000, 128_000),
        ("gpt-6-sol", "openai-codex", 272_000, None, None),
        ("gpt-4-0613", "openai", 8192, None, 4096),
        ("gemini-2.5-pro", "google", 1_048_576, None, 65_536),
        ("openrouter/anthropic/claude-haiku-4.5", None, 200_000, None, 64_000),
        ("gpt-5-mini", "github-copilot", 264_000, 128_000, 64_000),
        ("databricks-claude-sonnet-4-5", "databricks", 200_000, None, 64_000),
    ],
)
def test_the_window_of_a_known_model_is_a_fact(
    model: str, provider: str | None, window: int, cap: int | None, output: int | None
) -> None:
    answer = CATALOGUE.lookup(model, provider)

    assert (answer.context_window, answer.input_limit, answer.output_limit) == (window, cap, output)
    assert answer.confidence == "fact"


def test_a_retired_model_says_so_and_a_present_one_does_not() -> None:
    assert CATALOGUE.lookup("claude-3-opus-20240229").retired
    assert not CATALOGUE.lookup("claude-opus-4-6").retired


def test_a_model_has_its_price_for_a_million_tokens_and_its_step() -> None:
    pricing = CATALOGUE.lookup("gpt-5.4", "openai").pricing

    assert pricing is not None
    assert (pricing.input, pricing.output, pricing.cache_read) == (2.5, 15.0, 0.25)
    assert [(step.above, step.input) for step in pricing.steps] == [(272_000, 5.0)]


def test_a_model_without_a_window_is_no_row() -> None:
    assert CATALOGUE.lookup("gpt-image-1", "openai").confidence == "guess"


def test_the_same_question_is_answered_once() -> None:
    assert CATALOGUE.lookup("gpt-4o") is CATALOGUE.lookup("gpt-4o")


def test_a_thousand_models_do_not_push_out_wrong_answers() -> None:
    answers = [CATALOGUE.lookup(f"acme-{number}").model for number in range(1000)]

    assert answers == [f"acme-{number}" for number in range(1000)]
    assert CATALOGUE.lookup("gpt-4o").context_window == 128_000


def test_the_users_file_beats_the_packaged_rows(tmp_path: Path) -> None:
    (tmp_path / "models.toml").write_text(
        '[[model]]\nmatch = "gpt-4o"\ncontext = 32000\n\n'
        '[[model]]\nmatch = "qwen3-coder*"\nprovider = "ollama"\ncontext = 16384\noutput = 4096\n',
        "utf-8",
    )
    catalogue = Catalogue(tmp_path / "models.toml")
    mine, local, other = (
        catalogue.lookup("openai/gpt-4o"),
        catalogue.lookup("qwen3-coder:30b", "ollama"),
        catalogue.lookup("qwen/qwen3-coder", "openrouter"),
    )

    assert (mine.context_window, mine.confidence, mine.source) == (32000, "override", "models.toml")
    assert (local.context_window, local.output_limit, local.upper_bound) == (16384, 4096, False)
    assert other.confidence == "fact"
    assert catalogue.warnings == ()


def test_a_users_file_that_is_wrong_is_told_and_stops_no_lookup(tmp_path: Path) -> None:
    (tmp_path / "models.toml").write_text(
        "[[model]]\nmatch = 'x'\ncontext = 0\n[[model]]\nmatch = 'y'\ncontext = 5000", "utf-8"
    )
    catalogue = Catalogue(tmp_path / "models.toml")

    assert catalogue.lookup("gpt-4o").context_window == 128_000
    assert catalogue.lookup("y").context_window == 5000
    assert catalogue.warnings == ("models.toml: line 3: context is 0; it must be above 0",)


def test_a_question_of_a_megabyte_is_answered_and_not_kept() -> None:
    catalogue = Catalogue()
    first = catalogue.lookup("gpt-4o")

    for number in range(300):
        assert catalogue.lookup("x" * 1_000_000 + str(number)).confidence == "guess"

    assert catalogue.lookup("gpt-4o") is first


def test_the_steps_of_an_answer_can_be_told() -> None:
    steps = CATALOGUE.explain("openrouter/anthropic/claude-opus-4.6")

    assert [step.step for step in steps] == ["name", "exact"]
    assert steps[-1].found == "1000000 tokens, fact (models.dev; exact)"
