"""What a stranger said, as a model and a person read it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from compactd.bridges.lost import _safe as safe
from compactd.bridges.recall_text import plain
from compactd.core.unseen import CODES

HOSTILE = st.lists(st.sampled_from([*map(chr, CODES), "a", "é", "🙂", "\n", "\t", "\u00a0", "<"])).map(
    "".join
)


@given(HOSTILE)
def test_nothing_that_hides_or_commands_is_read_back(text: str) -> None:
    for shown in (plain(text), safe(text)):
        assert not set(map(ord, shown)) & set(CODES)


@given(st.text("aé🙂\n\t\u00a0漢"))
def test_what_can_be_seen_is_read_back_as_it_stands(text: str) -> None:
    assert plain(text) == safe(text) == text


def test_where_something_stood_a_mark_stands() -> None:
    assert plain("gnp\u202e.exe\r\nnext\x1b[2J") == "gnp�.exe\nnext�[2J"
