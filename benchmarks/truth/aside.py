"""Splits labelled rows, 60 % seen and 40 % held out: `python benchmarks/truth/aside.py FILE --out SEEN`.

The author of a classifier looks at the seen part only. The held-out part is scored once, and that first
figure is the honest one. All rows of a group are in the same part, so that the wording of a held-out row was
never read:

- Rows of errors (`provider`, `label`, `code`): a group is a provider. The rows of a frequent provider (10 and
  more) are grouped by (provider, label, code), because each of these is a family of wordings.
- Rows of models (`query`, `kind`): a group is (provider, kind of naming).

The first byte of the SHA-256 of a group's name decides its part: no seed, the same on every machine and for
rows that are added later. A held-out row with the same letters as a seen row (same sentence, other numbers)
is moved to the seen part.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Row = dict[str, Any]

SEEN_SHARE = 0.6
FREQUENT = 10
"""A provider with at least this many rows is split into families: OpenAI's rows alone are a sixth of all."""


def is_seen(group: str) -> bool:
    """Return whether the rows of `group` are in the seen part. Cost: one hash."""
    return hashlib.sha256(group.encode()).digest()[0] < 256 * SEEN_SHARE


def groups(rows: Iterable[Row]) -> list[str]:
    """Return the group of each row, in order."""
    rows = list(rows)
    frequent = Counter(row["provider"] for row in rows if "provider" in row)
    named = []
    for row in rows:
        if "query" in row:
            named.append(f"{row['query']['provider']} {row['kind']}")
        elif frequent[row["provider"]] >= FREQUENT:
            named.append(f"{row['provider']} {row['label']} {row['code']}")
        else:
            named.append(row["provider"])
    return named


def words_of(row: Row) -> str:
    """Return only the letters of a row's text, in lower case; empty if it has no text."""
    return re.sub(r"[^a-z]+", " ", (row.get("body") or "").lower()).strip()


def part(rows: list[Row]) -> tuple[list[Row], list[Row]]:
    """Split the rows into (seen, held out), both in order. Cost: O(characters)."""
    sides = [is_seen(group) for group in groups(rows)]
    read = {words_of(row) for row, seen in zip(rows, sides, strict=True) if seen} - {""}
    sides = [seen or words_of(row) in read for row, seen in zip(rows, sides, strict=True)]
    return (
        [row for row, seen in zip(rows, sides, strict=True) if seen],
        [row for row, seen in zip(rows, sides, strict=True) if not seen],
    )


def read_rows(file: Path) -> list[Row]:
    """Return the rows of a JSONL file, in order."""
    return [json.loads(line) for line in file.read_text("utf-8").splitlines() if line.strip()]


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--out", type=Path, help="where the seen rows are written, as JSONL")
    options = parser.parse_args()

    seen, aside = part(read_rows(options.file))
    if options.out is not None:
        options.out.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in seen), "utf-8")
    total = len(seen) + len(aside)
    print(f"{len(seen)} of {total} rows seen ({len(seen) / total:.0%}), {len(aside)} put aside")


if __name__ == "__main__":
    main()
