"""Follow the checks that were run, and the failures that nothing resolved yet."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from compactd.core.history.entries import EntryId
from compactd.core.work.calls import Call, key_of
from compactd.core.work.outcome import Result
from compactd.core.work.shell import CheckKind, Command, check_kind
from compactd.protocol.work import OpenError, WorkCheck

MAX_ERRORS: Final = 20
"""The newest open errors are kept."""
GONE_ON: Final = 40
"""After so many messages, a failed command that checks nothing no longer counts as an open error."""

_MAY_FIND_NOTHING: Final = frozenset(
    ("grep", "rg", "egrep", "ag", "diff", "test", "[", "which", "ls", "find", "pgrep")
)
"""Programs whose exit code 1 may only say that there is nothing."""
_SELECTS: Final = frozenset(
    (
        "-run",
        "-k",
        "-t",
        "-m",
        "--filter",
        "--grep",
        "-g",
        "-only",
        "--only",
        "--last-failed",
        "--collect-only",
    )
)
"""Options with which a test runner runs only some tests."""


class _Run(Struct, frozen=True):
    kind: CheckKind
    command: str
    result: Result
    entry_id: EntryId
    at: int


class Failure(Struct):
    """A call that failed."""

    call: Call
    lines: tuple[str, ...]
    """The decisive lines of the error."""
    entry_id: EntryId
    at: int
    checks: frozenset[str] = frozenset()
    """The names of the checks in the call (`_check_name`)."""
    said: str = ""
    """What the agent said about it next."""


class Checks:
    """The last run of each check, and the failures that no later success resolved. Messages are numbered."""

    def __init__(self) -> None:
        self._runs: dict[str, _Run] = {}
        self._failures: dict[str, Failure] = {}

    @property
    def passed_at(self) -> int:
        """The number of the message in which a check passed last; -1 for none."""
        return max((run.at for run in self._runs.values() if run.result.outcome == "passed"), default=-1)

    def checks(self, changed_at: int) -> tuple[WorkCheck, ...]:
        """Return the last run of each check. `changed_at` is the number of the message with the last change
        of a file."""
        return tuple(
            WorkCheck(
                kind=run.kind,
                command=run.command,
                outcome=run.result.outcome,
                entry_id=run.entry_id,
                stale=run.at < changed_at,
            )
            for run in self._runs.values()
        )

    @property
    def totals(self) -> dict[EntryId, str]:
        """The line with the counts of each last run that has one (`Result.totals`), by its message."""
        return {run.entry_id: run.result.totals for run in self._runs.values() if run.result.totals}

    def open_errors(self, at: int) -> tuple[OpenError, ...]:
        """Return the failures that are open after message `at`."""
        return tuple(
            OpenError(
                text="; ".join(one.lines) or "failed without a message",
                command=one.call.line,
                entry_id=one.entry_id,
            )
            for one in self.open_failures(at)
        )

    def open_failures(self, at: int) -> tuple[Failure, ...]:
        """Return the failures that are open after message `at`, oldest first."""
        still = [one for one in self._failures.values() if one.call.check or at - one.at <= GONE_ON]
        return tuple(still[-MAX_ERRORS:])

    def read(self, call: Call, result: Result, entry_id: EntryId, at: int) -> tuple[Failure, ...]:
        """Take in the result of a shell call. Return the failure that it is, or those that it resolves."""
        names: set[str] = set()
        for command in call.commands:
            kind = check_kind(command)
            if kind is not None:
                names.add(_check_name(command, kind))
                key = key_of(command)
                self._runs.pop(key, None)
                self._runs[key] = _Run(kind, call.line, result, entry_id, at)
        if result.outcome == "failed" and not _finds_nothing(call, result):
            failure = Failure(call, result.lines, entry_id, at, frozenset(names))
            self._failures.pop(call.key, None)
            self._failures[call.key] = failure
            return (failure,)
        return self._resolve(call, names) if result.outcome == "passed" else ()

    def _resolve(self, call: Call, names: set[str]) -> tuple[Failure, ...]:
        """Remove and return the failures of the same command, of calls of which all checks are in `names`,
        and of builds if `call` tests: tests that pass were built. A run of all tests resolves every failed
        test."""
        tests = [one for one in call.commands if check_kind(one) == "test"]
        is_whole = any(_names_no_target(one) for one in tests)
        same = [
            k
            for k, one in self._failures.items()
            if k == call.key
            or (one.checks and one.checks <= names)
            or (tests and one.call.check == "build")
            or (is_whole and one.call.check == "test")
        ]
        return tuple(self._failures.pop(k) for k in same)


def _check_name(command: Command, kind: CheckKind) -> str:
    """Return what runs of the same check with other arguments have in common: `pytest`, `go test`, `npm run
    test`. It is the shortest beginning of the command that is a check of this kind."""
    plain = [word for word in command.words if not word.startswith("-")][:4]
    size = next(
        (n for n in range(len(plain)) if check_kind(Command(command.program, tuple(plain[:n]))) == kind),
        len(plain),
    )
    if kind == "lint" and plain[size : size + 1] and plain[size].isalpha():
        size += 1  # `ruff check` is another check than `ruff format`.
    return " ".join((command.program, *plain[:size]))


def _names_no_target(command: Command) -> bool:
    """Return whether a test command runs all tests: it names no file, test or pattern."""
    return not any(
        ("/" in word and "..." not in word) or ":" in word or "." in word.strip("./") or word in _SELECTS
        for word in command.words
    )


def _finds_nothing(call: Call, result: Result) -> bool:
    ends = (call.commands[0].program, call.commands[-1].program) if call.commands else ()
    return result.code == 1 and not result.lines and not _MAY_FIND_NOTHING.isdisjoint(ends)
