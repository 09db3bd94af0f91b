"""The chance that a feature is used again, and the selection of text by these chances."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from benchmarks.retention.reuse_inputs import INPUTS, inputs_of
from compactd.core.extract.conversation import Conversation
from compactd.core.extract.facts import FactCache
from compactd.core.extract.features import ATOM, KINDS, feature_shape
from compactd.core.extract.greedy_cover import NEIGHBOUR_GAIN, Candidates, GreedyCover
from compactd.core.extract.reuse_model import ReuseModel, Statistics
from compactd.core.extract.reuse_weights import ATOM_WEIGHTS, LINE_WEIGHTS, RUN_WEIGHTS, WORD_WEIGHTS
from compactd.core.extract.scoring import worth_in
from compactd.core.history.entries import Item
from compactd.protocol.messages import Block, Message, Role, Text, ToolCall, ToolResult
from tests.support.examples import examples

WORTH = worth_in(1000).features


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


def told() -> tuple[ReuseModel, FactCache]:
    cache = FactCache()
    facts = [cache.learn(each) for each in STORY]
    order = [(each, True) for each in STORY]
    scene = Conversation(order, facts, STORY[-1], cache.lexicon).scene
    return ReuseModel(Statistics(scene)), cache


def test_the_tables_give_the_logistic_of_weights_and_inputs() -> None:
    chances, _ = told()
    betas = (ATOM_WEIGHTS, WORD_WEIGHTS, RUN_WEIGHTS, LINE_WEIGHTS)
    found = chances.weights(WORTH)

    for feature, weight in zip(chances.statistics.features.tolist(), found, strict=True):
        kind = feature % KINDS
        z = sum(b * x for b, x in zip(betas[kind], inputs_of(chances, feature), strict=True))
        assert weight == pytest.approx(WORTH[kind][feature_shape(feature)] / (1 + math.exp(-z)))


def test_the_inputs_tell_where_and_how_often_a_name_stands() -> None:
    chances, cache = told()

    def of(name: str) -> dict[str, float]:
        return dict(zip(INPUTS, inputs_of(chances, cache.lexicon.atoms["id", name]), strict=True))

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
    found = chances.weights(WORTH)
    number, place = cache.lexicon.atoms, chances.statistics.place

    assert found[place(number["id", "load_entry"])] > found[place(number["id", "old_table"])]
    assert number["id", "load_entry"] % KINDS == ATOM


def candidates(*features: tuple[int, ...], header: int = -1) -> Candidates:
    count = len(features)
    shown = np.array([feature for unit in features for feature in unit], np.int64)
    return Candidates(
        features=shown,
        starts=np.cumsum([0, *map(len, features)]),
        order=np.argsort(shown, kind="stable"),
        first=np.cumsum([0, *np.bincount(shown, minlength=count).tolist()]),
        price=np.ones(count),
        worth=np.ones(count),
        group=np.zeros(count, np.int64),
        part=np.arange(count),
        header=[header],
        opening=[0.0],
    )


def cover(units: Candidates, weights: list[float], budget: float) -> list[int]:
    return GreedyCover(units, np.array(weights)).pick_until(budget)


def test_each_feature_pays_once_and_ties_go_to_the_older_unit() -> None:
    assert cover(candidates((0, 1), (0, 1), (1, 2)), [5.0, 4.0, 3.0], 10) == [0, 2]


def test_a_unit_brings_its_calls_header_with_it() -> None:
    assert cover(candidates((0,), (1,), (2,), header=0), [0.1, 5.0, 0.0], 10) == [0, 1]


def test_the_cover_ends_at_its_budget() -> None:
    units = [(n,) for n in range(50)]

    assert cover(candidates(*units), [50.0 - n for n in range(50)], 7) == list(range(7))


def test_a_neighbour_of_what_is_quoted_is_worth_more() -> None:
    lines = candidates((0,), (1,), (2,))
    lines.part = np.array([0, 0, 1])

    assert cover(lines, [9.0, 1.0, 1.1], 10) == [0, 1, 2]


def test_a_cover_that_goes_on_picks_what_one_from_scratch_would() -> None:
    units = candidates(*((n % 7, 7 + n % 11, 18 + n) for n in range(40)))
    weights = np.array([float(60 - n) for n in range(58)])
    whole = GreedyCover(units, weights).pick_until(30)
    begun = GreedyCover(units, weights)

    assert tuple(begun.pick_until(5)) == tuple(whole[:5])
    assert begun.pick_until(30) == whole
    assert begun.pick_until(1000) == GreedyCover(units, weights).pick_until(1000)
    assert sorted(begun.picks) == list(range(40))


def test_a_cover_gives_a_smaller_budget_what_one_from_scratch_would_whatever_it_was_asked_before() -> None:
    units = candidates(*((n % 7, 7 + n % 11, 18 + n) for n in range(40)))
    weights = np.array([float(60 - n) for n in range(58)])
    whole = GreedyCover(units, weights)
    whole.pick_until(1000)

    for budget in range(60):
        assert whole.pick_until(budget) == GreedyCover(units, weights).pick_until(budget)


@settings(deadline=None, max_examples=examples(150))
@given(
    st.lists(st.frozensets(st.integers(0, 12), max_size=6), min_size=1, max_size=30),
    st.data(),
)
def test_each_pick_is_worth_the_most_of_all_units_for_its_price(
    shown: list[frozenset[int]], data: st.DataObject
) -> None:
    units = candidates(*(tuple(each) for each in shown))
    count = len(shown)
    units.first = np.searchsorted(np.sort(units.features), np.arange(14))
    units.price = np.array(data.draw(st.lists(st.integers(1, 9), min_size=count, max_size=count)), np.float64)
    units.part = np.sort(data.draw(st.lists(st.integers(0, 4), min_size=count, max_size=count)))
    units.group = np.array(data.draw(st.lists(st.integers(0, 2), min_size=count, max_size=count)), np.int64)
    units.header, units.opening = [-1, -1, -1], [3.0, 0.0, 5.0]
    for group in range(3):
        members = np.flatnonzero(units.group == group).tolist()
        if members and data.draw(st.booleans()):
            units.header[group], units.opening[group] = members[0], 0.0
    weights = data.draw(st.lists(st.integers(0, 20), min_size=13, max_size=13))

    assert GreedyCover(units, np.array(weights, np.float64)).pick_until(50) == slowly(
        units, shown, weights, 50
    )


def slowly(units: Candidates, shown: list[frozenset[int]], weights: list[int], budget: float) -> list[int]:
    """Compute the same cover slowly: each value from its definition at each step."""
    left, picked, spent = list(weights), [], 0.0
    open_groups: set[int] = set()

    def value(i: int) -> float:
        near = sum(n in picked and units.part[n] == units.part[i] for n in (i - 1, i + 1))
        gain, cost = sum(left[f] for f in shown[i]) * (1 + NEIGHBOUR_GAIN * near), units.price[i]
        group = units.group[i]
        if group not in open_groups:
            head = units.header[group]
            cost += units.opening[group]
            if head not in (-1, i):
                gain, cost = gain + sum(left[f] for f in shown[head]), cost + units.price[head]
        return gain / cost

    while spent < budget:
        best = max((i for i in range(len(shown)) if i not in picked), key=value, default=None)
        if best is None or value(best) <= 0:
            break
        group, taken = units.group[best], [best]
        if group not in open_groups:
            open_groups.add(group)
            spent += units.opening[group]
            if units.header[group] not in (-1, *taken, *picked):
                taken.insert(0, units.header[group])
        for unit in taken:
            picked.append(unit)
            spent += units.price[unit]
            for feature in shown[unit]:
                left[feature] = 0
    return picked
