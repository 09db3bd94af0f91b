"""The parts of the proof: what each one runs, and how its output becomes a row of the table."""

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

ROOT = Path(__file__).resolve().parents[3]


class Row(Struct, frozen=True, kw_only=True):
    """The result of one kind of fault."""

    fault: str
    times: int
    unit: str
    """What `times` counts, for example "kills"."""
    lost: int
    """Acknowledged messages that did not come back, or inputs, attacks and breaks that no test caught."""
    first_seed: int | None = None
    next_seed: int | None = None
    """The seed with which the next run continues."""


Run = Callable[[int, float], Row]
"""Runs one kind of fault from a seed on, for a number of minutes."""


def module(name: str, *arguments: object) -> tuple[int, str]:
    """Run a module of this repository. Return its exit code and what it printed."""
    # An empty entry would be the current folder: a test's hostile repository.
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
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
    """Run sessions on the simulated disk."""
    return _simulated(
        seed, minutes, "simulated histories: kills, power cuts, refusals of the disk at any call"
    )


def shared(seed: int, minutes: float) -> Row:
    """Run shared daemons with several clients."""
    return _simulated(
        seed,
        minutes,
        "simulated clients of shared daemons: they leave, read slowly, cancel; the daemon dies",
        "--sharing",
    )


def _simulated(seed: int, minutes: float, fault: str, *options: str) -> Row:
    code, out = module("tests.faults.simulation", "--seed", seed, "--minutes", minutes, *options)
    clean = re.search(r"^([\d,]+) steps, all seeds below (\d+) clean", out, re.MULTILINE)
    failed = re.search(r"^seed (\d+), step (\d+)", out, re.MULTILINE)
    after = int(clean[2]) if clean else int(failed[1]) + 1 if failed else seed
    return Row(
        fault=fault,
        times=int(clean[1].replace(",", "")) if clean else 0,
        unit="steps",
        lost=int(code != 0),
        first_seed=seed,
        next_seed=after,
    )


def killed(seed: int, minutes: float) -> Row:
    """SIGKILL of the real process: forked from one that has its modules; a twentieth of the time, started."""
    times, lost = 0, 0
    for share, how in ((0.95, ("--forked",)), (0.05, ())):
        code, out = module(
            "tests.faults.real.killing", "--seed", seed, "--kills", 10**6, "--minutes", minutes * share, *how
        )
        times += json.loads(out.splitlines()[-1])["times"] if code == 0 else 0
        lost += int(code != 0)
    return Row(
        fault="SIGKILL of the real process, at any moment",
        times=times,
        unit="kills",
        lost=lost,
        first_seed=seed,
        next_seed=seed + 1,
    )


CUTS = 500
"""Random places of each real journal."""


SMALL_BYTES = 1_000_000
"""A recorded session's journal above it is left out where there is less than a minute."""


def damaged(seed: int, minutes: float) -> Row:
    """Journals cut, flipped, zeroed: those of every version, and recorded sessions where those are here."""
    from tests.faults.real import damage

    until, times, dice = time.monotonic() + 60 * minutes, 0, random.Random(seed)
    data = Path(os.environ.get("COMPACTD_TEST_DATA", ROOT.parent / "shared" / "data")) / "sessions"
    recorded = damage.imported(sorted(data.glob("*.*")))
    if minutes < 1:
        recorded = [one for one in recorded if len(one.data) < SMALL_BYTES]
    journals = [*damage.journals(), *recorded]
    for journal in journals:
        times += damage.cut(journal, damage.every_byte(journal)).total()
        times += damage.cut(journal, [dice.randrange(len(journal.data)) for _ in range(CUTS)]).total()
    at = 0
    while at < len(journals) or time.monotonic() < until:
        journal = journals[at % len(journals)]
        times += damage.flipped(journal, dice, 20).total() + damage.zeroed(journal, dice, 5).total()
        at += 1
    return Row(
        fault=f"{len(journals)} journals, recorded sessions among them, cut at every byte of a record and "
        f"at {CUTS} places, flipped, zeroed",
        times=times,
        unit="damages",
        lost=0,
        first_seed=seed,
        next_seed=seed + 1,
    )


def starved(_: int, __: float) -> Row:
    """No room, descriptors, memory or permission; a clock set back, a sync that hangs, a stale lock."""
    names = ("test_starved.py", "test_shim.py", "test_found.py", "test_load.py")
    return _tested(
        "refused room, descriptors, memory, permission, syncs; hanging; clock set back; load",
        *(f"tests/faults/{name}" for name in names),
    )


def attacked(_: int, __: float) -> Row:
    """The lines of the threat table."""
    return _tested("attacks (docs/security.md)", "tests/security")


def _tested(fault: str, *where: str) -> Row:
    # Ignore `addopts` of pyproject.toml: a second -q would hide the line that is read here.
    code, out = module(
        "pytest", "-o", "addopts=", "-m", "not system and not editor", "-p", "no:cacheprovider", *where
    )
    counts = {name: int(count) for count, name in re.findall(r"(\d+) (passed|failed|errors?)\b", out)}
    passed = counts.pop("passed", 0)
    failed = sum(counts.values())
    # No test at all is a failure too: something was moved.
    return Row(
        fault=fault, times=passed + failed, unit="tests", lost=max(failed, int(code != 0 or not passed))
    )


def broken(seed: int, minutes: float) -> Row:
    """Breaks on purpose. In the two-minute size those that are found in seconds."""
    out = module("tests.faults.breaks", "--seed", seed, *(("--quick",) if minutes < 5 else ()))[1]
    found = re.search(r"^(\d+) of (\d+) breaks found", out, re.MULTILINE)
    times, made = (int(found[1]), int(found[2])) if found else (0, 1)
    return Row(fault="breaks on purpose that were found", times=times, unit="breaks", lost=made - times)


def fuzzed(seed: int, minutes: float) -> Row:
    """Framing, wire, messages, journal, formats, settings."""
    code, out = module("tests.faults.fuzz", "--seed", seed, "--minutes", minutes)
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


def fleet(seed: int, minutes: float) -> Row:
    """Daemons on one database: killed, frozen, cut off; the database restarts and fails over."""
    code, out = module("tests.faults.fleet", "--seed", seed, "--minutes", minutes, "--appends", 200_000)
    done = json.loads(out.splitlines()[-1])
    return Row(
        fault="five daemons on one database: killed, frozen, cut off; the database restarts, fails over",
        times=done["appends"],
        unit="appends",
        lost=max(done["wrong"], int(code != 0)),
        first_seed=seed,
        next_seed=seed + 1,
    )


PARTS: dict[str, tuple[tuple[Run, float], ...]] = {
    "faults": ((simulated, 0.3), (shared, 0.1), (killed, 0.2), (damaged, 0.1), (starved, 0.1), (broken, 0.2)),
    "attacks": ((attacked, 1.0),),
    "fuzz": ((fuzzed, 0.7), (classified, 0.3)),
    "fleet": ((fleet, 1.0),),
}
"""Part to what it runs, each with its share of the part's time."""
