"""Scores the overflow classifier: `python benchmarks/truth/score_overflow.py FILE [--part
seen|aside|all]`.

Each line of FILE is a JSON object: an error (`status`, `code`, `body`, `provider`) or the usage of an answer
(`usage`, `window`, `stop_reason`), with its true label (`label`, `overflow`, `limit`, `requested`,
`fixable_by_lowering_max_tokens`). `aside.py` says which rows were seen while the classifier was written.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from aside import Row, part, read_rows

from compactd.core.overflow.classify import FailureReport, Verdict, classify


def failure_of(row: Row) -> FailureReport:
    """Return a row as the failure that the daemon would see. A session's own count (`client_estimate`) is
    used before a usage report."""
    usage = row.get("usage") or {}
    reported = sum(usage.get(key) or 0 for key in ("input", "cache_read", "cache_write")) if usage else None
    return FailureReport(
        status=row["status"],
        code=row["code"] or None,
        text=row["body"] or "",
        provider=row["provider"],
        used=row.get("client_estimate") or reported,
        output=usage.get("output"),
        reasoning_apart=bool(usage.get("reasoning")),
        window=row.get("window"),
        stop_reason=row.get("stop_reason"),
    )


def wrongs(row: Row, verdict: Verdict) -> list[str]:
    """Return what is wrong with a verdict, one phrase per mistake."""
    found = []
    if verdict.overflow != row["overflow"]:
        found.append(f"overflow {verdict.overflow}, expected {row['overflow']}")
    if verdict.kind != row["label"]:
        found.append(f"kind {verdict.kind}, expected {row['label']}")
    if row.get("kind", "error") == "error":
        for name in ("limit", "requested"):
            if getattr(verdict, name) != row[name]:
                found.append(f"{name} {getattr(verdict, name)}, expected {row[name]}")
    fixable = row.get("fixable_by_lowering_max_tokens")
    if fixable is not None and (verdict.fix == "lower_output") != fixable:
        found.append(f"fix {verdict.fix}, fixable by lowering {fixable}")
    return found


def share(right: int, total: int) -> str:
    """Return `right/total` with the ratio, or "none" if there are no rows."""
    return f"{right}/{total} = {right / total:.3f}" if total else "none"


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--part", choices=("seen", "aside", "all"), default="all")
    parser.add_argument("--quiet", action="store_true", help="figures only")
    options = parser.parse_args()

    rows = read_rows(options.file)
    if options.part != "all":
        seen, aside = part(rows)
        rows = seen if options.part == "seen" else aside
    verdicts, times = [], []
    for row in rows:
        failure = failure_of(row)
        classify(failure)
        started = time.perf_counter()
        verdicts.append(classify(failure))
        times.append(time.perf_counter() - started)

    judged = list(zip(rows, verdicts, strict=True))
    said = sum(v.overflow for v in verdicts)
    hit = sum(v.overflow and row["overflow"] for row, v in judged)
    true = sum(row["overflow"] for row in rows)
    print(f"rows             {len(rows)}, {true} overflows")
    print(f"precision        {share(hit, said)}")
    print(f"recall           {share(hit, true)}")
    print(f"kind             {share(sum(v.kind == row['label'] for row, v in judged), len(rows))}")
    errors = [(row, v) for row, v in judged if row.get("kind", "error") == "error"]
    for name in ("limit", "requested"):
        stated = [(row, v) for row, v in errors if row[name] is not None]
        print(f"{name:16} {share(sum(getattr(v, name) == row[name] for row, v in stated), len(stated))}")
        invented = sum(row[name] is None and getattr(v, name) is not None for row, v in errors)
        print(f"{name + ' invented':16} {invented}")
    fixes = [(row, v) for row, v in judged if row.get("fixable_by_lowering_max_tokens") is not None]
    right = sum((v.fix == "lower_output") == row["fixable_by_lowering_max_tokens"] for row, v in fixes)
    print(f"fix              {share(right, len(fixes))}")
    print(f"time             median {statistics.median(times) * 1e3:.3f} ms, worst {max(times) * 1e3:.2f} ms")
    if not options.quiet:
        for row, verdict in judged:
            if found := wrongs(row, verdict):
                shown = " ".join((row["body"] or "").split())[:260]
                print(f"\n{row['id']} {row['provider']} {row['status']} {row['code']}: {'; '.join(found)}")
                print(f"    {shown}")


if __name__ == "__main__":
    main()
