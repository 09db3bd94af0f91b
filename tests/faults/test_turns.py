"""Long computations wait for each other, one at a time, and short ones do not wait for them."""

from __future__ import annotations

import asyncio
import threading

from compactd.daemon.app import SHORT_TOKENS, Daemon

MANY = SHORT_TOKENS + 1


async def test_long_computations_run_one_at_a_time_and_short_work_beside_them() -> None:
    daemon, release, begun = Daemon({}), threading.Event(), list[str]()

    def first() -> None:
        begun.append("first")
        release.wait(30)

    turns = [
        asyncio.create_task(daemon.run_compute(first, MANY)),
        asyncio.create_task(daemon.run_compute(lambda: begun.append("second"), MANY)),
    ]
    await daemon.in_worker(lambda: begun.append("quick"))
    await daemon.run_compute(lambda: begun.append("small"), SHORT_TOKENS)
    seen = tuple(begun)
    release.set()
    await asyncio.gather(*turns)

    assert {"quick", "small"} <= set(seen)
    assert "second" not in seen
    assert begun[-1] == "second"


async def test_a_computation_that_fails_gives_its_turn_on() -> None:
    daemon = Daemon({})

    def failing() -> None:
        raise LookupError("of the test")

    done = await asyncio.gather(
        daemon.run_compute(failing, 1), daemon.run_compute(lambda: 7, 1), return_exceptions=True
    )

    assert isinstance(done[0], LookupError)
    assert done[1] == 7
