"""A line about a call is shortened without making names."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from compactd.core.text.atoms import atoms
from compactd.core.work.calls import shorten


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
