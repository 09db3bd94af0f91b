"""What a run of a check covers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactd.core.work.shell import commands_in
from compactd.core.work.suites import MAX_SUITES, MAX_TARGETS, Suite, covers, suites_in, suites_of_hook
from tests.support.examples import examples


def suite_of(line: str) -> Suite:
    """The last check of a command line."""
    return suites_in(commands_in(line))[-1]


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("pytest -q tests", "pytest"),
        ("cd /w && CI=1 timeout 60 python -m pytest -x 2>&1 | tail -20", "pytest"),
        ("go test ./...", "go test"),
        ("npm test", "npm test"),
        ("npm t", "npm test"),
        ("pnpm run test", "npm test"),
        ("npm run test:e2e", "npm test:e2e"),
        ("mise run lint 2>&1 | head -50", "mise lint"),
        ("mise lint", "mise lint"),
        ("ruff check src", "ruff check"),
        ("mix credo --strict", "mix credo"),
        ("npx vitest@2 run", "vitest"),
        ("npx eslint src", "eslint"),
        ("ruff format --check .", "ruff format"),
        ("npx prettier --check src", "prettier"),
    ],
)
def test_runs_of_the_same_check_have_one_name(line: str, name: str) -> None:
    assert suite_of(line).name == name


@pytest.mark.parametrize(
    ("line", "targets", "selects"),
    [
        ("pytest -q", (), ()),
        ("pytest ./tests/test_a.py -k 'one or two'", ("tests/test_a.py",), ("-k one or two",)),
        ("go test -run=TestA -count=1 ./pkg/...", ("pkg/...",), ("-run TestA",)),
        ("go test ./...", (), ()),
        ("npm test -- parser", ("parser",), ()),
        ("pytest -p no:x -n 4 -c a.ini tests/a.py", ("tests/a.py",), ()),
        ("cargo test -p core", ("core",), ()),
        ("go build -o bin/a ./cmd/a", ("cmd/a",), ()),
        ("pytest --last-failed", (), ("--last-failed",)),
        ("make test ARGS=-x", (), ()),
    ],
)
def test_a_run_names_the_files_and_tests_that_it_is_for(
    line: str, targets: tuple[str, ...], selects: tuple[str, ...]
) -> None:
    found = suite_of(line)

    assert (found.targets, found.selects) == (targets, selects)


@pytest.mark.parametrize(
    ("later", "earlier"),
    [
        ("pytest", "pytest tests/test_a.py"),
        ("pytest tests", "pytest tests/test_a.py"),
        ("pytest tests/unit", "pytest tests/unit/test_a.py::test_b"),
        ("mix test test/a_test.exs", "mix test test/a_test.exs:12"),
        ("go test ./...", "go test ./pkg -run TestA"),
        ("go test ./pkg/...", "go test ./pkg/sub"),
        ("go test ./pkg -run TestA -v", "go test -run TestA ./pkg"),
        ("pytest a/b/c.py", "pytest /w/a/b/c.py"),
        ("mise run test", "go test ./pkg -run TestA"),
        ("mise run test", "pytest tests/test_a.py"),
        ("mise run test:ci", "mise run test:integration"),
        ("mise run lint", "golangci-lint run ./pkg"),
        ("make lint", "ruff check src"),
        ("make test", "npm test"),
        ("npm test", "npx vitest run src/a.test.ts"),
        ("npm run lint:fix", "npx eslint src"),
        ("npm run check", "npx tsc --noEmit"),
        ("npm run check", "npm run lint"),
        ("make check", "mypy ."),
        ("make ci", "cargo build"),
        ("go test ./...", "mise run test"),
    ],
)
def test_a_run_covers_its_parts_and_what_it_runs(later: str, earlier: str) -> None:
    assert covers(suite_of(later), suite_of(earlier))


@pytest.mark.parametrize(
    ("later", "earlier"),
    [
        ("pytest tests/test_a.py", "pytest"),
        ("pytest tests/test_a.py", "pytest tests/test_b.py"),
        ("pytest tests/a", "pytest tests/ab/test_c.py"),
        ("pytest -k one", "pytest"),
        ("pytest -k one", "pytest -k two"),
        ("pytest --collect-only", "pytest"),
        ("go test ./pkg", "go test ./pkg/sub"),
        ("go test ./pkg -run TestA", "go test ./pkg -run TestB"),
        ("npx jest parser", "npx jest printer"),
        ("npm test", "pytest"),
        ("npm run check", "ruff check"),
        ("pytest", "npm test"),
        ("python test_repro.py", "make test"),
        ("mise run test", "mise run test:integration"),
        ("mise run test:integration", "mise run test"),
        ("mise run test:unit", "go test ./pkg"),
        ("mise run lint", "mise run test"),
        ("make lint PKG=./a", "golangci-lint run ./b"),
        ("make check", "pytest"),
        ("make check", "cargo build"),
        ("make check-links", "mypy ."),
    ],
)
def test_a_run_does_not_cover_the_whole_or_another_check(later: str, earlier: str) -> None:
    assert not covers(suite_of(later), suite_of(earlier))


def test_a_check_of_everything_covers_tests_if_it_counts_them() -> None:
    later, earlier = suite_of("make check"), suite_of("pytest tests/test_a.py")

    assert not covers(later, earlier)
    assert covers(later, earlier, counts_tests=True)


def test_a_hook_covers_the_scripts_that_it_names() -> None:
    (hook,) = suites_of_hook("Checking …\n\n> shop@1.0.0 check\n> biome check && tsc\n\nAll checks passed!")

    assert hook.name == "npm check"
    assert covers(hook, suite_of("cd /w && npm run check 2>&1 | head -50"))
    assert not covers(hook, suite_of("npm test"))


def test_a_hook_that_names_no_script_covers_lint_and_types() -> None:
    (hook,) = suites_of_hook("pre-commit checks passed")

    assert covers(hook, suite_of("ruff check"))
    assert covers(hook, suite_of("mypy ."))
    assert not covers(hook, suite_of("pytest"))
    assert not covers(hook, suite_of("cargo build"))


LINES = st.lists(
    st.sampled_from(
        ["pytest", "go test", "npm run", "make", "test", "./a", "-k", "-run=x", "a.py", "&&", "lint", "."]
    ),
    max_size=30,
).map(" ".join)


@settings(max_examples=examples(200))
@given(LINES, LINES)
def test_any_run_covers_itself(one: str, other: str) -> None:
    for suite in suites_in(commands_in(one)):
        assert covers(suite, suite)
        assert len(suite.targets) <= MAX_TARGETS
        for more in suites_in(commands_in(other)):
            assert covers(suite, more) in (True, False)


def test_only_so_many_checks_of_a_call_are_followed() -> None:
    line = "; ".join(f"make test-{number}" for number in range(MAX_SUITES + 5))

    assert len(suites_in(commands_in(line))) == MAX_SUITES
