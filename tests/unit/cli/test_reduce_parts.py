"""The parts of `compactd reduce`: pieces of a stream, names of originals, and the sessions that keep them."""

from __future__ import annotations

import io
from itertools import pairwise
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from compactd.cli.reduce.pieces import pieces
from compactd.cli.reduce.reducer import Reducer
from compactd.client import Client
from compactd.core.reduce.marks import defuse, find_marks, left_out, shown_in
from compactd.integrations.outputs.own_session import Call, open_own, read_original, reduce_text
from compactd.integrations.outputs.references import PREFIX, Reference, name_originals, read_reference
from tests.support.command_line import environment
from tests.support.examples import examples
from tests.support.outputs_of_tools import FORGED, PIP

TEXTS = st.text(st.sampled_from("ab\n\r é€😀[… 1,expand e]"), max_size=60)


@settings(max_examples=examples(200))
@given(TEXTS, st.integers(4, 30))
def test_pieces_of_a_text_are_the_text_cut_between_characters(text: str, size: int) -> None:
    found = list(pieces(io.BytesIO(text.encode()), size))

    assert b"".join(piece.data for piece in found) == text.encode()
    assert "".join(piece.text or "" for piece in found) == text
    assert [piece.is_last for piece in found] == [False] * (len(found) - 1) + [True]
    assert all(len(piece.data) <= 2 * size for piece in found)


@settings(max_examples=examples(200))
@given(st.binary(max_size=60), TEXTS, st.integers(4, 30))
def test_nothing_of_a_stream_is_lost_and_what_follows_binary_data_is_no_text(
    binary: bytes, text: str, size: int
) -> None:
    data = text.encode() + binary + text.encode()

    found = list(pieces(io.BytesIO(data), size))

    assert b"".join(piece.data for piece in found) == data
    kinds = [piece.text is None for piece in found]
    assert kinds == sorted(kinds)
    assert all(piece.text is None or piece.text.encode() == piece.data for piece in found)
    assert all(before.data for before, _ in pairwise(found))


@settings(max_examples=examples(200))
@given(st.lists(TEXTS, max_size=5), st.integers(1, 99_999))
def test_only_marks_of_the_original_are_named_in_full(texts: list[str], number: int) -> None:
    original = Reference(f"{PREFIX}k3f7q2.7", "e41")
    own, other = left_out(number, "lines left out", "e41"), shown_in(number, "lines", "e41")
    parts = [defuse(text) for text in texts]

    named = name_originals(f"{own}\n{other}\n".join(parts), original, "run this")

    full = f"[… {number:,} lines left out, run this k3f7q2.7-e41]"
    assert named == f"{full}\n{other}\n".join(parts)
    assert all(mark.is_elsewhere for mark in find_marks(named))
    assert read_reference(str(original)) == original


def test_a_session_that_has_grown_large_is_followed_by_the_next(tmp_path: Path) -> None:
    env = environment(tmp_path)
    call = Call(name="bash", arguments={})
    with Reducer(tmp_path, env, max_bytes=2 * len(PIP)) as reducer:
        kept = []
        for number in range(6):
            text = f"{number}\n{PIP}"
            found = reducer.reduce(text, call)
            assert found is not None, reducer.failure
            assert reducer.session_id is not None
            assert found.entry_id is not None
            kept.append((Reference(reducer.session_id, found.entry_id), text))

    names = list(dict.fromkeys(where.session_id for where, _ in kept))
    assert names == [names[0], f"{names[0]}.2", *(f"{names[0]}.{at}" for at in range(3, len(names) + 1))]
    assert len(names) >= 2
    with Client(env=env) as client:
        assert [read_original(client, where) for where, _ in kept] == [text for _, text in kept]


def test_marks_that_take_more_than_what_was_left_out_are_not_used_but_forged_ones_are_broken(
    tmp_path: Path,
) -> None:
    env = environment(tmp_path)
    call = Call(name="bash", arguments={})
    with Client(env=env) as client:
        where = open_own(client, "k3f7q2", title="A test", folder=tmp_path, environ=env, timeout_s=60)
        texts = [
            reduce_text(client, where, text, call, how="x" * len(PIP), timeout_s=60).text
            for text in (PIP, f"{FORGED}\n{PIP}")
        ]

    assert texts == [PIP, f"{defuse(FORGED)}\n{PIP}"]
