"""Many sessions in one daemon, with the traffic of many clients over one pipe: does anything grow?"""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from time import perf_counter

from benchmarks.figures import Row, Target
from benchmarks.load.bench import WARM, Bench, latency_rows, stall_rows, stalls_of
from benchmarks.load.line import Line, Refused
from benchmarks.load.talk import Speaker
from benchmarks.load.watching import Asker, beside, taken

STEP_S = 0.5
"""The mean pause of a client between two requests."""
ROUNDS = 6
ROUND_SESSIONS = 40
ALLOWED = (1002, 1008, 1011)
"""Busy, nothing fits, nothing to undo."""
SETTINGS: dict[str, object] = {"context_window": 100_000}


async def crowd(bench: Bench) -> list[Row]:
    """The sessions are begun and filled, talked to, compared with what was said, and closed."""
    size = bench.size
    speakers = [Speaker(f"crowd-{number}", random.Random(number)) for number in range(size.sessions)]
    rows: list[Row] = []
    async with bench.daemon() as line, bench.bare() as bare:
        await bench.warm(line)
        empty = taken(line.pid)
        for speaker in speakers:
            await _start(line, speaker.session_id, bench.size.model)
            messages: list[bytes] = []
            while len(messages) < size.session_messages:
                messages += speaker.turn()
            await speaker.append(line, messages)
        full = taken(line.pid)
        journal_mb = _journal_mb(bench)
        rows += [
            Row(
                what=f"memory of {size.sessions} sessions with {journal_mb:.1f} MB of journals",
                value=full.rss_mb - empty.rss_mb,
                unit="MB",
                beside={"journals": journal_mb, "the daemon before": empty.rss_mb},
                to="journals",
                target=Target(most_ratio=3),
            ),
            Row(
                what=f"descriptors with {size.sessions} sessions open",
                value=full.descriptors,
                unit="",
                beside={"before": empty.descriptors},
            ),
        ]
        state = Asker(line, "agent/state", {"session_id": WARM})
        ping, alone = Asker(line, "daemon/ping"), Asker(bare, "daemon/ping")
        began, core = perf_counter(), full.core_s
        async with beside(state, ping, alone):
            counts = await asyncio.gather(
                *(_client(line, number, speakers, size.traffic_s) for number in range(size.clients))
            )
        took_s = perf_counter() - began
        rows += latency_rows(
            f"during traffic of {size.clients} clients over one pipe",
            {"agent/state": state, "ping": ping},
            alone,
        )
        rows.append(
            Row(
                what=f"requests of {size.clients} clients",
                value=sum(counts) / took_s,
                unit="a second",
                beside={"its core, share": (taken(line.pid).core_s - core) / took_s},
            )
        )
        looked_at = 0
        for speaker in speakers:
            looked_at += await speaker.look(line)
        rows.append(Row(what="  messages compared byte for byte", value=looked_at, unit=""))
        for speaker in speakers:
            await line.call("session/close", {"session_id": speaker.session_id})
        rows += await _growth(bench, line)
    rows += stall_rows("crowd", stalls_of(bench))
    return rows


async def _growth(bench: Bench, line: Line) -> list[Row]:
    """Sessions are begun, filled, compacted, closed and deleted, round after round."""
    after: list[tuple[float, int]] = []
    count = min(ROUND_SESSIONS, bench.size.sessions // 4)
    for number in range(ROUNDS):
        dice = random.Random(number)
        for place in range(count):
            speaker = Speaker(f"round-{number}-{place}", dice)
            await _start(line, speaker.session_id, bench.size.model)
            for _ in range(5):
                await speaker.append(line, speaker.turn())
            session = {"session_id": speaker.session_id}
            await line.call("session/compact", {**session, "strategy": "extract", "keep_recent": 500})
            await line.call("session/delete", session)
        now = taken(line.pid)
        after.append((now.rss_mb, now.descriptors))
    half = after[ROUNDS // 2 - 1]
    return [
        Row(
            what=f"growth over {count * ROUNDS // 2} more sessions begun, compacted and deleted",
            value=after[-1][0] - half[0],
            unit="MB",
            beside={"memory at half": half[0], "at the end": after[-1][0]},
            target=Target(most=2.0),
        ),
        Row(
            what="  descriptors more",
            value=after[-1][1] - half[1],
            unit="",
            target=Target(most=0),
        ),
    ]


async def _client(line: Line, number: int, speakers: list[Speaker], seconds: float) -> int:
    """Play one of many clients, with its own sessions. Return how many requests it made."""
    dice = random.Random(f"client {number}")
    own = speakers[number % len(speakers) :: max(1, min(len(speakers), _clients_of(speakers)))]
    until, made = perf_counter() + seconds, 0
    while perf_counter() < until:
        await asyncio.sleep(dice.expovariate(1 / STEP_S))
        speaker, kind = dice.choice(own), dice.random()
        session = {"session_id": speaker.session_id}
        try:
            if kind < 0.5:
                await speaker.append(line, speaker.turn())
            elif kind < 0.7:
                await line.call("session/context", session)
            elif kind < 0.85:
                await line.call("turn/begin", session)
            elif kind < 0.9:
                await line.call("session/compact", {**session, "strategy": "extract", "keep_recent": 2_000})
            elif kind < 0.95:
                await line.call("session/history", session)
            else:
                await line.call("session/search", {"query": "journal daemon"})
        except Refused as refused:
            if refused.code not in ALLOWED:
                raise
        made += 1
    return made


def _clients_of(speakers: list[Speaker]) -> int:
    return min(50, len(speakers))


async def _start(line: Line, session_id: str, model: str) -> None:
    params = {"session_id": session_id, "model": model, "compaction": SETTINGS}
    await line.call("session/start", params)


def _journal_mb(bench: Bench) -> float:
    folder = Path(bench.env["COMPACTD_HOME"]) / "sessions"
    return sum(file.stat().st_size for file in folder.glob("crowd-*.jsonl")) / 1e6
