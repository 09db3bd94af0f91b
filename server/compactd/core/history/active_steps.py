"""Which compactions and prunes of a session are in force, that is, not undone: the rules of `undo`, `redo`
and `branch`.

`undo` and `redo` are markers that name a compaction or prune. After a new compaction or prune, an undone one
can no longer be redone. On a branch, the compactions and prunes on the branch's own path are in force.
(Rules: docs/dev/behaviour.md, "Time travel".)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compactd.core.history.entries import Compacted, EntryId, Pruned, Redone, Undone

ViewStep = Compacted | Pruned
"""A compaction or prune: what `undo` takes back and `redo` restores."""


class ActiveSteps:
    """The compactions and prunes of a journal so far, and which of them are in force."""

    def __init__(self) -> None:
        self.known: dict[EntryId, ViewStep] = {}
        """All compactions and prunes by entry id, in force or not."""
        self._ids: list[EntryId] = []
        self._withdrawn: set[EntryId] = set()
        self._undone: list[EntryId] = []

    @property
    def steps(self) -> tuple[ViewStep, ...]:
        """The compactions and prunes that are in force, oldest first."""
        return tuple(self.known[i] for i in self._ids)

    @property
    def last(self) -> ViewStep | None:
        """The compaction or prune that `undo` would take back; None if there is none."""
        return self.known[self._ids[-1]] if self._ids else None

    @property
    def last_undone(self) -> ViewStep | None:
        """The compaction or prune that `redo` would restore; None if there is none."""
        return self.known[self._undone[-1]] if self._undone else None

    def add(self, step: ViewStep) -> None:
        """Put a new compaction or prune in force. What was undone can no longer be redone."""
        self.known[step.id] = step
        self._ids.append(step.id)
        self._undone.clear()

    def undo(self, target: EntryId) -> None:
        """Take a compaction or prune out of force."""
        self._ids.remove(target)
        self._withdrawn.add(target)
        self._undone.append(target)

    def redo(self, target: EntryId) -> None:
        """Put a compaction or prune that was undone in force again."""
        self._undone.remove(target)
        self._withdrawn.discard(target)
        self._ids.append(target)

    def steps_after(self, marker: Undone | Redone) -> tuple[ViewStep, ...]:
        """Return the compactions and prunes that would be in force if `marker` were applied, oldest first.
        The state does not change."""
        if isinstance(marker, Undone):
            return tuple(self.known[i] for i in self._ids if i != marker.target)
        return (*self.steps, self.known[marker.target])

    def branch(self, path: Sequence[EntryId]) -> None:
        """Switch to the branch whose entries are `path`, from the root to the leaf. The compactions and
        prunes of this branch are then in force, except those that were undone. O(path)."""
        here = set(path)
        # What is in force follows from the path and not from the previous state, so that returning to a
        # branch restores its compactions.
        self._ids = [i for i in path if i in self.known and i not in self._withdrawn]
        self._undone = [i for i in self._undone if i in here]


def line_to(parents: Mapping[EntryId, EntryId | None], entry_id: EntryId) -> list[EntryId]:
    """Return the entries from the root to `entry_id`, by following `parents`. If a journal from elsewhere
    contains a cycle, the cycle is followed only once. O(path)."""
    path: list[EntryId] = []
    at: EntryId | None = entry_id
    while at is not None and len(path) <= len(parents):
        path.append(at)
        at = parents[at]
    return path[::-1]
