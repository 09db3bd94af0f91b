"""What the setting `cache` costs: replays recorded sessions with their recorded gaps, and bills the input of
each request with the cache lifetimes `5m`, `1h` and `auto`.

Sessions without times are left out. docs/howto/cache.md shows the sums.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from benchmarks.cost import running
from benchmarks.cost.bill import Sent
from benchmarks.cost.policies import TODAY, AnyPolicy, Cost, Never
from benchmarks.retention import sessions
from compactd.core.cost.lifetime import MIN_GAPS, Lifetime, NextWrite, Pauses, choose_lifetime
from compactd.core.cost.price import Rates, rates_of
from compactd.core.models.lookup import Pricing

Choice = Literal["5m", "1h", "auto"]
CHOICES: tuple[Choice, ...] = ("5m", "1h", "auto")
LIFETIMES_S: dict[Lifetime, float] = {"5m": 300.0, "1h": 3_600.0}


def billed(
    requests: Sequence[Sent], choice: Choice, pricing: Pricing, *, head_expires: bool = False
) -> float:
    """Return the price of the input of a session's requests, in US dollars. O(requests).

    A prefix stays for the lifetime of the last marks. With `head_expires`, a prefix that was written for 5
    minutes expires after 5 minutes although later marks are for an hour.
    """
    lifetime: Lifetime = "1h" if choice == "1h" else "5m"
    pauses, now, grown, stays_s, cost = Pauses(), 1.0, 0, 0.0, 0.0
    last: Sent | None = None
    for number, sent in enumerate(requests):
        rates = rates_of(pricing, sent.size)
        is_cold = sent.gap_s is not None and sent.gap_s > stays_s
        if choice == "auto":
            growth = max(1.0, grown / max(1, number))
            expected = NextWrite(context=sent.size, growth=growth, is_cold=is_cold)
            lifetime = choose_lifetime(lifetime, pauses, expected, rates)
        kept = 0 if is_cold or last is None else min(sent.unchanged, sent.size)
        cost += kept * rates.cache_read + (sent.size - kept) * _write(rates, lifetime)
        stays_s = min(stays_s, LIFETIMES_S[lifetime]) if kept and head_expires else LIFETIMES_S[lifetime]
        if sent.compacted:
            pauses.note_change()
        now += sent.gap_s or 0.0
        pauses.note_request(now if last is None or sent.gap_s is not None else 0.0, sent.size - kept)
        grown += 0 if last is None else max(0, sent.size - last.size)
        last = sent
    return cost


def _write(rates: Rates, lifetime: Lifetime) -> float:
    return rates.cache_write_1h if lifetime == "1h" else rates.cache_write_5m


def is_timed(requests: Sequence[Sent]) -> bool:
    """Return whether a session has enough gaps for a decision."""
    return sum(sent.gap_s is not None for sent in requests) >= MIN_GAPS


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Return the exit code."""
    given = argparse.ArgumentParser(prog="python -m benchmarks.cost.lifetimes", description=__doc__)
    given.add_argument("--data", type=Path, help="folder with sessions/ and more/ (COMPACTD_TEST_DATA)")
    given.add_argument("--processes", type=int, default=os.cpu_count() or 1, metavar="N")
    given.add_argument("--cache", type=Path, default=running.CACHE, metavar="DIR")
    options = given.parse_args(arguments)
    found = running.wanted(options.data or sessions.shared_data())
    prices, engine = running.price_lists()[0], running.engine()
    common = running.common_of(found, options.cache, engine)
    policies: tuple[AnyPolicy, ...] = (Never(), TODAY, Cost(prices))
    jobs = [running.Job(source, policies, common, options.cache, engine) for source in found]
    replays = [one for one in running.run(jobs, options.processes) if is_timed(one.outcomes[0].sent)]
    print(f"{prices.name}, input only, {len(replays)} sessions with recorded times")
    print(f"{'compactions':<12} {'requests':>8} {'5m':>8} {'1h':>8} {'auto':>8}  auto, if the head expires")
    for at, policy in enumerate(policies):
        sent = [one.outcomes[at].sent for one in replays]
        sums = [sum(billed(one, choice, prices.pricing) for one in sent) for choice in CHOICES]
        worse = sum(billed(one, "auto", prices.pricing, head_expires=True) for one in sent)
        row = " ".join(f"{amount:>8.2f}" for amount in (*sums, worse))
        print(f"{policy.name:<12} {sum(map(len, sent)):>8} {row}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
