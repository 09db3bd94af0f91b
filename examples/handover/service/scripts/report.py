"""Prints the loans that are overdue: `python scripts/report.py data/loans.json 2026-11-20`."""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path

from lend.store import Store


def main() -> None:
    path, today = Path(sys.argv[1]), date.fromisoformat(sys.argv[2])
    for loan in Store(path).loans(only_open=True):
        row = loan.model_dump(mode="json", include={"member_no", "tool_id", "due_day"})
        if loan.due_day < today:
            print(row["due_day"], row["member_no"], row["tool_id"])


if __name__ == "__main__":
    main()
