"""The kinds of characters, runs and pairs that the token estimate counts."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactd.core.tokens.estimate import estimate
from tests.support.examples import examples

RUNS = (("[a-zA-Z]+", 0.3), ("[0-9]+", 0.7), (r"[^a-zA-Z0-9 \n\r\t]+", 0.61))
KINDS = (("[a-z]", 0.177), ("[A-Z]", 0.195), ("[0-9]", 0.27), (" ", 0.02), ("[\n\r]", 0.37), ("\t", 0.1))
SIGNS = ((r"[^a-zA-Z0-9 \n\r\t]", 0.03), ('"', 0.12), ("[a-zA-Z]{32}", 0.2 * 32))
PAIRS = (("[a-z][A-Z]", 1.2), ("[0-9][A-Z]", 0.65), ("[0-9][a-z]", 0.65), (" [0-9]", 1.95))


def plain_estimate(text: str) -> float:
    """The estimate of an ASCII text, with one regular expression for each thing that counts."""
    return sum(weight * len(re.findall(what, text)) for what, weight in (*RUNS, *KINDS, *SIGNS, *PAIRS))


@given(st.text(st.sampled_from('aZz0 9\n\r\t"-_\x00\x7f')))
@settings(max_examples=examples(200))
def test_each_run_character_and_pair_counts_its_weight(text: str) -> None:
    assert estimate(text) == pytest.approx(plain_estimate(text))


@pytest.mark.parametrize("length", [1, 7, 8, 127, 128, 255, 256, 257, 20_000])
def test_no_character_at_the_end_is_missed(length: int) -> None:
    for text in ("a " * length, "1" * length, " 1" * length + ".", "aB" * length):
        assert estimate(text) == pytest.approx(plain_estimate(text))


def test_a_character_above_ascii_is_no_letter_digit_or_sign() -> None:
    # `é` counts 0.42, and separates two runs of one letter.
    assert estimate("aéa") == pytest.approx(2 * (0.3 + 0.177) + 0.42)
