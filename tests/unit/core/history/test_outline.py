"""The outline of a view, which plans use, equals one computed from all messages, however it was built."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from compactd.core.history.entries import Item
from compactd.core.history.lazy_message import LazyMessage
from compactd.core.history.message_kinds import kind_of, newest_request
from compactd.core.history.outline import MAX_OUTLINE_TOKENS, OutlineBuilder
from compactd.core.history.view_cache import MAX_INLINE_MESSAGES, ViewCache
from compactd.core.planning.cut_points import walk_back
from compactd.core.tokens.counting import Counter
from compactd.formats.messages.neutral import decode_message
from compactd.protocol.messages import Message, Meta, Text, ToolCall, ToolResult
from tests.support import cut_laws
from tests.support.conversations import conversations, items_of
from tests.support.cut_laws import outline_of
from tests.support.dialogue import CHARS4, dialogue, ids

LAWS = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""No clock decides whether a law holds."""

HELLO = Raw(b'{"role": "user", "content": "hello"}')


def batches(items: tuple[Item, ...]) -> list[frozenset[int]]:
    known = cut_laws.batches(items)
    return [known.get(index, frozenset((index,))) for index in range(len(items))]


def tool(*call_ids: str) -> Message:
    return Message(role="tool", content=tuple(ToolResult(call_id=each, content="x") for each in call_ids))


def calls(*call_ids: str) -> Message:
    made = tuple(ToolCall(call_id=each, name="run", arguments=Raw(b"{}")) for each in call_ids)
    return Message(role="assistant", content=made)


def user(text: str, **meta: object) -> Message:
    return Message(role="user", content=(Text(text=text),), meta=Meta(**meta))  # type: ignore[arg-type]


@given(conversations())
@LAWS
def test_an_outline_says_what_the_laws_say_of_the_whole_view(messages: list[Message]) -> None:
    items = tuple(items_of(messages))

    outline = outline_of(items)

    assert tuple(outline.safe(0, len(items))) == cut_laws.lawful_cuts(items)
    assert [outline.batch(index) for index in range(len(items))] == batches(items)
    assert outline.unanswered == cut_laws.unanswered(items)
    assert outline.left_out == cut_laws.left_out(items)
    assert outline.moved == cut_laws.moved(items)
    assert outline.visible_tokens == cut_laws.shown_tokens(items)
    assert outline.pinned == cut_laws.pinned(items)
    assert outline.request == newest_request(items)
    assert outline.typed_request == cut_laws.newest_spoken(items)
    assert [outline.kind(index) for index in range(len(items))] == [kind_of(i.message) for i in items]
    assert list(outline.ids) == ids(items)
    assert [outline.tokens(index) for index in range(len(items))] == [item.tokens for item in items]


@given(conversations(), st.integers(0, 20))
@LAWS
def test_an_outline_that_was_kept_up_is_that_of_the_whole_view(messages: list[Message], begun: int) -> None:
    items = items_of(messages)
    outlining = OutlineBuilder(items[:begun])

    for item in items[begun:]:
        outlining.outline()
        outlining.add(item)

    assert outlining.outline() == outline_of(items)


@given(conversations(), st.integers(1, 60), st.integers(0, 3), st.booleans())
@LAWS
def test_a_search_in_the_sums_stops_where_the_walk_back_does(
    messages: list[Message], keep: int, start: int, inclusive: bool
) -> None:
    items = items_of(messages)

    stop = walk_back(outline_of(items), keep, start, inclusive=inclusive)

    assert stop == cut_laws.stop_of_walk(items, keep, start, inclusive=inclusive)


@given(conversations(), st.data())
@LAWS
def test_searches_for_a_safe_cut_find_the_nearest_one_of_their_kinds(
    messages: list[Message], data: st.DataObject
) -> None:
    items = items_of(messages)
    kinds = data.draw(st.sets(st.sampled_from(("user", "bash", "assistant", "system")), min_size=1))
    first, last = (data.draw(st.integers(0, len(items))) for _ in range(2))
    outline, safe = outline_of(items), cut_laws.lawful_cuts(items)
    ahead = [cut for cut in safe if first <= cut < len(items) and kind_of(items[cut].message) in kinds]
    back = [c for c in safe if first <= c <= last and (c == len(items) or kind_of(items[c].message) in kinds)]
    tails = [cut for cut in safe if cut < len(items)]

    assert outline.first_safe(first, kinds) == min(ahead, default=None)
    assert outline.last_safe(first, last, kinds) == max(back, default=None)
    assert outline.smallest_tail_start == max(tails, default=0)


def test_a_result_far_behind_its_call_binds_all_between_and_stands_apart() -> None:
    messages = [user("go"), calls("a", "b"), tool("b"), user("and?"), tool("a"), user("so")]

    outline = outline_of(items_of(messages))

    assert tuple(outline.safe(0, 6)) == (0, 1, 5, 6)
    assert outline.moved == {4: (0,)}
    assert outline.batch(4) == frozenset((1, 2, 4))
    assert outline.batch(3) == frozenset((3,))


def test_results_of_no_call_and_second_ones_are_left_out() -> None:
    outline = outline_of(items_of([calls("a"), tool("a", "a", "z"), tool("a")]))

    assert outline.left_out == {1: (1, 2), 2: (0,)}


def test_a_call_whose_id_comes_again_stays_without_a_result() -> None:
    outline = outline_of(items_of([calls("a", "a"), tool("a"), calls("a"), tool("a", "a")]))

    assert outline.unanswered == {0: 1}
    assert outline.left_out == {3: (1,)}
    assert outline.is_safe(4)


def test_tokens_that_no_message_can_have_break_nothing() -> None:
    items = [
        replace(item, tokens=tokens) for item, tokens in zip(dialogue("U9 A9"), (-5, 10**30), strict=True)
    ]

    outline = outline_of(items)

    assert [outline.tokens(0), outline.tokens(1)] == [0, MAX_OUTLINE_TOKENS]
    assert walk_back(outline, 10, 0, inclusive=False) == 1


def test_what_is_kept_is_taken_in_with_each_append_and_never_decodes_a_message() -> None:
    items = list(dialogue("U9 A9"))
    stored = LazyMessage(HELLO, decode_message)
    kept = ViewCache()
    for count in (1, 2):
        kept.take_in(items[:count])
    assert kept.snapshot(items, lambda _: (), 0).outline == outline_of(items)

    items.append(Item(entry_id="e3", body=stored, tokens=2))
    kept.take_in(items)

    assert kept.snapshot(items, lambda _: (), 0).outline is None
    assert not stored.is_decoded


def test_an_outline_that_a_plan_worked_out_is_kept_up_by_what_comes_next() -> None:
    items = [*dialogue("U9 A9 T9"), Item(entry_id="e4", body=LazyMessage(HELLO, decode_message), tokens=2)]
    kept = ViewCache()
    kept.take_in(items)
    known = kept.snapshot(items, lambda _: (), 0)
    assert known.outline is None

    later = [*items, *dialogue("U9", first=5)]
    worked_out = known.outline_of(tuple(items))
    kept.take_in(later)

    assert worked_out == outline_of(items)
    assert kept.snapshot(later, lambda _: (), 0).outline == outline_of(later)


def test_what_is_appended_while_a_plan_works_the_outline_out_is_taken_in_with_the_next() -> None:
    said = dialogue("U9 A9 T9 U9 A9")
    stored = Item(entry_id="e0", body=LazyMessage(HELLO, decode_message), tokens=2)
    items = [stored, *said[:3]]
    kept = ViewCache()
    kept.take_in(items[:1])
    known = kept.snapshot(items, lambda _: (), 0)

    items.append(said[3])
    kept.take_in(items)
    known.outline_of(tuple(items[:4]))
    items.append(said[4])
    kept.take_in(items)

    assert kept.snapshot(items, lambda _: (), 0).outline == outline_of(items)


def test_an_outline_that_fell_far_behind_is_worked_out_anew() -> None:
    items = list(dialogue(" ".join(["U9"] * (MAX_INLINE_MESSAGES + 2))))
    kept = ViewCache()
    kept.take_in(items[:1])

    kept.take_in(items)

    known = kept.snapshot(items, lambda _: (), 0)
    assert known.outline is None
    assert known.outline_of(tuple(items)) == outline_of(items)


class Counting:
    """Four characters a token, and a note of each text."""

    name = "counting"
    exact = False

    def __init__(self) -> None:
        self.texts: list[str] = []

    def count(self, text: str) -> int:
        self.texts.append(text)
        return CHARS4.count(text)


def test_what_each_plan_counts_is_counted_once_for_each_counter() -> None:
    kept, first, second = ViewCache(), Counting(), Counting()
    counters: tuple[Counter, ...] = (first, first, second)

    seen = [kept.count_with(counter)("a text that stays") for counter in counters]

    assert seen == [5, 5, 5]
    assert (first.texts, second.texts) == (["a text that stays"], ["a text that stays"])
