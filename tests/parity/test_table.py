"""The tables in `docs/specs*.md` name exactly the tests of this folder; every line of a spec has a row."""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path
from typing import NamedTuple

import pytest

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent
TABLES = "\n".join(path.read_text("utf-8") for path in sorted((TESTS.parent / "docs").glob("specs*.md")))
NAMED = re.compile(r"`(?:(?P<file>[\w/]+\.py)::)?(?P<name>test_\w+)`")
"""`test_of_this_folder`, or `folder/test_file.py::test_of_another`."""

STEMS = {
    "opal.md": "opal",
    "go-agent.md": "go_agent",
    "klaude-code.md": "klaude",
    "evmts-32.md": "evmts",
    "opencode.md": "opencode",
}
"""Each spec, and how the files of its tests begin."""

EACH = pytest.mark.parametrize("spec", STEMS)

SAYS_NOTHING = re.compile(r"#.*|```.*|</?[\w-]+>|\|[-| ]+\||[\W\d]*")
"""Headings, fences, tags, rules, brackets: lines that are no sentence."""


class Row(NamedTuple):
    """One row of a table."""

    first: int
    last: int
    says: str
    tests: str
    note: str


def rows_of(spec: str) -> list[Row]:
    """Return the rows of a spec's table, unchanged."""
    section = re.search(rf"^## {re.escape(spec)}\n(.*?)(?=^## |\Z)", TABLES, re.S | re.M)
    assert section, spec
    rows = []
    for line in section[1].splitlines():
        if re.match(r"\| *[\d–]+ *\|", line):
            lines, says, tests, note = (cell.strip() for cell in line.strip("| ").split(" | "))
            first, _, last = lines.partition("–")
            rows.append(Row(int(first), int(last or first), says, tests, note))
    return rows


def names_in(path: Path) -> set[str]:
    """The names of the tests of a file."""
    tree = ast.parse(path.read_text("utf-8"))
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef))
    return {function.name for function in functions if function.name.startswith("test_")}


def test_every_test_that_a_table_names_is_there() -> None:
    here = {name for path in HERE.glob("test_*.py") for name in names_in(path)}

    missing = [
        found.group()
        for found in NAMED.finditer(TABLES)
        if found["name"] not in (names_in(TESTS / found["file"]) if found["file"] else here)
    ]

    assert missing == []


def test_every_test_of_this_folder_is_in_a_table() -> None:
    named = {found["name"] for found in NAMED.finditer(TABLES) if not found["file"]}

    for path in sorted(HERE.glob("test_*.py")):
        if path.name != Path(__file__).name:
            assert sorted(names_in(path) - named) == [], path.name


def test_no_two_tests_of_this_folder_have_one_name() -> None:
    names = [name for path in HERE.glob("test_*.py") for name in sorted(names_in(path))]

    assert sorted({name for name in names if names.count(name) > 1}) == []


@EACH
def test_the_rows_are_in_order_and_each_says_what_tests_it_or_why_nothing_does(spec: str) -> None:
    rows = rows_of(spec)

    assert len(rows) > 20
    assert [row.first for row in rows] == sorted(row.first for row in rows)
    for row in rows:
        assert row.first <= row.last, row
        assert row.says, row
        assert NAMED.search(row.tests) or (row.tests == "–" and row.note != "–"), row
        if "test_deviation_" in row.tests:
            assert row.note != "–", f"what differs? {row}"


@EACH
def test_no_test_of_a_spec_is_without_its_row(spec: str) -> None:
    named = {found["name"] for row in rows_of(spec) for found in NAMED.finditer(row.tests)}
    paths = sorted(HERE.glob(f"test_{STEMS[spec]}*.py"))

    assert paths
    for path in paths:
        assert sorted(names_in(path) - named) == [], path.name


@EACH
def test_every_line_of_the_spec_is_in_a_row(spec: str) -> None:
    data = Path(os.environ.get("COMPACTD_TEST_DATA", TESTS.parent.parent / "shared" / "data"))
    file = data.parent / "spec" / spec
    if not file.is_file():
        pytest.skip("the specs are no part of this project, and none are beside it")
    covered = {number for row in rows_of(spec) for number in range(row.first, row.last + 1)}

    sentences = {
        number
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1)
        if not SAYS_NOTHING.fullmatch(line.strip())
    }

    assert sorted(sentences - covered) == []
    assert len(sentences) > 50
