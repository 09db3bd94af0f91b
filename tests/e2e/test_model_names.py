"""`models/lookup` by each form in which a model's name arrives, through the wire."""

from __future__ import annotations

from pathlib import Path

import pytest

from e2e.client import Daemon
from e2e.conftest import Spawn

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
