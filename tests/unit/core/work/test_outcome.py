"""Whether a command succeeded, read from its output, and the lines that say why not."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from compactd.core.work.outcome import (
    MAX_ERROR_CHARS,
    MAX_ERROR_LINES,
    MAX_JSON_CHARS,
    READ_CHARS,
    Result,
    error_lines,
    read_result,
)
from compactd.core.work.shell import CheckKind, check_kind, commands_in
from tests.support.examples import examples


def result_of(line: str, output: str, *, is_error: bool = False) -> Result:
    """The result of a command line with this output."""
    commands = commands_in(line)
    kind = next((kind for one in commands if (kind := check_kind(one)) is not None), None)
    return read_result(output, is_error=is_error, commands=commands, kind=kind)


@pytest.mark.parametrize(
    ("output", "is_error", "code"),
    [
        ("Exit code 1\nTypeError: no", True, 1),
        ("Exit code 1", True, 1),
        ("Exit code 1 is what a user sees", False, None),
        (json.dumps({"output": "boom\n", "metadata": {"exit_code": 2, "duration_seconds": 0.1}}), False, 2),
        (json.dumps({"returncode": 1, "output": "boom"}), False, 1),
        (json.dumps({"output": "mine", "other": 1}), False, None),
        ("Exit code: 101\nWall time: 0.2 seconds\nOutput:\nboom", False, 101),
        ("Chunk ID: a1\nWall time: 1.0 seconds\nProcess exited with code 3\nOutput:\nboom", False, 3),
        ("Command: x\nDirectory: (root)\nOutput: boom\nError: (none)\nExit Code: 1\nSignal: 0", False, 1),
        ("boom\n[Command finished with exit code 1]", False, 1),
        ("boom\n[The command completed with exit code 2.]\n[Current working directory: /w]", False, 2),
        ("boom\n\nCommand exited with code 1", True, 1),
        ("<returncode>1</returncode>\n<output>\nboom</output>", False, 1),
        ("Command executed in terminal  within working directory '/w'. Exit code: 0\nOutput:\nok", False, 0),
        ("Command executed in terminal within working directory '/w'. Bad.\nExit code: 1\nOutput:", False, 1),
        ("boom", False, None),
        ("exit: 4", False, None),
        ("", False, None),
    ],
)
def test_the_exit_code_is_where_the_agent_states_it(output: str, is_error: bool, code: int | None) -> None:
    result = result_of("./deploy", output, is_error=is_error)

    assert result.code == code
    assert result.outcome == ("failed" if code else "passed")


@pytest.mark.parametrize(
    ("line", "output", "is_error", "outcome"),
    [
        ("grep -rn foo .", "Exit code 1", True, "unknown"),
        ("cd a && rg foo", "Exit code 1", True, "unknown"),
        ("cd a && rg foo", "Exit code 1\nbash: cd: a: No such file or directory", True, "failed"),
        ("diff a b", "Exit code 1\n1c1\n< error\n---\n> fatal", True, "unknown"),
        ("grep -P '(' a", "Exit code 2\ngrep: missing )", True, "failed"),
        ("test -f a", "Exit code 1", True, "unknown"),
        ("cat a | head", "x", False, "unknown"),
        ("rm a || true", "", False, "unknown"),
        ("pytest -q | grep FAILED", "Exit code 1", True, "unknown"),
        ("tsc --noEmit | grep error", "Exit code 1", True, "passed"),
        ("mypy . 2>&1 | grep error", "", False, "passed"),
        ("mypy . 2>&1 | grep -v error", "", False, "unknown"),
        ("mypy . | tail -3", "", False, "passed"),
        ("pytest -q 2>&1 | tee log", "1 failed, 2 passed in 0.2s", False, "failed"),
        ("pytest -q 2>&1 | tee log", "3 passed in 0.2s", False, "passed"),
        ("pytest -q 2>&1 | tee log", "collecting", False, "unknown"),
        ("set -o pipefail; pytest -q | tee log", "Exit code: 0\nOutput:\ncollecting", False, "passed"),
        ("pytest -q || true", "1 failed in 0.2s", False, "failed"),
        ("pytest -q || true", "hm", False, "unknown"),
        ("./fast || pytest -q", "hm", False, "unknown"),
        ("pytest -q; git status", "Exit code: 0\nOutput:\n2 failed in 1s\nclean", False, "failed"),
        ("pytest -q; git status", "Exit code: 0\nOutput:\nclean", False, "unknown"),
        ("cd a; pytest -q", "Exit code: 0\nOutput:\nsays 2 failed.", False, "passed"),
        ("pytest -q && git status", "Exit code: 0\nOutput:\nsays 2 failed.", False, "passed"),
        ("pytest -q; echo $?", "noise\n1", False, "failed"),
        ("pytest -q; echo $?", "noise\n0", False, "passed"),
        ('pytest -q > log; echo "exit: $?"', "exit: 2", False, "failed"),
        ("pytest -q | tail -3; echo EXIT=${PIPESTATUS[0]}", "x\nEXIT=0", False, "passed"),
        ("pytest -q | tail -3; echo $?", "x\n0", False, "unknown"),
        ("pytest -q; printf 'code=%s\\n' $?", "code=1", False, "failed"),
        ("./run; echo $?", "7", False, "failed"),
        ("pytest -q; ruff check .", "Exit code: 0\nOutput:\n3 passed\nFound 2 errors.", False, "failed"),
    ],
)
def test_another_command_s_exit_code_does_not_decide(
    line: str, output: str, is_error: bool, outcome: str
) -> None:
    assert result_of(line, output, is_error=is_error).outcome == outcome


FAILING = [
    ("pytest", "=== FAILURES ===\nE   assert 1 == 2\na_test.py:3: AssertionError\n=== 1 failed in 0.1s ==="),
    (
        "pytest",
        "ERROR tests/test_a.py\n!!! Interrupted: 1 error during collection !!!\n=== 1 error in 0.2s ===",
    ),
    (
        "python -m unittest",
        "FAIL: test_a (t.A)\nAssertionError: 1 != 2\nRan 1 test in 0.0s\n\nFAILED (failures=1)",
    ),
    ("go test ./...", "--- FAIL: TestA (0.00s)\n    a_test.go:9: want 1, got 2\nFAIL\tx/a\t0.01s\nFAIL"),
    ("go test ./...", "# x/a [x/a.test]\n./a.go:3:2: undefined: b\nFAIL\tx/a [build failed]"),
    ("cargo test", "test a ... FAILED\n\ntest result: FAILED. 1 passed; 1 failed; 0 ignored"),
    ("npx jest", "FAIL src/a.test.js\n  ✕ adds (2 ms)\nTests:       1 failed, 3 passed, 4 total"),
    ("npx jest", "Tests:       \x1b[1m\x1b[31m1 failed\x1b[39m\x1b[22m, 4 total"),
    ("npx vitest run", " Test Files  1 failed (1)\n      Tests  1 failed | 3 passed (4)"),
    ("npx mocha", "  3 passing (5ms)\n  1 failing\n\n  1) adds:"),
    ("node --test", "# tests 2\n# pass 1\n# fail 1"),
    ("bun test", " 3 pass\n 1 fail\nRan 4 tests"),
    ("mix test", "  1) test adds (ATest)\n3 tests, 1 failure"),
    ("phpunit", "FAILURES!\nTests: 3, Assertions: 3, Failures: 1."),
    ("rspec", "3 examples, 1 failure"),
    ("mvn test", "[ERROR] Tests run: 3, Failures: 1, Errors: 0\n[INFO] BUILD FAILURE"),
    ("./gradlew test", "3 tests completed, 1 failed\n\nBUILD FAILED in 2s"),
    ("npx tsc --noEmit", "src/a.ts(3,5): error TS2322: Type 'string' is not assignable"),
    ("mypy .", "a.py:3: error: Incompatible types\nFound 1 error in 1 file (checked 2 source files)"),
    ("pyright", "a.py:3:5 - error: x\n1 error, 0 warnings, 0 informations"),
    ("npx eslint .", "/w/a.js\n  1:1  error  x  no-var\n\n✖ 3 problems (1 error, 2 warnings)"),
    ("ruff check .", "a.py:1:8: F401 `os` imported but unused\nFound 1 error."),
    ("golangci-lint run", "a.go:3:2: ineffectual assignment\n1 issues:\n* ineffassign: 1"),
    ("cargo clippy", "error: unused variable: `a`\nerror: could not compile `x` due to 1 previous error"),
    ("black --check .", "would reformat a.py\n1 file would be reformatted, 2 files would be left unchanged."),
    ("npm run build", "npm ERR! code ELIFECYCLE"),
    ("pnpm build", " ELIFECYCLE  Command failed with exit code 1."),
    ("make test", "make: *** [Makefile:3: test] Error 2"),
    ("just lint", "error: Recipe `lint` failed on line 3 with exit code 1"),
    ("task lint", 'task: Failed to run task "lint": exit status 1'),
    ("mise run test", "[test:unit] ERROR task failed"),
    ("make", "a.c:3:5: error: x undeclared"),
    ("pytest", "bash: pytest: command not found"),
]


@pytest.mark.parametrize(("line", "output"), FAILING)
def test_a_check_that_failed_is_recognised_without_its_exit_code(line: str, output: str) -> None:
    for whole in (line, f"{line} 2>&1 | tail -40"):
        result = result_of(whole, output)

        assert result.outcome == "failed"
        assert result.lines


PASSING = [
    ("pytest", "tests/test_a.py::test_error_handling PASSED  [ 50%]\n=== 3 passed in 0.1s ==="),
    ("pytest", "a.py::test_that_2_errors, PASSED\n10 passed, 0 failed, 0 errors in 3s"),
    ("python -m unittest", "test_error (t.A) ... ok\nRan 3 tests in 0.01s\n\nOK"),
    ("go test ./...", "ok  \tx/a\t0.01s\nok  \tx/error\t(cached)"),
    ("go test -v ./...", "--- PASS: TestFAIL (0.00s)\nPASS\nok  \tx/a\t0.01s"),
    ("cargo test", "test fails_on_error ... ok\ntest result: ok. 5 passed; 0 failed; 0 ignored"),
    ("npx jest", "PASS src/error.test.js\n  ✓ reports 2 errors (3 ms)\nTests:       4 passed, 4 total"),
    ("npx vitest run", " ✓ src/a.test.ts (2 tests)\n      Tests  4 passed (4)"),
    ("npx mocha", "  ✔ throws an AssertionError: x\n  3 passing (5ms)"),
    ("node --test", "ok 1 - handles 1 error\n# tests 2\n# pass 2\n# fail 0"),
    ("bun test", " 3 pass\n 0 fail\nRan 3 tests"),
    ("mix test", "3 tests, 0 failures"),
    ("phpunit", "OK (3 tests, 3 assertions)"),
    ("rspec", "3 examples, 0 failures"),
    ("mvn test", "[INFO] Tests run: 3, Failures: 0, Errors: 0\n[INFO] BUILD SUCCESS"),
    ("./gradlew test", "BUILD SUCCESSFUL in 2s"),
    ("mypy .", "Success: no issues found in 12 source files"),
    ("pyright", "0 errors, 0 warnings, 0 informations"),
    ("npx eslint .", "✖ 3 problems (0 errors, 3 warnings)"),
    ("ruff check .", "All checks passed!"),
    ("ruff check --fix .", "Found 3 errors (3 fixed, 0 remaining)."),
    ("golangci-lint run", "0 issues."),
    ("cargo clippy", "    Finished `dev` profile [unoptimized] target(s) in 0.1s"),
    ("ruff format --check .", "5 files already formatted"),
    ("npm run build", "vite v5\n✓ 30 modules transformed.\n✓ built in 1.2s"),
    ("make", "a.c:3:5: warning: unused\nerrors: 0\nbuilt in 1s"),
    ("npx tsc --noEmit", ""),
]


@pytest.mark.parametrize(("line", "output"), PASSING)
def test_a_check_that_passed_may_mention_errors(line: str, output: str) -> None:
    for whole in (line, f"{line} 2>&1 | tail -40"):
        assert replace(result_of(whole, output), totals="", counts_tests=False) == Result("passed")


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("The user doesn't want to proceed with this tool use.", Result("unknown", is_rejected=True)),
        ("Permission to use Bash with command rm has been denied.", Result("unknown", is_rejected=True)),
        ("Command timed out after 2m 0.0s", Result("unknown", is_interrupted=True)),
        ("[Request interrupted by user for tool use]", Result("unknown", is_interrupted=True)),
    ],
)
def test_a_call_that_the_user_refused_or_interrupted_has_no_outcome(output: str, expected: Result) -> None:
    assert result_of("rm a", output, is_error=True) == expected


@pytest.mark.parametrize(
    ("output", "lines"),
    [
        ("Exit code 1", ()),
        ("(no output)\n\nCommand exited with code 1", ()),
        ("some\nnoise\nlast words", ("last words",)),
        (
            "Traceback (most recent call last):\n  File \"a.py\", line 3\nValueError: bad\n",
            ("ValueError: bad",),
        ),
        (
            "npm ERR! Test failed\nsrc/a.ts:3:1: error: x\nsrc/b.ts(4,1): error TS2322: y\nerror z",
            ("src/a.ts:3:1: error: x", "src/b.ts(4,1): error TS2322: y"),
        ),
        ("test_error PASSED\nFAILED a.py::test_b - assert 1", ("FAILED a.py::test_b - assert 1",)),
        ("ok 1 - error\n3 passed, 0 failed\nfailed to link", ("failed to link",)),
        ("Command: x\nOutput: (empty)\nError: (none)\nExit Code: 1\nSignal: 0", ()),
        ("boom: failed\n[The command completed with exit code 2.]", ("boom: failed",)),
        ("same error\nsame error\n", ("same error",)),
    ],
)  # fmt: skip
def test_the_decisive_lines_of_an_error_come_first(output: str, lines: tuple[str, ...]) -> None:
    assert error_lines(output) == lines


LINT = """\
[lint] a/b.go:3:2: result is not checked (errcheck)
[lint] \tb.Close()
a/b.go:4:2: os/exec.Command must not be called (noctx)
/w/a/b.go:4:2: os/exec.Command must not be called (noctx)
a/c.go:5:1: exported name needs a comment (revive)
a/c.go:6:1: note: this is only a note
a/c.go(7,1): error TS2304: no such name
12:3  error  no var  no-var
a/d.go:8:1: one
a/d.go:9:1: two
[lint] ERROR task failed
exit: 1
"""


def test_a_linter_lists_up_to_five_errors_each_once() -> None:
    assert error_lines(LINT, kind="lint") == (
        "[lint] a/b.go:3:2: result is not checked (errcheck)",
        "a/b.go:4:2: os/exec.Command must not be called (noctx)",
        "a/c.go:5:1: exported name needs a comment (revive)",
        "a/c.go(7,1): error TS2304: no such name",
        "12:3  error  no var  no-var",
    )


def test_code_beside_a_linter_s_error_is_left_out() -> None:
    output = (
        "a.go:3:2: Get returns an interface (ireturn)\nfunc Get() (Store, error) {\n2 issues: errors found"
    )

    assert error_lines(output, kind="lint") == ("a.go:3:2: Get returns an interface (ireturn)",)


@pytest.mark.parametrize(
    ("output", "lines"),
    [
        ("[test] FAIL\tx/a\t0.1s\n--- FAIL: TestA (0.1s)\nFAIL\nexit: 1", ("--- FAIL: TestA (0.1s)",)),
        ("10:00:01:200:30 started with an error", ("10:00:01:200:30 started with an error",)),
        (
            "a_test.go:9: Phase 1 begins\na_test.go:12: count should be 0, got 1\n--- FAIL: TestA (0.1s)",
            ("a_test.go:12: count should be 0, got 1", "--- FAIL: TestA (0.1s)"),
        ),
        (
            "an error\n--- FAIL: TestA\n  Error Trace:\t/w/a_test.go:9\n  Error:      \tnot the same size",
            ("--- FAIL: TestA", "Error:      \tnot the same size"),
        ),
        (
            '# x/a [x/a.test]\n./a.go:3:2: "os" imported and not used\nFAIL\tx/a [build failed]',
            ('./a.go:3:2: "os" imported and not used',),
        ),
    ],
)
def test_a_test_s_failure_is_named(output: str, lines: tuple[str, ...]) -> None:
    assert error_lines(output, kind="test") == lines


@pytest.mark.parametrize(
    "noise",
    [
        "exit: 1",
        "[test] exit: 1",
        "exit=1",
        "exit code: 2",
        "rc=3",
        "The file /w/a.py has been updated successfully.",
        "Successfully replaced text in /w/a.py.",
        "Todos have been modified successfully. Ensure that you go on.",
        "hint: Updates were rejected",
        ":error",
        "(Bash completed with no output)",
    ],
)
def test_what_tools_say_of_themselves_is_no_error(noise: str) -> None:
    assert error_lines(f"the ship sank\n{noise}") == ("the ship sank",)
    assert error_lines(noise) == ()


def test_an_editor_s_quotation_is_no_error() -> None:
    output = (
        "<tool_use_error>String to replace not found in file.\n"
        "String: a.py:12: raise ValueError\n} else {</tool_use_error>"
    )

    assert error_lines(output, 1) == ("String to replace not found in file.",)


@pytest.mark.parametrize(
    ("line", "output", "outcome"),
    [
        ("npm run check 2>&1 | tail -20", "> shop@1.0.0 check\n> biome check", "passed"),
        ("npm run check 2>&1 | tail", "> shop@1.0.0 check", "passed"),
        ("npm run check | tail -20", "npm error Lifecycle script `check` failed", "failed"),
        ("npm run check | tail -1", "> shop@1.0.0 check", "unknown"),
        ("npm run check | head -20", "> shop@1.0.0 check", "unknown"),
        ("npm run check | grep x | tail -5", "> shop@1.0.0 check", "unknown"),
        ("npm run check | tail -5; ls", "a.py", "unknown"),
        ("make test | tail -5", "the last lines", "unknown"),
        ("go build ./... ", "", "passed"),
        ("go build ./... 2>&1 | head -30", "(Bash completed with no output)", "passed"),
        ("go build ./...; echo built", "built", "passed"),
        ("go build ./...; echo built", "a lot\nbuilt", "unknown"),
    ],
)
def test_a_runner_tells_at_its_end_that_it_failed(line: str, output: str, outcome: str) -> None:
    assert result_of(line, output).outcome == outcome


@pytest.mark.parametrize(
    ("line", "output", "hook"),
    [
        (
            "git commit -m x",
            "Ready.\n✅ All pre-commit checks passed!\n[main 1a2b3c4] x",
            "✅ All pre-commit checks passed!",
        ),
        (
            "git commit -m x",
            "ruff.....................Passed\n[main 1a2b3c4] x",
            "ruff.....................Passed",
        ),
        ("git commit -m x", "[main 1a2b3c4] All checks passed", ""),
        ("git commit -n --no-verify -m x", "All checks passed", ""),
        ("./deploy", "All checks passed", ""),
    ],
)
def test_a_commit_s_hook_says_that_its_checks_passed(line: str, output: str, hook: str) -> None:
    assert result_of(line, output).hook.endswith(hook)
    assert bool(result_of(line, output).hook) == bool(hook)


def test_a_version_counts_nothing() -> None:
    assert result_of("npm test", "> shop@0.7.29 test").totals == ""


def test_only_the_ends_of_a_long_output_are_read() -> None:
    long = "x\n" * READ_CHARS
    output = f"{long}1 failed in 3s\n{long}"

    assert result_of("pytest | tail", output).outcome == "unknown"
    assert result_of("pytest | tail", f"{output}1 failed in 3s").outcome == "failed"


def test_a_huge_output_is_not_read_as_json() -> None:
    output = json.dumps({"output": "x" * MAX_JSON_CHARS, "metadata": {"exit_code": 2}})

    assert result_of("./deploy", output).lines == ()


HOSTILE = [
    "a",
    "(",
    '"',
    "'",
    "\\",
    " ",
    "\n",
    "\t",
    ".",
    ":",
    "1",
    "1 ",
    "=",
    "= ",
    "want ",
    "a.",
    "/a",
    "*** [",
    "_",
    "a.b:1:1: ",
    "\nchecks ",
    "a...",
]
KINDS: list[CheckKind | None] = ["test", "types", "lint", "build", "other", None]


@pytest.mark.parametrize("piece", HOSTILE)
def test_a_long_hostile_output_is_read_whatever_the_check(piece: str) -> None:
    # A pattern that is quadratic in the length takes minutes here, and the test runner ends it.
    long = (piece * 100_000)[:100_000]

    for kind in KINDS:
        commands = commands_in("git commit -m x" if kind is None else "")
        result = read_result(long, is_error=False, commands=commands, kind=kind)
        assert all(len(line) <= MAX_ERROR_CHARS for line in (*result.lines, *error_lines(long)))


OUTPUTS = st.one_of(
    st.text(),
    st.lists(
        st.sampled_from(
            [
                *HOSTILE,
                "Exit code 1",
                "1 failed",
                "error: x",
                "a.py:3: ",
                "{",
                '"output": "',
                "FAIL",
                "PASSED",
                "\x1b[1m",
            ]
        ),
        max_size=40,
    ).map("".join),
)
SHELL_LINES = st.sampled_from(
    ["", "pytest", "pytest | tail", "ruff check; echo $?", "grep a", "make || true"]
)


@settings(max_examples=examples(200))
@given(OUTPUTS, SHELL_LINES, st.booleans(), st.sampled_from(KINDS))
def test_any_output_has_one_result(output: str, line: str, is_error: bool, kind: CheckKind | None) -> None:
    results = [
        read_result(output, is_error=is_error, commands=commands_in(line), kind=kind) for _ in range(2)
    ]

    assert results[0] == results[1]
    assert (results[0].outcome == "failed") or not results[0].lines
    assert len(results[0].lines) <= MAX_ERROR_LINES


@settings(max_examples=examples(200))
@given(OUTPUTS, st.integers(1, 4))
def test_error_lines_are_lines_of_the_output(output: str, most: int) -> None:
    lines = [line.strip()[:MAX_ERROR_CHARS] for line in output.splitlines()]

    found = error_lines(output, most)

    assert len(found) <= most
    assert set(found) <= set(lines)


@pytest.mark.parametrize(
    ("output", "totals"),
    [
        ("....\n=== 4 passed, 1 skipped in 0.1s ===", "4 passed, 1 skipped in 0.1s"),
        ("14 doctests, 73 tests, 0 failures\n\nRandomized with seed 1", "14 doctests, 73 tests, 0 failures"),
        ("ok  \texample.com/a\t0.1s", ""),
        (f"{'a' * 200} 3 passed", ""),
    ],
)
def test_a_check_ends_with_what_it_counted(output: str, totals: str) -> None:
    assert read_result(output, is_error=False, commands=(), kind="test").totals == totals


def test_what_is_no_check_counts_nothing() -> None:
    assert read_result("3 errors", is_error=False, commands=(), kind=None).totals == ""
