"""Undo, redo and branch of a session.

Each of these operations appends a marker entry to the journal. Nothing is deleted.
"""

from __future__ import annotations

from compactd.core.budget.budget import compute_budget
from compactd.core.budget.usage_report import estimated_size, scale_of
from compactd.core.history.active_steps import ViewStep
from compactd.core.history.entries import Branched, EntryId, Redone, Undone
from compactd.core.history.projection import Pending
from compactd.protocol.errors import CannotFit, InvalidParams, NothingToUndo
from compactd.session.session import Session


def undo(session: Session, *, force: bool = False) -> tuple[ViewStep, int]:
    """Undo the last compaction or prune; later messages stay. Return (the compaction or prune, the number of
    the new record, for `Session.wait_durable`).

    Raises `CannotFit` if the next request would then be over the cap. With `force` the undo happens
    anyway, and the next `turn/begin` makes the request fit. Also raises `SessionBusy`, `SessionLocked`,
    `NothingToUndo`.
    """
    return _rewind(session, session.state.in_force.last, Undone, "undo", force)


def redo(session: Session) -> tuple[ViewStep, int]:
    """Redo the compaction or prune that was undone last. Return (the compaction or prune, the number of the
    new record, for `Session.wait_durable`). Raises the errors of `undo`.
    """
    return _rewind(session, session.state.in_force.last_undone, Redone, "redo")


def branch(session: Session, entry_id: EntryId) -> int:
    """Begin a new branch after `entry_id`: make it the parent of the next entry. Return the number of the new
    record, for `Session.wait_durable`.

    The entries after `entry_id` stay in the history, on the old branch. Raises `SessionBusy`,
    `SessionLocked`, and `InvalidParams` for an id that is not an entry.
    """
    session.require_idle()
    session.require_journal()
    if not session.state.has_entry(entry_id):
        raise InvalidParams(
            f"{entry_id!r} is not an entry of this session; session/history lists them", "$.entry_id"
        )
    number = session.write(Branched(at=session.host.now(), entry_id=entry_id, epoch=session.state.epoch + 1))
    session.pending = Pending(session.state.path_items())
    return number


def _rewind(
    session: Session,
    step: ViewStep | None,
    marker: type[Undone] | type[Redone],
    word: str,
    force: bool = False,
) -> tuple[ViewStep, int]:
    session.require_idle()
    session.require_journal()
    if step is None:
        raise NothingToUndo(
            f"There is no compaction or prune to {word} in this session.", session_id=session.id
        )
    entry = marker(at=session.host.now(), target=step.id, epoch=session.state.epoch + 1)
    if not force:
        _refuse_if_over(session, entry)
    # The path's messages do not change, so the calls that wait for results stay the same too.
    return step, session.write(entry)


def _refuse_if_over(session: Session, entry: Undone | Redone) -> None:
    if not session.resolved.settings.enabled:
        return
    size = estimated_size(session.state.estimated_after(entry), scale_of(session.state, session.counter))
    after = compute_budget(session.resolved, session.window, size)
    if after.decision.kind == "over":
        raise CannotFit(
            f"cannot fit: the conversation would take {after.used:,} of {after.window or 0:,} tokens. "
            "Compact with a smaller budget instead, or choose a model with a larger window. session/undo "
            "with `force: true` undoes it anyway; the next turn/begin then compacts again.",
            used=after.used,
            window=after.window,
        )
