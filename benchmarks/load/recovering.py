"""How long a session takes to open after a SIGKILL, compared with one that was closed."""

from __future__ import annotations

import shutil
from pathlib import Path

from benchmarks.conversation import messages_of
from benchmarks.figures import Row, Target, median
from benchmarks.load.bench import Bench
from benchmarks.opening import SESSION, store_long
from benchmarks.peers import COMPACTD, Peer

TORN = b'{"seq":999999999,"type":"message","id":"e9'


def recover(bench: Bench) -> list[Row]:
    """The killed daemon was appending and compacting; its last record is torn. Each is opened in turns, by a
    daemon that has done nothing but a ping."""
    tokens = store_long(bench.env, bench.size.stored_tokens)
    closed = Path(bench.env["COMPACTD_HOME"])
    killed = bench.folder / "killed"
    shutil.copytree(closed, killed)
    with Peer(COMPACTD, {**bench.env, "COMPACTD_HOME": str(killed)}) as peer:
        peer.call("session/start", {"session_id": SESSION})
        peer.ask("session/compact", {"session_id": SESSION, "strategy": "extract"})
        for _ in range(3):
            peer.ask("session/append", {"session_id": SESSION, "messages": messages_of(4_000)})
        peer.receive()
        peer.process.kill()
    (journal,) = (killed / "sessions").glob(f"{SESSION}*.jsonl")
    with journal.open("ab") as file:
        file.write(TORN)
    took: dict[str, list[float]] = {"closed": [], "killed": []}
    core: dict[str, list[float]] = {"closed": [], "killed": []}
    for run in range(bench.size.openings + 1):
        for name, home in (("closed", closed), ("killed", killed)):
            copy = bench.folder / f"copy-{name}-{run}"
            shutil.copytree(home, copy)
            with Peer(COMPACTD, {**bench.env, "COMPACTD_HOME": str(copy)}) as peer:
                peer.ping()
                before = peer.core_s()
                took_s = peer.timed("session/start", {"session_id": SESSION})
                core_s = peer.core_s() - before
                peer.end()
            shutil.rmtree(copy)
            if run:  # the first one reads what the system has not in memory yet
                took[name].append(1000 * took_s)
                core[name].append(1000 * core_s)
    return [
        Row(
            what=f"open {tokens / 1e6:.1f}M tokens after a SIGKILL, median of {bench.size.openings}",
            value=median(took["killed"]),
            unit="ms",
            beside={
                "closed": median(took["closed"]),
                "fastest": min(took["killed"]),
                "fastest closed": min(took["closed"]),
                "core": median(core["killed"]),
                "core closed": median(core["closed"]),
            },
            to="closed",
            target=Target(most_ratio=1.2),
        )
    ]
