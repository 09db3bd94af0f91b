"""`python -m tests.faults.simulation --seed 7 --steps 2000` plays histories; a seed plays again. With
`--sharing`, they are of shared daemons with several clients.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import msgspec

from tests.faults.simulation.history import Counts, Failed, History
from tests.faults.simulation.sharing.history import SharedCounts, SharedHistory, bury

HISTORY_STEPS = 400


def main() -> int:
    """Exit code 1 where a seed failed: its number, the step, and the trace's hash are printed."""
    asked = argparse.ArgumentParser(prog="python -m tests.faults.simulation", description=__doc__)
    asked.add_argument("--seed", type=int, default=1, help="the first seed")
    asked.add_argument("--steps", type=int, default=None, help="stop after so many steps in all")
    asked.add_argument("--minutes", type=float, default=None, help="stop after so long")
    asked.add_argument("--history", type=int, default=HISTORY_STEPS, help="steps of one history")
    asked.add_argument("--sharing", action="store_true", help="several clients on shared daemons")
    asked.add_argument("--show", action="store_true", help="print every step of the first seed, and stop")
    asked.add_argument("--state", type=Path, default=None, help="a file to go on from, with the counts")
    told = asked.parse_args()
    sys.unraisablehook = lambda _: None  # coroutines of daemons that died
    kind: type[History | SharedHistory] = SharedHistory if told.sharing else History
    if told.show:
        return _shown(kind(told.seed, told.history, told=print), told.seed)
    total: Any = SharedCounts() if told.sharing else Counts()
    seed = told.seed
    if told.state is not None and told.state.exists():
        seed, total = msgspec.json.decode(told.state.read_bytes(), type=tuple[int, type(total)])  # type: ignore[misc]
    began, before = time.monotonic(), total.steps
    until = None if told.minutes is None else began + 60 * told.minutes
    most = told.steps if told.steps is not None or until is not None else told.history
    while (most is None or total.steps < most) and (until is None or time.monotonic() < until):
        try:
            total.add(kind(seed, told.history).play())
        except Failed as failed:
            traceback.print_exception(failed.__cause__)
            print(failed)
            options = f"--seed {seed} --history {told.history}{' --sharing' if told.sharing else ''} --show"
            print(f"again: python -m tests.faults.simulation {options}")
            return 1
        seed += 1
        if seed % 20 == 0:
            bury()
            if told.state is not None:
                told.state.write_bytes(msgspec.json.encode((seed, total)))
    took = time.monotonic() - began
    if told.state is not None:
        told.state.write_bytes(msgspec.json.encode((seed, total)))
    rate = (total.steps - before) / took if took else 0
    print(f"{total.steps:,} steps, all seeds below {seed} clean, {rate:,.0f} steps/s")
    print(msgspec.json.encode(total).decode())
    return 0


def _shown(history: History | SharedHistory, seed: int) -> int:
    try:
        history.play()
    except Failed as failed:
        traceback.print_exception(failed.__cause__)
        print(failed)
        return 1
    print(f"seed {seed}: {history.counts.steps} steps, trace {history.digest}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
