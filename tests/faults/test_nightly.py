"""The result of `make nightly`, as docs/proof.md states it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.proof.nightly import row_of
from tests.faults.proof.results import MARK, Kept, write_table


@pytest.mark.parametrize(
    ("closing", "code", "times", "lost"),
    [
        ("12169 passed, 3 skipped, 91 deselected in 1500.00s (0:25:00)", 0, 12_169, 0),
        ("2 failed, 10 passed, 1 error in 1.00s", 1, 13, 3),
        ("10 passed in 1.00s", 2, 10, 1),
        ("no tests ran in 0.01s", 5, 0, 1),
        ("", -9, 0, 1),
        ("10 passed in 1.00s; in frameworks: 1 failed, 5 passed in 2.00s", 1, 16, 1),
        ("10 passed in 1.00s; in frameworks: 5 passed, 2 skipped in 2.00s", 0, 15, 0),
    ],
)
def test_a_run_that_failed_or_ended_early_has_lost_something(
    closing: str, code: int, times: int, lost: int
) -> None:
    row = row_of(closing, code)

    assert (row.times, row.lost) == (times, lost)


def test_the_page_states_the_date_the_commit_and_the_closing_line(tmp_path: Path) -> None:
    page = tmp_path / "proof.md"
    page.write_text(f"before\n{MARK}old\n{MARK}after\n", "utf-8")
    row = row_of("7 passed in 1.00s", 0)
    kept = Kept(part="tests", row=row, date="2026-11-26", all_times=7, all_lost=0, note="1a2b3c4: 7 passed")

    write_table({"tests/nightly": kept}, page)

    before, table, after = page.read_text("utf-8").split(MARK)
    assert (before, after) == ("before\n", "after\n")
    assert table.splitlines()[2:] == [
        f"| tests | {row.fault} | 7 tests | 0 | – | 2026-11-26, 1a2b3c4: 7 passed |"
    ]
