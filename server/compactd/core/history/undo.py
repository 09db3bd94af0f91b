"""Which compactions and prunes of a session are in force: the rules of `undo`, `redo` and `branch`.

`undo` and `redo` are markers that name one; a new one ends what could be redone; a branch has those of its
own line. (Rules: docs/dev/behaviour.md, "Time travel".)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compactd.core.history.entries import Compacted, EntryId, Pruned, Redone, Undone

Step = Compacted | Pruned
"""What `undo` takes back and `redo` puts in force again."""


class InForce:
    """The compactions and prunes of a journal so far."""

    def __init__(self) -> None:
        self.known: dict[EntryId, Step] = {}
        """All of them, in force or not."""
        self._ids: list[EntryId] = []
        self._withdrawn: set[EntryId] = set()
        self._undone: list[EntryId] = []

    @property
    def steps(self) -> tuple[Step, ...]:
        """Those in force, oldest first."""
        return tuple(self.known[i] for i in self._ids)

    @property
    def last(self) -> Step | None:
        """What `undo` would take back."""
        return self.known[self._ids[-1]] if self._ids else None

    @property
    def last_undone(self) -> Step | None:
        """What `redo` would put in force again."""
        return self.known[self._undone[-1]] if self._undone else None

    def add(self, step: Step) -> None:
        """A new one."""
        self.known[step.id] = step
        self._ids.append(step.id)
        self._undone.clear()

    def undo(self, target: EntryId) -> None:
        """Takes one out of force."""
        self._ids.remove(target)
        self._withdrawn.add(target)
        self._undone.append(target)

    def redo(self, target: EntryId) -> None:
        """Puts one that was undone in force again."""
        self._undone.remove(target)
        self._withdrawn.discard(target)
        self._ids.append(target)

    def steps_after(self, marker: Undone | Redone) -> tuple[Step, ...]:
        """Those that are in force once `marker` is, oldest first."""
        if isinstance(marker, Undone):
            return tuple(self.known[i] for i in self._ids if i != marker.target)
        return (*self.steps, self.known[marker.target])

    def branch(self, path: Sequence[EntryId]) -> None:
        """The session goes on from the end of `path`. O(path)."""
        here = set(path)
        # Not what was in force before: coming back to a branch brings its compactions back.
        self._ids = [i for i in path if i in self.known and i not in self._withdrawn]
        self._undone = [i for i in self._undone if i in here]


def line_to(parents: Mapping[EntryId, EntryId | None], entry_id: EntryId) -> list[EntryId]:
    """The entries from the root to this one; where a stranger made them a circle, once round. O(path)."""
    path: list[EntryId] = []
    at: EntryId | None = entry_id
    while at is not None and len(path) <= len(parents):
        path.append(at)
        at = parents[at]
    return path[::-1]
