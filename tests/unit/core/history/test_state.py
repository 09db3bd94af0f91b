"""The fold: what each entry of a journal does to a session's state."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from compactd.core.history.entries import (
    Appended,
    Branched,
    Compacted,
    Entry,
    ModelSet,
    Pruned,
    Redone,
    SettingsSet,
    Stub,
    Undone,
    UsageReported,
)
from compactd.core.history.state import SessionState, replay
from compactd.formats.messages.neutral import decode_message
from compactd.protocol.messages import CompactionResult, Usage


def said(number: int, text: str = "x" * 40, role: str = "user", parent: int | None = None) -> Appended:
    raw = msgspec.json.encode({"role": role, "content": text})
    return Appended(
        id=f"e{number}",
        at=float(number),
        tokens=(len(text) // 4, "chars4"),
        message=Raw(raw),
        parent=None if parent is None else f"e{parent}",
    )


def compacted(number: int, first_kept: str | None, epoch: int, pinned: tuple[str, ...] = ()) -> Compacted:
    return Compacted(
        id=f"e{number}",
        at=float(number),
        compaction_id=f"c{number}",
        epoch=epoch,
        summary=f"summary {number}",
        summary_tokens=3,
        result=CompactionResult(compacted=True),
        parent=f"e{number - 1}",
        first_kept=first_kept,
        pinned=pinned,
    )


def ids(state: SessionState) -> list[str]:
    return [item.entry_id for item in state.view().items]


def linear(*entries: Entry) -> SessionState:
    """The fold of entries that each follow the one before."""
    parent: str | None = None
    chained: list[Entry] = []
    for entry in entries:
        if isinstance(entry, Appended | Compacted | Pruned):
            entry = msgspec.structs.replace(entry, parent=parent)
            parent = entry.id
        chained.append(entry)
    return replay(chained, decode_message)


def test_a_compaction_shows_summary_then_pinned_then_tail() -> None:
    state = linear(*(said(n) for n in range(1, 7)), compacted(7, "e5", 2, pinned=("e3",)), said(8))

    assert ids(state) == ["e7", "e3", "e5", "e6", "e8"]
    assert state.tail_from == 2
    assert state.view().tokens == 3 + 4 * 10
    assert state.epoch == 2


def test_undo_brings_the_first_view_back_and_later_messages_stay() -> None:
    before = [said(n) for n in range(1, 5)]
    state = linear(
        *before, compacted(5, "e3", 2), compacted(6, "e4", 3), said(7), Undone(at=0, target="e6", epoch=4)
    )
    assert ids(state) == ["e5", "e3", "e4", "e7"]

    state.apply(Undone(at=0, target="e5", epoch=5))
    assert ids(state) == ["e1", "e2", "e3", "e4", "e7"]

    state.apply(Redone(at=0, target="e5", epoch=6))
    assert ids(state) == ["e5", "e3", "e4", "e7"]
    assert state.in_force.last_undone is not None


def test_only_summaries_that_no_message_precedes_are_earlier_ones() -> None:
    state = linear(compacted(1, None, 2), said(2), said(3), compacted(4, "e3", 3), said(5))
    assert [item.entry_id for item in state.earlier_summaries()] == ["e1"]
    assert [item.message.content[0].text for item in state.earlier_summaries()] == ["summary 1"]

    state.apply(Undone(at=0, target="e4", epoch=4))
    assert [item.entry_id for item in state.earlier_summaries()] == ["e1"]

    state.apply(Undone(at=0, target="e1", epoch=5))
    assert state.earlier_summaries() == ()
    assert linear(said(1), compacted(2, None, 2)).earlier_summaries() == ()


def test_a_new_compaction_clears_redo() -> None:
    state = linear(said(1), said(2), compacted(3, "e2", 2), Undone(at=0, target="e3", epoch=3))

    state.apply(compacted(4, "e2", 4))

    assert state.in_force.last_undone is None


def test_a_tail_that_is_empty_begins_with_what_comes_after_the_compaction() -> None:
    state = linear(said(1), said(2), compacted(3, None, 2, pinned=("e2",)), said(4))

    assert ids(state) == ["e3", "e2", "e4"]


def test_a_prune_shows_stubs_and_keeps_the_original() -> None:
    result = msgspec.json.encode(
        {"role": "tool", "content": [{"type": "tool_result", "call_id": "t1", "content": "y" * 400}]}
    )
    tool = Appended(id="e2", at=0, tokens=(100, "chars4"), message=Raw(result))
    state = linear(said(1), tool, Pruned(id="e3", at=5.0, epoch=2, stubs=(Stub("e2", ((0, "[gone]"),), 2),)))

    shown = state.view().items[1]
    assert (shown.kind, shown.tokens, shown.message.content[0].content) == ("stub", 2, "[gone]")
    assert state.originals["e2"].tokens == 100
    assert bytes(state.originals["e2"].source) == result


def test_a_branch_leaves_the_other_one_out_and_deletes_nothing() -> None:
    state = linear(said(1), said(2), said(3))
    state.apply(Branched(at=0, entry_id="e1", epoch=2))
    state.apply(said(4, parent=1))

    assert ids(state) == ["e1", "e4"]
    assert set(state.originals) == {"e1", "e2", "e3", "e4"}


def test_a_report_is_the_base_and_what_follows_it_trails() -> None:
    state = linear(said(1), said(2, role="assistant"))
    state.apply(UsageReported(at=0, usage=Usage(input_tokens=500, output_tokens=30), epoch=1, entry_id="e2"))
    state.apply(said(3, parent=2))

    assert (state.base, state.trailing, state.size) == (500, 40, 540)


def test_a_report_of_an_older_epoch_bills_and_sets_no_size() -> None:
    state = linear(said(1), said(2, role="assistant"), compacted(3, "e2", 2))
    state.apply(UsageReported(at=0, usage=Usage(input_tokens=500), epoch=1, entry_id="e2"))

    assert state.base is None
    assert state.billing.prompt == 500


def test_a_changed_system_prompt_adds_its_difference_to_the_base() -> None:
    state = linear(said(1, role="assistant"))
    state.apply(SettingsSet(at=0, fixed_tokens=(100, 0)))
    state.apply(UsageReported(at=0, usage=Usage(input_tokens=500), epoch=1, entry_id="e1"))

    state.apply(SettingsSet(at=0, fixed_tokens=(150, 20)))

    assert state.size == 500 + 70


def test_another_model_forgets_the_base() -> None:
    state = linear(said(1, role="assistant"), ModelSet(at=0, model="a", epoch=1))
    state.apply(UsageReported(at=0, usage=Usage(input_tokens=500), epoch=1, entry_id="e1"))

    state.apply(ModelSet(at=0, model="b", epoch=2))

    assert (state.base, state.last_prompt_tokens, state.epoch) == (None, 0, 2)


def test_messages_counted_by_another_estimator_are_counted_again() -> None:
    state = linear(said(1), said(2), compacted(3, "e2", 2))

    state.recount("words", lambda message: 7)

    assert [item.tokens for item in state.view().items] == [7, 7]
    assert state.items_tokens == 14


def plain_view(entries: list[Entry]) -> list[str]:
    """The view by its definition, looked up again from the start for every entry."""
    order: list[str] = []
    force: list[Compacted] = []
    undone: list[Compacted] = []
    for entry in entries:
        match entry:
            case Appended():
                order.append(entry.id)
            case Compacted():
                order.append(entry.id)
                force.append(entry)
                undone.clear()
            case Undone():
                undone.append(force.pop())
            case Redone():
                force.append(undone.pop())
    messages = [entry.id for entry in entries if isinstance(entry, Appended)]
    if not force:
        return messages
    last = force[-1]
    start = order.index(last.first_kept or last.id)
    return [last.id, *last.pinned, *(i for i in order[start:] if i in messages)]


@given(st.lists(st.integers(0, 9), max_size=40))
def test_the_incremental_view_equals_the_view_by_definition(script: list[int]) -> None:
    entries: list[Entry] = []
    state = SessionState(decode_message)
    number, parent, epoch = 0, None, 1
    for act in script:
        made: Entry
        foretold: int | None = None
        messages = [e.id for e in entries if isinstance(e, Appended)]
        if act == 7 and messages:
            number, epoch = number + 1, epoch + 1
            cut = messages[len(messages) // 2]
            made = msgspec.structs.replace(
                compacted(number, cut, epoch, pinned=tuple(messages[: len(messages) // 2][-1:])),
                parent=parent,
            )
            parent = made.id
        elif act == 8 and state.in_force.last is not None:
            epoch += 1
            made = Undone(at=0, target=state.in_force.last.id, epoch=epoch)
            foretold = state.estimated_after(made)
        elif act == 9 and state.in_force.last_undone is not None:
            epoch += 1
            made = Redone(at=0, target=state.in_force.last_undone.id, epoch=epoch)
            foretold = state.estimated_after(made)
        else:
            number += 1
            made = msgspec.structs.replace(said(number), parent=parent)
            parent = made.id
        entries.append(made)
        state.apply(made)

        assert foretold is None or foretold == state.estimated_size
        assert ids(state) == plain_view(entries)
        assert state.items_tokens == sum(item.tokens for item in state.items)

    assert replay(entries, decode_message).view() == state.view()
