"""tests/unit/formats/counts.md says how many messages are read from each test file; the numbers are true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.unit.formats.counted import counts, files

PAGE = Path(__file__).with_name("counts.md")
ROW = re.compile(r"^\| `([^`]+)` \| ([a-z-]+) \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \|$", re.MULTILINE)
TOLD = {
    name: (format, *(int(number.replace(",", "")) for number in numbers))
    for name, format, *numbers in ROW.findall(PAGE.read_text(encoding="utf-8"))
}
FILES = dict(files())


@pytest.mark.parametrize("name", FILES)
def test_the_table_says_what_is_read_of_a_file(name: str) -> None:
    assert TOLD[name] == counts(FILES[name])


def test_the_table_names_no_made_file_that_is_not_there() -> None:
    made = {name for name in TOLD if "." in name and "/" not in name}

    assert made == {name for name in FILES if "." in name and "/" not in name}
