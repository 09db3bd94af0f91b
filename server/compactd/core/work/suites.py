"""What a run of a check covers: whether a later run says something about an earlier one.

`pytest` covers `pytest tests/test_a.py`, `make lint` covers `golangci-lint run`, and `npm run check` covers
`tsc --noEmit`. A run of a part does not cover the whole.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from compactd.core.text.lazy_patterns import LazyPattern
from compactd.core.work.shell import (
    CheckKind,
    Command,
    check_kind,
    formatter_of,
    only_formats,
    script_kind,
    script_of,
)

MAX_SUITES: Final = 12
"""Only so many checks of one call are followed."""
MAX_TARGETS: Final = 12
"""Only so many files or tests that a run names are compared."""

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
_ALONE: Final = frozenset(("--last-failed", "--collect-only"))
"""Those without a value."""
_NEUTRAL: Final = frozenset(("make", "gmake", "just", "task", "mise", "invoke", "poe", "rake", "git"))
"""Runners whose scripts may check any language. A git hook is one of them."""
_JS_RUNNERS: Final = frozenset(("npm", "pnpm", "yarn", "bun", "turbo", "nx"))
_JS_NAMES: Final = """
    jest vitest mocha ava karma cypress playwright node eslint prettier biome oxlint stylelint standard tsc
    vue-tsc next vite ng webpack rollup esbuild tsup
    """
_JS_PROGRAMS: Final = frozenset(_JS_NAMES.split())
"""Programs that a script of `npm` runs."""
_NAMES_TESTS: Final = frozenset(("jest", "vitest", "cargo", "npm", "pnpm", "yarn", "bun", "swift"))
"""Runners for which a plain word after the check is the name of a test."""
_HAS_COMMANDS: Final = frozenset(("ruff", "biome", "golangci-lint", "pre-commit"))
"""Checks of which the first word is a command: `ruff check` is another check than `ruff format`."""
_VALUE_OPTIONS: Final = """
-n -c -o -W -C -j --tb --rootdir --config --reporter --seed --timeout --maxfail --junitxml --cov --durations
-count -timeout -tags -parallel -cpu -coverprofile
"""
_TAKES_VALUE: Final = frozenset(_VALUE_OPTIONS.split())
"""Options whose value, the next word, is no file or test to check."""
_NO_TARGETS: Final = frozenset(("run", "watch", "--"))
_TESTS_FILES: Final = LazyPattern(r"\A(?:python[\d.]*|node|ruby|php|tsx|ts-node)\Z|\.\w{1,4}\Z")
"""Matches a program that runs one script, or a script. What the script tests is not known."""
_WHOLE: Final = LazyPattern(
    r"\A(?:run-?)?(?:tests?|lint|types?|type-?_?check|tsc|build|compile)(?:[:_./-](?:all|ci|full|fix|run))*\Z",
    re.IGNORECASE,
)
"""Matches the name of a script that runs all checks of its kind."""
_ALL_OF_KIND: Final = LazyPattern(r"[:_./-](?:all|ci|full)\Z", re.IGNORECASE)
"""Matches the name of a script that runs the other scripts of its kind, too: `test:ci`."""
_EVERY: Final = LazyPattern(r"\A(?:pre-?commit|check|verify|validate|ci)(?:[:_./-]?(?:all|ci|full))*\Z", re.I)
"""Matches the name of a script that runs checks of every kind."""
_EVERY_BUILDS: Final = LazyPattern(r"ci|verify|all", re.IGNORECASE)
_SCRIPT_HEAD: Final = LazyPattern(r"^> \S{1,100}@\S{1,40} ([\w:.-]{1,60})(?: /\S{1,200})?$", re.MULTILINE)
"""Matches how npm and pnpm name the script that they run."""


class Suite(Struct, frozen=True):
    """What one run of a check covers."""

    kind: CheckKind
    name: str
    """What runs of the same check have in common: `pytest`, `go test`, `npm test`."""
    program: str
    script: str = ""
    """The script that a runner runs; empty if the program itself checks."""
    targets: tuple[str, ...] = ()
    """The files and tests that it names; empty for all."""
    selects: tuple[str, ...] = ()
    """The options that choose tests by their names, with their values."""

    @property
    def is_whole(self) -> bool:
        """Whether the run leaves nothing out."""
        return not self.targets and not self.selects


def suites_in(commands: Sequence[Command]) -> tuple[Suite, ...]:
    """Return what the checks among these commands cover. O(words)."""
    suites: list[Suite] = []
    for one in commands:
        kind = check_kind(one)
        if kind is not None:
            suites.append(_suite_of(one, kind))
    return tuple(dict.fromkeys(suites))[:MAX_SUITES]


def formatted_by(commands: Sequence[Command]) -> tuple[Suite, ...]:
    """Return which checks of the format succeed after the formatters among these commands. O(words)."""
    return tuple(_suite_of(one, "lint") for one in commands if only_formats(one))[:MAX_SUITES]


def suites_of_hook(output: str) -> tuple[Suite, ...]:
    """Return what a commit's hook checked that says in `output` that all is well: the scripts that it names,
    otherwise whatever a script `check` would. O(length)."""
    suites: list[Suite] = []
    for name in list(dict.fromkeys(_SCRIPT_HEAD.findall(output)))[:MAX_TARGETS]:
        kind = script_kind(name)
        if kind is not None:
            suites.append(Suite(kind, f"npm {name}", "npm", name))
    return tuple(suites) or (Suite("other", "git commit", "git", "check"),)


def covers(later: Suite, earlier: Suite, *, counts_tests: bool = False) -> bool:
    """Return whether a success of `later` says that `earlier` would succeed, too. `counts_tests` says whether
    the output of `later` counts tests. O(targets)."""
    if later.name == earlier.name:
        return _contains(later, earlier)
    if not later.is_whole:
        return False
    if not later.script:
        # All tests passed: `make test` runs the same.
        is_test = later.kind == earlier.kind == "test" and _TESTS_FILES.search(later.program) is None
        return is_test and earlier.program in _NEUTRAL and earlier.script in ("test", "tests")
    if not _speaks_for(later, earlier):
        return False
    if later.kind == "other":
        return _EVERY.match(later.script) is not None and (
            earlier.kind in ("lint", "types")
            or (earlier.kind == "other" and _EVERY.match(earlier.script) is not None)
            or (earlier.kind == "build" and _EVERY_BUILDS.search(later.script) is not None)
            or (earlier.kind == "test" and counts_tests)
        )
    if later.kind != earlier.kind or _WHOLE.match(later.script) is None:
        return False
    return (
        not earlier.script
        or _ALL_OF_KIND.search(later.script) is not None
        or (later.program != earlier.program and _WHOLE.match(earlier.script) is not None)
    )


def _speaks_for(later: Suite, earlier: Suite) -> bool:
    """Return whether a script of the later runner may run what the earlier command ran."""
    if later.program in _NEUTRAL:
        return True
    return later.program in _JS_RUNNERS and earlier.program in _JS_RUNNERS | _JS_PROGRAMS


def _contains(later: Suite, earlier: Suite) -> bool:
    """Return whether a run has all files and tests of another run of the same check."""
    if later.selects and later.selects != earlier.selects:
        return False
    if not later.targets:
        return True
    is_exact = later.program == "go"
    return bool(earlier.targets) and all(
        any(_is_under(one, other, is_exact=is_exact) for other in later.targets) for one in earlier.targets
    )


def _is_under(target: str, base: str, *, is_exact: bool) -> bool:
    """Return whether a target is `base` or lies in it. A path may be absolute or relative."""
    target = target.removesuffix("/...")
    if base.endswith("/..."):
        base, is_exact = base[:-4], False
    if target == base or target.endswith(f"/{base}") or base.endswith(f"/{target}"):
        return True
    return not is_exact and target.startswith((f"{base}/", f"{base}:"))


def _suite_of(command: Command, kind: CheckKind) -> Suite:
    program, words = command.program, command.words
    if "@" in program[1:]:
        program = program[: program.index("@", 1)]
    if program == "python -m" and words:
        program, words = words[0], words[1:]
    script = script_of(command)
    name, rest = _name_of(Command(program, words), kind, script)
    selects: list[str] = []
    targets: list[str] = []
    after = ""
    is_value = False
    for word in words:
        if is_value:
            is_value = False
        elif after:
            selects.append(f"{after} {word}")
            after = ""
        elif word in _ALONE:
            selects.append(word)
        elif word in _SELECTS:
            after = word
        elif word.startswith("-"):
            option = word.partition("=")[0]
            if option in _SELECTS:
                selects.append(word.replace("=", " ", 1))
            is_value = word in _TAKES_VALUE or (word == "-p" and program == "pytest")
        elif word in rest and _is_target(program, word):
            target = word.removeprefix("./").rstrip("/")
            if target not in ("", ".", "..."):
                targets.append(target)
    return Suite(
        kind,
        name,
        program,
        script,
        tuple(dict.fromkeys(targets))[:MAX_TARGETS],
        tuple(sorted(selects))[:MAX_TARGETS],
    )


def _name_of(command: Command, kind: CheckKind, script: str) -> tuple[str, tuple[str, ...]]:
    """Return the name of a check, and the words after it. The name is the shortest beginning of the command
    that is a check of this kind."""
    plain = tuple(word for word in command.words if not word.startswith("-"))
    formatter = formatter_of(command)
    if formatter:
        return formatter, plain[formatter.count(" ") :]
    if script:
        at = next((n for n, word in enumerate(plain) if word == script), -1)
        program = "npm" if command.program in _JS_RUNNERS else command.program
        return f"{program} {script}", plain[at + 1 :]
    size = next(
        (n for n in range(min(len(plain), 4)) if check_kind(Command(command.program, plain[:n])) == kind),
        min(len(plain), 4),
    )
    if command.program in _HAS_COMMANDS and not size and plain:
        size = 1
    return " ".join((command.program, *plain[:size])), plain[size:]


def _is_target(program: str, word: str) -> bool:
    """Return whether a word after a check names files or tests."""
    if "=" in word and word.partition("=")[0].isidentifier() and "/" not in word:
        return False
    return (
        "/" in word
        or ":" in word
        or "." in word.strip("./")
        or (program in _NAMES_TESTS and word not in _NO_TARGETS and not word.isdigit())
    )
