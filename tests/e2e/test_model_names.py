"""`models/lookup` with each form of a model's name, over the wire."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.conftest import Spawn
from tests.support.client import Daemon

FORMS: dict[str, tuple[dict[str, str], int, str]] = {
    "dated": ({"model": "claude-opus-4-5-20251101"}, 200_000, "fact"),
    "latest": ({"model": "claude-opus-4-5-latest", "provider": "anthropic"}, 200_000, "fact"),
    "dashes for dots": ({"model": "gpt-5-2", "provider": "azure"}, 400_000, "fact"),
    "word order": ({"model": "claude-4.5-sonnet"}, 200_000, "fact"),
    "a gateway": ({"model": "openrouter/x-ai/grok-4.3"}, 1_000_000, "fact"),
    "two gateways": ({"model": "litellm_proxy/openrouter/anthropic/claude-haiku-4.5"}, 200_000, "fact"),
    "a variant": ({"model": "openai/gpt-5:online", "provider": "openrouter"}, 400_000, "disputed"),
    "a selector": ({"model": "claude-sonnet-4-5[1m]"}, 1_000_000, "fact"),
    "Bedrock": ({"model": "us.anthropic.claude-sonnet-4-5-20250929-v1:0"}, 200_000, "fact"),
    "an ARN": (
        {"model": "arn:aws:bedrock:us-east-1:123:inference-profile/us.anthropic.claude-opus-4-7"},
        1_000_000,
        "fact",
    ),
    "an opaque ARN": ({"model": "arn:aws:bedrock:us-east-1:123:provisioned-model/ab"}, 128_000, "guess"),
    "Vertex": ({"model": "claude-opus-4-1@20250805", "provider": "vertex_ai"}, 200_000, "fact"),
    "an Azure deployment": ({"model": "gpt-5.1-qinhao", "provider": "azure"}, 400_000, "guess"),
    "ollama": ({"model": "qwen2.5-coder:32b-instruct-q4_K_M", "provider": "ollama"}, 32_768, "fact"),
    "a file": ({"model": "Meta-Llama-3.3-70B-Instruct-Q5_K_M.gguf"}, 131_072, "fact"),
    "MLX": ({"model": "mlx-community/Qwen3.6-27B-4bit"}, 262_144, "fact"),
    "Copilot": ({"model": "claude-opus-4.6", "provider": "github-copilot"}, 200_000, "fact"),
    "a ChatGPT plan": ({"model": "chatgpt/gpt-6-sol"}, 272_000, "fact"),
    "an endpoint": (
        {"model": "gpt-5.4", "base_url": "https://acme.openai.azure.com/openai/v1"},
        1_050_000,
        "fact",
    ),
    "unknown, hosted": ({"model": "acme/unheard-of-9"}, 128_000, "guess"),
    "unknown, at home": ({"model": "unheard-of", "base_url": "http://localhost:8080/v1"}, 32_768, "guess"),
    "any script": ({"model": "模型-四"}, 128_000, "guess"),
    "NUL": ({"model": "gpt-4o\x00"}, 128_000, "guess"),
    "as long as the wire takes": ({"model": "x" * 4096}, 128_000, "guess"),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_model_is_found_by_every_form_of_its_name(daemon: Daemon, form: str) -> None:
    asked, window, confidence = FORMS[form]

    found = daemon.call("models/lookup", **asked)

    assert (found["context_window"], found["confidence"]) == (window, confidence)
    assert found["how"]
    assert found["source"]


def test_a_file_of_open_weights_is_an_upper_bound_and_a_hosted_model_is_none(daemon: Daemon) -> None:
    local = daemon.call("models/lookup", model="gpt-oss:20b", provider="ollama")
    hosted = daemon.call("models/lookup", model="openai/gpt-oss-20b", provider="groq")

    assert (local["upper_bound"], hosted["upper_bound"]) == (True, False)


def test_the_list_of_one_providers_models_holds_its_windows_and_prices(daemon: Daemon) -> None:
    rows = daemon.call("models/list", provider="claude-code")["models"]

    assert {row["provider"] for row in rows} == {"anthropic"}
    assert {row["model"]: row["context_window"] for row in rows}["claude-opus-4-6"] == 1_000_000


def test_a_mistake_in_models_toml_is_told_at_the_start_of_a_session_and_the_rest_is_in_force(
    spawn: Spawn, home: Path
) -> None:
    config = home.parent / "config" / "compactd"
    config.mkdir(parents=True)
    (config / "models.toml").write_text(
        "[[model]]\nmatch = 'gpt-4o'\ncontext = 'many'\n\n[[model]]\nmatch = 'o3'\ncontext = 9000\n"
    )
    daemon = spawn()

    started = daemon.call("session/start", model="openai/o3")

    assert started["context_window"] == 9000
    assert started["token_usage"]["context_window_confidence"] == "override"
    assert "models.toml: line 3: context: expected a whole number, got str" in started["warnings"]
    assert daemon.call("models/lookup", model="gpt-4o")["context_window"] == 128_000


ROUTERS = (
    "auto",
    "openrouter/auto",
    "openrouter/openrouter/free",
    "kilo/kilo-auto/frontier",
    "azure/model-router",
    "nano-gpt/auto-model-premium",
    "trustedrouter/fast",
    "github-copilot/auto",
    "cursor/auto",
)


@pytest.mark.parametrize("name", ROUTERS)
def test_a_routers_word_for_pick_one_for_me_is_never_a_fact(daemon: Daemon, name: str) -> None:
    found = daemon.call("models/lookup", model=name)

    assert found["confidence"] == "guess"
    assert found["context_window"] <= 128_000
    assert "router" in found["how"]


def test_a_model_whose_name_holds_such_a_word_is_still_one(daemon: Daemon) -> None:
    assert daemon.call("models/lookup", model="openai-codex/codex-auto-review")["confidence"] == "fact"
    assert daemon.call("models/lookup", model="claude-opus-4-5", provider="anthropic")["confidence"] == "fact"


def test_the_list_of_models_comes_in_pages_if_it_is_asked_for_so(daemon: Daemon) -> None:
    whole = daemon.call("models/list", provider="openrouter")
    pages, start = [], {}
    while True:
        page = daemon.call("models/list", provider="openrouter", limit=100, **start)
        pages.append(page["models"])
        if "next" not in page:
            break
        start = {"from": page["next"]}

    assert "next" not in whole
    assert [len(page) for page in pages[:-1]] == [100] * (len(pages) - 1)
    assert [model for page in pages for model in page] == whole["models"]
    [auto] = [model for model in whole["models"] if model["model"] == "openrouter/auto"]
    assert auto["confidence"] == "guess"
    everything = daemon.call("models/list", limit=3)
    assert len(daemon.call("models/list", limit=3, **{"from": everything["next"]})["models"]) == 3
    assert daemon.call("models/list", limit=3, **{"from": "zzzz/none"}) == {"models": [], "observed": []}


def test_every_window_is_forgotten_only_if_that_is_said(daemon: Daemon) -> None:
    for given in ({}, {"all": False}, {"model": "gpt-4o", "all": True}):
        refused = daemon.refusal("models/forget", **given)
        assert refused.code == -32602
        assert "`all: true`" in refused.message
    assert daemon.call("models/forget", all=True) == {"forgotten": 0}
    assert daemon.call("models/forget", provider="openai") == {"forgotten": 0}
