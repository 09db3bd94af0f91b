"""What all load tests share: sizes, a folder, the daemon's command, and common rows."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
from msgspec import Struct

from benchmarks.compacting import Stall
from benchmarks.figures import Row, Target
from benchmarks.load.line import Line
from benchmarks.load.watching import Asker, percentiles
from benchmarks.peers import BARE, COMPACTD, HERE

P50_MS, P99_MS, SLOWEST_MS = 2.0, 15.0, 50.0
"""The limits for small requests under load."""

WARM = "warm"
"""A session that is there in every daemon, for the small requests."""

WHAT_CHARS = 80

LATER = "import numpy, httpx, anyio._backends._asyncio, httpcore._backends.anyio, h11"
"""The modules that the first summary imports. An installation has their bytecode; a new folder of a run does
not."""

STALL_MS = 10.0
"""The longest that the event loop may be blocked."""


class Size(Struct, frozen=True, kw_only=True):
    """The sizes of all load tests."""

    model: str = "openai/gpt-4o"
    """The model of the sessions, which decides the token counter."""
    sessions: int
    """Open in one daemon."""
    session_messages: int
    """Messages in each session."""
    clients: int
    """That talk over one pipe."""
    traffic_s: float
    unread_requests: int
    """Asked by the client that reads nothing."""
    flood_mb: int
    long_tokens: int
    long_messages: int
    compactions: int
    compaction_tokens: int
    summary_deadline_s: float
    """When the provider that stalls is given up."""
    stored_tokens: int
    """The size of the session that is opened after a kill."""
    openings: int


SIZES: Mapping[str, Size] = {
    "smoke": Size(
        model="anthropic/claude-sonnet-4-5",
        sessions=8,
        session_messages=8,
        clients=4,
        traffic_s=0.2,
        unread_requests=500,
        flood_mb=70,
        long_tokens=20_000,
        long_messages=400,
        compactions=3,
        compaction_tokens=4_000,
        summary_deadline_s=0.5,
        stored_tokens=5_000,
        openings=1,
    ),
    "short": Size(
        sessions=200,
        session_messages=40,
        clients=50,
        traffic_s=10.0,
        unread_requests=20_000,
        flood_mb=1_000,
        long_tokens=1_000_000,
        long_messages=20_000,
        compactions=10,
        compaction_tokens=50_000,
        summary_deadline_s=5.0,
        stored_tokens=300_000,
        openings=9,
    ),
    "full": Size(
        sessions=200,
        session_messages=200,
        clients=50,
        traffic_s=60.0,
        unread_requests=100_000,
        flood_mb=1_000,
        long_tokens=10_000_000,
        long_messages=200_000,
        compactions=100,
        compaction_tokens=200_000,
        summary_deadline_s=30.0,
        stored_tokens=1_100_000,
        openings=15,
    ),
}


class Bench(Struct, frozen=True):
    """One run."""

    size: Size
    folder: Path
    env: Mapping[str, str]
    is_watched: bool = False
    """The loop's own stalls are written down by the daemon: benchmarks/watched_daemon.py."""

    @property
    def stalls(self) -> Path:
        """The file to which a watched daemon writes its stalls when it ends."""
        return self.folder / "stalls.json"

    @asynccontextmanager
    async def daemon(self, more: Mapping[str, str] | None = None) -> AsyncIterator[Line]:
        """One that is ended, and waited for, behind the block."""
        command: Sequence[str] = COMPACTD
        if self.is_watched:
            command = (sys.executable, "-P", str(HERE / "watched_daemon.py"), str(self.stalls))
        line = await Line.open(command, {**self.env, **(more or {})}, self.folder / "daemon.log")
        try:
            yield line
        except BaseException:
            await line.kill()
            raise
        await line.stop()

    async def prepare(self) -> None:
        """Starts a daemon once, so that Python has kept the bytecode of all that is imported, also later."""
        async with self.daemon() as line:
            await self.warm(line)
        later = await asyncio.create_subprocess_exec(sys.executable, "-P", "-c", LATER, env=self.env)
        if await later.wait():
            raise AssertionError("what a summary needs cannot be imported")

    async def warm(self, line: Line) -> None:
        """Begins a session and counts a text, so that the one load of the ranks, a few tenths of a second, is
        over: it is looked at apart."""
        params = {"session_id": WARM, "model": self.size.model}
        await line.call("session/start", params)
        message = {"role": "user", "content": "A text to count."}
        await line.call("session/append", {"session_id": WARM, "messages": [message]})
        # A compaction, though nothing can be removed: what it is made of is imported now.
        await line.call("session/compact", {"session_id": WARM, "strategy": "extract"})

    @asynccontextmanager
    async def bare(self) -> AsyncIterator[Line]:
        """A loop that does nothing but answer: what the machine and the client add to every figure."""
        line = await Line.open(BARE, self.env, self.folder / "bare.log")
        try:
            yield line
        finally:
            await line.kill()


def latency_rows(what: str, asked: Mapping[str, Asker], alone: Asker) -> list[Row]:
    """Return p50, p99 and maximum of each kind of small request."""
    machine = percentiles(alone.took_s)
    rows = []
    for name, asker in asked.items():
        took = percentiles(asker.took_s)
        for part, value, other, most in (
            ("p50", took.p50, machine.p50, P50_MS),
            ("p99", took.p99, machine.p99, P99_MS),
            ("slowest", took.slowest, machine.slowest, SLOWEST_MS),
        ):
            rows.append(
                Row(
                    what=f"{what}: {name}, {part} of {took.count:,}",
                    value=value,
                    unit="ms",
                    beside={"bare loop": other},
                    target=Target(most=most),
                )
            )
    return rows


def stalls_of(bench: Bench) -> list[Stall]:
    """Return the stalls of the watched daemon that ended last, the longest first; empty if it was not
    watched."""
    if not bench.is_watched or not bench.stalls.exists():
        return []
    found = msgspec.json.decode(bench.stalls.read_bytes(), type=list[Stall])
    return sorted(found, key=lambda one: -one.own_ms)


def stall_rows(what: str, stalls: list[Stall]) -> list[Row]:
    """The longest, and where the loop was held then."""
    rows: list[Row] = []
    for one in [one for one in stalls if one.where][:3]:
        where = " < ".join(place.rpartition(" ")[2] for place in one.where[:3])
        rows.append(
            Row(
                what=f"{what}: {one.kind} by {where}"[:WHAT_CHARS],
                value=one.own_ms,
                unit="ms",
                beside={"with waits for a core": one.stall_ms},
                target=Target(most=STALL_MS),
            )
        )
    return rows
