"""The number of tokens that each model takes for images and pages: the providers' rules, as data.

If the rule is unknown (an unknown model, the user's own server), Anthropic's rule is used. All rules were
read in 2026-11. If a provider's page and its bills differ, the bills count.
"""

from __future__ import annotations

import re
from math import ceil, sqrt
from typing import assert_never

from msgspec import Struct


class AreaRule(Struct, frozen=True, kw_only=True, tag="area"):
    """A rule by area: width × height ÷ 750, after scaling down until the longer edge has at most `edge`
    pixels and at most `most` tokens are needed.

    Anthropic's documentation, "Vision": 1568 pixels and about 1,600 tokens; from Opus 4.7 on, 2576 and 4,784.
    """

    edge: int = 1568
    """The maximum length of the longer edge, in pixels."""
    most: int = 1600
    """The maximum number of tokens of an image."""


class Tiles(Struct, frozen=True, kw_only=True, tag="tiles"):
    """A rule by tiles: `base` tokens, and `tile` tokens per 512 × 512 pixels. Before that, a larger image is
    scaled down to 2048 × 2048, and then until its shorter edge has 768 pixels.

    OpenAI's documentation, "Images and vision", GPT-4o, GPT-4.1, GPT-5, o1 and o3 at detail `high`.
    """

    base: int = 85
    tile: int = 170


class Patches(Struct, frozen=True, kw_only=True, tag="patches"):
    """A rule by patches: `factor` tokens per patch of 32 × 32 pixels. An image with more than `most` patches
    is scaled down first.

    OpenAI's documentation, "Images and vision", the small models; from GPT-5.4 on, 2,500 patches. GPT-5 mini
    and nano are billed 1.2 and 1.5 per patch, not 1.62 and 2.46 as on that page
    (community.openai.com/t/1344040).
    """

    factor: float = 1.0
    most: int = 1536


class Crops(Struct, frozen=True, kw_only=True, tag="crops"):
    """A rule by crops: `each` tokens if both edges have at most 384 pixels, otherwise `each` per 768 × 768
    crop.

    Google's documentation, "Understand and count tokens", Gemini 2: 258.
    """

    each: int = 258


class Flat(Struct, frozen=True, kw_only=True, tag="flat"):
    """A rule with the same number of tokens for every image. Google's documentation, "Media resolution",
    Gemini 3 and later: 1,120."""

    tokens: int = 1120


PictureRule = AreaRule | Tiles | Patches | Crops | Flat
"""One of the rules for images."""

ANTHROPIC = AreaRule()
"""Anthropic's rule for models before Opus 4.7. It is also the rule for unknown models."""

PAGE_TOKENS = 3000
"""The upper end of "1,500-3,000 tokens per page" (Anthropic's documentation, "PDF support")."""

GEMINI_PAGE_TOKENS = 560
"""The tokens of a page in Gemini 3 and later ("Media resolution"). Gemini 2 takes 258 ("Document
understanding")."""

LATE_CLAUDE = (
    r"claude.*opus-4[.-][7-9]|claude.*(?:opus|sonnet|haiku|mythos|fable)-(?:[5-9]|\d\d)(?!\d)|claude-mythos"
)
"""Matches names of Claude models from Opus 4.7 on, which have larger images and another tokenizer."""

_RULES: tuple[tuple[str, PictureRule], ...] = (
    (LATE_CLAUDE, AreaRule(edge=2576, most=4784)),
    (r"claude", ANTHROPIC),
    (r"gpt-5(?:[.-]\d)?-mini", Patches(factor=1.2)),
    (r"gpt-5(?:[.-]\d)?-nano", Patches(factor=1.5)),
    (r"gpt-5[.-][23]", Patches(factor=1.2)),
    (r"gpt-(?:5[.-][4-9]|[6-9])", Patches(most=2500)),
    (r"gpt-5", Tiles(base=70, tile=140)),
    (r"gpt-4[.-]1-mini", Patches(factor=1.62)),
    (r"gpt-4[.-]1-nano", Patches(factor=2.46)),
    (r"o4-mini", Patches(factor=1.72)),
    (r"gpt-4o-mini", Tiles(base=2833, tile=5667)),
    (r"(?<![a-z0-9])o[13](?![a-z0-9])", Tiles(base=75, tile=150)),
    (r"computer-use-preview", Tiles(base=65, tile=129)),
    (r"gpt|chatgpt|codex", Tiles()),
    (r"gemini-[12]", Crops()),
    (r"gemini", Flat()),
    (r"gemma", Flat(tokens=256)),
)  # fmt: skip
"""(pattern of a model's name, its rule). The first pattern that matches counts. Gemma 3: 256 soft tokens
(its model card)."""


def picture_rule(model: str | None) -> PictureRule:
    """Return the image rule for a model. Its name may have any spelling. An unknown model gets Anthropic's
    rule."""
    name = (model or "").lower()
    return next((rule for words, rule in _RULES if re.search(words, name)), ANTHROPIC)


def is_late_claude(model: str | None) -> bool:
    """Return whether this is the name of a Claude model from Opus 4.7 on. The name may have any spelling."""
    return re.search(LATE_CLAUDE, (model or "").lower()) is not None


def picture_tokens(width: int, height: int, rule: PictureRule) -> int:
    """Return the tokens of an image with this width and height in pixels, at least 1. Both must be above
    0."""
    match rule:
        case AreaRule(edge=edge, most=most):
            scale = min(1.0, edge / max(width, height))
            return max(1, min(most, ceil(width * scale * height * scale / 750)))
        case Tiles(base=base, tile=tile):
            scale = min(1.0, 2048 / max(width, height))
            scale *= min(1.0, 768 / (min(width, height) * scale))
            return base + tile * _cells(width, height, scale, 512)
        case Patches(factor=factor, most=most):
            return max(1, ceil(factor * _patches(width, height, most)))
        case Crops(each=each):
            return each if max(width, height) <= 384 else each * _cells(width, height, 1.0, 768)
        case Flat(tokens=tokens):
            return tokens
        case _:
            assert_never(rule)


def max_image_tokens(rule: PictureRule) -> int:
    """Return the tokens to assume for an image of unknown size: the maximum of an `AreaRule` rule, otherwise
    what a screenshot of 1920 × 1080 pixels takes."""
    return rule.most if isinstance(rule, AreaRule) else picture_tokens(1920, 1080, rule)


def page_tokens(rule: PictureRule) -> int:
    """Return the tokens of one page of a PDF for models with this image rule."""
    if isinstance(rule, Crops):
        return rule.each
    return GEMINI_PAGE_TOKENS if isinstance(rule, Flat) else PAGE_TOKENS


def _cells(width: int, height: int, scale: float, size: int) -> int:
    """Return how many squares with edges of `size` pixels cover the scaled image. A row or column that is
    less than a millionth of a square wide is not counted."""
    return max(1, ceil(width * scale / size - 1e-6)) * max(1, ceil(height * scale / size - 1e-6))


def _patches(width: int, height: int, most: int) -> int:
    """Return how many patches cover the image after scaling as OpenAI's page describes: down to `most`
    patches, then until a whole number of patches fits one edge."""
    count = _cells(width, height, 1.0, 32)
    if count <= most:
        return count
    scale = sqrt(most * 32 * 32 / (width * height))
    wide, high = width * scale / 32, height * scale / 32
    scale *= min(max(1.0, wide // 1) / wide, max(1.0, high // 1) / high)
    return min(most, _cells(width, height, scale, 32))
