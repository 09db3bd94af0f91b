"""How models are named: one key for all spellings, providers by any of their names, the parts of a name.

A name arrives as a person or a program wrote it: with a gateway before it, a date or a selector behind it,
dots or dashes in it. What is taken off here never changes which model it is; what might is left to the
steps of the lookup, which say so.
"""

from __future__ import annotations

import re

from msgspec import Struct

FIRST_PARTIES = (
    "anthropic",
    "openai",
    "google",
    "xai",
    "deepseek",
    "mistral",
    "moonshotai",
    "zai",
    "alibaba",
    "minimax",
    "cohere",
    "perplexity",
    "meta",
    "xiaomi",
)
"""Providers that serve the models they make: their rows speak for an id that comes without a provider."""

LOCAL = frozenset({"ollama", "lmstudio", "llama-cpp", "vllm", "mlx", "sglang", "localai", "local"})
"""Servers of open weights that may load less than a model's native window."""

SYNONYMS = {
    "bedrock": "amazon-bedrock",
    "bedrock-converse": "amazon-bedrock",
    "aws": "amazon-bedrock",
    "aws-bedrock": "amazon-bedrock",
    "vertex": "google-vertex",
    "vertex-ai": "google-vertex",
    "vertexai": "google-vertex",
    "gemini": "google",
    "google-ai-studio": "google",
    "google-generative-ai": "google",
    "copilot": "github-copilot",
    "moonshot": "moonshotai",
    "kimi": "moonshotai",
    "z-ai": "zai",
    "zhipu": "zhipuai",
    "together": "togetherai",
    "together-ai": "togetherai",
    "fireworks": "fireworks-ai",
    "chatgpt": "openai-codex",
    "codex": "openai-codex",
    "x-ai": "xai",
    "azure-openai": "azure",
    "azure-ai": "azure",
    "mistralai": "mistral",
    "dashscope": "alibaba",
    "qwen": "alibaba",
    "vercel-ai-gateway": "vercel",
    "cloudflare": "cloudflare-workers-ai",
    "lm-studio": "lmstudio",
    "llamacpp": "llama-cpp",
    "hf": "huggingface",
    "deepseek-ai": "deepseek",
    "zai-org": "zai",
    "minimaxai": "minimax",
    "cohere-chat": "cohere",
}
"""Other names of providers, as LiteLLM, OpenRouter, Hugging Face and agents write them; spelled as keys."""

SIBLINGS = {
    "google-vertex": ("google-vertex-anthropic",),
    "google-vertex-anthropic": ("google-vertex",),
    "azure": ("azure-cognitive-services",),
}
"""Rows to look at besides a provider's own: one service under two names."""

PROXIES = frozenset({"litellm-proxy", "litellm", "proxy", "custom", "openai-compatible"})
"""Names that say how a model is reached, not who serves it."""

HOSTS = (
    ("api.openai.com", "openai"),
    ("chatgpt.com", "openai-codex"),
    ("api.anthropic.com", "anthropic"),
    ("openrouter.ai", "openrouter"),
    ("generativelanguage.googleapis.com", "google"),
    ("aiplatform.googleapis.com", "google-vertex"),
    ("openai.azure.com", "azure"),
    ("services.ai.azure.com", "azure"),
    ("amazonaws.com", "amazon-bedrock"),
    ("githubcopilot.com", "github-copilot"),
    ("api.groq.com", "groq"),
    ("api.mistral.ai", "mistral"),
    ("api.x.ai", "xai"),
    ("api.deepseek.com", "deepseek"),
    ("api.moonshot.ai", "moonshotai"),
    ("api.z.ai", "zai"),
    ("api.together.xyz", "togetherai"),
    ("api.fireworks.ai", "fireworks-ai"),
    ("api.cerebras.ai", "cerebras"),
    ("dashscope-intl.aliyuncs.com", "alibaba"),
    ("dashscope.aliyuncs.com", "alibaba-cn"),
    ("api.perplexity.ai", "perplexity"),
    ("api.minimax.io", "minimax"),
    ("localhost", "local"),
    ("127.0.0.1", "local"),
    ("[::1]", "local"),
)
"""(end of a host's name, provider): the providers' documented API hosts."""

# Patterns are text here and compiled at their first use: this module is imported before the first answer.
_SEPARATORS = r"[^a-z0-9/:@]+"
_SELECTOR = r"\[(\d+)([kKmM])\]$"
_HOST = r"^(?:[A-Za-z][A-Za-z0-9+.-]*://)?(?:[^/@]*@)?(\[[^\]]*\]|[^/:?#]*)"
_DATE = r"[-@](?:20\d{6}|20\d\d-\d\d-\d\d)$"
_OPAQUE_ARNS = ("application-inference-profile/", "provisioned-model/", "imported-model/")


class Name(Struct, frozen=True, kw_only=True):
    """A model's name, taken apart."""

    asked: str
    """As it came."""
    key: str
    """Without selectors and wrappings; empty where nothing can be known from it."""
    provider: str | None
    """Who serves it, by our name for them."""
    named: bool = False
    """The provider was named apart from the model, or is a gateway, not the model's maker."""
    window: int | None = None
    """Tokens, where a selector (`[1m]`, `[200k]`) says so."""
    local: bool = False
    """Served by a program that may load less than the model's window."""


def key_of(model: str) -> str:
    """What all spellings of `model` share: lower case, words joined by `-`; `/`, `:` and `@` are kept."""
    return folded(model).strip("-")


def folded(text: str) -> str:
    """Part of a name, spelled as in keys."""
    return re.sub(_SEPARATORS, "-", text.lower())


def provider_of(name: str) -> str:
    """Our name for a provider."""
    key = key_of(name)
    return SYNONYMS.get(key, key)


def provider_at(base_url: str) -> str | None:
    """Who answers at `base_url`; none where its host is not known."""
    match = re.match(_HOST, base_url.strip())
    host = match.group(1).lower() if match else ""
    for end, provider in HOSTS:
        if host == end or host.endswith("." + end):
            return provider
    return None


def without_date(key: str) -> str:
    """`key` without a date at its end: `-20250929`, `-2024-08-06`, `@20251101`. No shorter numbers."""
    return re.sub(_DATE, "", key) if "20" in key else key


def last_part(key: str) -> str:
    """What stands behind the last `/`."""
    return key.rpartition("/")[2]


def read_name(model: str, provider: str | None, base_url: str | None, known: frozenset[str]) -> Name:
    """Takes a model's name apart; `known` are the providers that have rows.

    The provider is the one that was named, else the one at `base_url`, else a known first segment
    (`openrouter/anthropic/…`, `anthropic:claude-…`), else none.
    """
    text, window = _without_selectors(model.strip().lstrip("~"))
    text = _unwrapped(text)
    key = key_of(text)
    served_by = provider_of(provider) if provider and provider.strip() else None
    if served_by in PROXIES:
        served_by = None
    if served_by is None and base_url:
        served_by = provider_at(base_url)
    named = served_by is not None
    for _ in range(2):
        first, separator, rest = _first_segment(key)
        candidate = SYNONYMS.get(first, first)
        if not separator or not rest:
            break
        if candidate in PROXIES:
            key = rest
        elif served_by is None and (candidate in known or candidate in LOCAL):
            served_by, key = candidate, rest
            named = candidate not in FIRST_PARTIES
            break
        elif candidate == served_by:
            key = rest
        else:
            break
    return Name(
        asked=model, key=key, provider=served_by, named=named, window=window, local=served_by in LOCAL
    )


def _first_segment(key: str) -> tuple[str, str, str]:
    """(before, separator, after) of the first `/`, or of a first `:` where there is none."""
    return key.partition("/") if "/" in key else key.partition(":")


def _without_selectors(text: str) -> tuple[str, int | None]:
    """Claude Code's `[1m]` and `[200k]` off the end, however often; the first one counts."""
    window: int | None = None
    while match := re.search(_SELECTOR, text):
        window = int(match.group(1)) * (1_000_000 if match.group(2) in "mM" else 1_000)
        text = text[: match.start()].rstrip()
    return text, window


def _unwrapped(text: str) -> str:
    """The model inside an ARN, a resource path or the id of a fine-tuned one; empty for an opaque ARN."""
    lower = text.lower()
    if lower.startswith("arn:"):
        return "" if any(part in lower for part in _OPAQUE_ARNS) else text.rpartition("/")[2]
    if lower.startswith("ft:"):
        return text.split(":")[1]
    if lower.startswith("models/"):
        return text[len("models/") :]
    if "publishers/" in lower and "/models/" in lower:
        return text.rpartition("/models/")[2]
    return text


_TOKENIZERS = (
    (r"(?:gpt-oss|gpt-4-?o|gpt-4-[15]|gpt-5|chatgpt-4o|codex-mini|o[134])(?![a-z0-9])", "o200k_base"),
    (r"(?:gpt-4|gpt-3-?5)(?![a-z0-9])", "cl100k_base"),
    (r"gpt|chatgpt|codex", "openai"),
    (r"claude", "claude"),
    (r"gemini|gemma", "gemini"),
    (r"qwen|qwq|qvq", "qwen"),
    (r"deepseek", "deepseek"),
    (r"mi[sx]tral|codestral|devstral|magistral|ministral|pixtral|voxtral", "mistral"),
    (r"llama", "llama"),
    (r"grok", "grok"),
    (r"kimi|moonshot", "kimi"),
    (r"glm", "glm"),
    (r"minimax", "minimax"),
    (r"command|cohere", "cohere"),
    (r"nova", "nova"),
)
"""(words in the last part of a key, tokenizer). OpenAI's encodings are as tiktoken 0.14.0's `model.py` lists
them; it does not know gpt-6, so those are `openai`: their family, not their ranks."""


def tokenizer_of(key: str) -> str | None:
    """The tokenizer of the model with this key: an encoding we can count with, else its family, else none."""
    part = last_part(key)
    for start, tokenizer in _TOKENIZERS:
        for match in re.finditer(start, part):
            if match.start() == 0 or part[match.start() - 1] in "-:@":
                return tokenizer
    return None
