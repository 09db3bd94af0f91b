"""Which sentences say what was decided, what failed and what comes next."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactd.core.work.prose import (
    MAX_PROSE_CHARS,
    MAX_SENTENCE_CHARS,
    MIN_SENTENCE_CHARS,
    announces,
    decides,
    prose_sentences,
    reports_failure,
    without_opener,
)
from tests.support.examples import examples

MESSAGE = """# What I found in the parser today

The cache key ignores the **locale** of the user. That is why two users share a page.
Short one.

```python
print("this is code and no sentence of the text.")
```

1. [x] Add the locale to the key of the cache
- The old entries must be dropped as well.

| a table | with several cells | and one more |
> A quote of somebody else, which is left out.
"""


def test_sentences_of_prose_are_found_without_code_headings_and_tables() -> None:
    assert list(prose_sentences(MESSAGE)) == [
        "The cache key ignores the locale of the user.",
        "That is why two users share a page.",
        "Add the locale to the key of the cache",
        "The old entries must be dropped as well.",
    ]


def test_a_block_of_code_that_never_ends_has_no_sentences() -> None:
    assert list(prose_sentences("~~~\nThis is the output of a program, not prose.\n")) == []


@pytest.mark.parametrize(
    ("sentence", "strength"),
    [
        ("The root cause is a missing lock.", 1),
        ("We’ll use SQLite because it needs no server.", 2),
        ("It turns out that the file is generated.", 1),
        ("I opted for a queue rather than a lock, since writers must not wait.", 2),
        ("Should we use SQLite instead of files?", 0),
        ("I'll use these rules:", 0),
        ("The file has twelve lines.", 0),
        ("The parser doesn’t support nested quotes.", 1),
        ("The clock of the mill cannot export its hours, because it has no port.", 2),
        ("The module does not `ever` import the clock.", 1),
        ("The service isn't reachable from here.", 1),
        ("There is no `sort_letters` in the module.", 1),
        ("Doesn't the parser support nested quotes?", 0),
        ("The service does not answer.", 0),
        ("There are no letters in the box.", 0),
        ("The parser supports nested quotes.", 0),
    ],
)
def test_a_decision_with_its_reason_counts_more(sentence: str, strength: int) -> None:
    assert decides(sentence) == strength


@pytest.mark.parametrize(
    ("sentence", "is_failure"),
    [
        ("That didn't work.", True),
        ("The patch didn’t apply to this branch.", True),
        ("The reader doesn't support packed references.", False),
        ("It failed because the port is taken.", True),
        ("The test is still failing.", True),
        ("I'm reverting the change to the parser.", True),
        ("Did it fail because of the port, and is it still failing?", False),
        ("All tests pass now.", False),
    ],
)
def test_a_failure_is_what_did_not_work(sentence: str, is_failure: bool) -> None:
    assert reports_failure(sentence) is is_failure


def test_what_does_not_work_in_general_may_be_asked_for_too() -> None:
    assert reports_failure("The patch doesn’t apply to this branch.", tried=False)


@pytest.mark.parametrize(
    ("sentence", "is_next"),
    [
        ("Let me read the parser.", True),
        ("I’ll add a test for it.", True),
        ("I'm now updating the schema.", True),
        ("Next, the migration.", True),
        ("The remaining work is the documentation.", True),
        ("The next line has the same bug.", False),
        ("All remaining tests pass.", False),
        ("I'm sure that it works.", False),
    ],
)
def test_what_the_agent_does_next_is_announced(sentence: str, is_next: bool) -> None:
    assert announces(sentence) is is_next


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Good! Now I'll update the schema of the table.", "I'll update the schema of the table."),
        ("OK, so the lock is taken twice in a row.", "The lock is taken twice in a row."),
        ("Perfect.", "Perfect."),
        ("Good practice is to close the file first.", "Good practice is to close the file first."),
        (
            "Now that the lock is gone, writers do not wait.",
            "Now that the lock is gone, writers do not wait.",
        ),
        (
            "Right-to-left text is drawn from the wrong side.",
            "Right-to-left text is drawn from the wrong side.",
        ),
        ("Sorting happens in the database, not here.", "Sorting happens in the database, not here."),
    ],
)
def test_interjections_at_the_beginning_are_removed(sentence: str, expected: str) -> None:
    assert without_opener(sentence) == expected


def test_only_the_beginning_of_a_long_message_is_searched() -> None:
    before = "x" * MAX_PROSE_CHARS

    assert list(prose_sentences(f"{before}\nThe cache key ignores the locale of the user.")) == []


HOSTILE = [
    "a",
    "(",
    '"',
    "'",
    "\\",
    " ",
    "\n",
    "`",
    "```\n",
    "~~~\n",
    "* ",
    "**",
    "_",
    "- ",
    "1. ",
    ". ",
    "so ",
    "ok! ",
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_a_long_hostile_text_is_searched(piece: str) -> None:
    # A pattern that is quadratic in the length takes minutes here, and the test runner ends it.
    long = (piece * 100_000)[:100_000]

    assert len(list(prose_sentences(long))) <= MAX_PROSE_CHARS // MIN_SENTENCE_CHARS
    assert (decides(long), reports_failure(long), announces(long)) == (0, False, False) or piece == "so "
    assert len(without_opener(long)) <= len(long)


@settings(max_examples=examples(200))
@given(
    st.one_of(
        st.text(),
        st.lists(
            st.sampled_from([*HOSTILE, "We must use the old lock here. ", "It did not work?"]), max_size=40
        ).map("".join),
    )
)
def test_sentences_are_within_bounds_and_the_same_each_time(text: str) -> None:
    found = list(prose_sentences(text))

    assert found == list(prose_sentences(text))
    for sentence in found:
        assert MIN_SENTENCE_CHARS <= len(sentence) <= MAX_SENTENCE_CHARS
        assert decides(sentence) in (0, 1, 2)
        assert without_opener(sentence)
