"""Counting each line once gives the same sum as the tokenizer gives for the whole text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactd.core.tokens.counting import Counter, script_aware
from compactd.models.tokenizers.counters import Bpe
from compactd.models.tokenizers.line_counts import MAX_LINE_CHARS, remember_lines
from tests.support.examples import examples

COUNTERS = tuple(Bpe(name) for name in ("o200k_base", "cl100k_base"))
SPACES = (" ", "  ", "\n", "\n\n", "\r\n", "\t", "\x0b", "\u2028", "\u3000")
SAID = (
    "/",
    "//",
    "::",
    "});",
    "...",
    "'s",
    "a",
    "Wort",
    "path/to/file.py",
    "7",
    "42,",
    "- [x] e12",
    "日本",
    "🙂",
)
PARTS = st.sampled_from((*SPACES, *SAID, "\ud83d"))


@pytest.mark.parametrize("counter", COUNTERS, ids=lambda counter: counter.name)
@settings(deadline=None, max_examples=examples(400))
@given(parts=st.lists(PARTS, max_size=24))
def test_the_lines_of_any_text_have_as_many_tokens_as_the_text(counter: Counter, parts: list[str]) -> None:
    text = "".join(parts)

    assert remember_lines(counter).count(text) == counter.count(text)


@pytest.mark.parametrize("counter", COUNTERS, ids=lambda counter: counter.name)
def test_a_text_that_grows_line_by_line_has_the_same_count_each_time(counter: Counter) -> None:
    lines = [f"- [e{n}] def name_{n}(value):\n    return /usr/lib/{n}\n/etc/{n}" for n in range(40)]
    one = remember_lines(counter)

    for n in range(len(lines)):
        text = "\n".join(lines[:n])
        assert one.count(text) == counter.count(text)


def test_it_has_the_name_and_the_habits_of_its_tokenizer() -> None:
    counter = Bpe("o200k_base", exact=False)
    one = remember_lines(counter)

    assert (one.name, one.exact) == ("o200k_base", False)
    assert getattr(one, "habits", None) == counter.habits


def test_a_text_that_is_no_record_is_counted_as_ever() -> None:
    text = "word / other\n" * (MAX_LINE_CHARS // 10)

    assert remember_lines(COUNTERS[0]).count(text) == COUNTERS[0].count(text)


def test_an_estimate_stays_the_estimate_of_the_whole_text() -> None:
    counter = script_aware("claude")

    assert remember_lines(counter) is counter
