"""One simulated history of shared daemons, one after another on one disk, with several programs each."""

from __future__ import annotations

import asyncio
import contextvars
import hashlib
import logging
from collections import Counter
from collections.abc import Callable
from random import Random

import msgspec
from msgspec import Struct

from compactd.session.session import Session
from tests.faults.simulation.history import HOME, Failed, collect
from tests.faults.simulation.loop import Loop
from tests.faults.simulation.machine import Died, Machine
from tests.faults.simulation.platter import Platter
from tests.faults.simulation.sharing.daemon import SimulatedDaemon, Store
from tests.faults.simulation.sharing.laws import Laws, Told
from tests.faults.simulation.sharing.link import Link
from tests.faults.simulation.sharing.program import Known, Program
from tests.faults.simulation.watched import Reference

PATIENCE_S = 300.0
"""Simulated seconds within which every request must be answered once everybody reads and answers."""
PAUSES = (*(0.0,) * 60, *(0.02, 0.3) * 3, 2.0, 6.0, 13.0, 13.0)
"""Seconds that pass after an action."""


class SharedCounts(Struct, kw_only=True):
    """What happened in one history, or in many."""

    steps: int = 0
    actions: int = 0
    jobs: int = 0
    messages: int = 0
    """What the daemons wrote to programs."""
    connections: int = 0
    departures: int = 0
    kills: int = 0
    """Of daemons."""
    restarts: int = 0

    def add(self, other: SharedCounts) -> None:
        """Adds up."""
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class SharedHistory:
    """Everything that happens under one seed."""

    def __init__(self, seed: int, most_steps: int, told: Callable[[str], None] | None = None) -> None:
        self._seed = seed
        self._dice = dice = Random(seed)
        self._most_steps = most_steps
        self._told = told
        self._trace = hashlib.blake2b(digest_size=8)
        self.counts = SharedCounts()
        self._platter = Platter()
        self._platter.root.change(("there", self._platter.folder()))
        self._platter.root.sync()
        self._reference = Reference()
        self._sessions = {f"s{number}": Known() for number in range(1, dice.choice((2, 2, 3)))}
        self._programs = [
            Program(number, self._sessions, dice, self._note) for number in range(1, dice.choice((3, 4, 5)))
        ]
        self._loop: Loop
        self._machine: Machine
        self._daemon: SimulatedDaemon
        self._laws: Laws
        self._serving: dict[Link, asyncio.Future[int]] = {}
        self._owners: dict[Link, Program] = {}

    @property
    def digest(self) -> str:
        """Return a hash of everything that happened so far."""
        return self._trace.hexdigest()

    def play(self) -> SharedCounts:
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

    # --- the life of one daemon -------------------------------------------------------------------------

    def _live(self) -> None:
        self._step("daemon")
        self.counts.restarts += 1
        self._loop = loop = Loop(self._dice, self._step)
        self._machine = machine = Machine(self._platter, self._dice, lambda _: None)
        started_at = 1_000_000.0 * self.counts.restarts
        machine.now = lambda: started_at + loop.time()
        self._laws = Laws(loop.time, self._note)
        self._laws.on_answer = self._on_answer
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(self._run(started_at))
        except Died:
            if not machine.is_dead:
                machine.die("kill")
            self._step("kill")
            self.counts.kills += 1
        finally:
            _GRAVES.append((asyncio.all_tasks(loop), list(loop._ready), list(loop._scheduled), self._daemon))  # type: ignore[attr-defined]
            loop.abandon()
        self._check()
        self._serving.clear()
        self._owners.clear()
        for program in self._programs:
            program.disconnect()
        for method, params in self._laws.pending.values():
            if method == "session/delete":
                # It may be deleted, or not.
                self._sessions[params["session_id"]].forget()

    async def _run(self, started_at: float) -> None:
        store = Store(HOME, self._machine, self._reference, self._on_deleted)
        self._daemon = SimulatedDaemon(self._loop, store, self._dice, started_at, self._laws.on_emit)
        if self._dice.random() < 0.3:
            how = "power" if self._dice.random() < 0.3 else "kill"
            self._machine.dies_in = (int(self._dice.random() * 300), how)
        for _ in range(int(self._dice.random() * 250)):
            if self.counts.steps >= self._most_steps:
                break
            await self._something()
            self._check()
        await self._settle()
        if self._dice.random() < 0.5:
            raise Died
        # As after SIGTERM.
        for link in list(self._serving):
            link.abandon()
        if self._serving:
            await asyncio.wait(list(self._serving.values()))
        await self._daemon.close()
        assert self._machine.open_files == 0, "files that nobody closed"

    async def _something(self) -> None:
        self._step("action")
        self.counts.actions += 1
        dice, program = self._dice, self._dice.choice(self._programs)
        kind = dice.random()
        if program.link is None:
            if kind < 0.5:
                self._connect(program)
        elif kind < 0.03:
            self.counts.departures += 1
            program.leave()
        elif kind < 0.04 and dice.random() < 0.1:
            raise Died
        elif kind < 0.06:
            await self._settle()
        else:
            for _ in range(dice.choice((1, 1, 1, 3))):
                program.act()
        for one in self._programs:
            one.read()
        await asyncio.sleep(dice.choice(PAUSES))

    def _connect(self, program: Program) -> None:
        self.counts.connections += 1
        link = Link(
            f"{program.number}/{self.counts.connections}", self._loop, self._laws.on_request, self._on_body
        )
        self._note(f"{link.name} connects")
        task = asyncio.ensure_future(self._daemon.accept(link))
        self._laws.links.append(link)
        self._serving[link], self._owners[link] = task, program
        task.add_done_callback(lambda _: self._on_served(link))
        program.connect(link, self._laws)

    def _on_served(self, link: Link) -> None:
        self._note(f"{link.name} is gone")
        del self._serving[link]
        self._laws.on_gone(link)

    def _on_body(self, link: Link, body: bytes) -> None:
        self.counts.messages += 1
        self._note(f"{link.name} < {body[:80]!r}")
        self._laws.on_body(link, body)

    def _on_answer(self, link: Link, id: int, method: str, params: Told, result: Told | None) -> None:
        self._owners[link].on_answer(id, method, params, result)

    def _on_deleted(self, session_id: str) -> None:
        self._note(f"{session_id} is deleted")
        self._sessions[session_id].forget()

    # --- checking ---------------------------------------------------------------------------------------

    def _check(self) -> None:
        if self._laws.wrong:
            raise AssertionError(self._laws.wrong[0])

    async def _settle(self) -> None:
        """Let everybody read and answer until all requests are answered, and look closely."""
        self._step("settle")
        until = self._loop.time() + PATIENCE_S
        while self._laws.pending or any(not link.is_open or link.pipe.is_broken for link in self._serving):
            for program in self._programs:
                program.read_all()
            self._check()
            assert self._loop.time() < until, f"never answered: {list(self._laws.pending.values())[:3]}"
            await asyncio.sleep(0.5)
        for program in self._programs:
            program.read_all()
        self._laws.check_rest()
        opened = self._daemon.open_sessions
        for session_id in self._sessions:
            self._check_seats(session_id)
            if session_id in opened:
                self._look(opened[session_id])
                loop = opened[session_id].agent_loop
                if loop is not None and loop.turn_id is not None:
                    self._laws.check_turn(session_id, loop.turn_id)
        assert len(self._daemon.clients.connected) == len(self._serving), (
            "a client was forgotten, or is left over"
        )
        self._check()

    def _check_seats(self, session_id: str) -> None:
        """A session is open exactly as long as a client has it open."""
        members, unsure = self._laws.members(session_id)
        clients = self._daemon.clients
        known = {link.name for link in self._serving if session_id in clients.sessions_of(link.client)}
        assert members == known - unsure, f"{session_id}: open for {members}, the daemon says {known}"
        is_open = session_id in self._daemon.open_sessions
        assert is_open == bool(known), f"{session_id} is {'open' if is_open else 'closed'}, by {known}"

    def _look(self, session: Session) -> None:
        """Everything that was acknowledged is there once, in order, byte for byte."""
        known, originals = self._sessions[session.id], session.state.originals
        for entry_id, source in known.said.items():
            assert entry_id in originals, f"{entry_id} of {session.id} is gone"
            assert bytes(originals[entry_id].source or b"") == source, f"{entry_id} was changed"
        order = [entry_id for entry_id in originals if entry_id in known.said]
        assert order == sorted(known.said, key=lambda one: int(one[1:])), "the order was changed"
        sources = Counter(bytes(item.source or b"") for item in originals.values())
        twice = [source for source in known.said.values() if sources[source] != 1]
        assert not twice, f"{twice[0]!r} is in {session.id} {sources[twice[0]]} times"
        texts: Counter[str] = Counter()
        for raw in (*sources, *map(bytes, session.state.queued.values())):
            if b"prompt p" in raw:
                content = msgspec.json.decode(raw)["content"]
                texts[content if isinstance(content, str) else content[0].get("text", "")] += 1
        for text in known.prompts:
            assert texts[text] == 1, f"the prompt {text!r} is in {session.id} {texts[text]} times"


_GRAVES: list[object] = []
"""What was running in daemons that died. Freeing it runs the ends of its coroutines, which would disturb the
history that is being played."""


def bury() -> None:
    """Free what abandoned daemons left. Call it between two histories."""
    _GRAVES.clear()
    contextvars.Context().run(collect)


logging.getLogger("compactd").addHandler(logging.NullHandler())
