"""The state of the work in a conversation, as `agent/state` reports it (`work: true`)."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

TaskStatus = Literal["open", "in_progress", "done", "dropped"]
ChangeKind = Literal["created", "edited", "deleted", "renamed"]
CheckKind = Literal["test", "build", "lint", "types", "other"]
Outcome = Literal["passed", "failed", "unknown"]


class StatedConstraint(Struct, frozen=True, kw_only=True):
    """A constraint of the user that is in force."""

    text: str
    """The user's sentence."""
    entry_id: str
    """The message that contains it."""


class PlanTask(Struct, frozen=True, kw_only=True):
    """A task of the agent's plan."""

    text: str
    """What is to be done."""
    status: TaskStatus
    """The newest status that the plan says."""
    entry_id: str
    """The message that last changed the task."""


class FileChange(Struct, frozen=True, kw_only=True):
    """A file that the agent's tools changed."""

    path: str
    """The path as the tool was given it."""
    kind: ChangeKind
    """What the file's changes add up to."""
    edits: int
    """How many calls changed it."""
    last_entry_id: str
    """The newest message with such a call."""
    committed: bool
    """Whether a git commit included it after its last change."""
    checked: bool
    """Whether a test, build, lint or type check passed after its last change."""


class WorkCheck(Struct, frozen=True, kw_only=True):
    """The last run of one check."""

    kind: CheckKind
    """What was checked."""
    command: str
    """The command, on one line."""
    outcome: Outcome
    """What its output says. `unknown` if the output does not say it, for example because a pipe hides the
    exit code."""
    entry_id: str
    """The message with the result."""
    stale: bool
    """Whether files changed after it."""


class WorkDecision(Struct, frozen=True, kw_only=True):
    """A decision of the agent or of the user."""

    text: str
    """The decision, with its reason if one was given."""
    was: str | None = None
    """What was decided before, if this reverses it."""
    entry_id: str
    """The message that contains it."""


class FailedAttempt(Struct, frozen=True, kw_only=True):
    """Something that was tried and did not work."""

    text: str
    """What was tried, why it failed, and what replaced it, as far as it is known."""
    entry_id: str
    """The message with the failure."""


class OpenError(Struct, frozen=True, kw_only=True):
    """A failure after which the same command did not succeed."""

    text: str
    """The decisive lines of the error."""
    command: str
    """The command or call that failed, on one line."""
    entry_id: str
    """The message with the result."""


class CurrentStep(Struct, frozen=True, kw_only=True):
    """What the agent was doing last."""

    text: str
    """The agent's last words about it, and the calls since."""
    entry_id: str
    """The message with these words."""


class Work(Struct, frozen=True, kw_only=True):
    """The state of the work, derived by code from messages, calls and results. Each list has its newest entry
    last."""

    goal: str | None = None
    """The user's first request, in their words; null if there is none."""
    request: str | None = None
    """The user's newest request, in their words; null if there is none."""
    constraints: tuple[StatedConstraint, ...] = ()
    """The user's constraints that are in force."""
    plan: tuple[PlanTask, ...] = ()
    """The agent's plan, in its order."""
    changes: tuple[FileChange, ...] = ()
    """The files that were changed."""
    checks: tuple[WorkCheck, ...] = ()
    """The last run of each check."""
    decisions: tuple[WorkDecision, ...] = ()
    """The decisions that still hold."""
    failed_attempts: tuple[FailedAttempt, ...] = ()
    """What was tried and did not work."""
    open_errors: tuple[OpenError, ...] = ()
    """Failures that nothing resolved since."""
    now: CurrentStep | None = None
    """What the agent was doing last; null before its first words."""
