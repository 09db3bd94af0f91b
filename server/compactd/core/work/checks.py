"""Follow the checks that were run, and the failures that nothing resolved yet."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from compactd.core.history.entries import EntryId
from compactd.core.text.lazy_patterns import LazyPattern
from compactd.core.work.calls import Call, git_command, is_filter, parts_of
from compactd.core.work.outcome import Result
from compactd.core.work.shell import Command
from compactd.core.work.suites import Suite, covers, formatted_by, suites_in, suites_of_hook
from compactd.protocol.work import OpenError, WorkCheck

MAX_ERRORS: Final = 20
"""The newest open errors are kept."""
MAX_FAILURES: Final = 80
"""Of the failures that nothing resolved, the newest are kept: those that count, and those that are gone."""
MAX_RUNS: Final = 40
"""The last runs of so many checks are kept."""
MAX_EARLIER: Final = 2
"""Of the failures before the last one of a check, so many are kept: those with a cause."""
MAX_PATHS: Final = 20
"""Only so many files that a call shows are compared."""
GONE_ON: Final = 40
"""After so many messages, a failed command that checks nothing no longer counts as an open error."""
LOOK_GONE_ON: Final = 12
"""After so many messages, a failed look at a file no longer counts as an open error."""

_MAY_FIND_NOTHING: Final = frozenset(
    ("grep", "rg", "egrep", "ag", "diff", "test", "[", "which", "ls", "find", "pgrep")
)
"""Programs whose exit code 1 may only say that there is nothing."""
_ASKS: Final = frozenset(("test", "[", "[[", "ls", "which", "type", "command", "stat", "pgrep"))
"""Programs with which one asks whether something exists."""
_GIT_ASKS: Final = frozenset(("rev-parse", "show-ref", "check-ignore", "ls-files", "cat-file", "merge-base"))
_SHOWS: Final = "cat head tail grep egrep rg ag sed wc find file tree nl less diff"
_LOOKS: Final = _ASKS | frozenset(_SHOWS.split())
"""Programs that only show something."""
_ABSENT: Final = LazyPattern(r"\bNo such file or directory|\bnot found\b|\bdoes not exist\b")
_SHRUGS: Final = frozenset(("true", ":", "echo", "printf"))
"""Programs after `||` with which a command may fail."""
_EXIT_CODE: Final = LazyPattern(r"\$\?|\$\{?(?:PIPESTATUS|pipestatus)\b")
"""Matches the exit code of the command before."""
_TEMPORARY: Final = LazyPattern(r"(?:/private)?/tmp(?:/|\Z)")
"""Matches the beginning of a path in the folder for temporary files."""
_PATH: Final = LazyPattern(r"(?!-)(?:[\w.@~-]*/[\w./@~-]+|[\w.@-]+\.\w{1,8})\Z")
"""Matches a word that is a path."""
_LOOK: Final = "look at "
_FAILED_NAME: Final = LazyPattern(r"--- FAIL: ([\w/]{1,120})|^FAILED ([^\s]{1,200})")
"""Matches the name of a test that failed."""
_GIVES_CAUSE: Final = LazyPattern(
    r"\b(?:because|since|due to|caused?|missing|requires?|needs?|accidentally|mistake|wrong|no longer)\b"
    r"|\b(?:is|are|was|do|does|did|can|could|has|have)(?: not|n['’]t)\b|\bcannot\b",
    re.IGNORECASE,
)
"""Matches a sentence that says why something failed."""
_SLIP: Final = LazyPattern(
    r"\b(?:no such file or directory|directory not found|not a directory|command not found)\b"
    r"|\bunknown (?:flag|option)|\bunrecognized arguments?\b"
    r"|\b(?:imported|declared) (?:and|but) (?:not used|unused)\b|: undefined: \w|\bCannot find name\b"
    r"|\bF401\b|\bwould reformat\b",
    re.IGNORECASE,
)
"""Matches a line about a slip that the next call mends: a wrong folder or option, an import too many or too
few, a format."""
_MERGES: Final = frozenset(("git merge", "git pull", "git cherry-pick", "git stash", "git am"))
"""Commands that may stop at a conflict. A commit then ends them."""


class _Run(Struct, frozen=True):
    suite: Suite
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
    suites: tuple[Suite, ...] = ()
    """The checks in the call that did not succeed since."""
    parts: tuple[str, ...] = ()
    """If it checks nothing, the keys of its commands that did not succeed since."""
    path: str = ""
    """The file that a tool could not change."""
    said: str = ""
    """What the agent said about it next."""
    earlier: tuple[Failure, ...] = ()
    """The failures of parts of the same before this one of which the agent said the cause."""


class Checks:
    """The last run of each check, and the failures that no later success resolved. Messages are numbered."""

    def __init__(self) -> None:
        self._runs: list[_Run] = []
        self._failures: list[Failure] = []
        self.passed_at = -1
        """The number of the message in which a check passed last; -1 for none."""

    def checks(self, changed_at: int) -> tuple[WorkCheck, ...]:
        """Return the last run of each check. `changed_at` is the number of the message with the last change
        of a file."""
        return tuple(
            WorkCheck(
                kind=run.suite.kind,
                command=run.command,
                outcome=run.result.outcome,
                entry_id=run.entry_id,
                stale=run.at < changed_at,
            )
            for run in self._runs
        )

    @property
    def totals(self) -> dict[EntryId, str]:
        """The line with the counts of each last run that has one (`Result.totals`), by its message."""
        return {run.entry_id: run.result.totals for run in self._runs if run.result.totals}

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
        """Return the failures that are open after message `at`, oldest first. They do not change when more
        is read."""
        still = [one for one in self._failures if one.call.check or at - one.at <= _gone_on(one)]
        return tuple(map(replace, still[-MAX_ERRORS:]))

    def read(self, call: Call, result: Result, entry_id: EntryId, at: int) -> tuple[Failure, ...]:
        """Take in the result of a shell call. Return the failure that it is, or those that it resolves.
        O(commands × failures and runs that are kept)."""
        suites = suites_in(call.commands)
        for suite in suites:
            self._note(_Run(suite, call.line, result, entry_id, at))
        if result.outcome == "failed":
            if _is_probe(call, result):
                return ()
            parts = () if suites else _failed_parts(call, result)
            return (self._fail(Failure(call, result.lines, entry_id, at, suites, parts)),)
        if result.outcome != "passed":
            return ()
        if result.hook:
            hooked = suites_of_hook(result.hook)
            said = replace(result, totals=result.hook.strip().rsplit("\n", 1)[-1].strip())
            for suite in hooked:
                self._note(_Run(suite, call.line, said, entry_id, at))
            suites = (*suites, *hooked)
        suites = (*suites, *formatted_by(call.commands))
        return self._resolve(call, suites, counts_tests=result.counts_tests)

    def read_tool(
        self, call: Call, path: str, lines: tuple[str, ...] | None, entry_id: EntryId, at: int
    ) -> tuple[Failure, ...]:
        """Take in the result of a tool that changes the file at `path`. `lines` are the decisive lines of its
        error, None if it succeeded. Return the failure that it is, or those that it resolves."""
        if lines is not None:
            return (self._fail(Failure(call, lines, entry_id, at, path=path)),)
        return self._take([one for one in self._failures if one.path == path])

    def _note(self, run: _Run) -> None:
        """Take in the run of a check. It replaces the runs that it covers, and the runs of other parts of the
        same check that did not fail."""
        self._runs = [one for one in self._runs if not _replaces(run, one)]
        self._runs.append(run)
        del self._runs[:-MAX_RUNS]
        if run.result.outcome == "passed":
            self.passed_at = run.at

    def _fail(self, failure: Failure) -> Failure:
        """Keep a failure. It replaces those of the same, or of parts of it."""
        before = [
            one
            for one in self._failures
            if one.path == failure.path
            and all(any(covers(new, old) for new in failure.suites) for old in one.suites)
            and set(one.parts) <= set(failure.parts)
        ]
        self._take(before)
        told = [
            one
            for old in before
            for one in (*old.earlier, replace(old, earlier=()))
            if _GIVES_CAUSE.search(one.said) and one.call.key != failure.call.key
        ]
        failure.earlier = tuple(told[-MAX_EARLIER:])
        self._failures.append(failure)
        del self._failures[:-MAX_FAILURES]
        return failure

    def _resolve(self, call: Call, suites: Sequence[Suite], *, counts_tests: bool) -> tuple[Failure, ...]:
        """Remove and return the failures of which everything has succeeded by now. Tests that pass were
        built."""
        tests = any(suite.kind == "test" for suite in suites)
        keys = set(parts_of(call.commands))
        if "git commit" in keys or _ends_merge(call.commands):
            keys |= _MERGES
        seen = _looked_at(call.commands)
        text = " ".join(one.text for one in call.commands) if tests else ""
        done: list[Failure] = []
        for one in self._failures:
            if one.path:
                continue
            one.suites = tuple(
                old
                for old in one.suites
                if not (
                    any(covers(new, old, counts_tests=counts_tests) for new in suites)
                    or (tests and old.kind == "build")
                    or (tests and old.kind == "test" and _names_all_failed(one.lines, text))
                )
            )
            one.parts = tuple(
                part
                for part in one.parts
                if part not in keys
                and not (
                    part.startswith(_LOOK)
                    and any(_same_path(part.removeprefix(_LOOK), path) for path in seen)
                )
            )
            if (not one.suites and not one.parts) or one.call.key == call.key:
                done.append(one)
        return self._take(done)

    def _take(self, some: Sequence[Failure]) -> tuple[Failure, ...]:
        taken = {id(one) for one in some}
        self._failures = [one for one in self._failures if id(one) not in taken]
        told = [each for one in some for each in (*one.earlier, one)]
        return tuple(
            one for one in told if one.said or not one.lines or not all(map(_SLIP.search, one.lines))
        )


def _are_same(one: Suite, other: Suite) -> bool:
    return (one.name, one.targets, one.selects) == (other.name, other.targets, other.selects)


def _replaces(run: _Run, before: _Run) -> bool:
    """Return whether a run leaves nothing to say of one before it."""
    suite, old, outcome = run.suite, before.suite, run.result.outcome
    if _are_same(old, suite):
        return True
    if outcome == "unknown":
        return False
    if suite.name == old.name and not old.is_whole and before.result.outcome != "failed":
        # Of runs of parts, the last is told.
        return True
    if outcome == "passed" and suite.kind == "test" and old.kind == "build":
        # Tests that pass were built.
        return before.result.outcome == "failed"
    is_wider = suite.kind == old.kind or outcome == "passed"
    return is_wider and covers(suite, old, counts_tests=run.result.counts_tests)


def _gone_on(failure: Failure) -> int:
    return LOOK_GONE_ON if _only_looks(failure.call.commands) else GONE_ON


def _only_looks(commands: Sequence[Command]) -> bool:
    main = [one for one in commands if one.program not in ("cd", "echo")]
    return bool(main) and all(one.program in _LOOKS for one in main)


def _looked_at(commands: Sequence[Command]) -> tuple[str, ...]:
    """Return the files that commands show."""
    words = (word for one in commands if one.program in _LOOKS for word in one.words)
    paths = (word.replace("/./", "/").removeprefix("./") for word in words if _PATH.match(word))
    return tuple(dict.fromkeys(paths))[:MAX_PATHS]


def _same_path(one: str, other: str) -> bool:
    """Return whether two paths may name the same file, one of them from another folder."""
    return one == other or one.endswith(f"/{other}") or other.endswith(f"/{one}")


def _failed_parts(call: Call, result: Result) -> tuple[str, ...]:
    """Return the keys of the commands of a failed call that have to succeed."""
    parts = parts_of(call.commands)
    if any("Automatic merge failed" in line for line in result.lines):
        return tuple(part for part in parts if part in _MERGES) or parts
    if _only_looks(call.commands):
        return tuple(f"{_LOOK}{path}" for path in _looked_at(call.commands)) or parts or (call.key,)
    if "git push" in parts and any("failed to push" in line or "[rejected]" in line for line in result.lines):
        # What was before it, such as the commit, succeeded.
        return ("git push",)
    return tuple(dict.fromkeys(parts)) or (call.key,)


def _ends_merge(commands: Sequence[Command]) -> bool:
    return any(
        git_command(one) in ("merge", "cherry-pick", "am")
        and not {"--continue", "--abort"}.isdisjoint(one.words)
        for one in commands
    )


def _failed_name(line: str) -> re.Match[str] | None:
    """Return where a line names a test that failed."""
    return _FAILED_NAME.search(line) if "FAIL" in line else None


def _names_all_failed(lines: Sequence[str], text: str) -> bool:
    """Return whether a command names each test that failed according to these lines."""
    names = [found[1] or found[2] for line in lines if (found := _failed_name(line)) is not None]
    return bool(names) and all(name in text for name in names)


def _is_probe(call: Call, result: Result) -> bool:
    """Return whether a call only asked for something, or checks nothing and was meant to fail."""
    if not call.commands or _finds_nothing(call, result):
        return bool(call.commands)
    if call.check is not None:
        return False
    main = [one for one in call.commands if one.program not in ("cd", "echo") and not is_filter(one)]
    return (
        any(
            (one.program in ("echo", "printf") and any(_EXIT_CODE.search(word) for word in one.words))
            or (one.after == "||" and one.program in _SHRUGS)
            for one in call.commands
        )
        or _is_in_new_folder(call.commands)
        or (
            bool(main)
            and all(one.program in _ASKS or git_command(one) in _GIT_ASKS for one in main)
            and all(_ABSENT.search(line) for line in result.lines)
        )
    )


def _is_in_new_folder(commands: Sequence[Command]) -> bool:
    """Return whether commands work in a folder for temporary files that they make themselves."""
    if any(one.program == "mktemp" for one in commands):
        return True
    temporary = [
        one
        for one in commands
        if any(_TEMPORARY.match(word) for word in one.words if not word.startswith("-"))
    ]
    return any(one.program == "cd" for one in temporary) and (
        any(one.program in ("mkdir", "rm") for one in temporary)
        or any(git_command(one) in ("init", "clone") for one in commands)
    )


def _finds_nothing(call: Call, result: Result) -> bool:
    ends = (call.commands[0].program, call.commands[-1].program)
    return result.code == 1 and not result.lines and not _MAY_FIND_NOTHING.isdisjoint(ends)
