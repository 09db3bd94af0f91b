"""What an image or a page costs each model, by its pixels: the rules of the providers, as data.

Where a rule cannot be known (a model nobody names, a server of one's own) Anthropic's stands for it. All of
them were read in 2026-11; where a provider's page and its bills differ, the bills count.
"""

from __future__ import annotations

import re
from math import ceil, sqrt
from typing import assert_never

from msgspec import Struct


class Area(Struct, frozen=True, kw_only=True, tag="area"):
    """width × height ÷ 750, scaled down first until the longer edge fits and no more than `most` are needed.

    Anthropic's documentation, "Vision": 1568 pixels and about 1,600 tokens; from Opus 4.7 on 2576 and 4,784.
    """

    edge: int = 1568
    most: int = 1600


class Tiles(Struct, frozen=True, kw_only=True, tag="tiles"):
    """`base` + `tile` for each 512 × 512 tile, after scaling into 2048 × 2048 and the shorter edge to 768.

    OpenAI's documentation, "Images and vision", GPT-4o, GPT-4.1, GPT-5, o1 and o3 at detail `high`.
    """

    base: int = 85
    tile: int = 170


class Patches(Struct, frozen=True, kw_only=True, tag="patches"):
    """32 × 32 patches × `factor`, scaled down where there would be more than `most` patches.

    OpenAI's documentation, "Images and vision", the small models; from GPT-5.4 on 2,500 patches. GPT-5 mini
    and nano are billed 1.2 and 1.5 a patch, not that page's 1.62 and 2.46 (community.openai.com/t/1344040).
    """

    factor: float = 1.0
    most: int = 1536


class Crops(Struct, frozen=True, kw_only=True, tag="crops"):
    """258 where both edges are at most 384 pixels, else 258 for each 768 × 768 tile.

    Google's documentation, "Understand and count tokens", Gemini 2.
    """

    each: int = 258


class Flat(Struct, frozen=True, kw_only=True, tag="flat"):
    """The same for every image. Google's documentation, "Media resolution", Gemini 3 and later: 1,120."""

    tokens: int = 1120


PictureRule = Area | Tiles | Patches | Crops | Flat

ANTHROPIC = Area()

PAGE_TOKENS = 3000
"""The upper end of "1,500-3,000 tokens per page" (Anthropic's documentation, "PDF support")."""

GEMINI_PAGE_TOKENS = 560
"""Of Gemini 3 and later ("Media resolution"); Gemini 2 takes 258 ("Document understanding")."""

LATE_CLAUDE = (
    r"claude.*opus-4[.-][7-9]|claude.*(?:opus|sonnet|haiku|mythos|fable)-(?:[5-9]|\d\d)(?!\d)|claude-mythos"
)
"""Names of Claude from Opus 4.7 on: larger images, and another tokenizer."""

_RULES: tuple[tuple[str, PictureRule], ...] = (
    (LATE_CLAUDE, Area(edge=2576, most=4784)),
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
"""(words of a model's name, its rule), the first that is found. Gemma 3: 256 soft tokens (its model card)."""


def picture_rule(model: str | None) -> PictureRule:
    """The rule of the model of this name, in whatever spelling; Anthropic's where it names none of ours."""
    name = (model or "").lower()
    return next((rule for words, rule in _RULES if re.search(words, name)), ANTHROPIC)


def is_late_claude(model: str | None) -> bool:
    """True for the name of a Claude model from Opus 4.7 on, in whatever spelling."""
    return re.search(LATE_CLAUDE, (model or "").lower()) is not None


def picture_tokens(width: int, height: int, rule: PictureRule) -> int:
    """Tokens of an image of this size in pixels, both above 0. At least 1."""
    match rule:
        case Area(edge=edge, most=most):
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


def most_tokens(rule: PictureRule) -> int:
    """What an image counts whose size nobody knows: the most, or what a large screen takes."""
    return rule.most if isinstance(rule, Area) else picture_tokens(1920, 1080, rule)


def page_tokens(rule: PictureRule) -> int:
    """Tokens of one page of a PDF."""
    if isinstance(rule, Crops):
        return rule.each
    return GEMINI_PAGE_TOKENS if isinstance(rule, Flat) else PAGE_TOKENS


def _cells(width: int, height: int, scale: float, size: int) -> int:
    """Squares of `size` that cover the scaled image; a hair's breadth of a pixel covers none."""
    return max(1, ceil(width * scale / size - 1e-6)) * max(1, ceil(height * scale / size - 1e-6))


def _patches(width: int, height: int, most: int) -> int:
    """Patches after scaling as OpenAI's page does: so far that they are `most`, then until whole ones fit."""
    count = _cells(width, height, 1.0, 32)
    if count <= most:
        return count
    scale = sqrt(most * 32 * 32 / (width * height))
    wide, high = width * scale / 32, height * scale / 32
    scale *= min(max(1.0, wide // 1) / wide, max(1.0, high // 1) / high)
    return min(most, _cells(width, height, scale, 32))
