"""The classifier's scores on the collected failures (`benchmarks/truth/failures.jsonl`) do not get worse."""

from __future__ import annotations

import json
from pathlib import Path

from compactd.core.overflow.classify import FailureReport, classify

HERE = Path(__file__).resolve().parents[3] / "benchmarks" / "truth" / "failures.jsonl"
ROWS = [json.loads(line) for line in HERE.read_text("utf-8").splitlines()]
FOUND = [
    classify(
        FailureReport(
            status=row["status"], code=row["code"], text=row["body"] or "", provider=row["provider"]
        )
    )
    for row in ROWS
]


def test_none_of_them_is_taken_for_an_overflow_that_is_not_one() -> None:
    assert [
        row["id"] for row, found in zip(ROWS, FOUND, strict=True) if found.overflow > row["overflow"]
    ] == []


def test_of_the_overflows_at_most_two_are_missed() -> None:
    missed = [row["id"] for row, found in zip(ROWS, FOUND, strict=True) if found.overflow < row["overflow"]]

    assert len(missed) <= 2, missed


def test_the_kind_is_right_in_98_of_100() -> None:
    right = sum(found.kind == row["label"] for row, found in zip(ROWS, FOUND, strict=True))

    assert right >= 0.98 * len(ROWS), right


def test_the_numbers_are_right_where_a_text_states_them_and_none_is_invented() -> None:
    for name in ("limit", "requested"):
        stated = [(row, found) for row, found in zip(ROWS, FOUND, strict=True) if row[name] is not None]
        right = sum(getattr(found, name) == row[name] for row, found in stated)
        invented = [
            row["id"]
            for row, found in zip(ROWS, FOUND, strict=True)
            if row[name] is None and getattr(found, name) is not None
        ]

        assert right >= 0.97 * len(stated), (name, right, len(stated))
        assert invented == [], name
