"""`CompressedStore`, a compressed store: values come back as they were put, in order; dropped values do
not."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.msgpack import Decoder

from compactd.core.extract.compressed_store import PAGE_BYTES, CompressedStore

unpack = Decoder(list[tuple[str, str]]).decode


def shelf_of(pairs: dict[str, str]) -> CompressedStore[str]:
    shelf = CompressedStore(unpack)
    for key, value in pairs.items():
        assert shelf.put(key, value)
    return shelf


def large(count: int) -> dict[str, str]:
    """Values that fill some pages."""
    return {f"e{n}": f"{n} " * (PAGE_BYTES // 40) for n in range(count)}


@given(
    put=st.lists(st.tuples(st.sampled_from("abcdef"), st.text(max_size=20)), max_size=30),
    tidied=st.sets(st.integers(0, 30)),
)
def test_it_is_a_dict_whose_keys_are_dropped_before_they_are_put_again(
    put: list[tuple[str, str]], tidied: set[int]
) -> None:
    shelf, expected = CompressedStore(unpack), dict[str, str]()
    for place, (key, value) in enumerate(put):
        shelf.drop(key)
        expected.pop(key, None)
        if shelf.put(key, value):
            expected[key] = value
        if place in tidied:
            shelf.tidy()
        assert all(dict(shelf.page_of(key))[key] == value for key, value in expected.items())

    assert dict(shelf.items()) == expected
    assert all((key in shelf) == (key in expected) for key in "abcdef")


def test_several_pages_come_back_in_the_order_they_were_put() -> None:
    pairs = large(200)

    shelf = shelf_of(pairs)

    assert list(shelf.items()) == list(pairs.items())
    assert len(shelf.page_of("e0")) < 60


def test_a_page_that_was_closed_goes_on_where_it_is_small() -> None:
    shelf = CompressedStore(unpack)
    for n in range(50):
        shelf.put(f"e{n}", "some words")
        shelf.tidy()

    assert len(shelf.page_of("e0")) == 50


def test_what_was_erased_is_in_no_bytes() -> None:
    pairs = {**large(30), "secret": "hunter2 " * 3, **{f"f{n}": "x" * 900 for n in range(80)}}
    shelf = shelf_of(pairs)

    shelf.erase("secret")

    assert "secret" not in shelf
    del pairs["secret"]
    assert list(shelf.items()) == list(pairs.items())


def test_half_a_surrogate_pair_is_refused_and_leaves_the_others() -> None:
    shelf = shelf_of({"a": "one"})

    assert not shelf.put("b", "\ud800")

    assert shelf.put("c", "two")
    assert list(shelf.items()) == [("a", "one"), ("c", "two")]


def test_an_empty_shelf_has_nothing_beside_any_key() -> None:
    shelf = shelf_of({"a": "one"})
    shelf.clear()

    assert shelf.page_of("a") == []
    assert list(shelf.items()) == []
