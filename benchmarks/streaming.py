"""What the daemon adds to a model's own time: model summaries, parallel streams, aborts, memory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from time import monotonic

import msgspec
from msgspec import UNSET, Struct, UnsetType

from benchmarks.figures import Row, Target, median
from benchmarks.peers import COMPACTD, HERE, Message, Peer, PeerFailed, result_of
from benchmarks.sessions import append_until, start
from benchmarks.streaming_server import STALLS, STREAMS
from benchmarks.transport import memory_mb

TOKENS = 200_000
KEEP = 20_000
SUMMARISER = "openai/gpt-4.1"
"""A model whose window takes the whole transcript in one request."""

QUICK = "openai/gpt-4.1-mini"
RUNS = 5
SESSIONS = 10
ASK_GAP_S = 0.01
"""Seconds between two requests while the sessions stream."""

PROMPTS = 500
PROMPTS_A_SESSION = 100
WINDOW = 16_000
"""Fills every few hundred prompts, so that a long session is compacted again and again, as they are."""

WARM_PROMPTS = 300
WARM_SESSIONS = 300
"""Sessions before memory is measured for the first time. Garbage is collected in bulk, so memory swings; with
sessions that end it grows by 4 MB over the first few hundred and then no more (measured 2026-11)."""


class _Event(Struct):
    session_id: str
    type: str
    turn_id: str | UnsetType = UNSET
    delta: str = ""


class _Told(Struct):
    """One request, as the model server reports it; times are seconds of the monotonic clock."""

    came: float
    went: float
    model: str
    summary: bool


class _Url(Struct):
    url: str


class _Done(Struct):
    compacted: bool
    strategy: str = ""
    reason: str | None = None


class ModelServer:
    """`streaming_server.py` as a child process."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-P", str(HERE / "streaming_server.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.url = msgspec.json.decode(self._line(), type=_Url).url

    def told(self) -> _Told:
        """The next request that was answered."""
        return msgspec.json.decode(self._line(), type=_Told)

    def _line(self) -> bytes:
        if self.process.stdout is None or not (line := self.process.stdout.readline()):
            raise PeerFailed("the model server ended")
        return line


@contextmanager
def model_server() -> Iterator[ModelServer]:
    """A model server, until it is left."""
    server = ModelServer()
    try:
        yield server
    finally:
        server.process.kill()
        server.process.communicate()


def streams(env: Mapping[str, str], prompts: int = PROMPTS) -> list[Row]:
    """All figures; `prompts`: over how many the growth of memory is looked at."""
    with model_server() as server:
        there = {**env, "OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "none"}
        with Peer(COMPACTD, there) as peer:
            _warm(peer, server)
            rows = [*_summaries(peer, server), *_side_by_side(peer, server), _aborts(peer, server)]
        with Peer(COMPACTD, there) as peer:
            rows += _growth(peer, server, prompts)
    return rows


def _warm(peer: Peer, server: ModelServer) -> None:
    """One prompt, so that what is loaded once is."""
    start(peer, "warm", model=QUICK)
    _answered(peer, "warm")
    server.told()


def _answered(peer: Peer, session_id: str) -> None:
    """A prompt, to its end."""
    peer.call("agent/prompt", {"session_id": session_id, "text": "Go on."})
    while not any(_event(message).type in ("agent_end", "error") for message in peer.events):
        peer.events.append(peer.receive())
    peer.events.clear()


def _event(message: Message) -> _Event:
    if message.method != "agent/event":
        return _Event(session_id="", type="")
    return msgspec.json.decode(message.params, type=_Event)


# --- summaries ------------------------------------------------------------------------------------------


def _summaries(peer: Peer, server: ModelServer) -> list[Row]:
    """Measure the milliseconds that compactd adds before and after the summariser's request."""
    told: dict[str, list[float]] = {"start": [], "before": [], "after": []}
    for run in range(RUNS):
        name = f"summary {run}"
        start(peer, name, model=QUICK)
        append_until(peer, name, TOKENS)
        began = monotonic()
        asked = peer.ask(
            "session/compact",
            {"session_id": name, "strategy": "summarize", "model": SUMMARISER, "keep_recent": KEEP},
        )
        while (message := peer.receive()).id != asked:
            if _event(message).type == "compaction_start":
                told["start"].append(1000 * (monotonic() - began))
        ended = monotonic()
        done = msgspec.json.decode(result_of(message), type=_Done)
        if not done.compacted or done.strategy != "summarize":
            raise PeerFailed(f"no summary by the model: {done.reason}")
        request = server.told()
        told["before"].append(1000 * (request.came - began))
        told["after"].append(1000 * (ended - request.went))
        peer.call("session/delete", {"session_id": name})
        peer.events.clear()
    size = f"{TOKENS // 1000}k tokens"
    return [
        _row(f"summarize {size}: until compaction_start", told["start"], 10),
        _row(f"summarize {size}: until the summariser has the request", told["before"], 20),
        _row(f"summarize {size}: from its answer to ours", told["after"], 60),
    ]


def _row(what: str, values: list[float], most: float) -> Row:
    return Row(
        what=what,
        value=median(values),
        unit="ms",
        beside={"fastest": min(values), "slowest": max(values)},
        target=Target(most=most),
    )


# --- streams side by side -------------------------------------------------------------------------------


def _side_by_side(peer: Peer, server: ModelServer) -> list[Row]:
    """Measure how late each piece of ten parallel streams arrives, and how long `agent/state` takes
    meanwhile."""
    names = [f"stream {number}" for number in range(SESSIONS)]
    for name in names:
        start(peer, name, model=f"openai/{STREAMS}")
    late: list[float] = []
    states: list[float] = []
    waiting = {peer.ask("agent/prompt", {"session_id": name, "text": "Go on."}) for name in names}
    asked, asked_at, left = 0, monotonic(), SESSIONS
    while left:
        message = peer.receive()
        now = monotonic()
        if message.id is not None and message.method is None:
            if message.id == asked:
                states.append(1000 * (now - asked_at))
                asked = 0
            waiting.discard(message.id)
            result_of(message)
        event = _event(message)
        if event.type == "message_delta":
            # A piece may hold several, where the pipe was full: the oldest is the latest.
            late.append(1000 * (now - float(event.delta.split()[0])))
        left -= event.type in ("agent_end", "error")
        if not asked and not waiting and now - asked_at > ASK_GAP_S:
            asked_at = monotonic()
            asked = peer.ask("agent/state", {"session_id": names[len(states) % SESSIONS]})
    for _ in names:
        server.told()
    if asked:
        peer.receive()
    peer.events.clear()
    return [
        _slowest(f"{SESSIONS} sessions stream: a piece, slowest of {len(late)}", late),
        _slowest(f"{SESSIONS} sessions stream: agent/state, slowest of {len(states)}", states),
    ]


def _slowest(what: str, values: list[float]) -> Row:
    return Row(
        what=what, value=max(values), unit="ms", beside={"p50": median(values)}, target=Target(most=20)
    )


# --- aborts and memory ----------------------------------------------------------------------------------


def _aborts(peer: Peer, server: ModelServer) -> Row:
    took = []
    start(peer, "stalls", model=f"openai/{STALLS}")
    for _ in range(2 * RUNS):
        peer.events.clear()
        peer.call("agent/prompt", {"session_id": "stalls", "text": "Go on."})
        while not any(_event(message).type == "message_delta" for message in peer.events):
            peer.events.append(peer.receive())
        took.append(1000 * peer.timed("agent/abort", {"session_id": "stalls"}))
        server.told()
    return Row(
        what=f"agent/abort of a stream that stalls, slowest of {len(took)}",
        value=max(took),
        unit="ms",
        beside={"p50": median(took)},
        target=Target(most=50),
    )


def _growth(peer: Peer, server: ModelServer, prompts: int) -> list[Row]:
    """Measure the memory that a prompt leaves: in sessions that end, and in one that continues through
    compactions."""
    ended = max(prompts // PROMPTS_A_SESSION, 2)
    for number in range(WARM_SESSIONS):
        _session(peer, server, f"warm {number}", 1)
    before = memory_mb(peer)
    for number in range(ended):
        _session(peer, server, f"ended {number}", PROMPTS_A_SESSION)
    leaked = memory_mb(peer) - before
    start(peer, "long", model=QUICK, window=WINDOW)
    _prompts(peer, server, "long", WARM_PROMPTS)
    before = memory_mb(peer)
    began = monotonic()
    _prompts(peer, server, "long", prompts)
    took = monotonic() - began
    after = memory_mb(peer)
    return [
        Row(
            what=f"memory per prompt, {ended * PROMPTS_A_SESSION:,} prompts in {ended} sessions that end",
            value=1000 * leaked / (ended * PROMPTS_A_SESSION),
            unit="kB",
            target=Target(most=0.5),
        ),
        Row(
            what=f"memory per prompt, {prompts:,} prompts in one session of a {WINDOW // 1000}k window",
            value=1000 * (after - before) / prompts,
            unit="kB",
            beside={"MB before": before, "MB after": after, "ms a prompt": 1000 * took / prompts},
            target=Target(most=5),
        ),
    ]


def _session(peer: Peer, server: ModelServer, session_id: str, prompts: int) -> None:
    """A session from its start to its close."""
    start(peer, session_id, model=QUICK, window=WINDOW)
    _prompts(peer, server, session_id, prompts)
    peer.call("session/close", {"session_id": session_id})
    peer.events.clear()


def _prompts(peer: Peer, server: ModelServer, session_id: str, prompts: int) -> None:
    for _ in range(prompts):
        _answered(peer, session_id)
        # A compaction asks too: what it asked is told before.
        while server.told().summary:
            pass
