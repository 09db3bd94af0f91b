"""How likely it is that a thing is written again, and the cover that is made of it."""

from __future__ import annotations

import math

import msgspec
import pytest
from msgspec import Raw

from compactd.core.conversation import FEATURE_WORTH, Conversation
from compactd.core.cover import Candidates, cover
from compactd.core.entries import Item
from compactd.core.lexicon import ATOM, KINDS
from compactd.core.reuse import INPUTS, Chances, Statistics
from compactd.core.units import FactCache
from compactd.core.weights import ATOM_WEIGHTS, LINE_WEIGHTS, RUN_WEIGHTS, WORD_WEIGHTS
from compactd.messages import Block, Message, Role, Text, ToolCall, ToolResult


def item(number: int, role: Role, *blocks: Block, tokens: int = 500) -> Item:
    return Item(entry_id=f"e{number}", body=Message(role=role, content=blocks), tokens=tokens)


def call(call_id: str, name: str, **arguments: object) -> ToolCall:
    return ToolCall(call_id=call_id, name=name, arguments=Raw(msgspec.json.encode(arguments)))


READ_ONLY = "def never_edited(key): return old_table[key]"
EDITED = "def load_entry(key): return cache_table[key]"
STORY = (
    item(1, "user", Text(text="Mend load_entry in the loader, keep the cache_table.")),
    item(2, "assistant", call("t1", "Read", file_path="src/loader.py")),
    item(3, "tool", ToolResult(call_id="t1", content=EDITED), tokens=9000),
    item(4, "assistant", call("t2", "Read", file_path="src/other.py")),
    item(5, "tool", ToolResult(call_id="t2", content=READ_ONLY), tokens=4000),
    item(
        6, "assistant", call("t3", "Edit", file_path="src/loader.py", old_string=EDITED, new_string="x_y = 1")
    ),
    item(7, "tool", ToolResult(call_id="t3", content="ok")),
    item(8, "assistant", call("t4", "Bash", command="go vet ./...\ngo test ./..."), tokens=2000),
    item(9, "tool", ToolResult(call_id="t4", content="ok load_entry passed")),
    item(10, "user", Text(text="Now the x_y of load_entry.")),
)


def told() -> tuple[Chances, FactCache]:
    cache = FactCache()
    facts = [cache.learn(each) for each in STORY]
    order = [(each, True) for each in STORY]
    scene = Conversation(order, facts, STORY[-1], cache.lexicon).scene
    return Chances(Statistics(scene)), cache


def test_the_tables_give_the_logistic_of_weights_and_inputs() -> None:
    chances, _ = told()
    betas = (ATOM_WEIGHTS, WORD_WEIGHTS, RUN_WEIGHTS, LINE_WEIGHTS)
    found = chances.weights(FEATURE_WORTH)

    assert len(found) == chances.statistics.scene.size
    for feature, weight in enumerate(found):
        if chances.statistics.last[feature] < 0:
            assert weight == 0
            continue
        kind = feature % KINDS
        z = sum(b * x for b, x in zip(betas[kind], chances.inputs(feature), strict=True))
        assert weight == pytest.approx(FEATURE_WORTH[kind] / (1 + math.exp(-z)))


def test_the_inputs_tell_where_and_how_often_a_name_stands() -> None:
    chances, cache = told()

    def of(name: str) -> dict[str, float]:
        return dict(zip(INPUTS, chances.inputs(cache.lexicon.atoms["id", name]), strict=True))

    entry = of("load_entry")
    assert entry["log of messages that show it"] == pytest.approx(math.log(5))
    assert entry["log of 1 + results that show it"] == pytest.approx(math.log(3))
    assert entry["in the newest request"] == 1
    assert entry["in a replaced text"] == 1
    assert entry["freshness of the last mention"] == 0
    assert of("never_edited")["read, in files never edited"] == 1
    assert of("load_entry")["read, in files never edited"] == 0
    assert of("never_edited")["log of 1 + user turns since the last mention"] == pytest.approx(math.log(2))


def test_what_is_used_often_and_lately_is_likelier_than_what_was_read_once() -> None:
    chances, cache = told()
    found = chances.weights(FEATURE_WORTH)
    number = cache.lexicon.atoms

    assert found[number["id", "load_entry"]] > found[number["id", "old_table"]]
    assert number["id", "load_entry"] % KINDS == ATOM


def candidates(*features: tuple[int, ...], header: int = -1) -> Candidates:
    count = len(features)
    return Candidates(
        features=list(features),
        price=[1.0] * count,
        worth=[1.0] * count,
        group=[0] * count,
        part=list(range(count)),
        header=[header],
        opening=[0.0],
    )


def test_each_feature_pays_once_and_ties_go_to_the_older_unit() -> None:
    assert cover(candidates((0, 1), (0, 1), (1, 2)), [5.0, 4.0, 3.0], 10) == [0, 2]


def test_a_unit_brings_its_calls_header_with_it() -> None:
    assert cover(candidates((0,), (1,), (2,), header=0), [0.1, 5.0, 0.0], 10) == [0, 1]


def test_the_cover_ends_at_its_budget() -> None:
    units = [(n,) for n in range(50)]

    assert cover(candidates(*units), [50.0 - n for n in range(50)], 7) == list(range(7))


def test_a_neighbour_of_what_is_quoted_is_worth_more() -> None:
    lines = candidates((0,), (1,), (2,))
    lines.part = [0, 0, 1]

    assert cover(lines, [9.0, 1.0, 1.1], 10) == [0, 1, 2]
