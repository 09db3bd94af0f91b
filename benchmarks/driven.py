"""The workload of each speed-up that `profiled.py` profiles, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext

import msgspec

from benchmarks import opening
from benchmarks.compacting import check, rest
from benchmarks.conversation import kilobytes, messages_of
from benchmarks.peers import COMPACTD, Peer, result_of
from benchmarks.sessions import MODEL, append_until, start
from benchmarks.streaming import KEEP, QUICK, SUMMARISER, model_server

Sampled = Callable[[Peer], AbstractContextManager[None]]
"""Profiles a peer for as long as it is in the block."""


OPENED, COMPACTED, SUMMARISED = 10, 2, 5
COLD, PLANNED, COUNTED = 3, 50, 3
PINGS, LARGE, LARGE_BYTES = 10_000, 5, 55_000_000
TOGETHER = 20
SMALL_TOKENS = 6_000
"""The size of a first small session: its compaction loads the modules that are loaded only once."""


def _opening(env: Mapping[str, str], sampled: Sampled) -> int:
    opening.store_long(env, 1_100_000)
    with Peer(COMPACTD, env) as peer:
        peer.call("session/start", {"session_id": opening.SESSION})
        peer.call("session/close", {"session_id": opening.SESSION})
        with sampled(peer):
            for _ in range(OPENED):
                peer.call("session/start", {"session_id": opening.SESSION})
                peer.call("session/close", {"session_id": opening.SESSION})
    return OPENED


def _compaction(env: Mapping[str, str], sampled: Sampled) -> int:
    with Peer(COMPACTD, env) as peer:
        for run in range(COMPACTED):
            name = f"long {run}"
            start(peer, name)
            append_until(peer, name, 1_000_000)
            rest(peer)
            with sampled(peer):
                check(peer.call("session/compact", {"session_id": name, "keep_recent": KEEP}))
            peer.call("session/delete", {"session_id": name})
    return COMPACTED


def _summary(env: Mapping[str, str], sampled: Sampled) -> int:
    with model_server() as server:
        there = {**env, "OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "none"}
        with Peer(COMPACTD, there) as peer:
            for run in range(SUMMARISED + 1):
                name = f"summary {run}"
                start(peer, name, model=QUICK)
                append_until(peer, name, 200_000)
                asked = {
                    "session_id": name,
                    "strategy": "summarize",
                    "model": SUMMARISER,
                    "keep_recent": KEEP,
                }
                # The first one loads what is loaded once.
                with sampled(peer) if run else nullcontext():
                    peer.call("session/compact", asked)
                peer.call("session/delete", {"session_id": name})
                peer.events.clear()
    return SUMMARISED


def _reading(env: Mapping[str, str], sampled: Sampled) -> int:
    return _opened_and_compacted(env, sampled, "auto")


def _dropping(env: Mapping[str, str], sampled: Sampled) -> int:
    return _opened_and_compacted(env, sampled, "truncate")


def _opened_and_compacted(env: Mapping[str, str], sampled: Sampled, strategy: str) -> int:
    opening.store_long(env, 200_000)
    asked = {"session_id": opening.SESSION, "keep_recent": KEEP, "strategy": strategy}
    for _ in range(COLD):
        with Peer(COMPACTD, env) as peer:
            start(peer, "small")
            append_until(peer, "small", SMALL_TOKENS)
            rest(peer)
            check(peer.call("session/compact", {"session_id": "small", "keep_recent": 1_000}))
            with sampled(peer):
                start(peer, opening.SESSION)
                check(peer.call("session/compact", asked))
            peer.call("session/undo", {"session_id": opening.SESSION})
            peer.call("session/delete", {"session_id": "small"})
    return COLD


def _plan(env: Mapping[str, str], sampled: Sampled) -> int:
    asked = {"session_id": "long", "keep_recent": KEEP, "dry_run": True, "plan_only": True}
    with Peer(COMPACTD, env) as peer:
        start(peer, "long")
        append_until(peer, "long", 1_000_000)
        rest(peer)
        check(peer.call("session/compact", asked))
        with sampled(peer):
            for _ in range(PLANNED):
                peer.call("session/compact", asked)
    return PLANNED


def _counting(env: Mapping[str, str], sampled: Sampled) -> int:
    messages = messages_of(4_000_000)
    with Peer(COMPACTD, env) as peer:
        peer.call("tokens/count", {"text": "the ranks are loaded", "model": MODEL})
        with sampled(peer):
            for _ in range(COUNTED):
                peer.call("tokens/count", {"messages": messages, "model": MODEL})
    return COUNTED


def _small(env: Mapping[str, str], sampled: Sampled) -> int:
    with Peer(COMPACTD, env) as peer:
        peer.ping()
        with sampled(peer):
            for _ in range(PINGS):
                peer.ping()
    return 1


def _large(env: Mapping[str, str], sampled: Sampled) -> int:
    texts = kilobytes()
    messages = [{"role": "user", "content": next(texts)} for _ in range(LARGE_BYTES // 1_090)]
    request = {"jsonrpc": "2.0", "id": 999_999_999, "method": "peer/none", "params": {"messages": messages}}
    with Peer(COMPACTD, env) as peer:
        frame = peer.framed(msgspec.json.encode(request))
        peer.send(frame)
        peer.receive()
        with sampled(peer):
            for _ in range(LARGE):
                peer.send(frame)
                peer.receive()
    return LARGE


def _resting(env: Mapping[str, str], sampled: Sampled) -> int:
    with Peer(COMPACTD, env) as peer:
        for number in range(TOGETHER):
            start(peer, f"one {number}")
            append_until(peer, f"one {number}", 200_000)
        rest(peer)
        with sampled(peer):
            _all_compacted(peer, "one", TOGETHER, strategy="extract", keep_recent=KEEP)
            rest(peer)
    return 1


def _all_compacted(peer: Peer, name: str, count: int, **params: object) -> None:
    asked = {
        peer.ask("session/compact", {"session_id": f"{name} {number}", **params}) for number in range(count)
    }
    while asked:
        message = peer.receive()
        if message.method is None and message.id in asked:
            asked.discard(message.id)
            check(result_of(message))


WORK: Mapping[str, Callable[[Mapping[str, str], Sampled], int]] = {
    "opening": _opening,
    "compaction": _compaction,
    "summary": _summary,
    "reading": _reading,
    "plan": _plan,
    "counting": _counting,
    "small": _small,
    "large": _large,
    "dropping": _dropping,
    "resting": _resting,
}
