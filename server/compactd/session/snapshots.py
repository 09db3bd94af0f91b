"""Snapshots of the files in a session's work tree, taken at the start and end of each turn, and diffs between
snapshots.

A snapshot that fails does not stop the turn. The next diff gives the reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import UNSET

from compactd.core.history.entries import EntryId, Snapshot, number_of
from compactd.core.history.message_kinds import is_request
from compactd.protocol.errors import CompactdError, InvalidParams
from compactd.protocol.wire import DiffResult
from compactd.session.git.snapshots import GitTrees
from compactd.session.git.work_tree import NoTree, work_tree_of

if TYPE_CHECKING:
    from compactd.session.session import Session


class Snapshots:
    """The snapshots of one session."""

    def __init__(self, trees: GitTrees) -> None:
        self._trees = trees
        self._failed: str | None = None
        """Why the last snapshot could not be taken, or None."""
        self._times_forgotten = 0

    async def take(self, session: Session, moment: Literal["begin", "end"]) -> None:
        """Take a snapshot of the files as they are now, record it in the journal, and wait until it is on
        disk. `moment` says whether a turn begins or ends.

        Does nothing if the session takes no snapshots or is not stored, or if nothing changed since the last
        snapshot. Never raises.
        """
        working_dir = session.working_dir
        if not session.state.takes_snapshots or not session.persistent or working_dir is None:
            return
        entry_id, forgotten = _newest_request(session), self._times_forgotten
        try:
            tree = await asyncio.to_thread(self._trees.snapshot, working_dir)
        except NoTree as none:
            self._failed = none.reason
            return
        self._failed = None
        last = session.state.snapshots[-1:]
        if session.is_closed or forgotten != self._times_forgotten:
            return
        if last and (last[0].tree, last[0].entry_id) == (tree, entry_id):
            return
        taken = Snapshot(at=session.host.now(), moment=moment, tree=tree, entry_id=entry_id)
        try:
            await session.wait_durable(session.write(taken))
        except CompactdError as error:
            self._failed = error.message

    async def difference(self, session: Session, first: EntryId | None, last: EntryId | None) -> DiffResult:
        """Return the files that changed from the start of the turn of `first` to the end of the turn of
        `last`.

        `first` and `last` are messages of the user; None means the first or the last turn. Raises
        `InvalidParams` for an id that is not a message of the user, or if `last` is older than `first`.
        """
        for name, entry_id in (("from", first), ("to", last)):
            _check(session, name, entry_id)
        if first is not None and last is not None and _number(last) < _number(first):
            raise InvalidParams(f"`to` {last!r} is older than `from` {first!r}; swap them", "$.to")
        working_dir, taken = session.working_dir, tuple(session.state.snapshots)
        if working_dir is None or not taken:
            return DiffResult(files=(), reason=await asyncio.to_thread(self._why_none, session))
        span = _span(taken, first, last)
        if span is None:
            return DiffResult(files=(), reason="no snapshot was taken in those turns")
        before, after = span
        try:
            root = await asyncio.to_thread(lambda: str(work_tree_of(working_dir).root))
            files = await asyncio.to_thread(self._trees.difference, before.tree, after.tree, working_dir)
            hidden = await asyncio.to_thread(self._trees.hidden_since, before.at, working_dir)
        except NoTree as none:
            return DiffResult(files=(), reason=none.reason)
        is_short = any(UNSET in (file.before, file.after) for file in files)
        return DiffResult(
            files=files,
            root=root,
            reason="contents that are not text, or are too large, are left out" if is_short else None,
            hidden=hidden,
        )

    async def forget(self, *, for_good: bool = False) -> None:
        """Delete every snapshot from disk. With `for_good`, take no further ones: the session is being
        deleted.
        """
        self._times_forgotten += 1
        await asyncio.to_thread(lambda: self._trees.forget(for_good=for_good))

    def _why_none(self, session: Session) -> str:
        if not session.state.takes_snapshots:
            return "the session was started without `snapshots`"
        if not session.persistent:
            return "the session is kept only in memory, so no snapshots of its files are kept either"
        if session.working_dir is None:
            return "the session has no working_dir"
        if self._failed is not None:
            return self._failed
        try:
            work_tree_of(session.working_dir)
        except NoTree as none:
            return none.reason
        if session.state.redacted:
            return "no snapshot was taken since session/redact, which deletes earlier ones"
        return "no snapshot was taken yet; they are taken at turn/begin and turn/end"


def _span(
    taken: Sequence[Snapshot], first: EntryId | None, last: EntryId | None
) -> tuple[Snapshot, Snapshot] | None:
    """Return the snapshots at the start of the turn of `first` and at the end of the turn of `last`, or None
    if no snapshot was taken in these turns. `taken` are all snapshots, oldest first.
    """
    start = 0
    if first is not None:
        places = (i for i, one in enumerate(taken) if _number(one.entry_id) >= _number(first))
        start = next(places, len(taken))
    end = len(taken) - 1
    if last is not None:
        places = (i for i, one in enumerate(taken) if _number(one.entry_id) <= _number(last))
        end = max(places, default=-1)
    if start < len(taken) and start > 0 and taken[start].moment == "end":
        # The snapshot at the turn's start is missing. The end of the previous turn has the same files.
        start -= 1
    if start == len(taken) or end < start:
        return None
    return taken[start], taken[end]


def _number(entry_id: EntryId | None) -> int:
    return 0 if entry_id is None else number_of(entry_id) or 0


def _check(session: Session, name: str, entry_id: EntryId | None) -> None:
    item = None if entry_id is None else session.state.originals.get(entry_id)
    if entry_id is not None and (item is None or not is_request(item.message)):
        raise InvalidParams(
            f"{entry_id!r} is not a user's message of this session; session/history lists them", f"$.{name}"
        )


def _newest_request(session: Session) -> EntryId | None:
    state = session.state
    for entry_id in reversed(state.path):
        item = state.originals.get(entry_id)
        if item is not None and is_request(item.message):
            return entry_id
    return None
