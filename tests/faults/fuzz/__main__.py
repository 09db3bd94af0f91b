"""`python -m tests.faults.fuzz --minutes 2`: each target in turn; an input that breaks one is kept.

With `--guided` the inputs are chosen by what they reach (pypi.org/project/atheris, which has to be installed:
`pip install atheris`). What reaches something new is kept in build/fuzz, where the next run goes on from;
`--keep` puts it into corpus/guided, one file a target.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import re
import subprocess
import sys
import time
import traceback
import zipfile
from pathlib import Path
from random import Random

CORPUS = Path(__file__).parent / "corpus"
KEPT = CORPUS / "guided"
REACHED = Path(__file__).parents[3] / "build" / "fuzz"
MOST_BYTES = 20_000


def main() -> int:
    """Exit code 1 where an input broke a target."""
    asked = argparse.ArgumentParser(prog="python -m tests.faults.fuzz", description=__doc__)
    asked.add_argument("--target", default=None)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--minutes", type=float, default=2.0, help="for all targets together")
    asked.add_argument("--guided", action="store_true")
    asked.add_argument("--keep", action="store_true")
    told = asked.parse_args()
    if told.guided and told.target is not None:
        return _guided(told.target, told.minutes)
    from tests.faults.fuzz.targets import TARGETS

    names = [told.target] if told.target else list(TARGETS)
    if told.keep:
        for name in names:
            _pack(name)
        return 0
    if told.guided:
        return _all_guided(names, told.minutes / len(names))
    counts = {name: _fuzzed(name, told.seed, told.minutes * 60 / len(names)) for name in names}
    print(json.dumps({"seed": told.seed, "inputs": counts}))
    return 1 if None in counts.values() else 0


def _fuzzed(name: str, seed: int, for_s: float) -> int | None:
    from tests.faults.fuzz.mutating import mutated
    from tests.faults.fuzz.targets import TARGETS, seeds

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


def _all_guided(names: list[str], minutes: float) -> int:
    """Each in a process of its own: the fuzzer ends its own process when it is done."""
    inputs: dict[str, int] = {}
    broken = []
    for name in names:
        wanted = ["--guided", "--target", name, "--minutes", str(minutes)]
        ran = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "tests.faults.fuzz", *wanted],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=False,
        )
        counted = re.search(r"stat::number_of_executed_units: +(\d+)", ran.stderr)
        inputs[name] = int(counted[1]) if counted else 0
        reached = re.findall(r"cov: (\d+) ft: (\d+)", ran.stderr)
        print(f"{name}: {inputs[name]:,} inputs, reached (blocks, features) {reached[-1:]}", flush=True)
        if ran.returncode:
            broken.append(name)
            print(ran.stdout[-2_000:], ran.stderr[-3_000:], flush=True)
    print(json.dumps({"guided": True, "inputs": inputs, "broken": broken}))
    return 1 if broken else 0


def _pack(name: str) -> None:
    """One file, the same for the same inputs."""
    KEPT.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(KEPT / f"{name}.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for path in sorted((REACHED / name).iterdir()):
            packed.writestr(zipfile.ZipInfo(path.name), path.read_bytes(), zipfile.ZIP_DEFLATED)


def _guided(name: str, minutes: float) -> int:
    atheris = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["compactd"]):
        from tests.faults.fuzz.targets import TARGETS, seeds

    reached, found = REACHED / name, CORPUS / name
    for folder in (reached, found):
        folder.mkdir(parents=True, exist_ok=True)
    if (KEPT / f"{name}.zip").exists():
        with zipfile.ZipFile(KEPT / f"{name}.zip") as packed:
            packed.extractall(reached)
    for one in seeds(name):
        (reached / hashlib.blake2b(one, digest_size=8).hexdigest()).write_bytes(one)
    limits = [f"-max_total_time={round(60 * minutes)}", f"-max_len={MOST_BYTES}", "-timeout=20"]
    told = ["-print_final_stats=1", f"-artifact_prefix={found}/"]
    atheris.Setup([sys.argv[0], *limits, *told, str(reached)], TARGETS[name])
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
