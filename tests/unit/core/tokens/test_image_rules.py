"""Tokens of an image for each model, checked against examples and bills of the providers."""

from __future__ import annotations

import base64
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactd.core.tokens.counting import Habits, ScriptAware, message_tokens
from compactd.core.tokens.image_rules import (
    ANTHROPIC,
    AreaRule,
    Crops,
    Flat,
    Patches,
    PictureRule,
    Tiles,
    picture_rule,
    picture_tokens,
)
from compactd.core.tokens.media import document_pages_tokens, image_tokens
from compactd.protocol.messages import Document, Image, Message, Thinking, ToolCall

LARGE = AreaRule(edge=2576, most=4784)


@pytest.mark.parametrize(
    ("rule", "size", "tokens"),
    [
        # Anthropic's documentation, "Vision": the table of tokens by size.
        (ANTHROPIC, (200, 200), 54),
        (ANTHROPIC, (1000, 1000), 1334),
        (ANTHROPIC, (1092, 1092), 1590),
        (ANTHROPIC, (8000, 6000), 1600),
        # Scaled to 1568 × 157 first.
        (ANTHROPIC, (3136, 314), 329),
        (LARGE, (1920, 1080), 2765),
        (LARGE, (3840, 2160), 4784),
        # OpenAI's documentation, "Images and vision": the three worked examples, and the patches' two.
        (Tiles(), (1024, 1024), 765),
        (Tiles(), (2048, 4096), 1105),
        (Tiles(base=70, tile=140), (512, 512), 210),
        (Patches(), (1024, 1024), 1024),
        (Patches(), (1800, 2400), 1452),
        # Billed: community.openai.com, threads 1344040 (2026-06) and 1230130 (2025-04).
        (Patches(factor=1.2), (256, 256), 77),
        (Patches(factor=1.2), (1280, 720), 1104),
        (Patches(factor=1.2), (2048, 768), 1844),
        (Patches(factor=1.62), (2400, 1800), 2353),
        # Google's documentation, "Understand and count tokens".
        (Crops(), (384, 384), 258),
        (Crops(), (960, 540), 516),
        (Flat(), (10, 10), 1120),
    ],
)
def test_an_image_costs_what_its_provider_says(rule: PictureRule, size: tuple[int, int], tokens: int) -> None:
    assert picture_tokens(*size, rule) == tokens


def test_the_models_name_tells_the_rule() -> None:
    rules = {
        "anthropic/claude-sonnet-4-20250514": ANTHROPIC,
        "claude-opus-4-6": ANTHROPIC,
        "us.anthropic.claude-opus-4-7-v1:0": LARGE,
        "claude-3-5-haiku": ANTHROPIC,
        "openai/gpt-4o": Tiles(),
        "gpt-4.1": Tiles(),
        "gpt-4.1-mini": Patches(factor=1.62),
        "gpt-4o-mini": Tiles(base=2833, tile=5667),
        "o3": Tiles(base=75, tile=150),
        "o4-mini-2025-04-16": Patches(factor=1.72),
        "gpt-5.1-codex": Tiles(base=70, tile=140),
        "gpt-5-mini": Patches(factor=1.2),
        "gpt-5.4": Patches(most=2500),
        "google/gemini-2.5-pro": Crops(),
        "gemini-3-pro-preview": Flat(),
        "qwen3-vl": ANTHROPIC,
        None: ANTHROPIC,
    }

    assert {name: picture_rule(name) for name in rules} == rules


RULES = st.sampled_from((ANTHROPIC, LARGE, Tiles(), Patches(), Patches(factor=2.46), Crops(), Flat()))


@given(st.integers(1, 10**6), st.integers(1, 10**6), RULES)
def test_every_size_costs_something_and_not_without_end(width: int, height: int, rule: PictureRule) -> None:
    tokens = picture_tokens(width, height, rule)

    assert tokens >= 1
    if not isinstance(rule, Crops):
        assert tokens <= 5000
    assert tokens == picture_tokens(height, width, rule)


def test_an_image_in_a_data_url_is_measured_by_its_pixels() -> None:
    head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 300, 250)
    url = "data:image/png;base64," + base64.b64encode(head + bytes(500_000)).decode()

    assert image_tokens(Image(url=url)) == 100
    assert image_tokens(Image(url=url), Crops()) == 258


def test_a_page_costs_what_its_provider_says() -> None:
    four = Document(pages=4)
    tokens = [document_pages_tokens(four, rule) for rule in (ANTHROPIC, Tiles(), Crops(), Flat())]

    assert tokens == [12_000, 12_000, 1032, 2240]


def test_what_a_provider_does_with_blocks_is_counted() -> None:
    plain, openai = ScriptAware(), ScriptAware(habits=Habits(keeps_thinking=False, pictures=Tiles()))
    framed = ScriptAware(habits=Habits(call_tokens=80))
    message = Message(
        role="assistant",
        content=(
            Thinking(text="so many thoughts"),
            ToolCall(call_id="c", name="ls"),
            Image(width=10, height=10),
        ),
    )

    thinking, image = plain.count("so many thoughts"), 1
    assert message_tokens(message, framed) == message_tokens(message, plain) + 80
    assert message_tokens(message, openai) == message_tokens(message, plain) - thinking - image + 255
