"""How files of open weights are named: which family, which size, and how they were packed.

One model has a dozen names: `Qwen3-Coder-30B-A3B-Instruct-Q4_K_M.gguf`, `qwen3-coder:30b`,
`mlx-community/Qwen3-Coder-30B-A3B-Instruct-4bit`. What they share is the family's words and the size; how the
weights were packed changes neither. A word that is none of these (`-heretic`, `-v2`) stays in the stem, so
that a model made from another is not taken for it."""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct

OPEN_WEIGHTS = "open-weights"
"""The provider of rows that hold native windows: what a model was made for, whoever serves it."""


class Weights(Struct, frozen=True):
    """A name of open weights, taken apart."""

    stem: str
    """The family's words in lower case, joined by `-`: `qwen-3-coder`. Empty where there is none."""
    size: str | None
    """`30b`, `8x7b`, `e4b`, `1.5b`; none where the name has none."""
    packed: bool
    """The name tells how the weights are packed, as only files for one's own machine do."""


# Patterns are text here and compiled at their first use.
_PACKED = (
    r"(?<![a-z0-9])(?:gguf|ggml|mlx|exl[23]|bnb|imatrix|i1|(?:ud-)?(?:i?q\d|tq\d)"
    r"(?:-(?:k|\d))?(?:-(?:xxs|xs|s|m|l|xl|nl))*|\d-?bits?)(?![a-z0-9])"
)
"""Formats and quantisations of files, as xinference 4.1.0 lists them (GGUF, MLX) and ollama's tags have
them."""

_SERVED = (
    r"(?<![a-z0-9])(?:awq|gptq|(?:fp|int)\d+(?:mix)?|bf16|f16|f32|nvfp4|mxfp[48]|qat|w\d+a\d+|hf|dynamic|moe|ud"
    r"|marlin)(?![a-z0-9])"
)
"""Formats that servers load too: they do not tell whose machine it is."""

_SIZE = r"\d+(?:\.\d+)?(?:x\d+(?:\.\d+)?)?[bt]|\d{2,}m|e\d+b"
"""Parameters: `30b`, `1.5b`, `8x7b`, `1t`, `270m`, `e4b`. `1m` and `128k` are windows, and part of the
stem."""
_ACTIVE = r"a\d+(?:\.\d+)?b|\d+e"
_NEUTRAL = frozenset({"instruct", "it", "chat", "latest"})
_MAKER = (
    r"^(?:meta-(?=llama)|google-(?=gemma)|qwen-(?=qw|qvq)|mistralai-|microsoft-|nvidia-(?=nemotron)|openai-(?=gpt)"
    r"|deepseek-ai-|thudm-|zai-org-|ibm-(?=granite))"
)
"""Makers' names that packers put before a file's name."""

_VERSION = r"-(?:v\d+(?:-\d+)?|\d{4})$"


@lru_cache(maxsize=64)
def weights_of(text: str) -> Weights:
    """`text`, a model's id with its dots, taken apart; only what stands behind the last `/` counts.
    O(length); the steps of one lookup ask for the same text."""
    name = text.rpartition("/")[2].lower().replace("_", "-").removesuffix(".gguf")
    plain = re.sub(_PACKED, " ", name)
    packed = plain != name
    plain = re.sub(_SERVED, " ", plain)
    size: str | None = None
    stem: list[str] = []
    for word in re.split(r"[^a-z0-9.]+", re.sub(_MAKER, "", plain.strip(" -_:"))):
        if not word or word in _NEUTRAL or re.fullmatch(_ACTIVE, word):
            continue
        if size is None and re.fullmatch(_SIZE, word):
            size = word
            continue
        # "qwen2.5vl" and "Qwen-2.5-VL" are the same words; "4o", "3n", "v3" and "r1" are one.
        parted = re.sub(r"(?<=[a-z]{2})(?=\d)|(?<=\d)(?=[a-z]{2})", "-", word)
        stem += [part for part in re.split(r"[.-]+", parted) if part]
    return Weights("-".join(stem), size, packed)


def without_version(stem: str) -> str:
    """`stem` without a release at its end: `-v0-3`, `-2507`."""
    return re.sub(_VERSION, "", stem)
