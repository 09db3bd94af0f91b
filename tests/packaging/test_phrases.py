"""The linter of tools/phrases.py finds each of its phrases, and nothing in code or generated parts."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def linter() -> Iterator[ModuleType]:
    sys.path.append(str(ROOT / "tools"))
    yield importlib.import_module("phrases")
    sys.path.remove(str(ROOT / "tools"))


def test_each_phrase_is_found_with_its_line_also_across_a_line_end(linter: ModuleType) -> None:
    for phrase, better in linter.PHRASES.items():
        report = f"page.md:2: '{phrase}': write '{better}'"

        assert list(linter.found_in("page.md", f"A line.\nThen {phrase}.\n")) == [report]
        assert list(linter.found_in("page.md", f"A line.\nThen {phrase.replace(' ', chr(10))}.\n")) == [
            report
        ]


def test_code_and_generated_parts_of_a_page_are_skipped(linter: ModuleType) -> None:
    page = "`anew`\n\n```text\nanew\n```\n\n<!-- figures: means -->\nanew\n<!-- end -->\n\nAgain.\n"

    assert list(linter.found_in("page.md", page)) == []


def test_docstrings_and_comments_of_python_are_read_and_nothing_else(linter: ModuleType) -> None:
    source = '"""Reads it anew."""\n\nname = "anew"  # started\n# anew\n'

    found = [report.split(": ")[0] for report in linter.found_in("module.py", source)]
    assert found == ["module.py:1", "module.py:4"]


def test_strings_of_an_extension_are_read(linter: ModuleType) -> None:
    assert len(list(linter.found_in("a.ts", 'warn("started anew");\nanew();\n'))) == 1


def test_the_repository_has_none(linter: ModuleType) -> None:
    reports = [
        report
        for path in linter.files()
        for report in linter.found_in(path, (ROOT / path).read_text("utf-8"))
    ]

    assert reports == []
