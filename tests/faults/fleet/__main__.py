"""`python -m tests.faults.fleet --seed 1 --appends 200000`: five daemons on one database, while nodes are
killed and frozen, connections are cut and hang, and the database restarts and fails over.

A seed gives the same requests and faults, but processes do not meet them at the same moment again.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from tests.faults.fleet.database import Database
from tests.faults.fleet.node import Unanswered
from tests.faults.fleet.run import Fleet

_STATE = (
    "SELECT application_name, state, wait_event, now() - state_change, left(query, 80) FROM pg_stat_activity"
    " WHERE state IS DISTINCT FROM 'idle'",
    "SELECT application_name, state, sync_state, sent_lsn, flush_lsn FROM pg_stat_replication",
)
"""What is asked of the database when a request got no answer."""


def main() -> int:
    """Run the command line. Return exit code 1 if anything was lost, doubled, reordered or written by a node
    without the lease.
    """
    asked = argparse.ArgumentParser(prog="python -m tests.faults.fleet", description=__doc__)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--appends", type=int, default=200_000, help="acknowledged appends")
    asked.add_argument("--rounds", type=int, default=0, metavar="N", help="begin after so many rounds")
    asked.add_argument("--minutes", type=float, default=600.0)
    told = asked.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, closing(Database()) as database:
        fleet = Fleet(Path(folder), database, told.seed, told.rounds)
        try:
            asyncio.run(fleet.run(told.appends, started + 60 * told.minutes))
        except Unanswered as error:
            fleet.wrong.append(str(error))
            for asked in _STATE:
                print(*database.sql(asked), sep="\n", file=sys.stderr)
        for node in fleet.nodes if fleet.wrong else ():
            log = node.log.read_text("utf-8", "replace")[-20_000:]
            print(f"--- node {node.number}\n{log}", file=sys.stderr)
    for text, count in fleet.told.most_common():
        print(f"told {count} times: {text}")
    print(*fleet.wrong[:20], sep="\n")
    counts = {
        "seed": told.seed,
        "appends": fleet.appends,
        "seconds": round(time.monotonic() - started),
        "faults": dict(fleet.faults),
        "wrong": len(fleet.wrong),
    }
    print(json.dumps(counts))
    return 1 if fleet.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
