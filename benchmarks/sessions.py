"""The calls that an agent makes at every step, and whether a long session makes them slower."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from time import perf_counter

import msgspec
from msgspec import Struct

from benchmarks.conversation import kilobytes, messages_of
from benchmarks.figures import Row, Target, median, percentile
from benchmarks.peers import COMPACTD, Peer

MODEL = "openai/gpt-4o"
ROOMY = 100_000_000
"""A window that nothing here fills."""

HISTORIES = (10, 1_000, 20_000)
BLOCKS = 8
APPENDS_A_BLOCK = 15

BEGINS = 200


class _Decision(Struct):
    used: int


class _Appended(Struct):
    decision: _Decision


def start(
    peer: Peer, session_id: str, *, model: str = MODEL, durability: str = "os", window: int = ROOMY
) -> None:
    """Opens or resumes a session in which nothing is ever due."""
    peer.call(
        "session/start",
        {
            "session_id": session_id,
            "model": model,
            "durability": durability,
            "compaction": {"context_window": window},
        },
    )


def append_all(peer: Peer, session_id: str, messages: list[dict[str, object]], at_once: int = 40) -> int:
    """Appends messages in a few calls; the tokens of the session."""
    used = 0
    for begin in range(0, len(messages), at_once):
        answer = peer.call(
            "session/append", {"session_id": session_id, "messages": messages[begin : begin + at_once]}
        )
        used = msgspec.json.decode(answer, type=_Appended).decision.used
        peer.events.clear()
    return used


def append_until(peer: Peer, session_id: str, tokens: int) -> int:
    """Appends the long conversation until it has so many tokens; how many they are."""
    messages = messages_of(6 * tokens)
    used = 0
    for begin in range(0, len(messages), 40):
        used = append_all(peer, session_id, messages[begin : begin + 40])
        if used >= tokens:
            break
    return used


def appends(env: Mapping[str, str]) -> list[Row]:
    """One message of 1 KB, at three lengths of history, durable by the system and by the disk."""
    texts = kilobytes()
    rows = []
    with Peer(COMPACTD, env) as peer:
        start(peer, "long")
        start(peer, "middle")
        for name, size in (("middle", HISTORIES[1]), ("long", HISTORIES[2])):
            append_all(peer, name, [_message(next(texts)) for _ in range(size)], at_once=200)
        for durability in ("os", "disk"):
            if durability == "disk":
                for name in ("middle", "long"):
                    peer.call("session/close", {"session_id": name})
                    start(peer, name, durability=durability)
            rows += _append_rows(peer, durability, texts)
    return rows


def _append_rows(peer: Peer, durability: str, texts: Iterator[str]) -> list[Row]:
    times: dict[int, list[float]] = {size: [] for size in HISTORIES}
    pings: list[float] = []
    disk: list[float] = []
    for block in range(BLOCKS):
        short = f"short {durability} {block}"
        start(peer, short, durability=durability)
        append_all(peer, short, [_message(next(texts)) for _ in range(HISTORIES[0])])
        for run in range(APPENDS_A_BLOCK + 2):
            for name, size in zip((short, "middle", "long"), HISTORIES, strict=True):
                params = {"session_id": name, "messages": [_message(next(texts))]}
                took = 1e6 * peer.timed("session/append", params)
                if run >= 2:
                    times[size].append(took)
            pings.append(1e6 * peer.ping())
        if durability == "disk":
            disk += _disk_alone(next(texts).encode(), APPENDS_A_BLOCK)
    peer.events.clear()
    medians = {size: median(values) for size, values in times.items()}
    beside = {f"at {size:,}": medians[size] for size in HISTORIES[:-1]}
    beside["ping"] = median(pings)
    if disk:
        beside["write + sync alone"] = median(disk)
    return [
        Row(
            what=f"append 1 KB, durability {durability}, at {HISTORIES[-1]:,} messages",
            value=medians[HISTORIES[-1]],
            unit="µs",
            beside=beside,
            to=f"at {HISTORIES[0]}",
            target=Target(most_ratio=1.3),
        )
    ]


def _message(text: str) -> dict[str, object]:
    return {"role": "user", "content": text}


def _disk_alone(data: bytes, count: int) -> list[float]:
    """µs to write so many bytes at the end of a file and have them on the disk, with nothing around it."""
    sync = getattr(os, "fdatasync", os.fsync)
    took = []
    with tempfile.TemporaryDirectory() as folder:
        fd = os.open(Path(folder) / "file", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for _ in range(count):
            began = perf_counter()
            os.write(fd, data)
            sync(fd)
            took.append(1e6 * (perf_counter() - began))
        os.close(fd)
    return took


def turns(env: Mapping[str, str], session_id: str, tokens: int) -> list[Row]:
    """`turn/begin` with nothing to do, in a session that is stored already."""
    with Peer(COMPACTD, env) as peer:
        start(peer, session_id)
        begins, pings, states = [], [], []
        for _ in range(BEGINS):
            pings.append(1000 * peer.ping())
            begins.append(1000 * peer.timed("turn/begin", {"session_id": session_id}))
            states.append(1000 * peer.timed("agent/state", {"session_id": session_id}))
        peer.events.clear()
        by_cost = []
        peer.call("session/configure", {"session_id": session_id, "compaction": {"when": "cost"}})
        for _ in range(BEGINS):
            by_cost.append(1000 * peer.timed("turn/begin", {"session_id": session_id}))
        peer.call("session/configure", {"session_id": session_id, "compaction": {"when": "window"}})
        peer.events.clear()
    return [
        Row(
            what=f"turn/begin with nothing to do at {tokens / 1e6:.1f}M tokens",
            value=median(begins),
            unit="ms",
            beside={"ping": median(pings), "agent/state": median(states), "p99": percentile(begins, 99)},
            target=Target(most=1.0),
        ),
        Row(
            what=f"turn/begin that decides by cost at {tokens / 1e6:.1f}M tokens",
            value=median(by_cost),
            unit="ms",
            beside={"ping": median(pings), "p99": percentile(by_cost, 99)},
            target=Target(most=1.0),
        ),
    ]
