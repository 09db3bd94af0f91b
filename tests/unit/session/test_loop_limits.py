"""The limits of the daemon's own agent loop: they are read in a thread, so a hanging file blocks nothing."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from time import monotonic

from compactd.session.loop_limits import LoopLimits, limits_from, read_limits

FOREVER_S = 30.0


def test_the_file_is_read_and_the_environment_beats_it(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[loop]\ntool_s = 7\nsteps = 3\n", "utf-8")

    seen = asyncio.run(read_limits({"COMPACTD_LOOP_STEPS": "9"}, file, FOREVER_S))

    assert seen == LoopLimits(tool_s=7.0, steps=9)


def test_a_file_that_hangs_does_not_hold_the_loop_and_the_environment_stands(tmp_path: Path) -> None:
    pipe = tmp_path / "config.toml"
    os.mkfifo(pipe)
    ticks = 0

    async def run() -> LoopLimits:
        nonlocal ticks
        reading = asyncio.ensure_future(read_limits({"COMPACTD_LOOP_STEPS": "9"}, pipe, 0.05))
        while not reading.done():
            ticks += 1
            await asyncio.sleep(0)
        return reading.result()

    began = monotonic()
    assert asyncio.run(run()) == LoopLimits(steps=9)
    assert ticks > 10
    assert monotonic() - began < FOREVER_S
    # Open and close the pipe's writing end, so that the thread that still reads it ends.
    os.close(os.open(pipe, os.O_RDWR | os.O_NONBLOCK))


def test_no_file_no_toml_and_no_table_are_the_defaults(tmp_path: Path) -> None:
    broken, other = tmp_path / "broken.toml", tmp_path / "other.toml"
    broken.write_text("[loop", "utf-8")
    other.write_text("loop = 3", "utf-8")

    assert {limits_from({}, file) for file in (broken, other, tmp_path / "none")} == {LoopLimits()}
