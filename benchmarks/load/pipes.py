"""Clients that misbehave: one that reads nothing, one that sends a gigabyte."""

from __future__ import annotations

import os
import select
import threading
from time import perf_counter

import msgspec

from benchmarks.figures import Row, Target
from benchmarks.load.bench import Bench
from benchmarks.load.talk import History, Wrong
from benchmarks.load.watching import percentiles, taken
from benchmarks.peers import COMPACTD, Message, Peer

STILL_S = 1.5
"""A daemon that takes no byte for so long has stopped reading."""
MB = 1_000_000
BOUND_MB = 64 + 8 + 2 * 64 + 50
"""The most memory that waiting data may take (protocol.md, Transport): unsent, unhandled, one message as
bytes and decoded, and the daemon itself."""
CHUNK = 8 * MB
PIECE = 1 << 20


def unread(bench: Bench) -> list[Row]:
    """A client that asks and does not read. When it reads at last, every answer and message is there."""
    count = bench.size.unread_requests
    with Peer(COMPACTD, bench.env) as peer:
        peer.call("session/start", {"session_id": "unread"})
        big = "x" * 20_000
        peer.call("session/append", {"session_id": "unread", "messages": [{"role": "user", "content": big}]})
        before = taken(peer.process.pid)
        frames = _requests(peer, count)
        os.set_blocking(peer.to_peer, False)
        view, sent, at = memoryview(frames), 0, perf_counter()
        while sent < len(view) and perf_counter() - at < STILL_S:
            if select.select([], [peer.to_peer], [], 0.2)[1]:
                try:
                    sent += os.write(peer.to_peer, view[sent : sent + PIECE])
                    at = perf_counter()
                except BlockingIOError:
                    continue
        full = taken(peer.process.pid)
        os.set_blocking(peer.to_peer, True)
        writer = threading.Thread(target=peer.send, args=(view[sent:],), daemon=True)
        writer.start()
        answered, appended, acknowledged = 0, 0, []
        while answered < count:
            message = peer.receive()
            if message.method is None:
                answered += 1
                if b"entry_ids" in bytes(message.result)[:40]:
                    acknowledged.append(message.id)
        writer.join()
        appended = len(acknowledged)
        found = _messages(peer, "unread")
        if found != appended + 1 or appended != (count + 1) // 2:
            raise Wrong(f"{appended} acknowledged of {(count + 1) // 2}, {found - 1} are there")
        peer.end()
    return [
        Row(
            what=f"a client that reads nothing: memory, {sent / MB:.1f} of {len(view) / MB:.1f} MB taken",
            value=full.peak_mb - before.rss_mb,
            unit="MB",
            beside={"the daemon before": before.rss_mb},
            target=Target(most=BOUND_MB),
        ),
        Row(
            what="  answers not given, once it reads", value=count - answered, unit="", target=Target(most=0)
        ),
        Row(
            what=f"  messages lost of {appended:,} acknowledged",
            value=appended + 1 - found,
            unit="",
            target=Target(most=0),
        ),
    ]


def flood(bench: Bench) -> list[Row]:
    """One message of a gigabyte, in both framings; then as many bytes in messages that are allowed."""
    size = bench.size.flood_mb * MB
    rows: list[Row] = []
    for lines in (False, True):
        with Peer(COMPACTD, bench.env, lines=lines) as peer:
            peer.ping()
            before = taken(peer.process.pid)
            began = perf_counter()
            head = b'{"jsonrpc":"2.0","id":7001,"method":"daemon/ping","params":{"x":"'
            tail = b'"}}'
            if not lines:
                peer.send(b"Content-Length: %d\r\n\r\n" % size)
            peer.send(head)
            left = size - len(head) - len(tail)
            block = b"x" * PIECE
            while left > 0:
                left -= len(block[:left])
                peer.send(block[: left + len(block)] if left < 0 else block)
            peer.send(tail + (b"\n" if lines else b""))
            message = _answer(peer, 7001)
            took_s = perf_counter() - began
            code = msgspec.json.decode(message.error)["code"]
            if code != 1009:
                raise Wrong(f"a message of {size} bytes was answered with {code}")
            peer.ping()
            after = taken(peer.process.pid)
            rows.append(
                Row(
                    what=f"one message of {size / MB:,.0f} MB ({'lines' if lines else 'headers'}), refused: "
                    "memory at most",
                    value=after.peak_mb - before.rss_mb,
                    unit="MB",
                    beside={"seconds": took_s, "MB a second": size / MB / took_s},
                    target=Target(most=BOUND_MB),
                )
            )
            peer.end()
    rows += _allowed(bench, size)
    return rows


def _allowed(bench: Bench, size: int) -> list[Row]:
    with Peer(COMPACTD, bench.env) as peer:
        peer.ping()
        before = taken(peer.process.pid)
        took: list[float] = []
        began = perf_counter()
        for number in range(max(1, size // CHUNK)):
            peer.call("daemon/ping", {"x": f"{number} " + "x" * CHUNK})
            took.append(peer.ping())
        took_s = perf_counter() - began
        after = taken(peer.process.pid)
        peer.end()
    pings = percentiles(took)
    return [
        Row(
            what=f"{size / MB:,.0f} MB in messages of {CHUNK / MB:.0f} MB: memory at most",
            value=after.peak_mb - before.rss_mb,
            unit="MB",
            beside={"at the end": after.rss_mb - before.rss_mb, "MB a second": size / MB / took_s},
            target=Target(most=BOUND_MB),
        ),
        Row(
            what="  a ping after each, p50",
            value=pings.p50,
            unit="ms",
            beside={"p99": pings.p99, "slowest": pings.slowest},
            target=Target(most=2.0),
        ),
    ]


def _requests(peer: Peer, count: int) -> bytes:
    """Appends and contexts in turns, the frames one behind the other."""
    frames = bytearray()
    for number in range(count):
        if number % 2:
            body = b'{"jsonrpc":"2.0","id":%d,"method":"session/context","params":{"session_id":"unread"}}'
            # Of a session that grows each answer would be larger: a ping of the state instead, mostly.
            if number % 200 != 1:
                body = b'{"jsonrpc":"2.0","id":%d,"method":"agent/state","params":{"session_id":"unread"}}'
            frames += peer.framed(body % (10_000 + number))
        else:
            body = (
                b'{"jsonrpc":"2.0","id":%d,"method":"session/append","params":{"session_id":"unread",'
                b'"messages":[{"role":"user","content":"message %d"}]}}'
            )
            frames += peer.framed(body % (10_000 + number, number))
    return bytes(frames)


def _messages(peer: Peer, session_id: str) -> int:
    history = msgspec.json.decode(peer.call("session/history", {"session_id": session_id}), type=History)
    return sum(one.kind == "message" for one in history.entries)


def _answer(peer: Peer, id: int) -> Message:
    while (message := peer.receive()).id != id:
        continue
    return message
