"""Which simple commands are in a command line, and what each checks."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactd.core.work.shell import MAX_COMMAND_CHARS, Command, check_kind, commands_in, script_kind
from tests.support.examples import examples

HOSTILE = [
    "a",
    "(",
    ")",
    '"',
    "'",
    "\\",
    " ",
    "<<a\n",
    "\n",
    "|",
    ";",
    "#",
    ">&",
    "bash -c '",
    "$(",
    "sudo ",
    "=",
]
LINES = st.one_of(
    st.text(),
    st.lists(
        st.sampled_from([*HOSTILE, "pytest", "&&", "-q", "2>&1", "\\\n", "npm run test", "./x.sh"]),
        max_size=30,
    ).map("".join),
)


def texts(line: str) -> tuple[str, ...]:
    return tuple(command.text for command in commands_in(line))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", ()),
        ("pytest -q", ("pytest -q",)),
        ("cd a && pytest -q; echo done | cat", ("cd a", "pytest -q", "echo done", "cat")),
        ("cd a &&\n  pytest \\\n  -q", ("cd a", "pytest -q")),
        ("git commit -m 'fix: a && b; c'", ("git commit -m fix: a && b; c",)),
        ('echo "a | b" \'c;d\' e\\ f', ("echo a | b c;d e f",)),
        ("# run the tests; all of them\npytest # quick", ("pytest",)),
        ("echo a#b", ("echo a#b",)),
        ("make test > log.txt 2>&1 < in.txt", ("make test",)),
        ("make test &> log.txt && ls", ("make test", "ls")),
        ("sleep 2 > log", ("sleep 2",)),
        ("cat <<< 'pytest' && ls", ("cat", "ls")),
        ("cat > a.py <<'EOF' && pytest a.py\nimport os; os.x()\nEOF\nls", ("cat", "pytest a.py", "ls")),
        ("cat <<EOF\nnever closed; make", ("cat",)),
        ("A=1 B='2 3' sudo -u bob timeout -k 5 60 pytest -q", ("pytest -q",)),
        ("env -u HOME nice -n 10 make", ("make",)),
        ("npx --yes -p typescript tsc --noEmit", ("tsc --noEmit",)),
        ("git ls-files | xargs -n 1 ruff check", ("git ls-files", "ruff check")),
        ("uv run --with pytest-xdist pytest -n 4", ("pytest -n 4",)),
        ("uv run python -u -m pytest tests", ("python -m pytest tests",)),
        ("python3.12 -m mypy .", ("python -m mypy .",)),
        ("python script.py -m pytest", ("python script.py -m pytest",)),
        ("bundle exec rspec spec/a_spec.rb", ("rspec spec/a_spec.rb",)),
        ("npm exec -- jest a", ("jest a",)),
        ("mise exec node@22 -- npm test", ("npm test",)),
        ("docker exec -w /app web pytest", ("pytest",)),
        ("docker compose exec web pytest", ("pytest",)),
        ("docker run web", ("docker run web",)),
        ("command -v pytest", ("command -v pytest",)),
        ("bash -lc 'cd a && go test ./...'", ("cd a", "go test ./...")),
        ("bash scripts/test.sh --fast", ("test.sh --fast",)),
        ("/usr/bin/env bash -c 'make lint'", ("make lint",)),
        ("if pytest; then echo ok; fi", ("pytest", "echo ok")),
        ("(cd a && make) || { echo no; }", ("cd a", "make", "echo no")),
        ("out=$(pytest -q 2>&1); echo \"$out\"", ("pytest -q", "echo $out")),
        ("it's", ("it's",)),
    ],
)  # fmt: skip
def test_a_line_has_these_commands(line: str, expected: tuple[str, ...]) -> None:
    assert texts(line) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("a | b", [("a", "", True), ("b", "|", False)]),
        ("a && b || true", [("a", "", False), ("b", "&&", False), ("true", "||", False)]),
        ("a\nb; c", [("a", "", False), ("b", ";", False), ("c", ";", False)]),
        ("a &&\nb", [("a", "", False), ("b", "&&", False)]),
        ("(a && b) | c", [("a", "", True), ("b", "&&", True), ("c", "|", False)]),
        (
            "x; bash -c 'a && b' | c",
            [("x", "", False), ("a", ";", True), ("b", "&&", True), ("c", "|", False)],
        ),
        ("a 2>&1 | tee log", [("a", "", True), ("tee", "|", False)]),
        ("a & b", [("a", "", False), ("b", "&", False)]),
    ],
)
def test_a_command_knows_the_operator_before_it_and_whether_it_is_piped(
    line: str, expected: list[tuple[str, str, bool]]
) -> None:
    assert [(one.program, one.after, one.is_piped) for one in commands_in(line)] == expected


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("pytest -q tests", "test"),
        ("python -m pytest", "test"),
        ("python -m unittest discover", "test"),
        ("python manage.py test app", "test"),
        ("python test_repro.py", "test"),
        ("python build_index.py", None),
        ("python run.py", None),
        ("./scripts/run_tests.sh", "test"),
        ("go test ./...", "test"),
        ("go vet ./...", "lint"),
        ("go run ./cmd/test", None),
        ("cargo +nightly test -p core", "test"),
        ("cargo clippy -- -D warnings", "lint"),
        ("cargo check", "types"),
        ("npm test", "test"),
        ("npm run test:unit", "test"),
        ("npm run type-check", "types"),
        ("npm run dev", None),
        ("npm ci", None),
        ("npm install --save-dev jest", None),
        ("pnpm --filter web lint", "lint"),
        ("pnpm install", None),
        ("yarn workspace web build", "build"),
        ("yarn jest a", "test"),
        ("bun run typecheck", "types"),
        ("bun test", "test"),
        ("npx vitest@latest run", "test"),
        ("npx jest", "test"),
        ("npx mocha", "test"),
        ("npx tsc --noEmit", "types"),
        ("npx tsc", "types"),
        ("npx tsc -b", "build"),
        ("npx eslint .", "lint"),
        ("mypy src", "types"),
        ("ruff check .", "lint"),
        ("golangci-lint run", "lint"),
        ("mix test", "test"),
        ("vendor/bin/phpunit", "test"),
        ("bundle exec rspec", "test"),
        ("mvn -q clean verify", "test"),
        ("mvn clean package", "build"),
        ("./gradlew clean testDebugUnitTest", "test"),
        ("./gradlew :app:assembleDebug", "build"),
        ("make", "build"),
        ("make -j 4 all", "build"),
        ("make -C sub test", "test"),
        ("make DEBUG=1 lint", "lint"),
        ("make clean", None),
        ("just test", "test"),
        ("task lint", "lint"),
        ("mise run test", "test"),
        ("mise build", "build"),
        ("make check", "other"),
        ("cmake --build out", "build"),
        ("node --test", "test"),
        ("node server.js", None),
        ("pytest --version", None),
        ("which pytest", None),
        ("pip install pytest", None),
        ("git commit -m test", None),
        ("grep -rn test .", None),
        ("echo pytest", None),
        ("gofmt -w .", None),
        ("gofmt -l .", "lint"),
        ("go fmt ./...", None),
        ("ruff format .", None),
        ("python -m ruff format .", None),
        ("ruff format --check .", "lint"),
        ("ruff check --fix .", "lint"),
        ("black .", None),
        ("black --check .", "lint"),
        ("npx prettier --write src", None),
        ("npx prettier --check src", "lint"),
        ("cargo fmt", None),
        ("cargo fmt -- --check", "lint"),
        ("mix format", None),
        ("mix format --check-formatted", "lint"),
        ("biome format --write .", None),
        ("biome check --write .", "lint"),
        ("mise run fmt", None),
        ("mise run fmt --check", "lint"),
        ("npm run format", None),
        ("npm run format:check", "lint"),
        ("make check-format", "lint"),
        ("make format lint", "lint"),
        ("cat tests/test_a.py", None),
    ],
)
def test_the_last_command_checks_this(line: str, kind: str | None) -> None:
    assert check_kind(commands_in(line)[-1]) == kind


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("latest", None),
        ("contest", None),
        ("integrationTest", "test"),
        ("prototypes", None),
        ("information", None),
        ("rebuild", "build"),
        ("ci", "other"),
        ("precision", None),
        ("fmt", None),
        ("fmt-check", "lint"),
    ],
)
def test_the_name_of_a_script_says_what_it_checks(name: str, kind: str | None) -> None:
    assert script_kind(name) == kind


@pytest.mark.parametrize("piece", HOSTILE)
def test_only_the_beginning_of_a_long_line_is_read(piece: str) -> None:
    long = (piece * 100_000)[:100_000]

    assert commands_in(long) == commands_in(long[:MAX_COMMAND_CHARS])


@settings(max_examples=examples(200))
@given(LINES)
def test_every_word_of_a_command_occurs_in_the_line(line: str) -> None:
    plain = re.sub(r"['\"\\]", "", line)

    for command in commands_in(line):
        words = command.text.split() if command.program != "python -m" else " ".join(command.words).split()
        assert all(re.sub(r"['\"\\]", "", word) in plain for word in words)
        check_kind(command)


@settings(max_examples=examples(60))
@given(LINES)
def test_the_same_line_has_the_same_commands(line: str) -> None:
    assert commands_in(line) == commands_in(line)


@given(st.text(), st.lists(st.text(), max_size=4))
def test_any_command_has_a_kind_or_none(program: str, words: list[str]) -> None:
    assert check_kind(Command(program, tuple(words))) in ("test", "build", "lint", "types", "other", None)
