"""The nesting depth of a message is measured correctly, for any strings in it and any split into pieces."""

from __future__ import annotations

import json
from itertools import cycle

from hypothesis import given, settings
from hypothesis import strategies as st

from compactd.daemon.rpc.json_depth import DEPTH_LIMIT, DepthCheck, is_too_deep
from tests.support.examples import examples

TEXTS = st.text('[]{}"\\/a\n', max_size=12)
TRAPS = ('"},{"role":"', '\\"},{"role":"', "}, {", "\\", "[[[", "]}", 'x = ["a"]\n')


def levels(body: bytes) -> int:
    """Return the nesting depth, computed one byte at a time."""
    deepest = depth = 0
    is_inside = is_escaped = False
    for byte in body:
        if is_escaped:
            is_escaped = False
        elif is_inside:
            is_escaped, is_inside = byte == ord("\\"), byte != ord('"')
        elif byte == ord('"'):
            is_inside = True
        else:
            depth += (byte in b"[{") - (byte in b"]}")
            deepest = max(deepest, depth)
    return deepest


def nested(levels: int) -> object:
    value: object = 0
    for _ in range(levels):
        value = [value]
    return value


@given(
    depth=st.integers(DEPTH_LIMIT - 3, DEPTH_LIMIT + 3),
    texts=st.lists(TEXTS, min_size=1, max_size=8),
    slice_bytes=st.sampled_from((7, 64, 1000, 1 << 20)),
)
@settings(max_examples=examples(60), deadline=None)
def test_only_brackets_outside_strings_count(depth: int, texts: list[str], slice_bytes: int) -> None:
    words = cycle(map(json.dumps, texts))
    body = "0"
    for level in range(depth):
        body = f"[{next(words)},{body}]" if level % 2 else f"{{{next(words)}:{body}}}"

    assert is_too_deep(body.encode(), slice_bytes) is (depth > DEPTH_LIMIT)


def test_closing_brackets_in_strings_hide_no_depth() -> None:
    body = b'["]",' * (DEPTH_LIMIT + 1) + b"0" + b"]" * (DEPTH_LIMIT + 1)

    assert is_too_deep(body)


def test_opening_brackets_in_strings_make_no_depth() -> None:
    body = json.dumps(["[{" * 1000] * 10).encode()

    assert not is_too_deep(body)


@given(
    texts=st.lists(st.lists(st.sampled_from(TRAPS), max_size=6).map("".join), min_size=1, max_size=9),
    deep=st.integers(DEPTH_LIMIT - 5, DEPTH_LIMIT + 2),
    place=st.integers(0, 60),
    spaces=st.sampled_from(((",", ":"), (", ", ": "))),
    slice_bytes=st.sampled_from((64, 300, 1 << 15)),
)
@settings(max_examples=examples(80), deadline=None)
def test_among_many_elements_that_are_alike_the_deep_one_is_found(
    texts: list[str], deep: int, place: int, spaces: tuple[str, str], slice_bytes: int
) -> None:
    words = cycle(texts)
    messages: list[object] = [
        {"role": "user", "content": [{"type": "text", "text": next(words)}] * (number % 3)}
        for number in range(60)
    ]
    messages.insert(place, {"role": "tool", "content": nested(deep)})
    body = json.dumps({"params": {"messages": messages}}, separators=spaces).encode()

    assert is_too_deep(body, slice_bytes) is (levels(body) > DEPTH_LIMIT)


@given(
    cuts=st.lists(st.integers(1, 400_000), max_size=4),
    text=st.lists(st.sampled_from(TRAPS), min_size=1, max_size=6).map("".join),
    deep=st.sampled_from((1, DEPTH_LIMIT - 4, DEPTH_LIMIT - 3)),
    place=st.integers(0, 200),
)
@settings(max_examples=examples(15), deadline=None)
def test_a_body_is_as_deep_in_pieces_as_it_is_whole(
    cuts: list[int], text: str, deep: int, place: int
) -> None:
    messages: list[object] = [{"role": "user", "content": text * (400 // len(text) * 5)} for _ in range(200)]
    messages.insert(place, {"role": "user", "content": nested(deep)})
    body = json.dumps({"params": {"messages": messages}}).encode()
    depth, come = DepthCheck(), bytearray()

    for stop in (*sorted(cuts), len(body)):
        come += body[len(come) : stop]
        depth.check_new(come, is_all=len(come) == len(body))

    assert depth.is_too_deep is (deep + 4 > DEPTH_LIMIT)


def test_a_run_of_backslashes_ends_where_a_piece_ends() -> None:
    body = json.dumps(["\\" * 70_000 + '"', nested(DEPTH_LIMIT - 1), "[" * 9]).encode()

    assert [is_too_deep(body, slice_bytes) for slice_bytes in (64, 999, 1 << 15)] == [False] * 3
    assert is_too_deep(b"[" + body + b"]", 999)
