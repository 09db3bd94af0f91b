"""Runs of tests: what passed is counted, what failed stays whole."""

from __future__ import annotations

from typing import Final

from compactd.core.reduce.page import Omission, Page
from compactd.core.text.atoms import ERROR
from compactd.core.text.lazy_patterns import LazyPattern

RULE: Final = "passed_tests"
MIN_LINES: Final = 3

_PASSED: Final = LazyPattern(
    "|".join(
        (
            # pytest -v, and its lines of dots (docs.pytest.org, "Managing pytest's output", 2026-11).
            r"\S+::\S+(?: \S+)? (?:PASSED|SKIPPED|XFAIL)\b",
            r"[\w./\\-]+\.py [.sxX]+(?:\s+\[ *\d+%\])?\s*\Z",
            # go test -v (go help test, "go test" output, Go 1.25).
            r"=== (?:RUN|PAUSE|CONT|NAME)\b",
            r"\s*--- (?:PASS|SKIP): ",
            r"ok\s+\S+\s+(?:\d|\(cached\))",
            r"\?\s+\S+\s+\[no test files\]",
            r"\s+\S+\s+coverage: 0\.0% of statements",
            # Jest, Vitest, Mocha, node:test, AVA (their default reporters, 2026-11).
            r"\s*[✓√✔] ",
            r"PASS \S",
            # cargo test (doc.rust-lang.org/cargo, "cargo test").
            r"test \S+(?: - [^\n]+)? \.\.\. (?:ok|ignored)\b",
            # unittest -v.
            r"test\w* \([^\n]*\) \.\.\. (?:ok|skipped)",
            # Maven Surefire, Gradle.
            r"\[INFO\] (?:Running |Tests run: \d+, Failures: 0, Errors: 0)",
            r"\S[^\n]* > [^\n]* PASSED\s*\Z",
            # PHPUnit, RSpec, ExUnit, minitest: lines of dots.
            r"[.SIsN*]{10,}(?:\s+\d+ / \d+ \(\s*\d+%\))?\s*\Z",
            # TAP (testanything.org), CTest, XCTest, dotnet test.
            r"\s*ok \d+\b(?! - FAILED)",
            r"\s*\d+/\d+ Test +#\d+: [^\n]* Passed\b",
            r"Test Case '[^\n]*' (?:started|passed)",
            r"\s+Passed \S",
            # bats, Bazel, Catch2, GoogleTest.
            r"//\S+\s+(?:\(cached\) )?PASSED\b",
            r"\[ +(?:RUN|OK) +\] ",
        )
    )
)
"""Matches a line that says that a test began, passed or was skipped."""
_GO_RUN: Final = LazyPattern(r"=== RUN\s+(\S+)")
_GO_PASS: Final = LazyPattern(r"\s*--- (?:PASS|SKIP): (\S+)")


def fold_passed(page: Page) -> None:
    """Leave out the lines of tests that passed. O(characters)."""
    _fold_go_blocks(page)
    for start, stop in page.runs_of(_PASSED, MIN_LINES):
        page.omit(Omission(start, stop, RULE, "lines of passed tests left out"))


def _fold_go_blocks(page: Page) -> None:
    """Leave out what Go tests that passed printed: from `=== RUN` to `--- PASS`."""
    begun: dict[str, int] = {}
    passed = bytearray(len(page.lines))
    for at, line in enumerate(page.lines):
        if not line or not line.lstrip(" \t").startswith(("=== RUN", "--- ")):
            continue
        found = _GO_RUN.match(line)
        if found is not None:
            begun.setdefault(found[1], at)
            continue
        found = _GO_PASS.match(line)
        if found is None or found[1] not in begun:
            continue
        start = begun.pop(found[1])
        if not any(ERROR.search(one) for one in page.lines[start : at + 1]):
            passed[start : at + 1] = b"\x01" * (at + 1 - start)
    at = passed.find(1)
    while at >= 0:
        end = passed.find(0, at)
        end = len(passed) if end < 0 else end
        page.omit_free(at, end, RULE, "lines of passed tests left out")
        at = passed.find(1, end)
