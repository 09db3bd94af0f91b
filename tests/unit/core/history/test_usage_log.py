"""The log of usage reports: what changed in the context between them, and which model answered."""

from __future__ import annotations

import pytest
from msgspec import Raw

from compactd.core.history.entries import (
    Appended,
    Branched,
    Compacted,
    CompactionEnded,
    Entry,
    ModelSet,
    Pruned,
    Redacted,
    Redone,
    SettingsSet,
    Undone,
    UsageReported,
)
from compactd.core.history.state import SessionState, replay
from compactd.core.history.usage_log import LoggedRequest, LoggedSummary
from compactd.formats.messages.neutral import decode_message
from compactd.protocol.messages import CompactionResult, Usage


def report(epoch: int = 1, **more: object) -> UsageReported:
    return UsageReported(at=1.0, usage=Usage(input_tokens=100), epoch=epoch, **more)  # type: ignore[arg-type]


def compacted(epoch: int, **result: object) -> Compacted:
    return Compacted(
        id="e2",
        at=1.0,
        compaction_id="c1",
        epoch=epoch,
        summary="…",
        summary_tokens=3,
        result=CompactionResult(compacted=True, **result),  # type: ignore[arg-type]
        parent="e1",
    )


def pruned(epoch: int, **more: object) -> Pruned:
    return Pruned(id="e2", at=1.0, epoch=epoch, stubs=(), parent="e1", **more)  # type: ignore[arg-type]


MESSAGE = Appended(id="e1", at=1.0, tokens=(2, "chars4"), message=Raw(b'{"role":"user","content":"a"}'))
MODEL = ModelSet(at=1.0, model="a/one")


def fold(*entries: Entry) -> SessionState:
    return replay((MODEL, MESSAGE, *entries), decode_message)


def changes(state: SessionState) -> list[set[str]]:
    return [set(item.changes) for item in state.usage_log.items if isinstance(item, LoggedRequest)]


@pytest.mark.parametrize(
    ("entries", "change"),
    [
        ((compacted(2),), "compaction"),
        ((pruned(2),), "prune"),
        ((Branched(at=1.0, entry_id="e1", epoch=2),), "messages"),
        ((Redacted(at=1.0, entry_ids=("e1",), epoch=2),), "messages"),
        ((SettingsSet(at=1.0, system_prompt="Be brief.", epoch=2),), "system"),
        ((SettingsSet(at=1.0, tools=(Raw(b'{"name":"run"}'),), epoch=2),), "tools"),
        ((ModelSet(at=1.0, model="a/two", epoch=2),), "model"),
        ((ModelSet(at=1.0, model="a/one", base_url="http://host", epoch=2),), "model"),
        ((SettingsSet(at=1.0, system_prompt=""),), None),
        ((SettingsSet(at=1.0, fixed_tokens=(5, 5)),), None),
        ((ModelSet(at=1.0, model="a/two", epoch=2), ModelSet(at=1.0, model="a/one", epoch=3)), None),
    ],
)
def test_what_changed_since_the_report_before(entries: tuple[Entry, ...], change: str | None) -> None:
    state = fold(report(), *entries, report(3), report(3))

    assert changes(state) == [set(), {change} if change else set(), set()]


def test_an_undo_and_a_redo_change_the_messages() -> None:
    state = fold(
        compacted(2),
        report(2),
        Undone(at=1.0, target="e2", epoch=3),
        report(3),
        Redone(at=1.0, target="e2", epoch=4),
        report(4),
    )

    assert changes(state) == [{"compaction"}, {"messages"}, {"messages"}]


def test_a_report_of_an_older_context_does_not_have_the_change() -> None:
    state = fold(
        report(),
        compacted(2),
        ModelSet(at=1.0, model="a/two", epoch=3),
        report(1),
        report(2),
        report(3),
    )

    assert changes(state) == [set(), set(), {"compaction"}, {"model"}]
    assert [item.model for item in state.usage_log.items] == ["a/one", "a/one", "a/one", "a/two"]


def test_a_sub_agents_request_has_its_own_model_and_takes_no_change() -> None:
    side = report(2, is_side=True, is_base=False, model="a/small")
    state = fold(report(), compacted(2), side, report(2))

    assert changes(state)[2] == {"compaction"}
    assert [item.model for item in state.usage_log.items] == ["a/one", "a/small", "a/one"]
    assert state.billing.prompt == 300
    assert state.base == 100


def test_what_summaries_took_is_logged_whatever_became_of_them() -> None:
    usage = Usage(input_tokens=7)
    state = fold(
        compacted(2, usage=usage, model="a/one", cost=0.5),
        compacted(2, usage=usage),
        compacted(2),
        pruned(3, summary_usage=usage, summary_model="a/one"),
        CompactionEnded(
            at=1.0,
            compaction_id="c9",
            status="failed",
            summary_usage=usage,
            summary_model="b",
            summary_cost=0.1,
        ),
        CompactionEnded(at=1.0, compaction_id="c8", status="failed"),
    )

    assert state.usage_log.items == [
        LoggedSummary(usage=usage, model="a/one", cost=0.5),
        LoggedSummary(usage=usage, model=None, cost=None),
        LoggedSummary(usage=usage, model="a/one", cost=None),
        LoggedSummary(usage=usage, model="b", cost=0.1),
    ]
