"""`docs/regressions.md` lists every regression, and the tests that it names exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TABLE = (ROOT / "docs" / "regressions.md").read_text("utf-8")
FILES = (*sorted(HERE.glob("test_regressions*.py")), HERE / "test_never_again.py")

LINES = 29
"""The number of lines of "Never again"."""


def names_in(path: Path) -> set[str]:
    return {
        node.name
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def rows(heading: str) -> list[list[str]]:
    """The cells of the first table under a heading."""
    section = TABLE.split(f"## {heading}\n")[1].split("\n## ")[0]
    table = re.search(r"^\|---.*\n((?:\|.*\n)+)", section, re.M)
    assert table, heading
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in table[1].splitlines()]


def test_every_test_that_the_table_names_is_there() -> None:
    there = set().union(*map(names_in, FILES))

    assert sorted(set(re.findall(r"`(test_\w+)`", TABLE)) - there) == []


def test_every_test_of_a_regression_is_in_the_table() -> None:
    named = set(re.findall(r"`(test_\w+)`", TABLE))

    assert sorted(set().union(*map(names_in, FILES)) - named) == []


def test_each_number_has_its_rows_with_a_guard_and_what_became_of_the_tests_without_it() -> None:
    found = rows("R1 to R29")

    assert list(dict.fromkeys(row[0] for row in found)) == [f"R{number}" for number in range(1, 30)]
    for number, regression, test, guard, tried in found:
        assert regression, number
        assert "`test_" in test, number
        assert re.search(r"`[\w/]+\.py", guard), number
        assert "→" in tried, number


def test_each_line_has_its_test() -> None:
    found = rows('The lines of "Never again"')

    assert len(found) == LINES
    assert all("`test_" in row[1] for row in found)


def test_every_guard_that_the_table_names_is_there() -> None:
    for path in re.findall(r"`([\w/]+\.py)[:`]", TABLE.replace("tests/properties/", "")):
        assert (ROOT / "server" / "compactd" / path).is_file() or (HERE / path).is_file(), path


def test_each_test_tells_its_number_or_its_story() -> None:
    for path in FILES:
        for node in ast.parse(path.read_text("utf-8")).body:
            if not isinstance(node, ast.FunctionDef) or not node.name.startswith("test_"):
                continue
            told = ast.get_docstring(node) or ""
            assert re.match(r"R\d+[ ,.:]|R\d+$", told) or path.name == "test_never_again.py", node.name
            assert told, node.name
