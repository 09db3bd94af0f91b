"""Follow the agent's plan: its list of tasks, and the newest status of each."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from compactd.core.history.entries import EntryId
from compactd.core.text.lazy_patterns import LazyPattern
from compactd.core.work.calls import shorten
from compactd.core.work.checklists import MAX_TASK_CHARS, MIN_TASKS, FileChecklists, Row, most_needed, rows_in
from compactd.core.work.file_operations import Json
from compactd.core.work.tool_kinds import TASK_LISTS
from compactd.protocol.work import PlanTask, TaskStatus

_STATUS_WORDS: Final[dict[TaskStatus, str]] = {
    "open": "pending open todo not_started",
    "in_progress": "in_progress in-progress inprogress active doing",
    "done": "completed complete done",
    "dropped": "cancelled canceled dropped skipped",
}
_STATUS: Final[dict[str, TaskStatus]] = {
    word: status for status, words in _STATUS_WORDS.items() for word in words.split()
}
"""The status by the word that an agent's tool uses for it."""
_TEXTS: Final = ("content", "step", "title", "subject", "text", "description")
"""Names of the field with a task's text."""
_TASK_ID: Final = LazyPattern(r"[Tt]ask (?:#|(?=\d))(\w{1,40})")
"""A task's id in the result of the call that created it: `Task #3 created successfully` (Claude Code)."""

_LISTED: Final = LazyPattern(
    r"^#(?P<id>\w{1,40}) \[(?P<status>[a-z_-]{1,20})\] (?P<text>\S[^\n]{0,1000})$", re.MULTILINE
)
"""A task in the result of a call that lists them: `#3 [completed] Fix the cache` (Claude Code)."""


class Plan:
    """The tasks of the plan, in its order."""

    def __init__(self) -> None:
        self._tasks: dict[str, PlanTask] = {}
        self._created = 0
        """The number of tasks that were created one by one."""
        self._has_tool = False
        """Whether a tool for plans was used. Then no file counts."""
        self._files = FileChecklists()
        self._is_newest_in_file = False
        """Whether a file has a newer list than the agent's words."""

    def result(self) -> tuple[PlanTask, ...]:
        """Return the tasks with their newest status; of a long list in a file at most `MAX_TASKS`."""
        return most_needed(self._files.tasks) if self.is_in_file else tuple(self._tasks.values())

    @property
    def counts(self) -> tuple[int, int]:
        """How many tasks are done, and how many there are."""
        tasks = self._files.tasks if self.is_in_file else self._tasks.values()
        return sum(task.status == "done" for task in tasks), len(tasks)

    @property
    def is_in_file(self) -> bool:
        """Whether the plan is a checklist in a file."""
        """Whether the plan is a checklist in a file."""
        return self._is_newest_in_file and not self._has_tool and bool(self._files.tasks)

    def read_list(self, arguments: Mapping[str, Json], entry_id: EntryId) -> None:
        """Take in a call that states the whole plan (such as TodoWrite or update_plan)."""
        for name in TASK_LISTS:
            value = arguments.get(name)
            rows = _rows(value) if isinstance(value, list) else []
            if isinstance(value, str):
                rows = rows_in(value)
            if rows:
                self._has_tool = True
                self._replace(rows, entry_id)
                return

    def read_text(self, text: str, entry_id: EntryId) -> None:
        """Take in a checklist of at least two tasks in the agent's words. O(length)."""
        rows = rows_in(text)
        if len(rows) >= MIN_TASKS:
            self._replace(rows, entry_id)
            self._is_newest_in_file = False

    def read_file(self, arguments: Mapping[str, Json], entry_id: EntryId) -> None:
        """Take in a successful call that writes or edits files. O(length)."""
        if self._files.read(arguments, entry_id):
            self._is_newest_in_file = True

    def read_created(self, arguments: Mapping[str, Json], result: str, entry_id: EntryId) -> None:
        """Take in a call that created one task, and its result."""
        text = _text_of(arguments)
        if text:
            self._has_tool = True
            found = _TASK_ID.search(result)
            self._created += 1
            task_id = found[1] if found else str(self._created)
            self._tasks[task_id] = PlanTask(text=text, status="open", entry_id=entry_id)

    def read_updated(self, arguments: Mapping[str, Json], entry_id: EntryId) -> None:
        """Take in a call that changed one task."""
        task_id = next((str(arguments[n]) for n in ("taskId", "task_id", "id") if n in arguments), "")
        known = self._tasks.get(task_id)
        if known is None:
            return
        word = str(arguments.get("status", "")).lower()
        if word == "deleted":
            del self._tasks[task_id]
            return
        subject = arguments.get("subject") or arguments.get("title")
        text = shorten(str(subject), MAX_TASK_CHARS) if subject else known.text
        status = _STATUS.get(word, known.status)
        if (text, status) != (known.text, known.status):
            self._tasks[task_id] = PlanTask(text=text, status=status, entry_id=entry_id)

    def read_listed(self, result: str, entry_id: EntryId) -> None:
        """Take in the result of a call that lists the tasks: a sub-agent may have changed their status. It
        adds no task, and changes no text. O(length)."""
        for found in _LISTED.finditer(result):
            known = self._tasks.get(found["id"])
            status = _STATUS.get(found["status"])
            if known is None or status is None or status == known.status:
                continue
            if " ".join(found["text"].split()).startswith(known.text.rstrip("…")):
                self._tasks[found["id"]] = replace(known, status=status, entry_id=entry_id)

    def _replace(self, rows: Sequence[Row], entry_id: EntryId) -> None:
        """Replace the plan. A task that is unchanged keeps the message that last changed it."""
        before = {(task.text, task.status): task for task in self._tasks.values()}
        self._tasks = {
            f"#{number}": before.get((text, status)) or PlanTask(text=text, status=status, entry_id=entry_id)
            for number, (text, status) in enumerate(rows, 1)
        }


def _rows(values: Sequence[Json]) -> list[Row]:
    rows: list[Row] = []
    for value in values:
        text = _text_of(value) if isinstance(value, dict) else ""
        if text and isinstance(value, dict):
            rows.append((text, _STATUS.get(str(value.get("status", "")).lower(), "open")))
    return rows


def _text_of(fields: Mapping[str, Json]) -> str:
    found = (fields[name] for name in _TEXTS if name in fields)
    text = next((value for value in found if isinstance(value, str) and value.strip()), "")
    return shorten(" ".join(text.split()), MAX_TASK_CHARS)
