"""The last run of each check, and which failures are still open."""

from __future__ import annotations

import pytest

from compactd.core.work.checks import GONE_ON, MAX_ERRORS
from compactd.protocol.work import CheckKind, OpenError, Outcome, WorkCheck
from tests.support.agent_work import AgentWork

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
    ["grep -n x a.py", "rg x", "cat a.py | grep x", "diff a b", "test -f a", "which uv", "cd /repo && ls x"],
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
