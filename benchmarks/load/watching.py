"""Memory and CPU time of a process, from Linux's /proc, and the latency of small requests under load."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import Struct

from benchmarks.figures import percentile
from benchmarks.load.line import Gone, Line

PAUSE_S = 0.02
"""Seconds between two small requests."""


class Taken(Struct, frozen=True):
    """What a process uses at one moment; zeros if it is gone or the system does not say."""

    rss_mb: float = 0.0
    peak_mb: float = 0.0
    descriptors: int = 0
    threads: int = 0
    core_s: float = 0.0
    """CPU seconds so far."""


def taken(pid: int) -> Taken:
    """Return what a running process uses, from /proc (proc(5))."""
    folder = Path(f"/proc/{pid}")
    try:
        told = dict(
            line.split(":", 1) for line in (folder / "status").read_text("utf-8").splitlines() if ":" in line
        )
        fields = (folder / "stat").read_text("utf-8").rpartition(")")[2].split()
        return Taken(
            rss_mb=int(told["VmRSS"].split()[0]) / 1024,
            peak_mb=int(told["VmHWM"].split()[0]) / 1024,
            descriptors=sum(1 for _ in (folder / "fd").iterdir()),
            threads=int(told["Threads"]),
            core_s=(int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"),
        )
    except (OSError, KeyError, ValueError):
        return Taken()


class Percentiles(Struct, frozen=True):
    """Percentiles in milliseconds."""

    count: int
    p50: float
    p99: float
    slowest: float


def percentiles(took_s: Sequence[float]) -> Percentiles:
    """Return the percentiles in ms of some durations in seconds; zeros if there are none."""
    if not took_s:
        return Percentiles(0, 0.0, 0.0, 0.0)
    ms = [1000 * one for one in took_s]
    return Percentiles(
        len(ms),
        round(percentile(ms, 50), 3),
        round(percentile(ms, 99), 3),
        round(max(ms), 3),
    )


class Asker:
    """Asks a small request again and again, with a pause between, and notes how long each took."""

    def __init__(self, line: Line, method: str, params: object = None, pause_s: float = PAUSE_S) -> None:
        self._line = line
        self._method = method
        self._params = params
        self._pause_s = pause_s
        self.took_s: list[float] = []
        self.is_over = False

    async def run(self) -> None:
        """Send requests until the end is asked for, it is cancelled, or the server is gone."""
        try:
            while not self.is_over:
                answer = await self._line.answered(self._method, self._params)
                answer.result  # noqa: B018 - raises for an error
                self.took_s.append(answer.took_s)
                await asyncio.sleep(self._pause_s)
        except Gone:
            return

    def take(self) -> list[float]:
        """Return the times that were recorded since the last call."""
        took, self.took_s = self.took_s, []
        return took


@asynccontextmanager
async def beside(*askers: Asker) -> AsyncIterator[None]:
    """Run these askers as long as the block runs."""
    tasks = [asyncio.create_task(asker.run()) for asker in askers]
    try:
        yield
    finally:
        for asker, task in zip(askers, tasks, strict=True):
            asker.is_over = True
            task.cancel()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        for one in done:
            if isinstance(one, Exception):
                raise one
