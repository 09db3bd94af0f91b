"""The tool that builds models.jsonl: how one row is made from several sources."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from compactd.core.models.registry import ModelRow

TOOLS = Path(__file__).resolve().parents[2] / "tools"


@pytest.fixture(scope="module", autouse=True)
def _tools_importable() -> Iterator[None]:
    sys.path.append(str(TOOLS))
    yield
    sys.path.remove(str(TOOLS))


@pytest.fixture(scope="module")
def builder() -> ModuleType:
    return importlib.import_module("build_registry")


def rows_by_id(rows: dict[tuple[str, str], ModelRow]) -> dict[str, ModelRow]:
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
        ("xai", "a"): ModelRow(provider="xai", id="a", context=2000),
        ("xai", "b"): ModelRow(provider="xai", id="b", context=3000),
    }
    new = {
        ("xai", "b"): ModelRow(provider="xai", id="b", context=4000),
        ("xai", "c"): ModelRow(provider="xai", id="c", context=5000),
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

    pricing = importlib.import_module("registry_sources").litellm_pricing(entry)

    assert (pricing.input, pricing.output, pricing.cache_read) == (2.5, 15.0, 0.25)
    assert [(step.above, step.input, step.output) for step in pricing.steps] == [(272_000, 5.0, 22.5)]


def test_a_window_that_models_dev_changed_is_disputed_unless_another_source_confirms_it(
    builder: ModuleType,
) -> None:
    known = builder.Known
    rows = rows_by_id(
        builder.build(
            {
                "models.dev": [
                    known(provider="xai", id="raised", context=1_000_000),
                    known(provider="xai", id="confirmed", context=1_000_000),
                ],
                "models.dev before": [
                    known(provider="xai", id="raised", context=200_000),
                    known(provider="xai", id="confirmed", context=200_000),
                    known(provider="xai", id="dropped", context=32_000),
                ],
                "litellm": [known(provider="xai", id="confirmed", context=1_000_000)],
            }
        )
    )

    assert {name: (row.context, row.disputed, row.retired) for name, row in rows.items()} == {
        "raised": (200_000, True, False),
        "confirmed": (1_000_000, False, False),
        "dropped": (32_000, False, True),
    }


def test_no_row_is_made_of_nonsense(builder: ModuleType) -> None:
    known = builder.Known

    rows = builder.build(
        {
            "models.dev": [
                known(provider="xai", id="nothing", context=0),
                known(provider="xai", id="tiny", context=512),
                known(provider="xai", id="text-embed-1", context=8192),
                known(provider="xai", id="whole", context=8192, input=8192, output=8192),
            ]
        }
    )

    assert [(row.id, row.context, row.input, row.output) for row in rows.values()] == [
        ("whole", 8192, None, None)
    ]


def test_a_chatgpt_plan_gives_no_more_than_codex_catalogue_says(builder: ModuleType) -> None:
    known = builder.Known

    rows = rows_by_id(
        builder.build(
            {
                "codex": [known(provider="openai-codex", id="gpt-6-sol", context=272_000)],
                "litellm": [
                    known(provider="openai-codex", id="gpt-6-sol", context=922_000),
                    known(provider="openai-codex", id="gpt-5.4", context=922_000, output=128_000),
                    known(provider="openai-codex", id="gpt-5.2", context=128_000),
                ],
            }
        )
    )

    assert {name: (row.context, row.disputed) for name, row in rows.items()} == {
        "gpt-6-sol": (272_000, False),
        "gpt-5.4": (272_000, True),
        "gpt-5.2": (128_000, False),
    }


def test_a_family_of_open_weights_has_a_row_for_each_of_its_windows(builder: ModuleType) -> None:
    families = importlib.import_module("registry_families").families

    rows = families(
        {"gemma-3": {"1b": 32_768, "4b": 131_072, "27b": 131_072}, "nemo": {"12b": 1_024_000}},
        {"gemma-3": {"27b": {"a": (131_072, "models.dev")}},
         "nemo": {"12b": {"a": (128_000, "litellm"), "b": (131_072, "models.dev")}},
         "hosted": {None: {"a": (131_072, "litellm"), "b": (128_000, "litellm"), "c": (16_384, "models.dev")},
                    "9b": {"a": (8192, "litellm")}}},
    )  # fmt: skip

    assert [(row.id, row.context, row.sizes, row.disputed, row.src) for row in rows] == [
        ("gemma-3@32768", 32_768, ("1b",), False, ("xinference",)),
        ("gemma-3@131072", 131_072, ("27b", "4b"), False, ("xinference", "models.dev")),
        ("hosted", 128_000, ("9b", ""), True, ("litellm",)),
        ("nemo", 131_072, ("12b",), True, ("xinference", "models.dev", "litellm")),
    ]


def test_a_list_in_a_program_is_read_as_a_minifier_wrote_it() -> None:
    as_json = importlib.import_module("registry_opencode").as_json

    text = as_json(
        """{a:{id:"a",env:['X'],ok:!0,no:!1,n:1e6,f:.5,s:'it\\'s "q"',t:`x{y}`,u:"\\u00e9\\x41"}},more(){}"""
    )

    assert text == (
        '{"a":{"id":"a","env":["X"],"ok":true,"no":false,"n":1000000,"f":0.5,'
        '"s":"it\'s \\"q\\"","t":"x{y}","u":"\\u00e9A"}}'
    )


def test_a_program_that_holds_code_where_the_list_was_is_an_error() -> None:
    opencode = importlib.import_module("registry_opencode")

    with pytest.raises(opencode.NotFound):
        opencode.as_json("{a:function(){return 1}}")


def test_a_file_that_is_not_the_pinned_one_stops_the_build(tmp_path: Path) -> None:
    downloads = importlib.import_module("registry_downloads")
    for pin in downloads.PINS:
        (tmp_path / pin.file).write_bytes(b"something else")

    with pytest.raises(SystemExit, match="has the wrong hash"):
        downloads.fetched(tmp_path, tmp_path)
