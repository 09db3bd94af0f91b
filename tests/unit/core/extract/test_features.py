"""Facts of a chunk or line are computed from its parts; they equal those of the definition for the whole."""

from __future__ import annotations

from bisect import bisect_left

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from compactd.core.extract.facts import FactCache
from compactd.core.extract.features import (
    ATOM,
    ATOM_SHAPES,
    WORD,
    WORD_CHARS,
    WORD_SHAPES,
    Atoms,
    Chunks,
    Features,
    feature_number,
)
from compactd.core.extract.line_roles import ASSISTANT, RESULT, USER
from compactd.core.extract.markers import MARKS, Mark
from compactd.core.history.entries import Item
from compactd.core.planning.plan import CompactRequest, Plan, plan
from compactd.core.summary.compaction import Draft, SummaryInput, compact
from compactd.core.text.atoms import CONSTRAINT, CUE, ERROR, atoms_of_chunk, signs_of_chunk, words_of_chunk
from compactd.protocol.messages import Block, Message, Role, Text, ToolCall, ToolResult
from tests.support.dialogue import drive, inputs_of, view_of
from tests.support.examples import examples

PARTS = """. - -- / _ $ :// http foo Foo fooBar foo_bar .py py .json -.json json 1 12 1.2.3 deadbee1
abcdef0123 abc ABC é 漢字 ſ ( ) " ' , ; = < > # @ ~/ ../ v1 ˟ ˿ — → K İ !!!!!!!!!!! _______
must decided error"""
CHUNKS = st.one_of(
    st.lists(st.sampled_from([*PARTS.split(), "a" * 61, "B" * 12, "q" * 300]), min_size=1, max_size=7).map(
        "".join
    ),
    st.text("aB1._-/$:+~@(fé", min_size=1, max_size=24),
)


def whole(chunk: str) -> Features:
    """Return the features of the whole chunk, by their definitions."""
    shown = [
        feature_number(f"{kind} {value}", ATOM, ATOM_SHAPES[kind]) for kind, value in atoms_of_chunk(chunk)
    ]
    shown += [
        feature_number(word, WORD, bisect_left(WORD_SHAPES, len(word)))
        for word in words_of_chunk(chunk)
        if len(word) >= WORD_CHARS
    ]
    return tuple(dict.fromkeys(shown))


@settings(deadline=None, max_examples=examples(400))
@given(CHUNKS)
def test_what_a_chunk_shows_by_its_runs_is_what_it_shows_as_a_whole(chunk: str) -> None:
    known = Chunks(Atoms())

    hashes, features, cost = known[chunk]

    assert tuple(dict.fromkeys(features)) == whole(chunk)
    assert len(hashes) == len(signs_of_chunk(chunk))
    general = known._in_general(chunk, signs_of_chunk(chunk))
    assert (hashes, cost) == (general[0], general[2])


LINES = st.lists(
    st.one_of(
        st.text("never abr. İſıK", max_size=12),
        st.sampled_from(
            ["It ſhould be.", "The real issue was it", "must", "an ERROR", "error", "terrors", "No such file",
             "DON'T", "İ must", "keep", "only ıf", "最好不要", "use it", "switched to", "do\u00a0not", ""]
        ),
    ),
    max_size=12,
)  # fmt: skip


@settings(deadline=None, max_examples=examples(300))
@given(LINES, st.sampled_from([(USER, CONSTRAINT), (ASSISTANT, CUE), (RESULT, ERROR)]), st.integers(0, 600))
def test_lines_looked_through_together_are_marked_as_one_by_one(lines, case, before) -> None:
    role, pattern = case
    lines = [*(["nothing here"] * before), *lines]

    mark: Mark = MARKS[role]

    assert mark.places(lines) == {at for at, line in enumerate(lines) if pattern.search(line) is not None}


def item(number: int, role: Role, *blocks: Block) -> Item:
    body = Message(role=role, content=blocks)
    return Item(entry_id=f"e{number}", body=body, tokens=200)


TEXTS = st.lists(
    st.sampled_from(
        ["See /home/me/app/core/store.py", "core/store.py has loadEntry", "    return load_entry(key)",
         "--dry-run deadbeef12", "12→def load_entry(key):", "(" + "?!." * 700 + ")", "never rename loadEntry",
         "x " * 200, "https://example.org/a/b", "git rebase main --onto x", "漢字だ。load_entry。"]
    ),
    max_size=6,
).map("\n".join)  # fmt: skip


@st.composite
def conversations(draw: st.DrawFn) -> tuple[Item, ...]:
    items = [item(1, "user", Text(text=draw(TEXTS) + "\nPlease."))]
    for n in range(draw(st.integers(1, 5))):
        given = {"command": draw(TEXTS), "file_path": f"/home/me/app/core/{n}.py"}
        call = ToolCall(call_id=f"t{n}", name="Bash", arguments=Raw(msgspec.json.encode(given)))
        items.append(item(len(items) + 1, "assistant", Text(text=draw(TEXTS)), call))
        items.append(item(len(items) + 1, "tool", ToolResult(call_id=f"t{n}", content=draw(TEXTS))))
    return (*items, item(len(items) + 1, "assistant", Text(text="Done.")))


@settings(deadline=None, max_examples=examples(60))
@given(conversations(), st.integers(0, 12))
def test_dropping_the_oldest_names_the_same_whatever_was_read_ahead(items, ahead) -> None:
    inputs = inputs_of(view_of(items), request=CompactRequest(strategy="truncate", keep_messages=1))
    made = plan(inputs)
    if not isinstance(made, Plan):
        return
    texts = []
    for count in (0, ahead, len(items)):
        cache = FactCache()
        for one in items[:count]:
            cache.learn(one)
        _, end = drive(compact(SummaryInput(plan=made, facts=cache)))
        texts.append((end.summary, end.result) if isinstance(end, Draft) else end)

    assert texts[0] == texts[1] == texts[2]
