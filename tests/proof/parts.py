"""What each part runs, and how what it prints becomes a row of the table."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"


class Row(Struct, frozen=True, kw_only=True):
    """What came of one kind of fault."""

    fault: str
    times: int
    unit: str
    """What is counted, as "kills"."""
    lost: int
    """Acknowledged messages that did not come back; or inputs, attacks, breaks that got through."""
    first_seed: int | None = None
    next_seed: int | None = None
    """Where the next run goes on."""


Run = Callable[[int, float], Row]
"""From a seed on, for so many minutes."""


def module(name: str, *arguments: object) -> tuple[int, str]:
    """Runs a module of ours; its exit code, and what it printed."""
    path = os.pathsep.join((str(TESTS), str(ROOT), os.environ.get("PYTHONPATH", "")))
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", name, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": path},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        print(ran.stdout[-4_000:], ran.stderr[-4_000:], file=sys.stderr)
    return ran.returncode, ran.stdout


def simulated(seed: int, minutes: float) -> Row:
    """The sessions over the simulated disk."""
    code, out = module("faults.simulation", "--seed", seed, "--minutes", minutes)
    clean = re.search(r"^([\d,]+) steps, all seeds below (\d+) clean", out, re.MULTILINE)
    failed = re.search(r"^seed (\d+), step (\d+)", out, re.MULTILINE)
    after = int(clean[2]) if clean else int(failed[1]) + 1 if failed else seed
    return Row(
        fault="simulated histories: kills, power cuts, refusals of the disk at any call",
        times=int(clean[1].replace(",", "")) if clean else 0,
        unit="steps",
        lost=int(code != 0),
        first_seed=seed,
        next_seed=after,
    )


def killed(seed: int, minutes: float) -> Row:
    """SIGKILL of the real process."""
    code, out = module("faults.real.killing", "--seed", seed, "--kills", 10**6, "--minutes", minutes)
    found = json.loads(out.splitlines()[-1]) if code == 0 else {"times": 0}
    return Row(
        fault="SIGKILL of the real process, at any moment",
        times=found["times"],
        unit="kills",
        lost=int(code != 0),
        first_seed=seed,
        next_seed=seed + 1,
    )


def damaged(seed: int, minutes: float) -> Row:
    """Journals cut, flipped, zeroed."""
    from faults.real import damage

    until, times, dice = time.monotonic() + 60 * minutes, 0, random.Random(seed)
    data = os.environ.get("COMPACTD_TEST_DATA")
    journals = damage.journals(None if data is None else Path(data) / "journals")
    for journal in journals:
        times += damage.cut(journal, damage.every_byte(journal)).total()
        times += damage.cut(journal, [dice.randrange(len(journal.data)) for _ in range(500)]).total()
    while time.monotonic() < until:
        for journal in journals:
            times += damage.flipped(journal, dice, 50).total() + damage.zeroed(journal, dice, 10).total()
    return Row(
        fault="journals of every version: cut at every byte of a record and 500 places, flipped, zeroed",
        times=times,
        unit="damages",
        lost=0,
        first_seed=seed,
        next_seed=seed + 1,
    )


def starved(_: int, __: float) -> Row:
    """No room, descriptors, memory or permission; a clock set back, a process that hangs, a stale lock."""
    return _tested("refused room, descriptors, memory, permission; hanging; clock set back", "tests/faults")


def attacked(_: int, __: float) -> Row:
    """The lines of the threat table."""
    return _tested("attacks (docs/security.md)", "tests/attacks")


def _tested(fault: str, *where: str) -> Row:
    code, out = module("pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "-rN", "-v", *where)
    passed, failed = out.count(" PASSED"), out.count(" FAILED") + out.count(" ERROR")
    return Row(fault=fault, times=passed + failed, unit="tests", lost=max(failed, int(code not in (0, 5))))


def broken(seed: int, minutes: float) -> Row:
    """Breaks on purpose. In the two-minute size those that are found in seconds."""
    out = module("faults.breaks", "--seed", seed, *(("--quick",) if minutes < 5 else ()))[1]
    found = re.search(r"^(\d+) of (\d+) breaks found", out, re.MULTILINE)
    times, made = (int(found[1]), int(found[2])) if found else (0, 1)
    return Row(fault="breaks on purpose that were found", times=times, unit="breaks", lost=made - times)


def fuzzed(seed: int, minutes: float) -> Row:
    """Framing, wire, messages, journal, formats, settings."""
    code, out = module("faults.fuzz", "--seed", seed, "--minutes", minutes)
    inputs = json.loads(out.splitlines()[-1])["inputs"]
    return Row(
        fault=f"inputs of {', '.join(inputs)}",
        times=sum(count or 0 for count in inputs.values()),
        unit="inputs",
        lost=int(code != 0),
        first_seed=seed,
        next_seed=seed + 1,
    )


def classified(seed: int, minutes: float) -> Row:
    """Texts of errors and names of models, at a real daemon."""
    code, out = module("benchmarks.truth.fuzz", "--seed", seed, "--minutes", minutes)
    counts = [int(one) for one in re.findall(r"^ *(\d+) \S", out, re.MULTILINE)]
    return Row(
        fault="error texts, model names and texts to count, at a real daemon",
        times=sum(counts),
        unit="answers",
        lost=int(code != 0),
        first_seed=seed,
        next_seed=seed + 1,
    )


PARTS: dict[str, tuple[tuple[Run, float], ...]] = {
    "faults": ((simulated, 0.4), (killed, 0.2), (damaged, 0.1), (starved, 0.1), (broken, 0.2)),
    "attacks": ((attacked, 1.0),),
    "fuzz": ((fuzzed, 0.7), (classified, 0.3)),
}
"""Part to what it runs, each with its share of the part's time."""
