"""`PackedDict`, a dict that packs its values into bytes: packed values come back equal, dropped ones do
not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactd.core.extract.compressed_store import PackedDict

Said = tuple[tuple[str, bool], ...]

SAID: Said = (("Never drop it.", True), ("I'd rather keep \ud800.", False))


def of(values: dict[str, Said]) -> PackedDict[Said]:
    made: PackedDict[Said] = PackedDict()
    for key, value in values.items():
        made[key] = value
    return made


@given(
    done=st.lists(
        st.tuples(
            st.sampled_from("sgdp"),
            st.sampled_from("abc"),
            st.lists(st.tuples(st.text(max_size=5), st.booleans()), max_size=2),
        )
    )
)
def test_it_is_a_dict_whenever_it_is_stowed(done: list[tuple[str, str, list[tuple[str, bool]]]]) -> None:
    made, expected = of({}), dict[str, Said]()
    for step, key, value in done:
        match step:
            case "s":
                made.pack()
            case "g":
                assert made.get(key) == expected.get(key)
            case "d":
                made.drop(key)
                expected.pop(key, None)
            case _:
                made[key] = expected[key] = tuple(value)
        assert len(made) == len(expected)
        assert (key in made) == (key in expected)

    assert {key: made[key] for key in expected} == expected


def test_half_a_surrogate_pair_comes_back() -> None:
    made = of({"e1": SAID, "e2": ()})
    made.pack()

    assert (made["e1"], made["e2"]) == (SAID, ())


def test_what_is_unknown_is_told_as_unknown() -> None:
    made = of({"e1": SAID})
    made.pack()

    assert made.get("e2") is None
    with pytest.raises(KeyError):
        _ = made["e2"]


def test_nothing_is_left_of_what_was_cleared() -> None:
    made = of({"e1": SAID, "e2": ()})
    made.pack()
    made.clear()

    assert (len(made), made.get("e1"), "e2" in made) == (0, None, False)
