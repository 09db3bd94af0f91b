"""Scores `extract` at every cut of recorded sessions: linked retention and CG, by budget and by category.

    python -m benchmarks.retention [--data DIR] [--budgets 2000,4000,8000,16000] [--only REGEX] [--lowest N]

`--data` holds `sessions/` (with MANIFEST.json) and `more/`; beside it, `tools/` with the judge. Default:
`COMPACTD_TEST_DATA`, else `../shared/data` beside the repository. Atoms made: those of the summary that its
past does not hold.
"""

from __future__ import annotations

import argparse
import collections
import importlib
import json
import os
import re
import sys
import time
from multiprocessing import Pool
from pathlib import Path

from benchmarks.retention import contexts, cuts
from compactd.core.extract import FactCache

CATEGORIES = ("path", "id", "lit", "cmd", "user", "decision", "error", "line")
PROCESSES = 2


def normalised(data: Path, cache: Path) -> list[Path]:
    """The sessions of `data` in the judge's neutral form."""
    normalise = importlib.import_module("normalise").normalise
    cache.mkdir(parents=True, exist_ok=True)
    for row in json.loads((data / "sessions" / "MANIFEST.json").read_text("utf-8")):
        to = cache / f"{row['name']}.jsonl"
        raw = data / "sessions" / row["file"]
        if raw.exists() and not to.exists():
            head = {"type": "session", "name": row["name"], "format": row["format"]}
            lines = [head, *normalise(str(raw), row["format"])]
            to.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), "utf-8")
    names = {row.stem for row in cache.glob("*.jsonl")}
    more = [path for path in (data / "more").glob("*.jsonl") if path.stem not in names]
    return sorted([*cache.glob("*.jsonl"), *more], key=lambda path: path.name)


def score(job: tuple[Path, Path, Path, set, tuple[int, ...]]) -> list[dict]:
    """The rows of one session: one for each cut and budget."""
    tools, file, cache, common, budgets = job
    probe = cuts.judge(tools)
    count = contexts.counter()
    rows = []
    for cut in cuts.cached_cuts(probe, file, common, cache):
        items = contexts.items_of(cut.past, count)
        past: set = set()
        for record in cut.past:
            past |= probe.atoms(record.get("text", ""), cut.cwd) | probe.atoms(
                probe.calls_plain(record), cut.cwd
            )
        for budget in budgets:
            begun = time.perf_counter()
            context, summary = contexts.compacted(items, budget, count, FactCache())
            taken = time.perf_counter() - begun
            _, linked = probe.score(cut.probes, cut.full, context, cut.cwd)
            gained = cut.bits_nothing - probe.cond_bits(context, cut.agent, cut.observed)
            rows.append(
                {
                    "session": cut.session,
                    "budget": budget,
                    "linked": linked,
                    "cg": gained / max(1, cut.bits_nothing - cut.bits_past),
                    "tokens": count(context),
                    "seconds": taken,
                    "past": sum(item.tokens for item in items),
                    "made": sorted(value for _, value in probe.atoms(summary, cut.cwd) - past),
                }
            )
    return rows


def mean(values) -> float:
    known = [v for v in values if v is not None]
    return sum(known) / len(known) if known else 0.0


def macro(linked: dict) -> float | None:
    shares = [linked[c][0] / linked[c][1] for c in CATEGORIES if c in linked and linked[c][1] >= 3]
    return mean(shares) if shares else None


def report(rows: list[dict], budget: int, lowest: int) -> None:
    sessions = collections.defaultdict(list)
    for row in rows:
        sessions[row["session"]].append(row)
    by_linked = {name: mean(macro(r["linked"]) for r in mine) for name, mine in sessions.items()}
    cg = mean(mean(r["cg"] for r in mine) for mine in sessions.values())
    shares = {
        c: mean(r["linked"][c][0] / r["linked"][c][1] for r in rows if r["linked"].get(c, (0, 0))[1] >= 3)
        for c in CATEGORIES
    }
    slow = max(rows, key=lambda r: r["seconds"])
    print(
        f"{budget:6}: linked {100 * mean(by_linked.values()):.1f}  CG {100 * cg:.1f}  "
        + " ".join(f"{c} {100 * share:.0f}" for c, share in shares.items())
        + f"  | {len(rows)} cuts, over budget {sum(r['tokens'] > budget for r in rows)}, "
        f"with atoms made {sum(bool(r['made']) for r in rows)}, "
        f"filled {100 * mean(r['tokens'] / budget for r in rows):.1f} %, "
        f"slowest {slow['seconds']:.2f} s for {slow['past']} tokens"
    )
    for name in sorted(by_linked, key=by_linked.get)[:lowest]:
        print(
            f"        {name}: {100 * by_linked[name]:.1f} / {100 * mean(r['cg'] for r in sessions[name]):.1f}"
        )


def main() -> int:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    given.add_argument("--data", type=Path, default=Path(os.environ.get("COMPACTD_TEST_DATA", beside)))
    given.add_argument("--cache", type=Path, default=Path("build/retention"))
    given.add_argument("--budgets", default="2000,4000,8000,16000")
    given.add_argument("--only", default="")
    given.add_argument("--lowest", type=int, default=0)
    options = given.parse_args()
    tools = options.data.resolve().parent / "tools"
    if not (tools / "probe.py").exists():
        print(f"no judge: {tools / 'probe.py'} does not exist", file=sys.stderr)
        return 2
    probe = cuts.judge(tools)
    files = normalised(options.data, options.cache / "sessions")
    common = cuts.commonplace(probe, files)
    budgets = tuple(int(b) for b in options.budgets.split(","))
    wanted = [f for f in files if re.search(options.only, f.stem)]
    jobs = [(tools, f, options.cache / "cuts", common, budgets) for f in wanted]
    with Pool(PROCESSES) as pool:
        rows = [row for mine in pool.imap_unordered(score, jobs) for row in mine]
    for budget in budgets:
        report([row for row in rows if row["budget"] == budget], budget, options.lowest)
    return 0


if __name__ == "__main__":
    sys.exit(main())
