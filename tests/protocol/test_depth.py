"""How deep a message is nested, whatever its strings hold and wherever it is sliced."""

from __future__ import annotations

import json
from itertools import cycle

from hypothesis import given, settings
from hypothesis import strategies as st

from compactd.rpc.depth import DEPTH_LIMIT, is_too_deep

TEXTS = st.text('[]{}"\\/a\n', max_size=12)


@given(
    depth=st.integers(DEPTH_LIMIT - 3, DEPTH_LIMIT + 3),
    texts=st.lists(TEXTS, min_size=1, max_size=8),
    slice_bytes=st.sampled_from((7, 64, 1000, 1 << 20)),
)
@settings(max_examples=60, deadline=None)
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
