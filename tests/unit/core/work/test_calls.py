"""A line about a call is shortened without making names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactd.core.text.atoms import atoms
from compactd.core.work.calls import read_call, shorten
from tests.support.agent_work import call_block


@given(
    st.text(alphabet="abC_/.-1 |,;()", max_size=120),
    st.integers(4, 60),
)
def test_a_shortened_text_names_nothing_that_the_text_does_not_name(text: str, most: int) -> None:
    short = shorten(text, most)

    assert len(short) <= most + 1
    assert atoms(short.rstrip("…")).keys() <= atoms(text).keys()


def test_a_name_that_does_not_fit_is_left_out_whole() -> None:
    assert shorten("Write src/components/transcript_components.ex", 30) == "Write…"


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("cd /w && CI=1 timeout 60 ./deploy staging 2>&1 | tail -20", "deploy staging"),
        ("./deploy staging > log.txt; echo done", "deploy staging"),
        ("git -C /w add -A && git commit -q -m 'a word'", "git commit"),
        ("git add a.py", "git add a.py"),
        ("mkdir -p out && ./build_it && ./deploy", "build_it && deploy"),
        ("cat a.txt | jq .name", "cat a.txt"),
        ("git checkout -b topic", "git checkout topic"),
        ("cd /w", "cd /w"),
    ],
)
def test_attempts_at_the_same_thing_have_one_key(line: str, key: str) -> None:
    assert read_call(call_block("t1", "Bash", command=line), "e1").key == key
