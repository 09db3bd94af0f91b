"""Search over many stored sessions: building the index, searching, and updating it after appends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from time import perf_counter

import msgspec
from msgspec import Struct

from benchmarks.conversation import Json, turns
from benchmarks.figures import Row, Target, median
from benchmarks.peers import COMPACTD, Peer
from benchmarks.sessions import start
from compactd.storage.journal_records import as_appended, encode_record, scan
from compactd.storage.paths import file_stem

SESSIONS = 1_000
TOKENS = 50_000
CHARS_A_TOKEN = 4
RUNS = 15
APPENDS = 100
AT_ONCE = 20
OPEN = "open"

QUERIES = {
    "a word of one session": "needle0007",
    "a word of nearly every message": "self",
    "three words": "journal cannot read",
    "a path": "server/compactd/session/session.py",
    "the beginning of a word": "compac",
}


class _Searched(Struct):
    complete: bool
    hits: list[msgspec.Raw]


def searches(env: Mapping[str, str], sessions: int = SESSIONS) -> list[Row]:
    """The rows of the table. Takes about a minute for 1,000 sessions."""
    with Peer(COMPACTD, env) as peer:
        start(peer, OPEN)
        folder = Path(env["COMPACTD_HOME"]) / "sessions"
        size = _stored(folder, sessions)
        begun, core = perf_counter(), _cores_s(peer)
        while not _searched(peer, "anything").complete:
            pass
        indexed_s, indexed_core_s = perf_counter() - begun, max(1e-9, _cores_s(peer) - core)
        asked: dict[str, float] = {}
        of_a_core: list[float] = []
        for kind, query in QUERIES.items():
            core = _cores_s(peer)
            asked[kind] = median([1000 * _timed(peer, query) for _ in range(RUNS)])
            of_a_core.append(1000 * (_cores_s(peer) - core) / RUNS)
        # Each append is followed by a search, which has to find it: what that takes longer is the price.
        with_news, without, with_many = [], [], []
        for number in range(APPENDS):
            _append(peer, f"appended{number}")
            with_news.append(1000 * _timed(peer, f"appended{number}"))
            without.append(1000 * _timed(peer, f"appended{number}"))
            assert len(_searched(peer, f"appended{number}").hits) == 1
        for number in range(RUNS):
            for one in range(AT_ONCE):
                _append(peer, f"among{number}x{one}")
            with_many.append(1000 * _timed(peer, f"among{number}x0"))
        peer.end()
    what = f"search, {sessions:,} sessions of {TOKENS:,} tokens"
    index = folder.with_name("index.sqlite3").stat().st_size
    return [
        Row(
            what=f"{what}: to index one megabyte",
            value=1000 * indexed_s / (size / 1e6),
            unit="ms",
            beside={
                "MB/s": size / 1e6 / indexed_s,
                "of a core": size / 1e6 / indexed_core_s,
                "MB": size / 1e6,
                "MB of index": index / 1e6,
            },
            target=Target(most=100),
        ),
        Row(
            what=f"{what}: asked, the slowest query",
            value=max(asked.values()),
            unit="ms",
            beside={"of a core": max(of_a_core), **asked},
            target=Target(most=50),
        ),
        Row(
            what=f"{what}: one append taken into the index",
            value=median(with_news) - median(without),
            unit="ms",
            beside={
                f"of {AT_ONCE} between two searches": (median(with_many) - median(without)) / AT_ONCE,
                "a search with news": median(with_news),
                "without": median(without),
            },
            target=Target(most=1),
        ),
    ]


def _cores_s(peer: Peer) -> float:
    """Return the CPU seconds of the daemon's threads so far; 0 if the system does not say."""
    tasks = Path(f"/proc/{peer.process.pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def _append(peer: Peer, word: str) -> None:
    said = {"role": "user", "content": f"{word} to the ledger of seven parts"}
    peer.call("session/append", {"session_id": OPEN, "messages": [said]})


def _searched(peer: Peer, query: str) -> _Searched:
    return msgspec.json.decode(peer.call("session/search", {"query": query}), type=_Searched)


def _timed(peer: Peer, query: str) -> float:
    return peer.timed("session/search", {"query": query})


def _stored(folder: Path, sessions: int) -> int:
    """Writes the journals, beside that of the open session; their bytes. Every one holds other turns."""
    [journal] = folder.glob("*.jsonl")
    begin = msgspec.json.decode(as_appended(scan(journal.read_bytes()).records[0]))
    stream = turns()
    return sum(_journal(folder, begin, f"session-{number:04}", number, stream) for number in range(sessions))


def _journal(folder: Path, begin: Json, session_id: str, number: int, stream: Iterator[list[Json]]) -> int:
    lines = [encode_record(0, msgspec.json.encode({**begin, "id": session_id}))]
    held = 0
    needle: Json = {"role": "user", "content": f"needle{number:04} is what this one is about"}
    for seq, message in enumerate(_messages(stream, needle), start=1):
        said = msgspec.json.encode(message)
        record: Json = {
            "type": "message",
            "id": f"e{seq}",
            "at": 1.7e9 + 100 * number + seq,
            "tokens": [len(said) // CHARS_A_TOKEN, "chars4"],
            "message": msgspec.Raw(said),
        }
        lines.append(encode_record(seq, msgspec.json.encode(record)))
        held += len(said)
        if held >= TOKENS * CHARS_A_TOKEN:
            break
    data = b"".join(lines)
    (folder / f"{file_stem(session_id)}.jsonl").write_bytes(data)
    return len(data)


def _messages(stream: Iterator[list[Json]], first: Json) -> Iterator[Json]:
    yield first
    while True:
        yield from (message for turn in islice(stream, 1) for message in turn)
