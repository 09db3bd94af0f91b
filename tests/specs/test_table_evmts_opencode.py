"""`docs/specs-evmts-opencode.md` against the tests that it names, and against the specs where they are."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent
TABLE = (TESTS.parent / "docs" / "specs-evmts-opencode.md").read_text("utf-8")
NAMED = re.compile(r"`(?:(?P<file>[\w/]+\.py)::)?(?P<name>test_\w+)`")
"""`test_of_this_folder`, or `folder/test_file.py::test_of_another`."""

SPECS = pytest.mark.parametrize("spec", ["evmts-32.md", "opencode.md"])

SAYS_NOTHING = re.compile(r"#.*|```\w*|</?[\w-]+>|\|[-| ]+\||\W*")
"""Headings, fences, tags, rules of tables, brackets: lines that are no sentence."""


class Row(NamedTuple):
    """One row of a table."""

    first: int
    last: int
    says: str
    tests: str
    note: str


def rows(spec: str) -> list[Row]:
    """The rows of a spec's table."""
    section = re.search(rf"^## {re.escape(spec)}\n(.*?)(?=^## |\Z)", TABLE, re.S | re.M)
    assert section, spec
    found = []
    for line in section[1].splitlines():
        if re.match(r"\| *[\d–]+ *\|", line):
            lines, says, tests, note = (cell.strip() for cell in line.strip("| ").split(" | "))
            first, _, last = lines.partition("–")
            found.append(Row(int(first), int(last or first), says, tests, note))
    return found


def names_in(path: Path) -> set[str]:
    """The names of the tests of a file."""
    tree = ast.parse(path.read_text("utf-8"))
    return {node.name for node in tree.body if getattr(node, "name", "").startswith("test_")}


def missing(text: str) -> Iterator[str]:
    """The tests that a text names and that are not there."""
    here = {name for path in HERE.glob("test_*.py") for name in names_in(path)}
    for found in NAMED.finditer(text):
        if found["name"] not in (names_in(TESTS / found["file"]) if found["file"] else here):
            yield found.group()


@SPECS
def test_the_rows_are_in_the_specs_order_and_name_tests_that_are_there(spec: str) -> None:
    last = 0
    for row in rows(spec):
        assert row.first > last, row
        assert row.last >= row.first, row
        last = row.last
        assert row.says, row
        assert NAMED.search(row.tests) or (row.tests == "–" and row.note != "–"), row
        if "test_deviation_" in row.tests:
            assert row.note != "–", f"what differs? {row}"
    assert list(missing(TABLE)) == []


@SPECS
def test_no_test_of_the_two_specs_is_without_its_row(spec: str) -> None:
    stem = spec.partition(".")[0].partition("-")[0]
    named = {found["name"] for row in rows(spec) for found in NAMED.finditer(row.tests)}

    for path in sorted(HERE.glob(f"test_{stem}*.py")):
        assert sorted(names_in(path) - named) == [], path.name


@SPECS
def test_every_line_of_the_two_specs_is_in_a_row(spec: str) -> None:
    data = Path(os.environ.get("COMPACTD_TEST_DATA", TESTS.parent.parent / "shared" / "data"))
    file = data.parent / "spec" / spec
    if not file.is_file():
        pytest.skip("the specs are no part of this project, and none are beside it")
    covered = {number for row in rows(spec) for number in range(row.first, row.last + 1)}

    sentences = {
        number
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1)
        if not SAYS_NOTHING.fullmatch(line.strip())
    }

    assert sorted(sentences - covered) == []
    assert len(sentences) > 100
