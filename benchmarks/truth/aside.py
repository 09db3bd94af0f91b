"""Parts labelled rows: 60 % to write on, 40 % put aside: `python benchmarks/truth/aside.py FILE --out SEEN`.

Whoever writes a classifier looks at the seen part only; the other part is scored once, and that first figure
is the honest one. A whole group of rows is on one side, so that no wording of an aside row was ever read:

- rows of errors (`provider`, `label`, `code`): a group is a provider; the rows of a frequent provider (10 and
  more) are grouped by (provider, label, code), for each of these is a family of wordings;
- rows of models (`query`, `kind`): a group is (provider, kind of naming).

The side of a group is the first byte of SHA-256 of its name: no seed, the same on every machine and for rows
that come later. An aside row whose letters are those of a seen row (same sentence, other numbers) is given to
the seen part, for it was read.
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
"""Rows from which on one provider is parted in families: OpenAI's alone would be a sixth of all rows."""


def is_seen(group: str) -> bool:
    """Whether the rows of `group` may be read. Cost: one hash."""
    return hashlib.sha256(group.encode()).digest()[0] < 256 * SEEN_SHARE


def groups(rows: Iterable[Row]) -> list[str]:
    """The group of each row, in order."""
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
    """Lower-case letters of a row's text alone; empty where it has none."""
    return re.sub(r"[^a-z]+", " ", (row.get("body") or "").lower()).strip()


def part(rows: list[Row]) -> tuple[list[Row], list[Row]]:
    """The rows in order as (seen, aside). Cost: O(characters)."""
    sides = [is_seen(group) for group in groups(rows)]
    read = {words_of(row) for row, seen in zip(rows, sides, strict=True) if seen} - {""}
    sides = [seen or words_of(row) in read for row, seen in zip(rows, sides, strict=True)]
    return (
        [row for row, seen in zip(rows, sides, strict=True) if seen],
        [row for row, seen in zip(rows, sides, strict=True) if not seen],
    )


def read_rows(file: Path) -> list[Row]:
    """The rows of a JSONL file, in order."""
    return [json.loads(line) for line in file.read_text("utf-8").splitlines() if line.strip()]


def main() -> None:
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
