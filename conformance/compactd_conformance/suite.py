"""Run the checks against a command. `CHECKS` lists all of them."""

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
    reduce_checks,
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
    *reduce_checks.CHECKS,
    *disk_checks.CHECKS,
)
"""The checks in the order in which they run and are listed. Names are unique."""

MAX_ANSWER_WAIT_S = 20.0
"""The longest wait for an answer, in seconds. A working program needs far less."""

Outcome = Literal["passed", "failed", "not tried"]


class Verdict(Struct, frozen=True, kw_only=True):
    """The result of one check in one framing."""

    name: str
    framing: Framing
    law: str
    says: str
    outcome: Outcome
    duration_s: float
    expected: str = ""
    seen: str = ""
    """What the program did, if the check failed. If it was not tried, the reason."""
    sent: tuple[str, ...] = ()
    """The last messages that were sent to the program before the check failed."""
    mend: str = ""


def select_checks(names: Sequence[str]) -> tuple[Check, ...]:
    """Return the checks with these names, in the suite's order; all checks if no name is given. Raise
    `KeyError` with an unknown name.
    """
    unknown = set(names) - {check.name for check in CHECKS}
    if unknown:
        raise KeyError(min(unknown))
    return tuple(check for check in CHECKS if not names or check.name in names)


def run(
    command: Sequence[str],
    environ: Mapping[str, str],
    *,
    only: Sequence[str] = (),
    patience_s: float = MAX_ANSWER_WAIT_S,
    tell: Callable[[Verdict], None] | None = None,
) -> tuple[Verdict, ...]:
    """Run the checks one after the other, and return their verdicts. `only` names the checks to run; if it is
    empty, all run. `tell` is called with each verdict as soon as it is known.

    `environ` is the command's environment; variables that would change its settings are removed. Raise
    `NotStarted` if the command cannot be started or does not answer a ping, and `KeyError` for an unknown
    check.
    """
    checks = select_checks(only)
    benches: dict[Framing, Bench] = {}
    verdicts: list[Verdict] = []
    try:
        for framing in BOTH:
            bench = benches[framing] = Bench(command, environ, framing, patience_s)
            wanted = [check for check in checks if framing in check.framings]
            if wanted:
                _greet(bench)
            for check in wanted:
                verdicts.append(_run_check(check, bench))
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


def _run_check(check: Check, bench: Bench) -> Verdict:
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
