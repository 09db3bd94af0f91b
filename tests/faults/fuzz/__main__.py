"""`python -m faults.fuzz --minutes 2`: each target in turn; an input that breaks one is kept in its corpus.

With `--guided` the inputs are chosen by what they reach (pypi.org/project/atheris), for the one target of
`--target`; it has to be installed: `pip install atheris`.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import sys
import time
import traceback
from pathlib import Path
from random import Random

CORPUS = Path(__file__).parent / "corpus"


def main() -> int:
    """Exit code 1 where an input broke a target."""
    asked = argparse.ArgumentParser(prog="python -m faults.fuzz", description=__doc__)
    asked.add_argument("--target", default=None)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--minutes", type=float, default=2.0, help="for all targets together")
    asked.add_argument("--guided", action="store_true")
    told = asked.parse_args()
    if told.guided:
        return _guided(told.target or "journal", told.minutes)
    from faults.fuzz.targets import TARGETS

    names = [told.target] if told.target else list(TARGETS)
    counts = {name: _fuzzed(name, told.seed, told.minutes * 60 / len(names)) for name in names}
    print(json.dumps({"seed": told.seed, "inputs": counts}))
    return 1 if None in counts.values() else 0


def _fuzzed(name: str, seed: int, for_s: float) -> int | None:
    from faults.fuzz.mutating import mutated
    from faults.fuzz.targets import TARGETS, seeds

    target, real, until, count = TARGETS[name], seeds(name), time.monotonic() + for_s, 0
    for one in real:
        target(one)
    while time.monotonic() < until:
        count += 1
        data = mutated(real, Random(f"{name} {seed} {count}"))
        try:
            target(data)
        except Exception:
            traceback.print_exc()
            folder = CORPUS / name
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / hashlib.blake2b(data, digest_size=8).hexdigest()
            path.write_bytes(data)
            print(f"{name}: input {count} of seed {seed} broke it; kept as {path.name}")
            return None
    return count


def _guided(name: str, minutes: float) -> int:
    atheris = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["compactd"]):
        from faults.fuzz.targets import TARGETS, seeds

    folder = CORPUS / "guided" / name
    folder.mkdir(parents=True, exist_ok=True)
    for one in seeds(name):
        (folder / hashlib.blake2b(one, digest_size=8).hexdigest()).write_bytes(one)
    wanted = [sys.argv[0], f"-max_total_time={round(60 * minutes)}", "-max_len=20000", str(folder)]
    atheris.Setup(wanted, TARGETS[name])
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
