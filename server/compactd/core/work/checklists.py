"""Follow the checklists that an agent keeps in Markdown files, by its writes and edits of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from compactd.core.history.entries import EntryId
from compactd.core.text.lazy_patterns import LazyPattern
from compactd.core.work.calls import shorten
from compactd.core.work.edits import texts_in
from compactd.core.work.file_operations import Json
from compactd.protocol.work import PlanTask, TaskStatus

MAX_TASK_CHARS: Final = 300
MIN_TASKS: Final = 2
"""A single box is no plan."""
MAX_TASKS: Final = 12
"""How many tasks of a file are shown; those that are not done go first."""
MAX_FILE_TASKS: Final = 600
"""How many tasks of a file are remembered."""
MAX_FILE_CHARS: Final = 400_000
"""Only this many characters of a file are read."""
MAX_FILES: Final = 4
"""The lists of the files that were changed last are remembered."""

Row = tuple[str, TaskStatus]
"""A task's text and status."""

_MARKS: Final[dict[str, TaskStatus]] = {"x": "done", "X": "done", "~": "in_progress", "/": "in_progress"}
"""The status by the mark in a checklist; any other mark is an open task."""
_BOX: Final = LazyPattern(
    r"^[ \t]{0,20}(?:[-*+]|\d{1,3}[.)])[ \t]{1,8}\[([ xX~/-])\][ \t]+(\S.*)$", re.MULTILINE
)
_SETTLED: Final = LazyPattern(
    r"(SKIPPED|SKIP|CANCELLED|CANCELED|DROPPED|OBSOLETE|DONE|COMPLETED)(?=\s{0,2}[(:;,.*_~—–-]|\Z)"
)
"""A word in capitals at the beginning of a task, which says that it is settled although its box is empty."""
_MARKDOWN: Final = (".md", ".mdx", ".markdown")


def rows_in(text: str) -> list[Row]:
    """Return the tasks of the checklists in a text, in order. O(length)."""
    if "[" not in text:
        return []
    return [
        (shorten(" ".join(found[2].split()), MAX_TASK_CHARS), _status_of(found[1], found[2]))
        for found in _BOX.finditer(text)
    ]


def _status_of(mark: str, text: str) -> TaskStatus:
    """Return the status of a task by the mark in its box, and by the word at the beginning of its text."""
    settled = None if mark in _MARKS else _SETTLED.match(text.lstrip("*_~("))
    if settled is None:
        return _MARKS.get(mark, "open")
    return "done" if settled[1] in ("DONE", "COMPLETED") else "dropped"


class FileChecklists:
    """The checklists in the Markdown files that the agent writes."""

    def __init__(self) -> None:
        self._files: dict[str, list[PlanTask]] = {}
        """The tasks of each file, the one that was changed last at the end."""

    @property
    def tasks(self) -> Sequence[PlanTask]:
        """All tasks of the file of which the list was changed last, in their order; empty if there are fewer
        than `MIN_TASKS`."""
        tasks = next(reversed(self._files.values()), [])
        return tasks if len(tasks) >= MIN_TASKS else ()

    def read(self, arguments: Mapping[str, Json], entry_id: EntryId) -> bool:
        """Take in a successful write or edit. Return whether it changed a list. O(length + known tasks)."""
        is_changed = False
        for change in texts_in(arguments):
            if not change.path.lower().endswith(_MARKDOWN):
                continue
            after = rows_in(change.new[:MAX_FILE_CHARS])[:MAX_FILE_TASKS]
            known = self._files.get(change.path, [])
            if change.old is None:
                tasks = _with_status(known, after, entry_id)
            else:
                before = rows_in(change.old[:MAX_FILE_CHARS])[:MAX_FILE_TASKS]
                tasks = _edited(known, before, after, entry_id) if before != after else known
            if tasks != known:
                is_changed = True
                self._files.pop(change.path, None)
                if tasks:
                    self._files[change.path] = tasks[:MAX_FILE_TASKS]
        while len(self._files) > MAX_FILES:
            del self._files[next(iter(self._files))]
        return is_changed


def most_needed(tasks: Sequence[PlanTask]) -> tuple[PlanTask, ...]:
    """Return at most `MAX_TASKS` tasks in their order: those that are not done, then the last ones that are
    done."""
    if len(tasks) <= MAX_TASKS:
        return tuple(tasks)
    places = range(len(tasks))
    needed = [n for n in places if tasks[n].status in ("open", "in_progress")]
    rest = [n for n in reversed(places) if tasks[n].status not in ("open", "in_progress")]
    return tuple(tasks[n] for n in sorted((needed + rest)[:MAX_TASKS]))


def _with_status(before: Sequence[PlanTask], rows: Sequence[Row], entry_id: EntryId) -> list[PlanTask]:
    """Return the tasks in `rows`. A task that is unchanged keeps the message that last changed it."""
    known = {(task.text, task.status): task for task in before}
    return [
        known.get((text, status)) or PlanTask(text=text, status=status, entry_id=entry_id)
        for text, status in rows
    ]


def _edited(
    known: Sequence[PlanTask], before: Sequence[Row], after: Sequence[Row], entry_id: EntryId
) -> list[PlanTask]:
    """Return the tasks of a file after an edit that replaced the boxes `before` by those `after`."""
    at = _place_of(known, before)
    if at is not None:
        end = at + len(before)
        return [*known[:at], *_with_status(known[at:end], after, entry_id), *known[end:]]
    # The file has more boxes than were seen.
    gone = {text for text, _ in before} - {text for text, _ in after}
    tasks = [task for task in known if task.text not in gone]
    places = {task.text: n for n, task in enumerate(tasks)}
    fresh = _with_status(tasks, after, entry_id)
    for task in fresh:
        if task.text in places:
            tasks[places[task.text]] = task
    return [*tasks, *(task for task in fresh if task.text not in places)]


def _place_of(tasks: Sequence[PlanTask], rows: Sequence[Row]) -> int | None:
    """Return where these boxes are among the tasks of a file; None if they are not there."""
    if not rows or len(rows) > len(tasks):
        return None
    for wanted, has in (
        (list(rows), [(task.text, task.status) for task in tasks]),
        ([text for text, _ in rows], [task.text for task in tasks]),
    ):
        for at in range(len(has) - len(wanted) + 1):
            if has[at] == wanted[0] and has[at : at + len(wanted)] == wanted:
                return at
    return None
