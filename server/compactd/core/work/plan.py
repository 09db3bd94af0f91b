"""Follow the agent's plan: its list of tasks, and the newest status of each."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from compactd.core.history.entries import EntryId
from compactd.core.work.calls import shorten
from compactd.core.work.file_operations import Json
from compactd.core.work.tool_kinds import TASK_LISTS
from compactd.protocol.work import PlanTask, TaskStatus

MAX_TASK_CHARS: Final = 300

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
_MARKS: Final[dict[str, TaskStatus]] = {"x": "done", "X": "done", "~": "in_progress", "/": "in_progress"}
"""The status by the mark in a checklist; any other mark is an open task."""
_TEXTS: Final = ("content", "step", "title", "subject", "text", "description")
"""Names of the field with a task's text."""
_CHECKLIST: Final = re.compile(r"^\s{0,20}(?:[-*]|\d{1,3}[.)])\s{1,8}\[([ xX~/-])\]\s+(\S.*)$", re.MULTILINE)
_TASK_ID: Final = re.compile(r"[Tt]ask (?:#|(?=\d))(\w{1,40})")
"""A task's id in the result of the call that created it: `Task #3 created successfully` (Claude Code)."""


class Plan:
    """The tasks of the plan, in its order."""

    def __init__(self) -> None:
        self._tasks: dict[str, PlanTask] = {}
        self._created = 0
        """The number of tasks that were created one by one."""

    def result(self) -> tuple[PlanTask, ...]:
        """Return the tasks with their newest status."""
        return tuple(self._tasks.values())

    def read_list(self, arguments: Mapping[str, Json], entry_id: EntryId) -> None:
        """Take in a call that states the whole plan (such as TodoWrite or update_plan)."""
        for name in TASK_LISTS:
            value = arguments.get(name)
            rows = _rows(value) if isinstance(value, list) else []
            if isinstance(value, str):
                rows = _checklist(value)
            if rows:
                self._replace(rows, entry_id)
                return

    def read_text(self, text: str, entry_id: EntryId) -> None:
        """Take in a checklist of at least two tasks in the agent's words. O(length)."""
        rows = _checklist(text) if "[" in text else []
        if len(rows) > 1:
            self._replace(rows, entry_id)

    def read_created(self, arguments: Mapping[str, Json], result: str, entry_id: EntryId) -> None:
        """Take in a call that created one task, and its result."""
        text = _text_of(arguments)
        if text:
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

    def _replace(self, rows: Sequence[tuple[str, TaskStatus]], entry_id: EntryId) -> None:
        """Replace the plan. A task that is unchanged keeps the message that last changed it."""
        before = {(task.text, task.status): task for task in self._tasks.values()}
        self._tasks = {
            f"#{number}": before.get((text, status)) or PlanTask(text=text, status=status, entry_id=entry_id)
            for number, (text, status) in enumerate(rows, 1)
        }


def _rows(values: Sequence[Json]) -> list[tuple[str, TaskStatus]]:
    rows: list[tuple[str, TaskStatus]] = []
    for value in values:
        text = _text_of(value) if isinstance(value, dict) else ""
        if text and isinstance(value, dict):
            rows.append((text, _STATUS.get(str(value.get("status", "")).lower(), "open")))
    return rows


def _text_of(fields: Mapping[str, Json]) -> str:
    found = (fields[name] for name in _TEXTS if name in fields)
    text = next((value for value in found if isinstance(value, str) and value.strip()), "")
    return shorten(" ".join(text.split()), MAX_TASK_CHARS)


def _checklist(text: str) -> list[tuple[str, TaskStatus]]:
    return [
        (shorten(" ".join(words.split()), MAX_TASK_CHARS), _MARKS.get(mark, "open"))
        for mark, words in _CHECKLIST.findall(text)
    ]
