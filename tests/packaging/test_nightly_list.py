"""The tests that tests/nightly.txt names are there, and the parameters after a colon stay in `make test`."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.nightly import is_nightly, rows

TESTS = Path(__file__).parents[1]


def test_each_row_names_a_test() -> None:
    missing = [
        row
        for row in rows()
        if not (TESTS / row.partition("::")[0]).is_file()
        or not re.search(
            rf"^(?:async )?def {row.partition('::')[2]}\b",
            (TESTS / row.partition("::")[0]).read_text("utf-8"),
            re.M,
        )
    ]

    assert missing == []


def test_all_parameters_but_the_kept_are_nightly() -> None:
    test, kept = next((test, kept) for test, kept in rows().items() if kept)

    assert not any(is_nightly(f"tests/{test}[{one}]") for one in kept)
    assert is_nightly(f"tests/{test}[no such parameter]")
    assert not is_nightly("tests/packaging/test_nightly_list.py::test_each_row_names_a_test")
