"""The classifier's scores on the collected failures (`benchmarks/truth/*failures.jsonl`) do not get worse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from compactd.core.overflow.classify import FailureReport, classify

HERE = Path(__file__).resolve().parents[3] / "benchmarks" / "truth" / "failures.jsonl"
ROWS = [json.loads(line) for line in HERE.read_text("utf-8").splitlines()]


def failure_of(row: dict[str, Any]) -> FailureReport:
    """Return a row as the failure that the daemon would see."""
    return FailureReport(
        status=row["status"], code=row["code"], text=row["body"] or "", provider=row["provider"]
    )


FOUND = [classify(failure_of(row)) for row in ROWS]


def test_of_those_that_are_taken_for_overflows_97_of_100_are() -> None:
    taken = [(row["id"], row["overflow"]) for row, found in zip(ROWS, FOUND, strict=True) if found.overflow]
    wrong = [name for name, is_overflow in taken if not is_overflow]

    assert len(wrong) <= 0.03 * len(taken), wrong


def test_of_the_overflows_at_most_two_are_missed() -> None:
    missed = [row["id"] for row, found in zip(ROWS, FOUND, strict=True) if found.overflow < row["overflow"]]

    assert len(missed) <= 2, missed


def test_the_kind_is_right_in_98_of_100() -> None:
    right = sum(found.kind == row["label"] for row, found in zip(ROWS, FOUND, strict=True))

    assert right >= 0.98 * len(ROWS), right


def test_the_numbers_are_right_where_a_text_states_them_and_a_right_verdict_invents_none() -> None:
    for name in ("limit", "requested"):
        stated = [(row, found) for row, found in zip(ROWS, FOUND, strict=True) if row[name] is not None]
        right = sum(getattr(found, name) == row[name] for row, found in stated)
        invented = [
            row["id"]
            for row, found in zip(ROWS, FOUND, strict=True)
            if row[name] is None and getattr(found, name) is not None and found.overflow <= row["overflow"]
        ]

        assert right >= 0.97 * len(stated), (name, right, len(stated))
        assert invented == [], name


def test_the_newest_failures_are_recognised_as_well_as_when_they_were_first_scored() -> None:
    newest = [
        json.loads(line) for line in HERE.with_name("new_failures.jsonl").read_text("utf-8").splitlines()
    ]
    taken = [(row, classify(failure_of(row)).overflow) for row in newest]

    assert sum(is_taken > row["overflow"] for row, is_taken in taken) <= 3
    assert sum(is_taken < row["overflow"] for row, is_taken in taken) <= 6
