"""Read from the output of a command whether it succeeded, and the lines that say why not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal

import msgspec
from msgspec import Struct

from compactd.core.text.lazy_patterns import LazyPattern
from compactd.core.work.calls import git_command, shorten
from compactd.core.work.shell import CheckKind, Command, check_kind

Outcome = Literal["passed", "failed", "unknown"]

MAX_ERROR_CHARS: Final = 240
"""The most characters of a quoted error line."""
READ_CHARS: Final = 60_000
"""Of a longer output, only this many characters from each end are read."""
MAX_ERROR_LINES: Final = 5
"""The most lines that are quoted if a linter or compiler lists places; otherwise two."""
MAX_HOOK_CHARS: Final = 4_000
"""Of what a commit's hook printed, at most so many characters are kept."""
MAX_JSON_CHARS: Final = 400_000
"""A longer output is not read as JSON."""
_EDGE_CHARS: Final = 400
"""An agent states the exit code within so many characters of the beginning or the end."""

_EXIT: Final = LazyPattern(
    r"(?:\AExit code (?=-?\d{1,3}\s*(?:\n|\Z))"
    r"|^[^\w\n]{0,20}(?:"
    r"(?:The )?[Cc]ommand (?:exited|failed|finished|completed) with (?:exit )?(?:code|status):? "
    r"|Process exited with code "
    r"|Exit [Cc]ode: ?"
    r"|exit_code[\"']?: ?"
    r"|returncode>|exit_code>"
    r"|error>Exit code )"
    r"|^Command executed in terminal [^\n]{0,250}\. Exit code: )"
    r"(?P<code>-?\d{1,3})\b",
    re.MULTILINE,
)
"""Matches how agents state a command's exit code: Claude Code, Codex, Gemini CLI, OpenHands, pi,
mini-swe-agent (recorded sessions, 2026-11), Roo Code (transcripts in public repositories, 2026-11)."""
_INTERRUPTED: Final = LazyPattern(
    r"\[Request interrupted by user|was interrupted|Command timed out|timed out after|<timeout>"
    r"|aborted by user|^Command aborted$",
    re.IGNORECASE | re.MULTILINE,
)
"""Matches what agents say if the user or a timeout ended a call (recorded sessions, 2026-11)."""
_REJECTED: Final = LazyPattern(
    r"(?:The )?user (?:doesn't want|does not want|rejected|denied|declined|chose not to)"
    r"|Permission to use \w+ [^\n]*denied"
    r"|The tool use was rejected|rejected by user|\[Operation cancelled\]|Operation cancelled by user",
    re.IGNORECASE,
)
"""Matches what agents say if the user did not allow a call (recorded sessions, 2026-11)."""

_PASSING_LINE: Final = LazyPattern(
    r"^[ \t]*(?:[✓✔√] |ok \d|PASS(?:ED)?\b|--- PASS)[^\n]*"
    r"|^[^\n]{0,400} (?:PASSED|\.\.\. ok)(?:[ \t]+\[[ \d]+%\])?[ \t]*$",
    re.MULTILINE,
)
"""Matches a line about one test that passed. The name of such a test may contain any word."""

_COUNTED: Final = (
    r"(?=[ \t]*(?:[,;.|()=]|(?:in|found|generated|occurred|detected)\b|$))"
    r"(?![ \t]*\([\d ]+fixed, 0 remaining)"
)
"""What follows a count of failures in a summary. Ruff also counts what it fixed."""
_BROKEN: Final = (
    r"^g?make(?:\[\d+\])?: \*\*\* |\bELIFECYCLE\b|^npm (?:ERR!|error) "
    r"|^error: could not compile|^error: Recipe "
    r"|^task: Failed to run|^\[[\w:.-]{1,60}\] ERROR task failed"
    r"|^error: script \"|^error Command failed with exit code|^(?:\[INFO\] )?BUILD FAIL(?:ED|URE)\b"
    r"|: command not found$"
)
"""What task runners and shells say if something failed: make, npm, pnpm, just, task, mise, bun, Gradle,
Maven."""
_FAILED_TEST: Final = (
    r"^(?:--- FAIL|FAIL\b|FAILED\b|FAILURES!|not ok \d|E   \S|panic: "
    r"|ERROR (?:\S+\.py|collecting|at (?:setup|teardown)|in )|ERROR: test)"
    rf"|\b[1-9]\d* (?:failed|failing|failures?|errors?|fail){_COUNTED}|\b[1-9]\d* tests? failed\b"
    r"|\b(?:failures|errors)[:=] ?[1-9]|\b(?:Failures|Errors|Failed): +[1-9]|^(?:[#ℹ] )?fail [1-9]"
    r"|test result: FAILED|Tests failed|^[ \t]*AssertionError(?: \[|:|$)|^[ \t]*[✗✖×✕] |build failed\]"
)
"""What test runners say if a test failed: pytest, unittest, go, cargo, jest, vitest, mocha, node, bun, mix,
phpunit, rspec, Maven, Gradle, ctest."""
_FAILED_TYPES: Final = (
    r"\berror(?: TS\d+|\[\w+\])?:|\bFound [1-9]\d* errors?"
    rf"|\b[1-9]\d* errors?{_COUNTED}|^[^\s:]+:\d+(?::\d+)?:? (?:- )?error"
)
"""What type checkers say if they found something: tsc, mypy, pyright, cargo check."""
_FAILED_LINT: Final = (
    rf"\b[1-9]\d* (?:errors?|issues?|problems?|offenses detected|warnings? treated)"
    rf"(?:{_COUNTED}|:)(?! \(0 errors)"
    r"|would reformat|^\[warn\] Code style issues|^[^\s:]+:\d+:\d+: (?!warning|note)|^error\b"
)
"""What linters and formatters say if they found something: ruff, flake8, eslint, golangci-lint, clippy,
black, prettier, rubocop."""
_FAILED_BUILD: Final = (
    r"^(?:error\b|ERROR\b|FAILED\b|fatal)|\berror(?: TS\d+|\[\w+\])?:"
    r"|^[^\s:]+\.\w+:\d+:\d+: (?!warning|note|remark)|\bundefined: "
    r"|Compilation failed|Build failed|Failed to compile"
)
"""What compilers and bundlers say if they failed."""

_FAILED_PATTERNS: Final[dict[CheckKind, str]] = {
    "test": _FAILED_TEST,
    "types": _FAILED_TYPES,
    "lint": _FAILED_LINT,
    "build": _FAILED_BUILD,
    "other": f"{_FAILED_TEST}|{_FAILED_TYPES}|{_FAILED_LINT}|{_FAILED_BUILD}",
}
_FAILED: Final[dict[CheckKind, LazyPattern]] = {
    kind: LazyPattern(f"{pattern}|{_BROKEN}", re.MULTILINE) for kind, pattern in _FAILED_PATTERNS.items()
}
"""For each kind of check, matches output that says that it failed."""
_PASSED_PATTERNS: Final[dict[CheckKind, str]] = {
    "test": (
        r"^(?:ok[ \t]+\S+[ \t]+(?:\(cached\)|[\d.]+s)|PASS\b|OK\b)|\b[1-9]\d* (?:passed|passing|pass)\b"
        r"|\b[1-9]\d* (?:tests?|examples?|doctests?), [^\n]{0,80}\b0 failures|^[ \t]*--- PASS|test result: ok"
        r"|All tests passed|Tests:? +[1-9]\d* passed|BUILD SUCCESS|100% tests passed|^(?:[#ℹ] )?fail 0$"
    ),
    "types": r"Success: no issues|\b0 errors\b|Found 0 errors|\bFinished ",
    "lint": (
        r"All checks passed|\b0 (?:issues|errors|problems)\b|no (?:issues|offenses)|All matched files use"
        r"|left unchanged|already formatted|\bFinished |fixed, 0 remaining\)"
    ),
    "build": (
        r"BUILD SUCCESS|[Bb]uild succeeded|Compiled successfully|\bbuilt in\b|\bFinished |Successfully built"
    ),
}
_PASSED: Final[dict[CheckKind, LazyPattern]] = {
    kind: LazyPattern(pattern, re.MULTILINE) for kind, pattern in _PASSED_PATTERNS.items()
}
"""For each kind of check, matches output that says that it passed."""

_TELLS_AT_END: Final = frozenset(("npm", "pnpm", "bun", "mise", "just", "task"))
"""Runners whose last lines say that a script failed (`_BROKEN`)."""
_MIN_TAIL: Final = 3
"""So many last lines of an output show what they say."""
_TAIL_LINES: Final = LazyPattern(r"\A-(?:n|-lines=)?(\d{1,6})\Z")
_HOOK_PASSED: Final = LazyPattern(
    r"^[^\w\s\[(]{0,4} ?(?:all )?(?:pre-?commit|pre-?push|checks?|hooks?)\b[^\n]{0,40}"
    r"\b(?:passed|succeeded|successful)\b[^\n]{0,20}$"
    r"|^[^\n.\[]{1,80}\.{3,80}Passed$",
    re.IGNORECASE | re.MULTILINE,
)
"""Matches what a hook of a commit prints if its checks passed, such as that of pre-commit."""

_MAY_FIND_NOTHING: Final = frozenset(
    ("grep", "egrep", "fgrep", "rg", "ag", "diff", "cmp", "test", "[", "[[", "which", "pgrep", "command")
)
"""Programs whose exit code 1 is an answer: nothing was found, the files differ, the condition is false."""
_COMPLAINT: Final = LazyPattern(
    r": (?:No such file or directory|(?:command )?not found|Permission denied|Not a directory)"
    r"|^(?:fatal|error)\b",
    re.MULTILINE,
)
"""Matches what a program says if it cannot do its work."""
_ECHOED: Final = LazyPattern(r"\$\?|\$\{?(?:PIPESTATUS|pipestatus)\[[01]\]\}?")
"""Matches the exit code of the command before, in a command that prints it."""

_TOTALS: Final = LazyPattern(
    r"(?<![\w.])\d{1,7} (?:tests?|doctests?|examples?|specs?|passed|passing|failed|failing|failures?|errors?"
    r"|warnings?|issues?|problems?|offenses?"
    r"|files? (?:would be )?(?:reformatted|left unchanged|already formatted))\b"
)
"""Matches a count in the line with which a check ends."""
MAX_TOTALS_CHARS: Final = 160
_COUNTS_TESTS: Final = LazyPattern(r"\b\d{1,7} (?:tests?|doctests?|examples?|specs?|passed|passing)\b")
"""Matches a count of tests."""

_LABEL: Final = LazyPattern(r"\A\[[\w:.-]{1,60}\] ")
"""Matches the label that mise puts before the lines of a task."""
_TOOL_ERROR: Final = LazyPattern(r"</?tool_use_error>")
_QUOTES_CALL: Final = LazyPattern(r"^String: ", re.MULTILINE)
"""Matches where an editor's error quotes the text that it did not find (Claude Code)."""
_TRACE: Final = LazyPattern(r"Error Trace:\s")
"""Matches where testify says where a test failed."""
_CLAIM: Final = LazyPattern(r"Error:\s{2,}\S.*[^:]\Z")
"""Matches what testify says of the failure."""
_LISTED: Final = LazyPattern(
    r"(?:\[[\w:.-]{1,60}\] )?"
    r"(?:[^\s:()]+\.\w{1,8}(?::\d+:\d+|\(\d+,\d+\)):? ?(?![^\n]{0,30}\b(?:warning|note|info)\b)"
    r"|\d+:\d+[ \t]{1,8}error\b)"
)
"""Matches how linters and compilers list what they found: `name.go:12:3: message`, `12:3  error  message`."""
_PLACED: Final = 3
"""The rank of a line that only names a place in a file."""
_LAST: Final = 5
"""The rank of a line that says nothing of an error."""

_WANT: Final = LazyPattern(r"\bwant(?:ed)?\b|\bshould (?:be|have|not|contain|equal)\b")
"""Matches what a test of Go expects."""
_GOT: Final = LazyPattern(r"\bgot\b")
"""Matches what a test of Go got instead."""
_COLOUR: Final = LazyPattern(r"\x1b\[[\d;]{0,20}[A-Za-z]")
"""Matches an escape sequence of a terminal."""
_ERROR_LINE: Final = LazyPattern(
    r"(?:Error|Exception|Failure)\b|\berror\b|\bERROR\b|\bFAIL|\bfailed\b|panic:|fatal|cannot |undefined"
    r"|not found|denied|No such|expected|unexpected|^E   |assert"
)
"""Matches a line that may say what failed."""
_FINE: Final = LazyPattern(
    r"\b(?:0|no) (?:errors?|failed|failures?|problems?)\b|\b(?:errors?|failures?|failed)[:=] ?0\b(?!\.\d)",
    re.IGNORECASE,
)
"""Matches a count of errors that is zero."""
_PLACE: Final = LazyPattern(r"(?:\A|[\s(\"'])[\w./\\-]+\.\w{1,5}[:(]\d+(?:[:,]\d+)?\b")
"""Matches a place in a file: `name.go:12:3`, `name.ts(12,3)`."""
_ASSERTION: Final = LazyPattern(r"--- FAIL|^FAILED |^E   |[Aa]ssert|[Ee]xpected|panic:")
"""Matches a failed assertion or the name of a test that failed."""
_RUNNER: Final = LazyPattern(
    r"ERROR task failed|npm (?:ERR!|error)|ELIFECYCLE|exit code"
    r"|make(?:\[\d+\])?: \*\*\*|^husky - |^FAIL\t|build failed\]"
    r"|Failed: \d"
)
"""Matches a line in which a task runner says only that something failed."""
_NOISE: Final = LazyPattern(
    r"^(?:.*Traceback \(most recent call last\):$|_{3,} .* _{3,}$|at |File \"|Traceback|\^+$|Exit [Cc]ode"
    r"|(?:The )?[Cc]ommand (?:exited|failed|finished|completed)"
    r" with|Process exited|\[(?:The command|Command|Current working|Python interp)|<|$|[-=_*#.\s]+$|=+ .* =+$"
    r"|npm (?:ERR!|error) A complete log|goroutine \d|make(?:\[\d+\])?: (?:Entering|Leaving)"
    r"|FAIL$|exit status \d+$"
    r"|\(no output\)$|\(?Bash completed with no output\)?$|Your command ran successfully and did not produce"
    r"|(?:Tool|Command) ran without output|The file \S+ has been (?:updated|created|written) successfully"
    r"|(?:Successfully replaced|Todos have been modified successfully)"
    r"|hint: |:?error:?$|(?:exit|exit code|exit status|rc|code)[:=] ?-?\d{1,3}$"
    r"|(?:Error|Signal|Background PIDs|Process Group PGID): (?:\(none\)|\d+)$"
    r"|(?:Command|Directory|Chunk ID|Wall time|Original token count|Total output lines): |Output:$"
    r"|Output: \(empty\)$|Command executed in)"
)
"""Matches a stripped line that says nothing about an error: frames of a stack, rulers, what agents put around
an output (Claude Code, Codex, Gemini CLI, OpenHands, Roo Code; recorded sessions, 2026-11)."""


class Result(Struct, frozen=True):
    """What the output of a command says."""

    outcome: Outcome
    code: int | None = None
    """The exit code, if the output states one."""
    lines: tuple[str, ...] = ()
    """The decisive lines of an error; empty if the command did not fail."""
    totals: str = ""
    """The last line of a check that counts what passed, failed or was found; empty if there is none."""
    hook: str = ""
    """What a commit's hook printed that says that its checks passed; empty if there is none."""
    counts_tests: bool = False
    """Whether the output of a check, or of a hook, counts tests."""
    is_rejected: bool = False
    """Whether the user did not let the call run."""
    is_interrupted: bool = False
    """Whether the user or a timeout ended the call before its end."""


class _Metadata(Struct):
    exit_code: int | None = None


class _JsonOutput(Struct):
    """The output of a command as JSON: Codex' `{"output": …, "metadata": {"exit_code": 1}}`, mini-swe-agent's
    `{"returncode": 1, "output": …}` (recorded sessions, 2026-11)."""

    output: str
    metadata: _Metadata | None = None
    exit_code: int | None = None
    returncode: int | None = None

    @property
    def code(self) -> int | None:
        if self.metadata is not None and self.metadata.exit_code is not None:
            return self.metadata.exit_code
        return self.exit_code if self.exit_code is not None else self.returncode


_JSON: Final = msgspec.json.Decoder(_JsonOutput)


def read_result(text: str, *, is_error: bool, commands: Sequence[Command], kind: CheckKind | None) -> Result:
    """Return what `text`, the output of these commands, says. `kind` is what the commands check, if anything.

    The exit code decides, unless it is the code of another command: after a pipe, `||` or `;`. Then the
    patterns of the check decide, and if none matches, the outcome is unknown. Without an exit code, an output
    that the agent does not mark as an error means success, unless a pattern says that the check failed.
    O(length, at most 2 × `READ_CHARS`, and `MAX_JSON_CHARS` for JSON).
    """
    text, code = _without_json(text)
    if len(text) > 2 * READ_CHARS:
        text = f"{text[:READ_CHARS]}\n{text[-READ_CHARS:]}"
    if "\x1b" in text:
        text = _COLOUR.sub("", text)
    if is_error and _REJECTED.search(text[:600]):
        return Result("unknown", is_rejected=True)
    if code is None:
        code = _stated_code(text[:_EDGE_CHARS])
        code = _stated_code("\n" + text[-_EDGE_CHARS:]) if code is None else code
    if _INTERRUPTED.search(text[-600:]) and (is_error or code not in (0, None)):
        return Result("unknown", code, is_interrupted=True)
    has_failed = code not in (0, None) or (is_error and code is None)
    echoed = _echoed_code(commands, text, checked=kind is not None)
    if echoed is not None and not has_failed:
        outcome: Outcome = "passed" if echoed == 0 else "failed"
        code = echoed
    elif kind is None:
        outcome = _outcome(text, commands, code, has_failed=has_failed)
    else:
        outcome = _check_outcome(text, commands, kind, code, has_failed=has_failed)
    lines = error_lines(text, kind=kind) if outcome == "failed" else ()
    if kind is None:
        hook = _hook_in(text, commands) if outcome == "passed" else ""
        return Result(outcome, code, lines, hook=hook, counts_tests=_COUNTS_TESTS.search(hook) is not None)
    return Result(outcome, code, lines, _totals_in(text), counts_tests=_COUNTS_TESTS.search(text) is not None)


def _stated_code(text: str) -> int | None:
    """Return the exit code that a part of an output states."""
    found = _EXIT.search(text) if "ode" in text or "status" in text else None
    return None if found is None else int(found["code"])


def _hook_in(text: str, commands: Sequence[Command]) -> str:
    """Return what a commit's hook printed, up to the last line that says that checks passed."""
    if not any(git_command(one) == "commit" and "--no-verify" not in one.words for one in commands):
        return ""
    end = max((found.end() for found in _HOOK_PASSED.finditer(text)), default=0)
    return text[max(end - MAX_HOOK_CHARS, 0) : end]


def _totals_in(text: str) -> str:
    """Return the last short line that counts what passed, failed or was found."""
    for line in reversed(text.splitlines()):
        if len(line) <= MAX_TOTALS_CHARS and _TOTALS.search(line) is not None:
            return line.strip(" \t=-")
    return ""


class _Line(Struct, frozen=True):
    rank: int
    """How well it says what failed (`_rank`)."""
    at: int
    text: str


def error_lines(text: str, most: int = 2, *, kind: CheckKind | None = None) -> tuple[str, ...]:
    """Return the lines that best say what failed, in their order: lines with a place in a file, then failed
    assertions and named tests, then lines that name an error, otherwise the last line. A linter or compiler
    lists places: then there are up to `MAX_ERROR_LINES`, and nothing else. O(length)."""
    if text.startswith("<tool_use_error>"):
        text = _TOOL_ERROR.sub("", text)
        quoted = _QUOTES_CALL.search(text)
        text = text if quoted is None or not text[: quoted.start()].strip() else text[: quoted.start()]
    found: list[_Line] = []
    seen: set[str] = set()
    for at, line in enumerate(dict.fromkeys(line.strip() for line in text.splitlines())):
        bare = _LABEL.sub("", line)
        if _NOISE.match(bare):
            continue
        rank = _rank(bare)
        same = _without_folders(bare) if rank == 0 else bare
        if same not in seen:
            seen.add(same)
            found.append(_Line(rank, at, line))
    if not found:
        return ()
    first = min(one.rank for one in found)
    if first == _LAST:
        return (shorten(found[-1].text, MAX_ERROR_CHARS),)
    is_list = (
        first == 0 and kind is not None and (kind != "test" or any(_LISTED.match(one.text) for one in found))
    )
    if is_list:
        found = [one for one in found if one.rank == 0]
    ranked = sorted(found, key=lambda one: (one.rank, one.at))
    best = [
        one
        for one in ranked[: max(most, MAX_ERROR_LINES) if is_list else most]
        if one.rank <= _PLACED or one.rank == first
    ]
    return tuple(shorten(one.text, MAX_ERROR_CHARS) for one in sorted(best, key=lambda one: one.at))


def _rank(line: str) -> int:
    """Return how well a line says what failed: 0 best, `_LAST` if it says nothing of it."""
    if _TRACE.match(line):
        return _PLACED
    if _CLAIM.match(line):
        return 1
    has_place = _PLACE.search(line) is not None
    compares = _says_want_and_got(line)
    if _LISTED.match(line):
        return 0
    if _PASSING_LINE.match(line) or not (_ERROR_LINE.search(_FINE.sub("", line)) or compares):
        return _PLACED if has_place else _LAST
    if _RUNNER.search(line):
        return 4
    if has_place:
        return 0
    return 1 if _ASSERTION.search(line) or compares else 2


def _without_folders(line: str) -> str:
    """Return a line from the name of the first file in it on, so that the same error under two paths is
    one."""
    found = _PLACE.search(line)
    if found is None:
        return line
    start = max(line.rfind("/", found.start(), found.end()), line.rfind("\\", found.start(), found.end()))
    return line[max(start + 1, found.start()) :].strip()


def first_line(text: str) -> str:
    """Return the first line of an output that is not blank, shortened."""
    first = next((line for line in text[:READ_CHARS].split("\n") if line.strip()), "")
    return shorten(first.strip(), MAX_ERROR_CHARS)


def _without_json(text: str) -> tuple[str, int | None]:
    """Return the output and the exit code if the text is JSON that contains them, otherwise the text."""
    if text[:1] == "{" and len(text) <= MAX_JSON_CHARS and '"output"' in text:
        try:
            decoded = _JSON.decode(text)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            return text, None
        if decoded.code is not None:
            return decoded.output, decoded.code
    return text, None


def _outcome(text: str, commands: Sequence[Command], code: int | None, *, has_failed: bool) -> Outcome:
    """Return the outcome of commands that check nothing."""
    if has_failed:
        return "unknown" if _finds_nothing(text, commands, code) else "failed"
    return "unknown" if any(one.is_piped or one.after == "||" for one in commands) else "passed"


def _check_outcome(
    text: str, commands: Sequence[Command], kind: CheckKind, code: int | None, *, has_failed: bool
) -> Outcome:
    """Return the outcome of commands of which one or more are checks."""
    is_hidden = _hides_code(commands)
    if has_failed and not (is_hidden and _finds_nothing(text, commands, code)):
        return "failed"
    if code == 0 and not is_hidden:
        return "passed"
    kinds: set[CheckKind] = {kind, *(found for one in commands if (found := check_kind(one)) is not None)}
    tested = _PASSING_LINE.sub("", text) if "test" in kinds or "other" in kinds else text
    if any(_FAILED[one].search(tested) for one in kinds):
        return "failed"
    if not is_hidden or _says_passed(text, kinds):
        return "passed"
    is_quiet = _is_silent(text, commands) and not any(_may_silence(one, kinds) for one in commands)
    return "passed" if is_quiet or _would_tell(commands) else "unknown"


def _would_tell(commands: Sequence[Command]) -> bool:
    """Return whether the last lines of an output say if the only check failed: `npm run check | tail`."""
    checks = [at for at, one in enumerate(commands) if check_kind(one) is not None]
    rest = commands[checks[0] + 1 :] if len(checks) == 1 else ()
    if not rest or commands[checks[0]].program not in _TELLS_AT_END or commands[checks[0]].after == "||":
        return False
    if len(rest) != 1 or rest[0].program != "tail" or rest[0].after not in ("|", "|&"):
        return False
    counts = [int(found[1]) for word in rest[0].words if (found := _TAIL_LINES.match(f"-{word.lstrip('-')}"))]
    return not counts or counts[0] >= _MIN_TAIL


def _is_silent(text: str, commands: Sequence[Command]) -> bool:
    """Return whether an output has no line but those that agents and rulers add, and what the command line
    itself prints after a check."""
    echoed = {
        " ".join(word for word in one.words if word not in ("-e", "-n")).strip()
        for one in commands
        if one.program == "echo" and one.after == ";"
    }
    lines = (line.strip() for line in text.splitlines())
    return all(line in echoed or _NOISE.match(line) for line in lines)


def _may_silence(command: Command, kinds: set[CheckKind]) -> bool:
    """Return whether a filter after a pipe may leave nothing of the output of a check that failed."""
    if command.after not in ("|", "|&") or command.program in ("tee", "cat", "tail", "head"):
        return False
    # What `mypy | grep error` leaves out is no error.
    return "test" in kinds or "rror" not in command.text or "-v" in command.words


def _says_passed(text: str, kinds: set[CheckKind]) -> bool:
    return any(one in _PASSED and _PASSED[one].search(text) is not None for one in kinds)


def _hides_code(commands: Sequence[Command]) -> bool:
    """Return whether the exit code of the line can be another than that of a check in it: its output goes to
    a pipe, or another command follows that runs whether or not the check failed."""
    has_pipefail = any(one.program == "set" and "pipefail" in one.words for one in commands)
    after_check = False
    for one in commands:
        is_after_pipe = one.after in ("|", "|&")
        if after_check and one.after not in ("&&", "") and not (is_after_pipe and has_pipefail):
            return True
        if check_kind(one) is not None:
            # `a || pytest`: nobody knows whether the check ran.
            if one.after == "||" or (one.is_piped and not has_pipefail):
                return True
            after_check = True
    return False


def _finds_nothing(text: str, commands: Sequence[Command], code: int | None) -> bool:
    """Return whether exit code 1 is only the answer of the last command, such as `grep`."""
    if code != 1 or not commands or commands[-1].program not in _MAY_FIND_NOTHING:
        return False
    return len(commands) == 1 or _COMPLAINT.search(text) is None


def _echoed_code(commands: Sequence[Command], text: str, *, checked: bool) -> int | None:
    """Return the exit code that a command such as `echo "exit: $?"` printed for the command before it; None
    if there is none. If something is checked, only the code of a check counts."""
    for number, one in enumerate(commands):
        words = [word for word in one.words if word not in ("-e", "-n", "--")]
        if number == 0 or one.program not in ("echo", "printf") or not words:
            continue
        said = (
            words[0].replace("%s", words[1], 1)
            if one.program == "printf" and len(words) == 2
            else " ".join(words)
        )
        parts = _ECHOED.split(said)
        if len(parts) != 2:
            continue
        before = commands[number - 1]
        if "?" not in said[len(parts[0]) : len(parts[0]) + 2]:
            # `${PIPESTATUS[0]}` is the code of the first command of the pipeline.
            at = number - 1
            while at > 0 and commands[at].after in ("|", "|&"):
                at -= 1
            before = commands[at]
        elif before.after in ("|", "|&") and not any(
            "pipefail" in other.words for other in commands[:number]
        ):
            continue
        if checked and check_kind(before) is None:
            continue
        head = re.escape(parts[0].replace("\\n", "\n").rsplit("\n", 1)[-1].strip())
        tail = re.escape(parts[1].replace("\\n", "\n").split("\n", 1)[0].strip())
        found = re.findall(rf"^[ \t]*{head}[ \t]*(\d{{1,3}})[ \t]*{tail}[ \t]*$", text, re.MULTILINE)
        if found:
            return int(found[-1])
    return None


def _says_want_and_got(line: str) -> bool:
    """Return whether a line compares what a test wants with what it got."""
    return _WANT.search(line) is not None and _GOT.search(line) is not None
