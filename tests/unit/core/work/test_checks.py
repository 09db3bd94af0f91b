"""The last run of each check, and which failures are still open."""

from __future__ import annotations

import pytest

from compactd.core.work.calls import read_call
from compactd.core.work.checks import (
    GONE_ON,
    LOOK_GONE_ON,
    MAX_EARLIER,
    MAX_ERRORS,
    MAX_FAILURES,
    MAX_RUNS,
    Checks,
)
from compactd.protocol.work import CheckKind, OpenError, Outcome, WorkCheck
from tests.support.agent_work import AgentWork, call_block

PASSED = "3 passed in 0.10s"
FAILED = "tests/test_a.py:12: AssertionError: 1 != 2\n1 failed, 2 passed in 0.10s"


def check(
    command: str, entry_id: str, outcome: Outcome = "passed", kind: CheckKind = "test", *, stale: bool = False
) -> WorkCheck:
    return WorkCheck(kind=kind, command=command, outcome=outcome, entry_id=entry_id, stale=stale)


def open_commands(agent: AgentWork) -> list[str]:
    return [error.command for error in agent.work.open_errors]


def test_the_last_run_of_each_check_counts_newest_last() -> None:
    agent = AgentWork()
    agent.runs("pytest -q", FAILED, failed=True)
    mypy = agent.runs("mypy .", "Success: no issues found in 3 source files")
    pytest_ = agent.runs("pytest -q", PASSED)
    agent.runs("ls", "a.py")

    assert agent.work.checks == (check("mypy .", mypy, kind="types"), check("pytest -q", pytest_))


def test_a_check_is_stale_after_a_later_change() -> None:
    agent = AgentWork()
    agent.edits("a.py")
    first = agent.runs("pytest -q", PASSED)
    agent.edits("b.py")
    second = agent.runs("ruff check", "All checks passed!")
    agent.edits("c.py", failed=True)
    agent.does("Read", file_path="a.py")

    assert agent.work.checks == (
        check("pytest -q", first, stale=True),
        check("ruff check", second, kind="lint"),
    )


@pytest.mark.parametrize(
    ("command", "output", "failed", "outcome"),
    [
        ("make test | tail -3", "the last lines", False, "unknown"),
        ("make test | tail -3", PASSED, False, "passed"),
        ("make test | tail -3", FAILED, False, "failed"),
        ("make test || true", "the last lines", False, "unknown"),
        ("make test", "the last lines", False, "passed"),
        ("make test", "the last lines", True, "failed"),
        ("make test", "Exit code 2\nthe last lines", True, "failed"),
        ("make test", "Command timed out after 2m", True, "unknown"),
    ],
)
def test_a_pipe_hides_whether_a_check_passed(
    command: str, output: str, failed: bool, outcome: Outcome
) -> None:
    agent = AgentWork()

    entry_id = agent.runs(command, output, failed=failed)

    assert agent.work.checks == (check(command, entry_id, outcome),)


def test_a_check_that_was_not_allowed_did_not_run() -> None:
    agent = AgentWork()

    agent.runs("pytest -q", "The user doesn't want to proceed with this tool use.", failed=True)

    assert (agent.work.checks, agent.work.open_errors) == ((), ())


def test_an_open_error_names_the_command_and_the_line_that_says_why() -> None:
    agent = AgentWork()

    entry_id = agent.runs("pytest -q", FAILED, failed=True)

    (error,) = agent.work.open_errors
    assert "tests/test_a.py:12: AssertionError: 1 != 2" in error.text
    assert (error.command, error.entry_id) == ("pytest -q", entry_id)


def test_an_open_error_without_output_says_so() -> None:
    agent = AgentWork()

    entry_id = agent.runs("./deploy", "Exit code 3", failed=True)

    assert agent.work.open_errors == (
        OpenError(text="failed without a message", command="./deploy", entry_id=entry_id),
    )


@pytest.mark.parametrize(
    ("failing", "passing"),
    [
        ("pytest -q", "pytest -q"),
        ("pytest -q", "pytest -x"),
        ("pytest tests/test_a.py -x", "pytest tests/test_a.py"),
        ("pytest tests/test_a.py", "pytest"),
        ("pytest tests/test_a.py::test_one", "pytest tests/test_a.py"),
        ("cd /repo && pytest -q", "pytest"),
        ("uv run pytest -q", "pytest"),
        ("python -m pytest tests/test_a.py", "python -m pytest"),
        ("go test ./a", "go test ./..."),
        ("npm run test", "npm run test -- --watch=false"),
        ("ruff check a.py", "ruff check ."),
        ("pytest -q", "ruff check . && pytest"),
        ("make test", "make test ARGS=-x"),
        ("cd web && npm run check", "npm run check 2>&1 | tail -20"),
        ("npx tsc --noEmit", "npm run check"),
        ("golangci-lint run", "mise run fmt && mise run lint 2>&1 | tail -10"),
        ("mise run fmt && mise run lint", "mise run lint"),
        ("go build ./...", "go test ./a"),
        ("ruff format --check src/a.py", "ruff format src"),
        ("ruff check . ; gofmt -l .", "gofmt -w . && ruff check ."),
        ("CI=1 timeout 60 ./deploy 2>&1 | head -50", "cd /w && ./deploy"),
        ("git add -A && git commit -m 'one'", "git commit -m 'two' && git push"),
        ("git merge main", "git add a.py && git commit --no-edit"),
        ("git pull", "git merge --abort"),
        ("cat src/a.py", "sed -n 1,5p /w/src/a.py"),
    ],
)
def test_a_later_success_of_the_same_check_resolves_a_failure(failing: str, passing: str) -> None:
    agent = AgentWork()
    agent.runs(failing, "Exit code 1\na.py:12: AssertionError", failed=True)
    before = open_commands(agent)

    agent.runs(passing, "Exit code: 0\nall is well")

    assert (before, open_commands(agent)) == ([failing], [])


@pytest.mark.parametrize(
    ("failing", "other"),
    [
        ("pytest -q", "ruff check"),
        ("python -m pytest", "python -m mypy"),
        ("npm run test", "npm run lint"),
        ("npm run test", "npm run test:e2e"),
        ("make test", "make lint"),
        ("make test", "make"),
        ("ruff check .", "ruff format ."),
        ("cargo test", "cargo build"),
        ("go test ./a", "go vet ./a"),
        ("ruff check . && pytest", "ruff check ."),
        ("pytest -q", "pytest -q --collect-only | cat"),
        ("pytest tests/test_a.py", "pytest tests/test_b.py"),
        ("pytest", "pytest tests/test_a.py"),
        ("npm test", "npm run check"),
        ("git push", "git commit -m one"),
        ("ruff format --check src/a.py", "ruff format src/b.py"),
        ("git merge main", "git status"),
        ("cat src/a.py", "cat src/b.py"),
    ],
)
def test_the_success_of_another_check_resolves_nothing(failing: str, other: str) -> None:
    agent = AgentWork()
    agent.runs(failing, "Exit code 1\na.py:12: AssertionError", failed=True)

    agent.runs(other, "the last lines")

    assert open_commands(agent) == [failing]


def test_one_success_resolves_all_failures_of_the_check() -> None:
    agent = AgentWork()
    agent.runs("pytest tests/test_a.py", FAILED, failed=True)
    agent.runs("pytest tests/test_b.py", FAILED, failed=True)
    agent.runs("mypy .", "a.py:1: error: no", failed=True)

    agent.runs("pytest", PASSED)

    assert open_commands(agent) == ["mypy ."]


def test_a_failure_counts_once_at_its_last_place() -> None:
    agent = AgentWork()
    agent.runs("pytest -q", FAILED, failed=True)
    agent.runs("mypy .", "a.py:1: error: no", failed=True)
    last = agent.runs("pytest -q", "tests/test_b.py:3: KeyError: 'b'\n1 failed", failed=True)

    errors = agent.work.open_errors
    assert [error.command for error in errors] == ["mypy .", "pytest -q"]
    assert errors[-1].entry_id == last
    assert "KeyError" in errors[-1].text


@pytest.mark.parametrize(
    "command",
    [
        "grep -n x a.py",
        "grep -q x a.py && pytest",
        "rg x",
        "cat a.py | grep x",
        "diff a b",
        "test -f a",
        "which uv",
        "cd /repo && ls x",
    ],
)
def test_a_search_without_a_match_is_no_error(command: str) -> None:
    agent = AgentWork()

    agent.runs(command, "Exit code 1", failed=True)

    assert agent.work.open_errors == ()


@pytest.mark.parametrize("output", ["Exit code 2", "Exit code 2\ngrep: a.py: No such file or directory"])
def test_a_search_that_could_not_run_is_an_error(output: str) -> None:
    agent = AgentWork()

    agent.runs("grep -n x a.py", output, failed=True)

    assert open_commands(agent) == ["grep -n x a.py"]


def test_a_failed_command_is_no_longer_open_later_but_a_failed_check_is() -> None:
    agent = AgentWork()
    agent.runs("pytest -q", FAILED, failed=True)
    agent.runs("./deploy", "Exit code 1\nno host", failed=True)
    for _ in range(GONE_ON):
        agent.says("Going on.")
    at_the_limit = open_commands(agent)
    agent.says("Going on.")

    assert (at_the_limit, open_commands(agent)) == (["pytest -q", "./deploy"], ["pytest -q"])


def test_only_the_newest_open_errors_are_kept() -> None:
    agent = AgentWork()
    for number in range(MAX_ERRORS + 5):
        agent.runs(f"make test-{number}", "Exit code 2\nno", failed=True)

    assert open_commands(agent) == [f"make test-{number}" for number in range(5, MAX_ERRORS + 5)]


def test_the_parts_of_a_failed_call_may_succeed_one_after_another() -> None:
    agent = AgentWork()
    agent.runs("ruff check . && pytest", "Exit code 1\na.py:12: AssertionError", failed=True)

    agent.runs("ruff check .", "All checks passed!")
    between = open_commands(agent)
    agent.runs("pytest", PASSED)

    assert (between, open_commands(agent)) == (["ruff check . && pytest"], [])


def test_a_merge_that_stopped_at_a_conflict_ends_with_a_commit_whatever_was_before_it() -> None:
    agent = AgentWork()
    agent.runs("./clean && git merge main", "Exit code 1\nAutomatic merge failed; fix conflicts", failed=True)

    agent.runs("git commit --no-edit", "[main 12ab34c] Merge main")

    assert open_commands(agent) == []


def test_a_push_that_was_rejected_is_open_though_the_commit_before_it_succeeded() -> None:
    agent = AgentWork()
    agent.runs(
        "git commit -m x && git push", "Exit code 1\nerror: failed to push some refs to 'there'", failed=True
    )

    before = open_commands(agent)
    agent.runs("git push")

    assert (before, open_commands(agent)) == (["git commit -m x && git push"], [])


HOOK = "> shop@1.0.0 check\n> biome check . && tsc\n\nPre-commit checks passed!\n[main 12ab34c] Add a shop"


def test_a_commit_whose_hook_passed_is_a_run_of_the_check() -> None:
    agent = AgentWork()
    agent.runs("npm run check", "src/a.ts(3,5): error TS2304: no 'join'", failed=True)
    agent.edits("src/a.ts")

    entry_id = agent.runs("git add -A && git commit -m 'Add a shop'", HOOK)

    assert open_commands(agent) == []
    assert agent.work.checks == (check("git add -A && git commit -m 'Add a shop'", entry_id, kind="other"),)


@pytest.mark.parametrize(("counted", "is_resolved"), [("12 passed in 3 s", True), ("12 files seen", False)])
def test_a_hook_that_counts_tests_ran_them(counted: str, is_resolved: bool) -> None:
    agent = AgentWork()
    agent.runs("pytest tests/test_a.py", FAILED, failed=True)

    agent.runs("git commit -m x", f"{counted}\nPre-commit checks passed!\n[main 12ab34c] x")

    assert (open_commands(agent) == []) == is_resolved


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("git commit -m 'All checks passed'", "[main 12ab34c] All checks passed\n 1 file changed"),
        ("git commit --no-verify -m x", HOOK),
        ("git log -1", HOOK),
        ("git commit -m x", "[main 12ab34c] x\n 1 file changed"),
    ],
)
def test_a_commit_that_does_not_say_so_checked_nothing(command: str, output: str) -> None:
    agent = AgentWork()
    agent.runs("npm run check", "src/a.ts(3,5): error TS2304: no 'join'", failed=True)

    agent.runs(command, output)

    assert open_commands(agent) == ["npm run check"]


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ('./tool --bad; echo "exit: $?"', "unknown choice\nexit: 2"),
        ("./tool --bad || true", "Exit code 2\nfatal: no"),
        ("./tool --bad || echo it fails", "Exit code 2\nfatal: no"),
        (
            "cd /tmp && git init -q x && cd x && git branch -D gone; rm -rf /tmp/x",
            "Exit code 1\nerror: no gone",
        ),
        ("d=$(mktemp -d) && cd $d && ./tool", "Exit code 3\nfatal: no"),
        ("ls build/", "Exit code 2\nls: build/: No such file or directory"),
        ("git rev-parse --verify v9", "Exit code 128\nfatal: v9 not found"),
    ],
)
def test_what_was_meant_to_fail_or_only_asks_is_no_error(command: str, output: str) -> None:
    agent = AgentWork()

    agent.runs(command, output, failed=True)

    assert open_commands(agent) == []


@pytest.mark.parametrize(
    "command", ["pytest; echo $?", "pytest || true", "cd /tmp/shop && ./build_it", "ls src && ./deploy"]
)
def test_a_check_that_failed_is_an_error_however_it_was_run(command: str) -> None:
    agent = AgentWork()

    agent.runs(command, f"Exit code 1\n{FAILED}\n1", failed=True)

    assert open_commands(agent) == [command]


def test_a_failed_look_at_a_file_counts_for_a_short_while() -> None:
    agent = AgentWork()
    agent.runs("cat src/gone.py", "Exit code 1\ncat: src/gone.py: No such file or directory", failed=True)
    for _ in range(LOOK_GONE_ON):
        agent.says("Going on.")
    at_the_limit = open_commands(agent)
    agent.says("Going on.")

    assert (at_the_limit, open_commands(agent)) == (["cat src/gone.py"], [])


def test_a_run_of_the_whole_suite_replaces_runs_of_parts() -> None:
    agent = AgentWork()
    agent.runs("go test ./a", "ok  \tx/a\t0.1s")
    agent.runs("go test ./...", "ok  \tx/a\t0.1s")
    agent.runs("mise run fmt && mise run lint 2>&1 | tail -5", "0 issues.")
    lint = agent.runs("mise run lint", "0 issues.")
    whole = agent.runs("mise run test", "ok  \tx/a\t0.1s")
    part = agent.runs("go test ./a -run TestB", "ok  \tx/a\t0.1s")

    assert agent.work.checks == (
        check("mise run lint", lint, kind="lint"),
        check("mise run test", whole),
        check("go test ./a -run TestB", part),
    )


def test_a_run_of_which_nobody_knows_how_it_ended_replaces_only_the_same() -> None:
    agent = AgentWork()
    part = agent.runs("pytest tests/test_a.py", PASSED)
    whole = agent.runs("pytest | tail -3", "the last lines")

    assert agent.work.checks == (
        check("pytest tests/test_a.py", part),
        check("pytest | tail -3", whole, "unknown"),
    )


def test_a_failed_build_is_forgotten_when_tests_pass() -> None:
    agent = AgentWork()
    agent.runs("go build ./...", "a.go:3:2: undefined: b", failed=True)
    entry_id = agent.runs("go test ./a", "ok  \tx/a\t0.1s")

    assert agent.work.checks == (check("go test ./a", entry_id),)


def test_a_formatter_that_changes_files_is_no_check() -> None:
    agent = AgentWork()
    entry_id = agent.runs("mise run fmt && mise run lint", "0 issues.")
    agent.runs("gofmt -w .", "")

    assert agent.work.checks == (check("mise run fmt && mise run lint", entry_id, kind="lint"),)


def test_a_part_that_names_the_failed_test_resolves_the_failure_of_the_whole() -> None:
    agent = AgentWork()
    agent.runs("make test", "--- FAIL: TestTotals (0.1s)\nFAIL\tx/a\t0.1s", failed=True)

    agent.runs("go test ./a -run TestOther", "ok  \tx/a\t0.1s")
    between = open_commands(agent)
    agent.runs("go test ./a -run TestTotals", "ok  \tx/a\t0.1s")

    assert (between, open_commands(agent)) == (["make test"], [])


def test_of_failures_of_the_same_check_the_last_is_open_and_causes_are_told() -> None:
    agent = AgentWork()
    for number, said in enumerate(
        ("It doesn't close the connection that it opens.", "Let me look at the second of these tests.")
    ):
        agent.runs(
            f"pytest tests/test_{number}.py", f"tests/test_{number}.py:1: KeyError\n1 failed", failed=True
        )
        agent.says(said)
    agent.runs("pytest -x", "tests/test_a.py:2: KeyError: 'b'\n1 failed", failed=True)
    agent.says("The fixture doesn't close the connection that it opens.")
    last = agent.runs("pytest | tail -5", "tests/test_a.py:3: KeyError: 'c'\n1 failed", failed=True)
    still_open = agent.work.open_errors

    agent.runs("pytest", PASSED)

    assert [one.entry_id for one in still_open] == [last]
    assert [one.text.split(":")[0] for one in agent.work.failed_attempts] == [
        "`pytest tests/test_0.py` failed",
        "`pytest | tail -5` failed",
    ]


def test_only_so_many_earlier_failures_of_a_check_are_kept() -> None:
    agent = AgentWork()
    for number in range(MAX_EARLIER + 3):
        agent.runs(
            f"pytest tests/test_{number}.py", f"tests/test_{number}.py:1: KeyError\n1 failed", failed=True
        )
        agent.says(f"The fixture number {number} doesn't close the connection that it opens.")
    agent.runs("pytest", "tests/test_0.py:1: KeyError\n1 failed", failed=True)

    agent.runs("pytest", PASSED)

    assert len(agent.work.failed_attempts) == MAX_EARLIER + 1


def test_of_runs_of_parts_the_last_and_those_that_failed_are_told() -> None:
    agent = AgentWork()
    failed = agent.runs("pytest tests/test_a.py", FAILED, failed=True)
    agent.runs("pytest tests/test_b.py", PASSED)
    last = agent.runs("pytest tests/test_c.py", PASSED)

    assert agent.work.checks == (
        check("pytest tests/test_a.py", failed, "failed"),
        check("pytest tests/test_c.py", last),
    )


@pytest.mark.parametrize(
    "output",
    ["cd: no such file or directory: srv", 'a.go:3:2: "os" imported and not used', "a.go:3:2: undefined: os"],
)
def test_a_slip_that_the_next_call_mends_is_no_failed_attempt(output: str) -> None:
    agent = AgentWork()
    agent.runs("cd srv && go test ./...", f"Exit code 1\n{output}", failed=True)

    agent.runs("go test ./...", "ok  \tx/a\t0.1s")

    assert (agent.work.failed_attempts, agent.work.open_errors) == ((), ())


def test_a_slip_that_the_agent_explains_is_a_failed_attempt() -> None:
    agent = AgentWork()
    failed = agent.runs("go vet ./...", "Exit code 1\na.go:3:2: undefined: os", failed=True)
    agent.says("The generated file lost its imports when the tool ran.")

    agent.runs("go vet ./...", "Exit code: 0")

    assert [one.entry_id for one in agent.work.failed_attempts] == [failed]


def test_only_the_last_runs_of_so_many_checks_are_kept() -> None:
    agent = AgentWork()
    for number in range(MAX_RUNS + 5):
        agent.runs(f"make test-{number}", "well")

    assert len(agent.work.checks) == MAX_RUNS


def test_a_failed_edit_is_open_until_the_same_file_is_edited() -> None:
    checks = Checks()
    call = read_call(call_block("t1", "Edit", file_path="a.py", old_string="a", new_string="b"), "e1")

    (failure,) = checks.read_tool(call, "a.py", ("The text was not found.",), "e2", 2)
    again = checks.read_tool(call, "a.py", ("The text was not found.",), "e4", 4)
    other = checks.read_tool(call, "b.py", None, "e6", 6)
    still_open = checks.open_failures(6)
    resolved = checks.read_tool(call, "a.py", None, "e8", 8)

    assert (failure.lines, other) == (("The text was not found.",), ())
    assert still_open == again == resolved
    assert checks.open_failures(8) == ()


def test_a_file_was_checked_though_the_run_that_passed_is_no_longer_told() -> None:
    agent = AgentWork()
    agent.edits("a.py")
    agent.runs("pytest tests/test_a.py", PASSED)
    agent.runs("pytest tests/test_b.py", FAILED, failed=True)

    assert [change.checked for change in agent.work.changes] == [True]


def test_a_failed_check_outlasts_other_failures() -> None:
    agent = AgentWork()
    agent.runs("pytest -q", FAILED, failed=True)
    for number in range(MAX_FAILURES - 1):
        agent.runs(f"./deploy-{number}", "Exit code 2\nno host", failed=True)
    for _ in range(GONE_ON + 1):
        agent.says("Going on.")

    assert open_commands(agent) == ["pytest -q"]
