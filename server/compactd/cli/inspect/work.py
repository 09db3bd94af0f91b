"""The state of the work in a session file, as rows of text: goal, plan, changed files, checks, errors,
decisions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from compactd.cli.framework.conversation import LoadedConversation
from compactd.cli.framework.page import Look, Page, one_line, plural, shorten_to_columns
from compactd.cli.inspect.anatomy import relative_path
from compactd.core.history.entries import Item, is_summary
from compactd.protocol.work import CheckKind, FileChange, Outcome, PlanTask, TaskStatus, Work, WorkCheck
from compactd.session.work import SessionWork

LABEL_COLUMNS = 13
"""Columns of the label of a row."""
STATUS_COLUMNS = 13
"""Columns of the status of a task."""
MIN_TEXT_COLUMNS = 12
"""A text is never shortened to fewer columns."""
GAP = 3
"""Columns between a text and its note."""

MAX_CONSTRAINTS = 3
MAX_TASKS = 8
MAX_FILES = 8
MAX_CHECKS = 5
MAX_ERRORS = 5
MAX_ATTEMPTS = 2
MAX_DECISIONS = 3

STATUS: Mapping[TaskStatus, str] = {
    "open": "open",
    "in_progress": "in progress",
    "done": "done",
    "dropped": "dropped",
}
CHECKS: Mapping[CheckKind, str] = {
    "test": "tests",
    "build": "build",
    "lint": "lint",
    "types": "type check",
    "other": "check",
}
OUTCOMES: Mapping[Outcome, str] = {"passed": "passed", "failed": "failed", "unknown": "ended, result unknown"}


def work_of(conversation: LoadedConversation) -> Work:
    """Return the state of the work after all messages of the file, including those that are no longer in the
    context. `agent/state` reports the same for a session that was imported from the file. O(length of the
    texts).
    """
    path = [
        Item(entry_id=entry_id, body=message, tokens=0)
        for entry_id, (message, _) in zip(conversation.entry_ids, conversation.messages, strict=True)
        if not is_summary(message)
    ]
    return SessionWork().after(path).work


class WorkRow(Struct, frozen=True, kw_only=True):
    """One line about the work."""

    label: str = ""
    """What the row is about; empty if it is about the same as the row before."""
    lead: str = ""
    """Words before `text` that are never shortened."""
    text: str
    note: str = ""
    """Words after `text` that are never shortened."""
    entry_id: str | None = None
    """The message that says so."""
    look: Look = ""


def work_rows(work: Work, working_dir: str | None = None) -> list[WorkRow]:
    """Return the rows for the state of the work, without the kinds that are empty. Of each kind, the newest
    are shown, newest last. Files are named relative to `working_dir`.
    """
    said = [work.goal] if work.goal is not None else []
    asked = [work.request] if work.request is not None and work.request != work.goal else []
    constraints = [WorkRow(text=one.text, entry_id=one.entry_id) for one in work.constraints]
    files = [_file_row(one, working_dir) for one in work.changes]
    # Two checks of one call may have the same row.
    checks = list(dict.fromkeys(_check_row(one) for one in work.checks))
    errors = [
        WorkRow(text=f"{one.text} ({one.command})", entry_id=one.entry_id, look="bad")
        for one in work.open_errors
    ]
    attempts = [WorkRow(text=one.text, entry_id=one.entry_id) for one in work.failed_attempts]
    decisions = [
        WorkRow(text=f"{one.text} (before: {one.was})" if one.was else one.text, entry_id=one.entry_id)
        for one in work.decisions
    ]
    now = [work.now] if work.now is not None else []
    kinds = {
        "goal": [WorkRow(text=text) for text in said],
        "request": [WorkRow(text=text) for text in asked],
        "constraints": _newest(constraints, MAX_CONSTRAINTS, "constraint"),
        "plan": _plan_rows(work.plan),
        "files": _newest(files, MAX_FILES, "changed file"),
        "checks": _newest(checks, MAX_CHECKS, "check"),
        "open errors": _newest(errors, MAX_ERRORS, "open error"),
        "failed": _newest(attempts, MAX_ATTEMPTS, "failed attempt"),
        "decisions": _newest(decisions, MAX_DECISIONS, "decision"),
        "now": [WorkRow(text=one.text, entry_id=one.entry_id) for one in now],
    }
    return [
        replace(row, label=label if n == 0 else "")
        for label, rows in kinds.items()
        for n, row in enumerate(rows)
    ]


def show_work(page: Page, work: Work, *, format: str, working_dir: str | None) -> None:
    """Print the state of the work and an empty line; nothing if nothing is known. In a terminal, each row is
    shortened to one line. `format` is the file's format.
    """
    rows = work_rows(work, working_dir)
    if not rows:
        return
    what = "entry e5 of the session" if format == "compactd" else "message 5"
    page.line(f"work, as the messages show it; [e5] is {what}")
    for row in rows:
        tail = f"{' ' * GAP}{row.note}" if row.note else ""
        tail += f" [{row.entry_id}]" if row.entry_id is not None else ""
        text = one_line(row.text)
        if page.is_drawn:
            room = page.width - LABEL_COLUMNS - len(row.lead) - len(tail)
            text = shorten_to_columns(text, max(MIN_TEXT_COLUMNS, room))
        page.row(row.label, f"{row.lead}{text}{tail}", row.look, columns=LABEL_COLUMNS)
    page.line()


def _newest(rows: Sequence[WorkRow], most: int, what: str) -> list[WorkRow]:
    """Return the last `most` rows. If there are more, a row before them says how many."""
    if len(rows) <= most:
        return list(rows)
    return [WorkRow(text=f"{plural(len(rows), what)}, the last {most}:"), *rows[-most:]]


def _plan_rows(plan: Sequence[PlanTask]) -> list[WorkRow]:
    """Return how many tasks are done, and the tasks in the order of the plan. If there are too many, the
    first unfinished ones and the last finished ones are shown.
    """
    if not plan:
        return []
    unfinished = [n for n, task in enumerate(plan) if task.status in ("open", "in_progress")][:MAX_TASKS]
    finished = [n for n, task in enumerate(plan) if task.status in ("done", "dropped")]
    shown = sorted([*unfinished, *finished[max(0, len(finished) - MAX_TASKS + len(unfinished)) :]])
    done = sum(task.status == "done" for task in plan)
    some = f", {len(shown)} of them shown" if len(shown) < len(plan) else ""
    head = WorkRow(text=f"{done:,} of {plural(len(plan), 'task')} done{some}")
    return [head, *(_task_row(plan[n]) for n in shown)]


def _task_row(task: PlanTask) -> WorkRow:
    return WorkRow(lead=f"{STATUS[task.status]:<{STATUS_COLUMNS}}", text=task.text, entry_id=task.entry_id)


def _file_row(change: FileChange, working_dir: str | None) -> WorkRow:
    edited = plural(change.edits, "edit") if change.kind == "edited" else change.kind
    committed = "committed" if change.committed else "uncommitted"
    checked = "checked" if change.checked else "unchecked"
    return WorkRow(
        text=relative_path(change.path, working_dir),
        note=f"{edited}, {committed}, {checked}",
        entry_id=change.last_entry_id,
    )


def _check_row(check: WorkCheck) -> WorkRow:
    return WorkRow(
        lead=f"{CHECKS[check.kind]} {OUTCOMES[check.outcome]}: ",
        text=check.command,
        note="files changed since" if check.stale else "",
        entry_id=check.entry_id,
    )
