"""The packaged models and the user's own."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from compactd.catalogue import Catalogue, read_overrides, read_rows
from compactd.core.model_names import key_of
from compactd.core.registry import Row

ROOT = Path(__file__).resolve().parent.parent
CATALOGUE = Catalogue()


def test_every_packaged_row_could_be_believed() -> None:
    rows = read_rows()

    assert len(rows) > 3000
    assert [row for row in rows if row.context < 1024] == []
    assert [row for row in rows if row.input is not None and not 0 < row.input < row.context] == []
    assert [row for row in rows if row.output is not None and not 0 < row.output < row.context] == []
    assert [row for row in rows if not row.src] == []


def test_the_packaged_rows_are_sorted_and_each_model_is_there_once() -> None:
    rows = read_rows()

    assert [(row.provider, row.id) for row in rows] == sorted((row.provider, row.id) for row in rows)
    assert len({(row.provider, key_of(row.id)) for row in rows}) == len(rows)


def test_the_file_holds_one_model_a_line_in_the_order_that_a_build_writes() -> None:
    file = ROOT / "server" / "compactd" / "data" / "models.jsonl"

    assert msgspec.json.Encoder().encode_lines(read_rows()) == file.read_bytes()
    assert file.stat().st_size <= 1_500_000


@pytest.mark.parametrize(
    ("model", "provider", "window", "cap", "output"),
    [
        # registry.md: a million only with the context-1m beta; models.dev of August 2026 says otherwise.
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


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("[[model", "models.toml cannot be read"),
        ("[model]\nmatch = 'x'\n", "two brackets"),
        ("[[model]]\ncontext = 5\n", "model 1"),
        ("[[model]]\nmatch = 'x'\ncontext = 'many'\n", "context"),
        ("[[model]]\nmatch = 'x'\ncontext = 0\n", "above 0"),
        ("\udcff", "models.toml cannot be read"),
    ],
)
def test_a_users_file_that_is_wrong_is_told_and_stops_no_lookup(
    content: str, told: str, tmp_path: Path
) -> None:
    file = tmp_path / "models.toml"
    file.write_bytes(content.encode("utf-8", "surrogateescape"))
    catalogue = Catalogue(file)

    assert catalogue.lookup("gpt-4o").context_window == 128_000
    assert len(catalogue.warnings) == 1
    assert told in catalogue.warnings[0]


def test_one_wrong_model_leaves_the_others_in_force(tmp_path: Path) -> None:
    file = tmp_path / "models.toml"
    file.write_text("[[model]]\nmatch = 'a'\ncontext = -1\n[[model]]\nmatch = 'b'\ncontext = 9000\n", "utf-8")

    overrides, warnings = read_overrides(file)

    assert [override.match for override in overrides] == ["b"]
    assert len(warnings) == 1


# --- the builder ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def builder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_registry", ROOT / "tools" / "build_registry.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["build_registry"] = module
    sys.path.append(str(ROOT / "tools"))
    spec.loader.exec_module(module)
    return module


def rows_by_id(rows: dict[tuple[str, str], Row]) -> dict[str, Row]:
    return {row.id: row for row in rows.values()}


def test_sources_that_differ_leave_the_smaller_number_and_say_so(builder: ModuleType) -> None:
    known = builder.Known

    def models(**windows: tuple[int, int | None, int | None]) -> list[object]:
        return [
            known(provider="xai", id=name, context=context, input=cap, output=output)
            for name, (context, cap, output) in windows.items()
        ]

    rows = rows_by_id(
        builder.build(
            {
                "models.dev": models(
                    same=(200_000, None, 5000),
                    rounded=(1_048_576, None, 5000),
                    differs=(200_000, None, 5000),
                    capped=(400_000, 272_000, 128_000),
                    uncapped=(400_000, None, 128_000),
                    empty=(0, None, None),
                    endless=(8192, None, 8192),
                ),
                "litellm": models(
                    same=(200_000, None, None),
                    rounded=(1_000_000, None, None),
                    differs=(128_000, None, None),
                    capped=(272_000, None, None),
                    uncapped=(272_000, None, None),
                    endless=(8192, None, 4096),
                    only=(64_000, None, 64_000),
                ),
                "codex": [],
                "tokencost": models(same=(1, None, None), gone=(32_000, None, 4096)),
            }
        )
    )

    assert {name: (row.context, row.input, row.output, row.disputed) for name, row in rows.items()} == {
        "same": (200_000, None, 5000, False),
        "rounded": (1_048_576, None, 5000, False),
        "differs": (128_000, None, 5000, True),
        "capped": (400_000, 272_000, 128_000, False),
        "uncapped": (400_000, 272_000, 128_000, False),
        "endless": (8192, None, 4096, False),
        "only": (64_000, None, None, False),
        "gone": (32_000, None, 4096, False),
    }
    assert [name for name, row in rows.items() if row.retired] == ["gone"]


def test_a_merge_deletes_no_row_and_is_the_same_the_second_time(builder: ModuleType) -> None:
    old = {
        ("xai", "a"): Row(provider="xai", id="a", context=2000),
        ("xai", "b"): Row(provider="xai", id="b", context=3000),
    }
    new = {
        ("xai", "b"): Row(provider="xai", id="b", context=4000),
        ("xai", "c"): Row(provider="xai", id="c", context=5000),
    }

    once = builder.merged(old, new)
    twice = builder.merged({(row.provider, row.id): row for row in once}, new)

    assert [(row.id, row.context, row.retired) for row in once] == [
        ("a", 2000, True),
        ("b", 4000, False),
        ("c", 5000, False),
    ]
    assert twice == once


def test_litellms_prices_become_dollars_for_a_million_with_their_steps(builder: ModuleType) -> None:
    entry = {
        "input_cost_per_token": 2.5e-06,
        "output_cost_per_token": 1.5e-05,
        "cache_read_input_token_cost": 2.5e-07,
        "input_cost_per_token_above_272k_tokens": 5e-06,
        "output_cost_per_token_above_272k_tokens": 2.25e-05,
    }

    pricing = sys.modules["registry_sources"].litellm_pricing(entry)

    assert (pricing.input, pricing.output, pricing.cache_read) == (2.5, 15.0, 0.25)
    assert [(step.above, step.input, step.output) for step in pricing.steps] == [(272_000, 5.0, 22.5)]
