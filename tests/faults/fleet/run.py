"""Clients that append and compact at every node, while faults happen, and a check of what they were told."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from msgspec import Raw

from compactd.protocol.errors import SessionBusy
from tests.faults.fleet.audit import stale_writes
from tests.faults.fleet.database import Database
from tests.faults.fleet.node import Gone, Node, Refused
from tests.faults.fleet.said import Message, Talk, entry_ids, has_compacted
from tests.support.postgres import Relay

NODES = 5
LANES = 12
"""Requests at once at each node."""
SESSIONS = 6
"""Sessions at once. Each is open at all nodes."""
ROUND_APPENDS = 6_000
"""Acknowledged appends after which all sessions are checked, and others are begun."""
LEASE_S = 10.0
SETTLED_S = 10.0
"""Seconds after which all nodes must show what was acknowledged."""
_INTERNAL = -32603


class Fault(NamedTuple):
    """Something that goes wrong now and then."""

    name: str
    weight: int
    do: Callable[[random.Random], Awaitable[None]]
    is_of_server: bool = False
    """Whether no other fault is under way meanwhile."""


class Fleet:
    """The nodes, what their clients do and were told, and the faults."""

    def __init__(self, folder: Path, database: Database, seed: int, rounds: int = 0) -> None:
        """`rounds`: how many of the seed's rounds are left out."""
        self._database = database
        self._seed = seed
        self._relays: dict[int, list[Relay]] = {}
        self.nodes: list[Node] = []
        for number in range(NODES):
            url = database.url()
            if number < 2:  # these two reach the database by a network that may fail
                url, self._relays[number] = database.relayed()
            self.nodes.append(Node(number, folder / str(number), (url,)))
        self.appends = 0
        self.faults: Counter[str] = Counter()
        self.told: Counter[str] = Counter()
        """The errors that clients were told, without their numbers."""
        self.wrong: list[str] = []
        self._round = rounds
        self._talks: list[Talk] = []
        self._is_over = False
        self._made = 0

    async def run(self, appends: int, until: float) -> None:
        """Go on until so many appends are acknowledged, or until this time (monotonic seconds)."""
        for node in self.nodes:
            await node.start()
        while self.appends < appends and time.monotonic() < until and not self.wrong:
            await self._do_round(min(ROUND_APPENDS, appends - self.appends), until)
        for node in self.nodes:
            node.kill()
            await node.ended()

    async def _do_round(self, appends: int, until: float) -> None:
        self._round += 1
        dice = random.Random(f"{self._seed} {self._round}")
        self._talks = [Talk(f"s{self._seed}.{self._round}.{number}") for number in range(SESSIONS)]
        await asyncio.gather(*(self._open(node) for node in self.nodes))
        self._is_over = False
        target = self.appends + appends
        failing = asyncio.ensure_future(self._fail(random.Random(dice.random())))
        lanes = [
            asyncio.ensure_future(self._lane(node, random.Random(dice.random())))
            for node in self.nodes
            for _ in range(LANES)
        ]
        try:
            while self.appends < target and time.monotonic() < until:
                # None of them ends before it is told to, unless it fails.
                if any(task.done() for task in (failing, *lanes)):
                    break
                await asyncio.sleep(0.05)
            self._is_over = True
            await asyncio.gather(failing, *lanes)
        finally:
            for task in (failing, *lanes):
                task.cancel()
        await self._check(dice)

    # --- what clients do --------------------------------------------------------------------------------

    async def _lane(self, node: Node, dice: random.Random) -> None:
        while not self._is_over:
            await node.is_ready.wait()
            talk, kind = dice.choice(self._talks), dice.random()
            if kind < 0.01:
                await self._compact(node, talk)
            else:
                await self._append(node, talk, dice)
            if kind > 0.995:
                await self._look(node, talk)

    async def _append(self, node: Node, talk: Talk, dice: random.Random) -> None:
        """Append messages. If they have ids, append them again, at any node, until that is acknowledged."""
        has_ids = dice.random() < 0.7
        self._made += 1
        now = time.monotonic()
        said = [
            Message(f"{node.number} {self._made} {at} " + "x" * dice.randrange(200), now)
            for at in range(dice.choice((1, 1, 1, 2, 5)))
        ]
        talk.messages += said
        sent = [
            {"role": "user", "content": each.text, **({"id": f"m{self._made}.{at}"} if has_ids else {})}
            for at, each in enumerate(said)
        ]
        while True:
            result = await self._call(node, "session/append", session_id=talk.session, messages=sent)
            if result is not None:
                for message, entry_id in zip(said, entry_ids(result), strict=True):
                    message.entry_id, message.acknowledged_at = entry_id, time.monotonic()
                self.appends += 1
                return
            if not has_ids:
                return  # nobody knows whether it was stored
            await asyncio.sleep(0.2)
            node = dice.choice(self.nodes)
            await node.is_ready.wait()

    async def _compact(self, node: Node, talk: Talk) -> None:
        try:
            result = await node.call("session/compact", session_id=talk.session, keep_recent=500)
        except Gone:
            talk.unknown_compactions += 1
        except Refused as refused:
            self._note("session/compact", refused)
            talk.unknown_compactions += refused.code != SessionBusy.code
        else:
            talk.compactions += has_compacted(result)

    async def _look(self, node: Node, talk: Talk) -> None:
        """Check that a node shows what it has answered."""
        known = [one for one in talk.messages if one.entry_id and one.text.startswith(f"{node.number} ")][-1:]
        for message in known:
            start = message.entry_id
            shown = await self._call(
                node, "session/history", session_id=talk.session, limit=1, **{"from": start}
            )
            if shown is not None and message.text.encode() not in bytes(shown):
                self.wrong.append(f"{talk.session}: node {node.number} does not show {message.text}")

    async def _call(self, node: Node, method: str, **params: object) -> Raw | None:
        """Return a request's result. None if it is not known whether it was carried out."""
        try:
            return await node.call(method, **params)
        except Gone:
            return None
        except Refused as refused:
            self._note(method, refused)
            return None

    def _note(self, method: str, refused: Refused) -> None:
        self.told[f"{method} {refused.code} {_without_numbers(refused.message)}"] += 1
        if refused.code == _INTERNAL:
            self.wrong.append(f"{method}: {refused}")

    # --- faults -----------------------------------------------------------------------------------------

    async def _fail(self, dice: random.Random) -> None:
        """Do one fault after the other. Faults of nodes overlap; those of the server wait for them."""
        faults = self._faults()
        weights = [fault.weight for fault in faults]
        under_way: set[asyncio.Task[None]] = set()
        while not self._is_over:
            await asyncio.sleep(3 * dice.random())
            fault = dice.choices(faults, weights)[0]
            if fault.is_of_server:
                await asyncio.gather(*under_way)
                under_way = set()
            self.faults[fault.name] += 1
            task = asyncio.ensure_future(fault.do(random.Random(dice.random())))
            under_way.add(task)
            if fault.is_of_server:
                await task
            for done in [one for one in under_way if one.done()]:
                under_way.remove(done)
                done.result()
        await asyncio.gather(*under_way)

    def _faults(self) -> Sequence[Fault]:
        return (
            Fault("a node is killed", 6, self._kill),
            Fault("a node is ended", 2, self._end),
            Fault("a node is frozen", 5, self._freeze),
            Fault("connections are cut", 6, self._cut),
            Fault("the network hangs", 4, self._hang),
            Fault("the server restarts", 1, self._restart, is_of_server=True),
            Fault("the standby takes over", 1, lambda _: self._database.fail_over(), is_of_server=True),
            Fault("the standby is frozen", 1, self._freeze_standby, is_of_server=True),
        )

    async def _freeze_standby(self, dice: random.Random) -> None:
        await self._database.freeze_standby(2 * dice.random())

    async def _restart(self, dice: random.Random) -> None:
        await self._database.restart(dice.choice(("fast", "immediate")))

    async def _kill(self, dice: random.Random) -> None:
        node = await self._any(dice)
        node.kill()
        await node.ended()
        await self._start(node)

    async def _end(self, dice: random.Random) -> None:
        node = await self._any(dice)
        code = await node.end()
        if code != 0:
            self.wrong.append(f"node {node.number} ended with {code}")
        await self._start(node)

    async def _freeze(self, dice: random.Random) -> None:
        node = await self._any(dice)
        node.freeze()
        await asyncio.sleep(_seconds(dice))
        node.go_on()
        node.is_ready.set()

    async def _cut(self, dice: random.Random) -> None:
        node = dice.choice(self.nodes)
        relays = self._relays.get(node.number)
        if relays is not None and dice.random() < 0.5:
            for relay in relays:
                relay.cut_all()
        else:
            with suppress(Exception):  # the server may be restarting
                await asyncio.to_thread(self._database.cut, node.name)

    async def _hang(self, dice: random.Random) -> None:
        relays = self._relays[dice.choice(sorted(self._relays))]
        if relays[0].is_frozen:
            return
        for relay in relays:
            relay.is_frozen = True
        await asyncio.sleep(_seconds(dice))
        for relay in relays:
            relay.is_frozen = False

    async def _any(self, dice: random.Random) -> Node:
        """Return a node that nothing happens to yet, and take it out of use."""
        while True:
            node = dice.choice(self.nodes)
            if node.is_ready.is_set():
                node.is_ready.clear()
                return node
            await asyncio.sleep(0.1)

    async def _start(self, node: Node) -> None:
        await node.start()
        await self._open(node)

    async def _open(self, node: Node) -> None:
        for talk in self._talks:
            while True:
                result = await self._call(
                    node, "session/start", session_id=talk.session, context_window=200_000
                )
                if result is not None:
                    break
                await asyncio.sleep(0.2)
        node.is_ready.set()

    # --- the check --------------------------------------------------------------------------------------

    async def _check(self, dice: random.Random) -> None:
        for talk in self._talks:
            at = dice.sample(self.nodes, 2)
            self.wrong += await self._settled(talk, at)
            self.wrong += await asyncio.to_thread(stale_writes, self._database.sql, talk.session)
        for node in self.nodes:
            for talk in self._talks:
                await self._call(node, "session/close", session_id=talk.session)
        print(
            f"round {self._round}: {self.appends:,} appends, {self.faults.total()} faults, "
            f"{sum(talk.compactions for talk in self._talks)} compactions in this round, "
            f"{len(self.wrong)} wrong",
            flush=True,
        )

    async def _settled(self, talk: Talk, nodes: Sequence[Node]) -> list[str]:
        """Return what is wrong with a session, when the nodes have had time to read what others wrote."""
        until = time.monotonic() + SETTLED_S
        while True:
            shown = [await node.call("session/history", session_id=talk.session) for node in nodes]
            wrong = talk.wrong(shown)
            if not wrong or time.monotonic() > until:
                return [f"{each} (nodes {[node.number for node in nodes]})" for each in wrong]
            await asyncio.sleep(0.2)


def _seconds(dice: random.Random) -> float:
    """Return how long a node is frozen: in one of eight cases longer than a lease."""
    return LEASE_S + 1 + 3 * dice.random() if dice.random() < 0.125 else 0.1 + 2.5 * dice.random()


def _without_numbers(text: str) -> str:
    return "".join("#" if one.isdigit() else one for one in text)[:160]
