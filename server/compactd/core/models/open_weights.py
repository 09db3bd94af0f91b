"""Parse names of open-weights models: the family, the size, and whether the name says how the weights are
packed.

One model has many names: `Qwen3-Coder-30B-A3B-Instruct-Q4_K_M.gguf`, `qwen3-coder:30b`,
`mlx-community/Qwen3-Coder-30B-A3B-Instruct-4bit`. All of them have the same size and the same stem (the
family's words). Words for how the weights are packed (file format, quantisation) are in neither. Any other
word (`-heretic`, `-v2`) stays in the stem, so that a derived model is not taken for the original.
"""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct

OPEN_WEIGHTS = "open-weights"
"""The provider name of the rows with native windows. A native window is the one that a model was made for, at
any provider."""


class Weights(Struct, frozen=True):
    """The name of an open-weights model, taken apart."""

    stem: str
    """The family's words in lower case, joined by `-`, such as `qwen-3-coder`. Empty if there are none."""
    size: str | None
    """`30b`, `8x7b`, `e4b`, `1.5b`; None if the name has no size."""
    packed: bool
    """Whether the name says how the weights are packed. Only names of files for the user's own machine say
    this."""


# Patterns are strings that are compiled at first use.
_PACKED = (
    r"(?<![a-z0-9])(?:gguf|ggml|mlx|exl[23]|bnb|imatrix|i1|(?:ud-)?(?:i?q\d|tq\d)"
    r"(?:-(?:k|\d))?(?:-(?:xxs|xs|s|m|l|xl|nl))*|\d-?bits?)(?![a-z0-9])"
)
"""Formats and quantisations of files, as listed by xinference 4.1.0 (GGUF, MLX) and used in ollama's tags."""

_SERVED = (
    r"(?<![a-z0-9])(?:awq|gptq|(?:fp|int)\d+(?:mix)?|bf16|f16|f32|nvfp4|mxfp[48]|qat|w\d+a\d+|hf|dynamic|moe|ud"
    r"|marlin)(?![a-z0-9])"
)
"""Formats that hosted services load too, so they do not show that the model runs on the user's own
machine."""

_SIZE = r"\d+(?:\.\d+)?(?:x\d+(?:\.\d+)?)?[bt]|\d{2,}m|e\d+b"
"""Numbers of parameters: `30b`, `1.5b`, `8x7b`, `1t`, `270m`, `e4b`. (`1m` and `128k` are windows, and part
of the stem.)"""
_ACTIVE = r"a\d+(?:\.\d+)?b|\d+e"
_NEUTRAL = frozenset({"instruct", "it", "chat", "latest"})
_MAKER = (
    r"^(?:meta-(?=llama)|google-(?=gemma)|qwen-(?=qw|qvq)|mistralai-|microsoft-|nvidia-(?=nemotron)|openai-(?=gpt)"
    r"|deepseek-ai-|thudm-|zai-org-|ibm-(?=granite))"
)
"""Names of makers that come before the model's name in files packed by others."""

_VERSION = r"-(?:v\d+(?:-\d+)?|\d{4})$"


@lru_cache(maxsize=64)
def weights_of(text: str) -> Weights:
    """Parse `text`, a model's id with its dots. Only the part after the last `/` counts. O(length); cached,
    because the steps of one lookup ask for the same text."""
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
        # "qwen2.5vl" and "Qwen-2.5-VL" are the same words, but "4o", "3n", "v3" and "r1" are single words.
        parted = re.sub(r"(?<=[a-z]{2})(?=\d)|(?<=\d)(?=[a-z]{2})", "-", word)
        stem += [part for part in re.split(r"[.-]+", parted) if part]
    return Weights("-".join(stem), size, packed)


def without_version(stem: str) -> str:
    """Return `stem` without a release at its end, such as `-v0-3` or `-2507`."""
    return re.sub(_VERSION, "", stem)
