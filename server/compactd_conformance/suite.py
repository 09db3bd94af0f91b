"""All checks, and one run of them against a command."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import Literal

from msgspec import Struct

from compactd_conformance import (
    disk_checks,
    event_checks,
    history_checks,
    life_checks,
    loop_checks,
    size_checks,
    view_checks,
    wire_checks,
)
from compactd_conformance.bench import BOTH, Bench, Check, NotTried
from compactd_conformance.frames import Broken, Framing, NotStarted, request

CHECKS: tuple[Check, ...] = (
    *wire_checks.CHECKS,
    *life_checks.CHECKS,
    *view_checks.CHECKS,
    *size_checks.CHECKS,
    *event_checks.CHECKS,
    *loop_checks.CHECKS,
    *history_checks.CHECKS,
    *disk_checks.CHECKS,
)
"""In the order in which they are run and listed; names are unique."""

PATIENCE_S = 20.0
"""How long an answer may take. Nothing that works comes near it."""

Outcome = Literal["passed", "failed", "not tried"]


class Verdict(Struct, frozen=True, kw_only=True):
    """What came of one check in one framing."""

    name: str
    framing: Framing
    law: str
    says: str
    outcome: Outcome
    duration_s: float
    expected: str = ""
    seen: str = ""
    """Where it was not tried: why."""
    sent: tuple[str, ...] = ()
    """The last that was sent before it failed."""
    mend: str = ""


def chosen(names: Sequence[str]) -> tuple[Check, ...]:
    """The checks of these names, in the suite's order; all where none is named. Raises `KeyError`."""
    unknown = set(names) - {check.name for check in CHECKS}
    if unknown:
        raise KeyError(min(unknown))
    return tuple(check for check in CHECKS if not names or check.name in names)


def run(
    command: Sequence[str],
    environ: Mapping[str, str],
    *,
    only: Sequence[str] = (),
    patience_s: float = PATIENCE_S,
    tell: Callable[[Verdict], None] | None = None,
) -> tuple[Verdict, ...]:
    """Runs the checks, one after the other; `tell` hears of each as it ends.

    `environ` is the command's environment, less what would set it up otherwise. Raises `NotStarted` where
    the command cannot be started or answers no ping, and `KeyError` for a check that there is not.
    """
    checks = chosen(only)
    benches: dict[Framing, Bench] = {}
    verdicts: list[Verdict] = []
    try:
        for framing in BOTH:
            bench = benches[framing] = Bench(command, environ, framing, patience_s)
            wanted = [check for check in checks if framing in check.framings]
            if wanted:
                _greet(bench)
            for check in wanted:
                verdicts.append(_tried(check, bench))
                if tell is not None:
                    tell(verdicts[-1])
    finally:
        for bench in benches.values():
            bench.close()
    return tuple(verdicts)


def _greet(bench: Bench) -> None:
    try:
        peer = bench.peer
        peer.send(request("hello", "daemon/ping"))
        peer.answer("hello")
    except Broken as broken:
        raise NotStarted(f"it does not answer `daemon/ping`: {broken.seen}") from broken


def _tried(check: Check, bench: Bench) -> Verdict:
    bench.begin()
    started = monotonic()
    outcome: Outcome = "passed"
    expected = seen = ""
    sent: tuple[str, ...] = ()
    try:
        check.run(bench)
    except NotTried as why:
        outcome, seen = "not tried", str(why)
    except Broken as broken:
        outcome, expected, seen, sent = "failed", broken.expected, broken.seen, bench.sent()
    bench.end(is_broken=outcome == "failed")
    return Verdict(
        name=check.name,
        framing=bench.framing,
        law=check.law,
        says=check.says,
        outcome=outcome,
        duration_s=round(monotonic() - started, 3),
        expected=expected,
        seen=seen,
        sent=sent,
        mend=check.mend if outcome == "failed" else "",
    )
