"""One simulated history: daemons one after another on one disk, their clients, and all faults."""

from __future__ import annotations

import asyncio
import errno
import gc
import hashlib
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import TypeVar

from msgspec import Struct

from compactd.protocol.errors import SessionLocked, StorageFailed
from compactd.session.manager import Sessions
from compactd.session.memory import release_free_memory, settle
from compactd.session.session import Session
from compactd.storage.folder import FolderStore
from compactd.storage.paths import INDEX
from tests.faults.simulation.client import Client
from tests.faults.simulation.loop import Loop
from tests.faults.simulation.machine import Death, Died, Machine
from tests.faults.simulation.platter import Folder, Platter
from tests.faults.simulation.watched import Reference, WatchedStore, must
from tests.support.quiet_world import Quiet

T = TypeVar("T")

HOME = Path("/there/home")
NUMBERS = (errno.EIO, errno.ENOSPC, errno.EACCES, errno.EMFILE)
ALONE = (*("append",) * 40, *("undo", "redo", "prune", "configure", "pin") * 3, "begin", "compact")


class Failed(Exception):
    """A seed that shows something wrong."""

    def __init__(self, seed: int, step: int, digest: str, why: BaseException) -> None:
        super().__init__(f"seed {seed}, step {step}, trace {digest}: {type(why).__name__}: {why}")
        self.seed, self.step, self.digest = seed, step, digest


class Counts(Struct, kw_only=True):
    """What happened in one history, or in many."""

    steps: int = 0
    requests: int = 0
    jobs: int = 0
    calls: int = 0
    kills: int = 0
    power_cuts: int = 0
    refusals: int = 0
    restarts: int = 0

    def add(self, other: Counts) -> None:
        """Adds up."""
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class World(Quiet):
    """A process without a client, whose clock and workers are the simulation's."""

    def __init__(self, loop: Loop, started_at: float) -> None:
        super().__init__()
        self._loop = loop
        self._started_at = started_at

    def now(self) -> float:
        """The simulation's clock; it may be set back between two daemons."""
        self._started_at += 0.25
        return self._started_at + self._loop.time()

    async def in_worker(self, work: Callable[[], T]) -> T:
        """Run `work` in the simulation's order."""
        if isinstance(work, partial) and work.func in (settle, release_free_memory):
            raise RuntimeError("nothing of this process's memory is the simulation's")
        return await self._loop.run_in_executor(None, work)


class NoTrees:
    """No snapshots of work trees."""

    def forget(self, *, for_good: bool = False) -> None:
        """There are none."""


class History:
    """Everything that happens under one seed."""

    def __init__(self, seed: int, most_steps: int, told: Callable[[str], None] | None = None) -> None:
        self._seed = seed
        self._dice = Random(seed)
        self._most_steps = most_steps
        self._told = told
        self._trace = hashlib.blake2b(digest_size=8)
        self.counts = Counts()
        self._platter = Platter()
        there = self._platter.folder()
        self._platter.root.change(("there", there))
        self._platter.root.sync()
        self._reference = Reference()
        self._clients = [
            Client(f"s{number}", self._dice, self._reference, self._note)
            for number in range(1, 2 + int(self._dice.random() * 2))
        ]
        self._machine: Machine
        self._sessions: Sessions
        self._is_power_cut = False

    @property
    def digest(self) -> str:
        """Return a hash of everything that happened so far."""
        return self._trace.hexdigest()

    def play(self) -> Counts:
        """All of it. Raises `Failed`."""
        try:
            while self.counts.steps < self._most_steps:
                self._live()
        except (Exception, SystemExit) as wrong:
            raise Failed(self._seed, self.counts.steps, self.digest, wrong) from wrong
        return self.counts

    def _note(self, what: str) -> None:
        self._trace.update(what.encode())
        if self._told is not None:
            self._told(f"{self.counts.steps:6} {what}")

    def _step(self, what: str) -> None:
        self.counts.steps += 1
        if what == "worker":
            self.counts.jobs += 1
        self._note(what)

    # --- the life of one daemon ------------------------------------------------------------------------

    def _live(self) -> None:
        self._step("daemon")
        self.counts.restarts += 1
        loop = Loop(self._dice, self._step)
        self._machine = machine = Machine(self._platter, self._dice, self._note)
        clock = self._dice.choice((0.0, 1_000.0, 1_000_000.0))
        machine.now = lambda: clock + loop.time()
        world = World(loop, clock)
        self._sessions = Sessions(world, WatchedStore(HOME, machine, self._reference), lambda _: NoTrees())  # type: ignore[arg-type, return-value]
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(self._daemon())
        except Died:
            self._died()
        finally:
            self.counts.calls += machine.calls.total()
            loop.abandon()
        self._gone_is_gone()

    async def _daemon(self) -> None:
        for client in self._clients:
            client.is_healthy = True
        if self._dice.random() < 0.2:
            self._troubles()
        for _ in range(int(self._dice.random() * 40)):
            if self.counts.steps >= self._most_steps:
                break
            await self._something()
        self._calm()
        for client in self._clients:
            session = self._sessions.open.get(client.name)
            if session is not None and self._dice.random() < 0.5:
                # Its input ends while requests are on their way: what was taken in is written all the same.
                tasks = [asyncio.ensure_future(client.append(session)) for _ in range(3)]
                await asyncio.sleep(0)
                await self._sessions.close_all()
                for failed in await asyncio.gather(*tasks, return_exceptions=True):
                    assert failed is None or not client.is_healthy, f"dropped at the end: {failed!r}"
        await self._sessions.close_all()
        await self._sessions.store.close()
        assert self._machine.open_files == 0, "files that nobody closed"

    async def _something(self) -> None:
        self._step("request")
        self.counts.requests += 1
        client = self._dice.choice(self._clients)
        kind = self._dice.random()
        if kind < 0.08:
            self._troubles()
        elif kind < 0.14:
            self._calm()
        session = self._sessions.open.get(client.name)
        if session is None:
            session = await client.start(self._sessions)
            if session is not None:
                await self._fill_index()
            return
        if session.journal is not None and kind > 0.97:
            await self._end(client, session)
            return
        if kind > 0.93 and client.is_healthy:
            self._second_daemon(client)
        await self._requests(client, session, kind)
        if not client.is_healthy:
            await self._mend(client)
        elif self._dice.random() < 0.1:
            client.look(session, closely=self._dice.random() < 0.3)

    async def _requests(self, client: Client, session: Session, kind: float) -> None:
        if kind > 0.91:
            await client.ask(session, "redact")
            return
        if kind > 0.90:
            await client.ask(session, "branch")
            return
        asked = ["compact"] if kind > 0.88 else [self._dice.choice(ALONE)]
        if kind < 0.35 or kind > 0.88:
            asked += ["append"] * self._dice.choice((1, 2, 3))
        await asyncio.gather(*(client.ask(session, one) for one in asked))

    async def _end(self, client: Client, session: Session) -> None:
        if self._dice.random() < 0.6:
            try:
                await self._sessions.close(session.id)
            except StorageFailed:
                assert not client.is_healthy
            return
        self._note(f"{client.name} delete")
        await client.delete(self._sessions)

    async def _mend(self, client: Client) -> None:
        """After a refusal the client starts over, sooner or later."""
        if self._dice.random() < 0.7:
            return
        self._calm()
        if client.name in self._sessions.open:
            try:
                await self._sessions.close(client.name)
            except StorageFailed:
                self._note("closed, and something was lost")
        for one in self._clients:
            one.is_healthy = one.name not in self._sessions.open
        client.is_healthy = True
        await client.start(self._sessions)

    # --- what befalls it -------------------------------------------------------------------------------

    def _troubles(self) -> None:
        machine, kind = self._machine, self._dice.random()
        if kind < 0.45:
            how: Death = "power" if self._dice.random() < 0.6 else "kill"
            machine.dies_in = (int(self._dice.random() * 30), how)
            return
        for client in self._clients:
            client.is_healthy = False
        self.counts.refusals += 1
        if kind < 0.8:
            machine.refuses_in = (int(self._dice.random() * 12), self._dice.choice(NUMBERS))
        elif kind < 0.9:
            self._platter.room_bytes = int(self._dice.random() * 4_000)
        else:
            machine.most_open = machine.open_files + int(self._dice.random() * 2)

    def _calm(self) -> None:
        """The disk is well again. What was refused is known to those it was refused to."""
        self._machine.refuses_in = None
        self._machine.most_open = 1000
        self._platter.room_bytes = None

    def _died(self) -> None:
        how: Death = "kill"
        if not self._machine.is_dead:
            self._machine.die("kill")
        elif self._machine.dies_in is not None:
            how = self._machine.dies_in[1]
        self._step(how)
        self._calm()
        if how == "kill":
            self.counts.kills += 1
            return
        self.counts.power_cuts += 1
        for client in self._clients:
            kept = self._reference.sessions.get(client.name)
            if client.durability == "os" and kept is not None:
                # Nothing was promised for a power cut.
                kept.acknowledged.clear()
                kept.is_certain = False
                self._reference.maybe.add(client.name)
                client.forget()

    def _gone_is_gone(self) -> None:
        for path, file in self._platter.files():
            for secret in self._reference.secrets:
                assert secret not in file.data, f"{secret!r} is still in {path}"

    async def _fill_index(self) -> None:
        """An index of all that was said, on the disk: the real one is SQLite's, which is not simulated."""
        home = self._platter.at(HOME)
        if not isinstance(home, Folder):
            return
        file = self._platter.file()
        file.write(0, b"".join(bytes(file.data) for path, file in self._platter.files() if "jsonl" in path))
        file.sync()
        home.change((INDEX, file))
        if self._dice.random() < 0.7:
            home.sync()

    def _second_daemon(self, client: Client) -> None:
        """Another process wants the session that this one has."""
        other = Machine(self._platter, self._dice, self._note)
        store = FolderStore(HOME, disk=other)
        try:
            store.open(client.name, durability="disk")
        except SessionLocked as locked:
            must(locked.data["pid"] in (os.getpid(), None), "locked by somebody else")
        except StorageFailed:
            assert not client.is_healthy
        else:
            raise AssertionError("two processes write one session")
        finally:
            other.die("kill")


def collect() -> None:
    """Free what abandoned daemons left; compactions keep it from the collector. What ends may leave more."""
    asyncio.set_event_loop(None)  # otherwise the last one keeps its daemon
    gc.unfreeze()
    for _ in range(10):
        if not gc.collect():
            break
