"""`python -m tests.faults.proof`: faults, attacks, fuzz and fleet, two minutes each. `--part faults`: one of
them, as long as `--minutes` says.

Each run continues with the seed after the last run's. The results are written to docs/proof.json, and as a
table to docs/proof.md.
"""

from __future__ import annotations

import argparse
import sys

from tests.faults.proof.parts import PARTS
from tests.faults.proof.results import Kept, load, store, today, write_table
from tests.support.postgres import programs

SMALL_MINUTES = 2.0
FULL_MINUTES = 55.0


def main() -> int:
    """Run the parts and write the table. Return exit code 1 if data was lost or an attack got through."""
    asked = argparse.ArgumentParser(prog="python -m tests.faults.proof", description=__doc__)
    asked.add_argument("--part", choices=sorted(PARTS), default=None)
    asked.add_argument("--minutes", type=float, default=None, help="of each part")
    asked.add_argument("--only", default="", help="of these, the one of this name: killed, broken, …")
    asked.add_argument("--table", action="store_true", help="only write the table anew")
    told = asked.parse_args()
    kept = load()
    minutes = told.minutes or (SMALL_MINUTES if told.part is None else FULL_MINUTES)
    lost = 0
    parts = [part for part in PARTS if part != "fleet" or programs() is not None]  # it needs PostgreSQL
    for part in () if told.table else [told.part] if told.part else parts:
        for run, share in PARTS[part]:
            if told.only not in ("", run.__name__):
                continue
            # With `--only`, one run gets the whole time.
            share = 1.0 if told.only else share
            key = f"{part}/{run.__name__}"
            before = kept.get(key)
            seed = (before.row.next_seed if before is not None else None) or 1
            row = run(seed, minutes * share)
            print(f"{part}: {row.fault}: {row.times:,} {row.unit}, lost {row.lost}", flush=True)
            lost += row.lost
            kept = load()  # another run may have gone on beside this one
            before = kept.get(key)
            counts = before is not None and row.next_seed is not None
            kept[key] = Kept(
                part=part,
                row=row,
                date=today(),
                all_times=row.times + (before.all_times if counts and before is not None else 0),
                all_lost=row.lost + (before.all_lost if counts and before is not None else 0),
                first_seed=before.first_seed if before is not None else row.first_seed,
            )
            store(kept)
    write_table(kept)
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
