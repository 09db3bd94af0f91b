"""Counting many texts in few calls and several threads gives each the tokens that it has alone."""

from __future__ import annotations

import os
import random
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiktoken import Encoding

from compactd.models.tokenizers.batches import (
    BATCH_CHARS,
    MARK,
    MAX_SINGLE_THREAD_CHARS,
    MAX_THREADS,
    SEPARATOR,
    TOKEN_BYTES,
    count_each,
)
from compactd.models.tokenizers.counters import SPECS, Bpe, count_with, load, unpack
from compactd.session.session import INLINE_BYTES
from tests.support.examples import examples

RANDOM = random.Random(5)
STDLIB = Path(os.__file__).parent
NAMES = sorted(SPECS)

SAID = (
    *(
        "a",
        "Wort",
        "HTTPServer",
        "naïve",
        "ǅungla",
        "ʰa",
        "日本",
        "ไทย",
        "e\u0301",
        "\u0301",
        "🙂👍🏽",
        "ſ",
        "K",
    ),
    *("'s", "'S", "'ſ", "'Re", "'ll", "'", "7", "1234", "½", "٣", "/", "//\n", "});", "...", "_", "\x00"),
    *(" ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", "\r", "\x0b", "\x85", "\u2028", "\u3000", "\xa0"),
    *("<|endoftext|>", "\ud83d", "\x1c", "\x1f", SEPARATOR, SEPARATOR[:2], SEPARATOR[2:], "\ufffd"),
)
TEXTS = st.lists(st.sampled_from(SAID), max_size=12).map("".join) | st.text(max_size=20)


@pytest.fixture(scope="module")
def published() -> dict[str, Encoding]:
    """Each encoding as tiktoken itself makes it."""
    return {
        name: Encoding(
            name, pat_str=spec.pattern, mergeable_ranks=unpack(name), special_tokens=spec.special_tokens
        )
        for name, spec in SPECS.items()
    }


# --- the same counts --------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=examples(200))
@given(texts=st.lists(TEXTS, max_size=8), name=st.sampled_from(NAMES))
def test_texts_that_are_counted_together_have_the_tokens_that_each_has_alone(
    published: dict[str, Encoding], texts: list[str], name: str
) -> None:
    alone = [len(published[name].encode_ordinary(text)) for text in texts]

    assert Bpe(name).count_each(texts) == alone
    assert [Bpe(name).count(text) for text in texts] == alone


@settings(deadline=None, max_examples=examples(300))
@given(text=TEXTS, name=st.sampled_from(NAMES))
def test_the_quicker_pattern_gives_the_tokens_of_the_published_one(
    published: dict[str, Encoding], text: str, name: str
) -> None:
    assert load(name).encode_ordinary(text) == published[name].encode_ordinary(text)


@pytest.mark.parametrize("name", NAMES)
def test_the_two_patterns_part_every_character_in_the_same_way(
    published: dict[str, Encoding], name: str
) -> None:
    letters = [chr(code) for code in range(0x20000) if not 0xD800 <= code < 0xE000]
    between = "".join(f"{letter}{RANDOM.choice(SAID[:40])}" for letter in letters)

    for text in ("".join(letters), between):
        for start in range(0, len(text), 60_000):
            part = text[start : start + 60_000]
            assert load(name).encode_ordinary(part) == published[name].encode_ordinary(part)


@pytest.mark.parametrize("name", NAMES)
def test_a_long_text_has_in_parts_and_threads_the_tokens_of_its_slices(
    published: dict[str, Encoding], name: str
) -> None:
    encode = published[name].encode_ordinary
    code = (STDLIB / "argparse.py").read_text("utf-8") + (STDLIB / "inspect.py").read_text("utf-8")
    texts = [
        code,
        code.replace("\n", "\r\n"),
        code.replace(" ", "  "),
        code.replace("\n", " "),
        "一二三。\n" * 20_000,
        " " * 150_000,
        "\n" * 150_000,
        "a" * 150_000,
        "word\ud83d " * 9_000,
        code[:40_000] + SEPARATOR + code[40_000:90_000],
    ]

    assert Bpe(name).count_each(texts) == [count_with(encode, text) for text in texts]


def test_counts_do_not_depend_on_the_number_of_threads() -> None:
    code = (STDLIB / "argparse.py").read_text("utf-8")
    texts = [
        code[at : at + size] for at, size in ((0, 100_000), (5, 3), (9, 0), *((n, 700) for n in range(300)))
    ]
    counter = Bpe("o200k_base")

    one = counter.count_each(texts, threads=1)

    assert one == [counter.count(text) for text in texts]
    assert [counter.count_each(texts, threads=n) for n in (2, 3, MAX_THREADS)] == [one] * 3


def test_nothing_has_no_tokens() -> None:
    counter = Bpe("o200k_base")

    assert (counter.count_each([]), counter.count_each([""]), counter.count_each(["", "a", ""])) == (
        [],
        [0],
        [0, 1, 0],
    )


# --- the threads ------------------------------------------------------------------------------------------


def letters(text: str) -> bytes:
    """An encoder of one token a code point."""
    token = (7).to_bytes(TOKEN_BYTES, sys.byteorder)
    return MARK.to_bytes(TOKEN_BYTES, sys.byteorder).join(token * len(part) for part in text.split(SEPARATOR))


def parts(texts: list[str]) -> Iterator[tuple[int, str]]:
    return ((at, text) for at, text in enumerate(texts) if text)


MANY = ["x" * (n % 1700) for n in range(1000)]
CHARS = sum(map(len, MANY))


def test_callers_that_come_at_once_each_get_their_own_counts_with_no_more_threads_than_there_may_be() -> None:
    running: set[int] = set()
    most = [0]
    lock = threading.Lock()

    def encode(text: str) -> bytes:
        with lock:
            running.add(threading.get_ident())
            most[0] = max(most[0], len(running))
        try:
            return letters(text)
        finally:
            with lock:
                running.discard(threading.get_ident())

    found: list[list[int]] = []

    def call() -> None:
        found.append(count_each(parts(MANY), len(MANY), CHARS, encode, len, threads=MAX_THREADS))

    callers = [threading.Thread(target=call) for _ in range(5)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()

    assert found == [[len(text) for text in MANY]] * 5
    assert most[0] <= 5 + MAX_THREADS - 1


def test_what_the_loop_counts_itself_is_counted_without_another_thread() -> None:
    text = "a word or two\n" * (INLINE_BYTES // 14)
    threads: set[int] = set()

    def encode(joined: str) -> bytes:
        threads.add(threading.get_ident())
        return letters(joined)

    few = [text[at : at + 100] for at in range(0, len(text), 100)]
    counted = count_each(parts(few), len(few), len(text), encode, len, threads=MAX_THREADS)

    assert INLINE_BYTES <= MAX_SINGLE_THREAD_CHARS
    assert sum(counted) == len(text)
    assert threads == {threading.get_ident()}


def test_what_an_encoder_raises_comes_out_in_whatever_thread_it_was_and_the_next_caller_has_helpers() -> None:
    def encode(text: str) -> bytes:
        raise MemoryError

    for _ in range(2 * MAX_THREADS):
        with pytest.raises(MemoryError):
            count_each(parts(MANY), len(MANY), CHARS, encode, len, threads=MAX_THREADS)

    assert count_each(parts(MANY), len(MANY), CHARS, letters, len, threads=MAX_THREADS) == [
        len(text) for text in MANY
    ]


class PanicException(BaseException):
    """An exception like pyo3's panic."""


def test_texts_on_which_the_encoder_panics_are_counted_alone() -> None:
    def encode(text: str) -> bytes:
        raise PanicException(text[:10])

    counted = count_each(parts(MANY), len(MANY), CHARS, encode, lambda text: 2 * len(text), threads=2)

    assert counted == [2 * len(text) for text in MANY]


def test_no_call_is_given_much_more_than_a_batch() -> None:
    given_: list[int] = []

    def encode(text: str) -> bytes:
        given_.append(len(text))
        return letters(text)

    count_each(parts(MANY), len(MANY), CHARS, encode, len, threads=1)

    assert CHARS > MAX_SINGLE_THREAD_CHARS
    assert max(given_) <= BATCH_CHARS + max(map(len, MANY)) + len(SEPARATOR) * len(MANY)
    assert len(given_) <= 2 * CHARS / BATCH_CHARS
