"""Parse model names: find one key for all spellings of a name, and take the name apart.

A name may have a gateway before it, a date or a selector after it, and dots or dashes in it. What is removed
in this module never changes which model is meant. Changes that might are left to the steps of the lookup
(`resolution.py`), which report them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from msgspec import Struct

from compactd.core.models.open_weights import weights_of
from compactd.core.models.provider_hosts import (
    FIRST_PARTIES,
    LOCAL,
    PROXIES,
    SYNONYMS,
    host_of,
    is_loopback,
    provider_at_host,
)

MAX_MODEL_NAME_CHARS = 512
"""How many characters of a name are examined. A longer name counts as unknown: no provider has an id half as
long."""

NEWEST = "20261112"
"""The date of the newest list that the registry's rows come from. No row has a model with a later date."""

# Patterns are strings that are compiled at first use, because this module is imported before the
# daemon's first answer.
_SEPARATORS = r"[\x00-\x2e\x3b-\x3f\x5b-\x60\x7b-\x7f]+"
"""All of ASCII except letters, digits, `/`, `:` and `@`. Letters of other scripts are part of a word."""
_CONTROL = r"[\x00-\x1f\x7f]"
_SELECTOR = r"\[(\d{1,5})([kKmM])\]$"
_THROUGHPUT = r"(:\d+):(\d{1,4})k$"
_DATE = r"[-@](20\d{6}|20\d\d-\d\d-\d\d)$"
_OPAQUE_ARNS = (
    "application-inference-profile/",
    "provisioned-model/",
    "imported-model/",
    "custom-model/",
    "custom-model-deployment/",
    "prompt-router/",
    "endpoint/",
)
_BEDROCK = (
    r"(?:(?:us-gov|us|eu|global|jp|au|apac|ca|sa)\.)?"
    r"(?:ai21|amazon|anthropic|cohere|deepseek|meta|minimax|mistral|moonshot|moonshotai|nvidia|openai|qwen|writer|zai)"
    r"\.[a-z][\w.:-]*$"
)
"""`vendor.model`, the form of ids that only Amazon Bedrock uses."""
_TAG = (
    r"(?:\d+(?:\.\d+)?[bmt]|\d+x\d+b?|e\d+b|q\d|latest|instruct|chat|text|code|mini|tiny|small|medium|large)"
    r"(?![a-z])"
)
"""The beginning of an ollama tag. What precedes it is a model and not a provider (`qwen:7b`,
`mistral:latest`)."""


class ModelName(Struct, frozen=True, kw_only=True):
    """The parts of a model's name."""

    asked: str
    """The name as given; if it is too long, only its beginning."""
    key: str
    """The key (`name_key`) of the model's id, without selectors and wrappers; empty if the id cannot be
    known."""
    text: str = ""
    """The text of `key` with its dots, because `1.5b` is a size and `1-5b` is not."""
    provider: str | None
    """Who serves the model, by compactd's name for the provider."""
    is_provider_explicit: bool = False
    """Whether the provider was named separately from the model, or is a gateway instead of the model's
    maker."""
    window: int | None = None
    """The window in tokens, if a selector names it (`[1m]`, `[200k]`)."""
    local: bool = False
    """Whether the model is served by a local program, which may load less than the model's window."""


def name_key(model: str) -> str:
    """Return the key that all spellings of `model` share: lower case, words joined by `-`. `/`, `:` and `@`
    are kept."""
    return fold_name(model).strip("-")


def keys_of(models: Sequence[str]) -> list[str]:
    """Return `name_key` for each of `models`. For thousands of names, this is five times faster than one call
    per name. No model may contain a line end."""
    text = "\n".join(models).lower().translate(_FOLD)
    while "--" in text:
        text = text.replace("--", "-")
    keys = text.split("\n") if models else []
    return [key.strip("-") if key[:1] == "-" or key[-1:] == "-" else key for key in keys]


_FOLD = {code: "-" for code in range(128) if not chr(code).isalnum() and chr(code) not in "/:@\n"}


def fold_name(text: str) -> str:
    """Return `text`, a part of a name, in the spelling of keys: lower case, words joined by `-`."""
    return re.sub(_SEPARATORS, "-", text.lower())


def provider_of(name: str) -> str:
    """Return compactd's name for a provider, given by any of its names."""
    key = name_key(name[:MAX_MODEL_NAME_CHARS])
    return SYNONYMS.get(key, key)


def without_date(key: str) -> str:
    """Return `key` without a date at its end: `-20250929`, `-2024-08-06`, `@20251101`. Shorter numbers, and
    dates after `NEWEST`, stay."""
    if "20" not in key or (match := re.search(_DATE, key)) is None:
        return key
    return key[: match.start()] if match.group(1).replace("-", "") <= NEWEST else key


def last_part(key: str) -> str:
    """Return the part of `key` after the last `/`."""
    return key.rpartition("/")[2]


def read_name(
    model: str, provider: str | None, base_url: str | None, is_known: Callable[[str], bool]
) -> ModelName:
    """Take a model's name apart. `is_known` says whether the registry has rows for a provider.

    The provider is the first of these: `provider`; the one at `base_url`; a known first segment of the name
    (`openrouter/anthropic/…`, `anthropic:claude-…`); the one that alone has ids of this form (Bedrock's
    `us.anthropic.…`, Vertex' `publishers/…`). Otherwise there is none. A name that is too long, or that
    contains control characters, is unknown: its key is empty. O(`MAX_MODEL_NAME_CHARS`), not counting white
    space around the name.
    """
    asked = model if len(model) <= MAX_MODEL_NAME_CHARS else model.strip()[: MAX_MODEL_NAME_CHARS + 1]
    text = asked.strip().removeprefix("~")
    if len(text) > MAX_MODEL_NAME_CHARS or re.search(_CONTROL, text):
        text = ""
    text, window = _without_selectors(text)
    host = host_of(base_url) if base_url else ""
    served_by = provider_of(provider) if provider and provider.strip() else None
    if served_by in PROXIES:
        served_by = None
    if served_by is None and host:
        served_by = provider_at_host(host)
    served_by, text, named = _without_gateways(text, served_by, is_known)
    text, service = _unwrap(text)
    if served_by is None and service is not None:
        served_by, named = service, True
    # On a local server with an OpenAI-compatible API, everything is called openai.
    local = served_by in LOCAL or (served_by in (None, "openai") and is_loopback(host))
    if served_by in (None, "ollama") and text.lower().endswith(("-cloud", ":cloud")):
        served_by, named, local, text = "ollama-cloud", True, False, text[: -len("-cloud")]
    if served_by is None and (weights_of(text).packed or re.search(":" + _TAG, text.lower())):
        local = True
    return ModelName(
        asked=asked,
        key=name_key(text),
        text=text,
        provider=served_by,
        is_provider_explicit=named,
        window=window,
        local=local,
    )


def _without_gateways(
    text: str, served_by: str | None, is_known: Callable[[str], bool]
) -> tuple[str | None, str, bool]:
    """Return (provider that serves the model, the model's id at that provider, whether the provider was named
    separately or is a gateway).

    At most two gateways (`openrouter/…`) are removed from the name. The first one that is known is the
    provider.
    """
    named = served_by is not None
    for _ in range(2):
        first, separator, rest = text.partition("/") if "/" in text else text.partition(":")
        candidate = provider_of(first)
        if not separator or not rest or (separator == ":" and re.match(_TAG, rest.lower())):
            break
        if candidate in PROXIES or candidate == served_by:
            text = rest
        elif served_by is None and (candidate in LOCAL or is_known(candidate)):
            # `nvidia/X-GGUF` is a folder of files, not NVIDIA's service.
            if candidate not in LOCAL and weights_of(rest).packed:
                break
            served_by, text = candidate, rest
            named = candidate not in FIRST_PARTIES
        else:
            break
    return served_by, text, named


def _without_selectors(text: str) -> tuple[str, int | None]:
    """Return the name without selectors at its end, and the window in tokens that they name. Selectors are
    Claude Code's `[1m]` and `[200k]` (the first of several counts), and the window of Bedrock's provisioned
    throughput (`…-v1:0:28k`)."""
    window: int | None = None
    while match := re.search(_SELECTOR, text):
        window = int(match.group(1)) * (1_000_000 if match.group(2) in "mM" else 1_000)
        text = text[: match.start()].rstrip()
    if window is None and (match := re.search(_THROUGHPUT, text)):
        window = int(match.group(2)) * 1_000
        text = text[: match.end(1)]
    return text, window if window is not None and 1_000 <= window <= 10_000_000 else None


def _unwrap(text: str) -> tuple[str, str | None]:
    """Return (the model inside an ARN, a resource path or a fine-tuned model's id; the service that has ids
    of this form, or None).

    An ARN that names no model gives an empty text.
    """
    lower = text.lower()
    if lower.startswith("arn:"):
        inside = "" if any(part in lower for part in _OPAQUE_ARNS) else text.rpartition("/")[2]
        return inside, "amazon-bedrock"
    if lower.startswith("ft:"):
        return text.split(":")[1], None
    if lower.startswith("models/"):
        return text[len("models/") :], None
    if "publishers/" in lower and "/models/" in lower:
        return text[lower.rindex("/models/") + len("/models/") :], "google-vertex"
    if lower.startswith("accounts/fireworks/"):
        return text, "fireworks-ai"
    if lower.startswith("@cf/"):
        return text, "cloudflare-workers-ai"
    if re.match(_BEDROCK, lower):
        return text, "amazon-bedrock"
    return text, None


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
"""(words in the last part of a key, tokenizer). OpenAI's encodings are those of `model.py` in tiktoken
0.14.0. tiktoken does not know gpt-6, so those models have the family `openai` and no encoding."""


def tokenizer_of(key: str) -> str | None:
    """Return the tokenizer of the model with this key: the name of an encoding that can be counted with;
    otherwise the tokenizer's family; otherwise None."""
    part = last_part(key)
    for start, tokenizer in _TOKENIZERS:
        for match in re.finditer(start, part):
            if match.start() == 0 or part[match.start() - 1] in "-:@":
                return tokenizer
    return None
