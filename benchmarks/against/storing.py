"""Stores the session in each contender's format, with its own program, before anything is measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from benchmarks.against.child import CannotDo, Child
from benchmarks.against.contenders import Contender, command_of, environment_of, why_not_there
from benchmarks.against.workload import Workload
from benchmarks.peers import COMPACTD, Peer, PeerFailed
from benchmarks.sessions import append_all, start

SESSION = "peer"
AT_ONCE = 200


def stored(
    contenders: Sequence[Contender],
    env: Mapping[str, str],
    workloads: Sequence[Workload],
    folder: Path,
    patience_s: float,
) -> dict[str, str]:
    """Side → why it has none, for those that load sessions. Where they are: `place_in`."""
    failed: dict[str, str] = {}
    done: set[str] = set()
    for one in contenders:
        if "load" not in one.rows or one.side in done:
            continue
        done.add(one.side)
        try:
            if one.place is None:
                for workload in workloads:
                    _by_the_daemon(env, workload, place_in(folder, one, workload))
            else:
                _by_itself(one, env, workloads, folder, patience_s)
        except (CannotDo, PeerFailed) as why:
            failed[one.side] = str(why)
    return failed


def place_in(folder: Path, one: Contender, workload: Workload) -> Path:
    """The file or folder in which `one` keeps the session."""
    return folder / f"{one.side}-{workload.tokens}"


def _by_itself(
    one: Contender,
    env: Mapping[str, str],
    workloads: Sequence[Workload],
    folder: Path,
    patience_s: float,
) -> None:
    absent = why_not_there(one)
    if absent is not None:
        raise CannotDo(absent)
    with Child(command_of(one), environment_of(one, env, folder / "ranks"), patience_s) as child:
        for workload in workloads:
            child.ask(do="store", file=str(workload.file), to=str(place_in(folder, one, workload)))


def _by_the_daemon(env: Mapping[str, str], workload: Workload, to: Path) -> None:
    """Appended as an agent would, counted with gpt-4o's own ranks."""
    lines = workload.file.read_bytes().splitlines()
    messages = [msgspec.json.decode(line, type=dict[str, object]) for line in lines]
    with Peer(COMPACTD, {**env, "COMPACTD_HOME": str(to)}) as peer:
        start(peer, SESSION)
        append_all(peer, SESSION, messages, at_once=AT_ONCE)
        peer.call("session/close", {"session_id": SESSION})
        peer.end()
