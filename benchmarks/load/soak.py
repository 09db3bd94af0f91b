"""Mixed traffic for as long as asked, with a SIGKILL per minute and a check of every session after each.

The reference is what each session's client was told: its messages must be there once, in order, byte for
byte.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from time import monotonic, perf_counter, time

import msgspec
from msgspec import Struct

from benchmarks.figures import machine
from benchmarks.load.line import Gone, Line, Refused
from benchmarks.load.talk import Speaker
from benchmarks.load.watching import Asker, Percentiles, beside, percentiles, taken
from benchmarks.peers import BARE, COMPACTD

SESSIONS = 6
FULL_MESSAGES = 1_200
"""A session that has more is closed, and another begun."""
SAMPLE_S = 5.0
KILL_S = 60.0
STEP_S = 0.8
"""The mean pause of a session's client between two requests."""
ASK_S = 0.05
ASIDE = "aside"
"""A session for the small requests."""
ALLOWED = (1002, 1008, 1011)
"""Busy, nothing fits, nothing to undo."""


class Sample(Struct, frozen=True):
    """A few seconds."""

    at_s: float
    """Since the beginning."""
    daemon: int
    """How many daemons ran before this one."""
    daemon_s: float
    """Since this one was started."""
    rss_mb: float
    descriptors: int
    threads: int
    core_share: float
    """CPU seconds ÷ seconds."""
    state: Percentiles
    """`agent/state` of a session that nobody else uses."""
    ping: Percentiles
    bare: Percentiles
    """The ping of a loop that does nothing, asked by the same client at the same time: what the machine and
    the client add."""
    acknowledged: int
    """Messages so far."""
    disk_mb: float


class Kill(Struct, frozen=True):
    """A daemon's end, and the next one's beginning."""

    at_s: float
    unanswered: int
    """Messages that waited for their acknowledgement."""
    recovered_s: float
    """Seconds from the next daemon's start until every live session is open."""
    looked_at: int
    """Acknowledged messages that were compared."""


class Soak(Struct):
    """All of it."""

    seed: int
    began_at: float
    machine: dict[str, str | int | float]
    minutes: float = 0.0
    kills: list[Kill] = []
    samples: list[Sample] = []
    acknowledged: int = 0
    sessions: int = 0
    requests: int = 0
    compactions: int = 0
    looked_at: int = 0
    lost: int = 0
    failure: str = ""


class Soaking:
    """The clients, the daemons one after another, and what is noted of them."""

    def __init__(self, folder: Path, env: Mapping[str, str], seed: int, kill_s: float) -> None:
        self._folder = folder
        self._env = env
        self._dice = random.Random(seed)
        self._kill_s = kill_s
        self._began = monotonic()
        self._count = 0
        self._live = [self._speaker() for _ in range(SESSIONS)]
        self._full: list[Speaker] = []
        self.found = Soak(seed=seed, began_at=time(), machine=machine())

    async def run(self, until: float, file: Path) -> Soak:
        """Run until this moment of the monotonic clock. Write `file` after every daemon."""
        bare = await Line.open(BARE, self._env, self._folder / "bare.log")
        number = 0
        try:
            while monotonic() < until:
                await self._daemon(number, bare, until)
                number += 1
                self._write(file)
            await self._last_look()
        except Exception as error:
            self.found.failure = f"{type(error).__name__}: {error}"
            self.found.lost += 1
            raise
        finally:
            await bare.kill()
            self._write(file)
        return self.found

    def _speaker(self) -> Speaker:
        self._count += 1
        return Speaker(f"soak-{self._count}", random.Random(self._dice.random()))

    async def _open(self) -> Line:
        return await Line.open(COMPACTD, self._env, self._folder / "daemon.log")

    async def _daemon(self, number: int, bare: Line, until: float) -> None:
        """One daemon from its start to its kill."""
        began = perf_counter()
        line = await self._open()
        for speaker in self._live:
            await self._start(line, speaker)
        recovered_s = perf_counter() - began
        await line.call("session/start", {"session_id": ASIDE})
        looked_at = await self._look(line)
        self.found.looked_at += looked_at
        if self.found.kills:
            last = self.found.kills[-1]
            self.found.kills[-1] = msgspec.structs.replace(last, recovered_s=recovered_s, looked_at=looked_at)
        state = Asker(line, "agent/state", {"session_id": ASIDE}, ASK_S)
        ping = Asker(line, "daemon/ping", None, ASK_S)
        alone = Asker(bare, "daemon/ping", None, ASK_S)
        ends = monotonic() + self._kill_s * self._dice.uniform(0.8, 1.2)
        async with beside(state, ping, alone):
            talks = [asyncio.create_task(self._talk(line, place)) for place in range(SESSIONS)]
            noting = asyncio.create_task(self._note(line, number, began, (state, ping, alone)))
            wait = max(0.0, min(ends, until) - monotonic())
            done, _ = await asyncio.wait([*talks, noting], timeout=wait, return_when=asyncio.FIRST_EXCEPTION)
            await line.kill()
            noting.cancel()
            told = await asyncio.gather(*talks, return_exceptions=True)
            for one in (*told, *(task.exception() for task in done)):
                if isinstance(one, BaseException):
                    raise one
        unanswered = sum(len(speaker.waiting) for speaker in self._live)
        self.found.kills.append(Kill(monotonic() - self._began, unanswered, 0.0, 0))

    async def _start(self, line: Line, speaker: Speaker) -> None:
        settings = {"context_window": 20_000, "estimator": "chars4"}
        await line.call("session/start", {"session_id": speaker.session_id, "compaction": settings})

    async def _look(self, line: Line) -> int:
        """Check the live sessions and one of the full ones."""
        looked_at = 0
        for speaker in self._live:
            looked_at += await speaker.look(line)
        for speaker in self._dice.sample(self._full, min(1, len(self._full))):
            looked_at += await self._look_at_full(line, speaker)
        return looked_at

    async def _look_at_full(self, line: Line, speaker: Speaker) -> int:
        await self._start(line, speaker)
        looked_at = await speaker.look(line)
        await line.call("session/close", {"session_id": speaker.session_id})
        return looked_at

    async def _last_look(self) -> None:
        line = await self._open()
        for speaker in self._live:
            await self._start(line, speaker)
            await speaker.append(line, [])
            self.found.looked_at += await speaker.look(line)
        for speaker in self._full:
            self.found.looked_at += await self._look_at_full(line, speaker)
        await line.stop()
        self.found.acknowledged = self._acknowledged()
        self.found.sessions = self._count

    async def _talk(self, line: Line, place: int) -> None:
        """Play the client with the number `place` until its daemon is gone."""
        try:
            while True:
                await asyncio.sleep(self._dice.expovariate(1 / STEP_S))
                speaker = self._live[place]
                await self._step(line, speaker)
                self.found.requests += 1
                if len(speaker.said) > FULL_MESSAGES and not speaker.waiting:
                    await line.call("session/close", {"session_id": speaker.session_id})
                    self._full.append(speaker)
                    self._live[place] = self._speaker()
                    await self._start(line, self._live[place])
        except Gone:
            return

    async def _step(self, line: Line, speaker: Speaker) -> None:
        kind, session = self._dice.random(), {"session_id": speaker.session_id}
        try:
            if kind < 0.6 or speaker.waiting:
                await speaker.append(line, speaker.turn())
            elif kind < 0.7:
                await line.call("session/context", session)
            elif kind < 0.78:
                await line.call("session/compact", {**session, "strategy": "extract", "keep_recent": 2_000})
                self.found.compactions += 1
            elif kind < 0.82:
                await line.call("session/undo", session)
            elif kind < 0.85:
                await line.call("session/redo", session)
            elif kind < 0.9:
                await line.call("session/search", {"query": "journal daemon"})
            elif kind < 0.95:
                await line.call("session/list")
            else:
                await line.call("turn/begin", session)
        except Refused as refused:
            if refused.code not in ALLOWED:
                raise

    async def _note(self, line: Line, number: int, began: float, askers: tuple[Asker, Asker, Asker]) -> None:
        before, then = taken(line.pid), perf_counter()
        while True:
            await asyncio.sleep(SAMPLE_S)
            now, at = taken(line.pid), perf_counter()
            if not now.rss_mb:
                return  # it was just killed
            state, ping, alone = (percentiles(asker.take()) for asker in askers)
            self.found.samples.append(
                Sample(
                    at_s=round(monotonic() - self._began, 1),
                    daemon=number,
                    daemon_s=round(at - began, 1),
                    rss_mb=round(now.rss_mb, 2),
                    descriptors=now.descriptors,
                    threads=now.threads,
                    core_share=round((now.core_s - before.core_s) / (at - then), 4),
                    state=state,
                    ping=ping,
                    bare=alone,
                    acknowledged=self._acknowledged(),
                    disk_mb=round(_disk_mb(Path(self._env["COMPACTD_HOME"])), 2),
                )
            )
            before, then = now, at

    def _acknowledged(self) -> int:
        return sum(len(speaker.said) for speaker in (*self._live, *self._full))

    def _write(self, file: Path) -> None:
        self.found.minutes = round((monotonic() - self._began) / 60, 2)
        self.found.acknowledged = self._acknowledged()
        self.found.sessions = self._count
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_suffix(".new")
        new.write_bytes(msgspec.json.encode(self.found) + b"\n")
        new.replace(file)


def _disk_mb(home: Path) -> float:
    size = 0
    for file in home.rglob("*"):
        with suppress(OSError):  # it was removed meanwhile
            size += file.stat().st_size
    return size / 1e6


async def soak(
    folder: Path, env: Mapping[str, str], minutes: float, file: Path, seed: int = 1, kill_s: float = KILL_S
) -> Soak:
    """Raises `Wrong` where something was lost, and `Refused` for an answer that no client expects."""
    return await Soaking(folder, env, seed, kill_s).run(monotonic() + 60 * minutes, file)
