"""SIGKILL at random moments of a daemon that appends, compacts, undoes, imports, indexes and redacts.

`python -m tests.faults.real.killing --seed 1 --kills 100`. The client keeps what was acknowledged; after each
kill the next daemon is asked for all of it. `--forked`: more of them a minute, see `faults.real.forked`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.faults.real.forked import Forked, load
from tests.support.client import Daemon, Refused

HOME_KILLS = 25
"""Kills with the same sessions. After that new ones are used, because checking takes longer and longer."""
MEMORY = Path("/dev/shm")
"""A folder in memory. A kill loses no written page on any disk; power cuts are simulated instead."""

Client = Daemon | Forked
Start = Callable[[Path], Client]
"""Starts a daemon for this home folder."""


class Lost(AssertionError):
    """Something that was acknowledged did not come back."""


class Killed:
    """One home folder, its daemons one after another, and what a client was told."""

    def __init__(self, home: Path, dice: random.Random, start: Start) -> None:
        self._home = home
        self._dice = dice
        self._start = start
        self._made = 0
        self.said: dict[str, dict[str, str]] = {f"k{number}": {} for number in range(3)}
        """Session to entry to text, in order, as acknowledged."""
        self.imported: dict[str, list[str]] = {}
        """Session to the texts of the file it was made of, as acknowledged."""
        self.kills = 0
        self.checked = 0
        self.searched = 0

    def round(self) -> None:
        """One daemon: everything is looked at, something is asked for, and it is killed at any moment."""
        with self._start(self._home) as daemon:
            for name in self.said:
                daemon.call("session/start", session_id=name, compaction={"context_window": 3_000})
                self._look(daemon, name)
            self._look_at_imported(daemon)
            self._look_by_search(daemon)
            asked = [self._ask(daemon) for _ in range(self._dice.randrange(1, 14))]
            # A moment of the work, not of the clock: after some of the answers, or into the next.
            answered = self._dice.randrange(len(asked) + 1)
            for take in asked[:answered]:
                take()
            spun = time.perf_counter() + self._dice.random() * 0.01
            while time.perf_counter() < spun:
                pass
            daemon.kill()
            for take in asked[answered:]:
                with contextlib.suppress(TimeoutError):
                    take()
            self.kills += 1

    def _look(self, daemon: Client, name: str) -> None:
        history = daemon.call("session/history", session_id=name)["entries"]
        found = {one["entry_id"]: json.dumps(one["message"]) for one in history if one["kind"] == "message"}
        known = self.said[name]
        for entry_id, text in known.items():
            if text not in found.get(entry_id, ""):
                raise Lost(f"{name} {entry_id}: {text!r}")
        if [one for one in found if one in known] != sorted(known, key=lambda one: int(one[1:])):
            raise Lost(f"{name}: the order was changed")
        self.checked += len(known)

    def _look_at_imported(self, daemon: Client) -> None:
        """Check one imported session: it must be whole, or not exist."""
        if not self.imported:
            return
        name = self._dice.choice(list(self.imported))
        daemon.call("session/start", session_id=name)
        history = daemon.call("session/history", session_id=name)["entries"]
        found = [json.dumps(one["message"]) for one in history if one["kind"] == "message"]
        texts = self.imported[name]
        if len(found) != len(texts) or any(a not in b for a, b in zip(texts, found, strict=True)):
            raise Lost(f"{name}, which was imported: {len(texts)} messages, {len(found)} are there")
        self.checked += len(texts)

    def _look_by_search(self, daemon: Client) -> None:
        """The index knows one that was acknowledged, or says that it does not know all."""
        name = self._dice.choice(list(self.said))
        if not self.said[name] or self._dice.random() < 0.5:
            return
        entry_id, text = self._dice.choice(list(self.said[name].items()))
        word = text.partition(" ")[0]
        found = daemon.call("session/search", query=word)
        if found["complete"] and (name, entry_id) not in {
            (hit["session_id"], hit["entry_id"]) for hit in found["hits"]
        }:
            raise Lost(f"{name} {entry_id}: a search for {word} finds {found['hits']}")
        self.searched += 1

    def _ask(self, daemon: Client) -> Callable[[], None]:
        """Sends a request; what is given back takes its answer."""
        name, kind = self._dice.choice(list(self.said)), self._dice.random()
        if kind < 0.6:
            texts = [self._text() for _ in range(self._dice.choice((1, 1, 2, 20)))]
            messages = [{"role": "user", "content": text} for text in texts]
            asked = daemon.ask("session/append", session_id=name, messages=messages)

            def take() -> None:
                ids = daemon.result(asked)["entry_ids"]
                self.said[name].update(zip(ids, texts, strict=True))

            return take
        if kind < 0.63 and self.said[name]:
            entry_id = self._dice.choice(list(self.said[name]))
            self.said[name].pop(entry_id)
            return self._taken(daemon, daemon.ask("session/redact", session_id=name, entry_ids=[entry_id]))
        if kind < 0.67:
            texts = [self._text() for _ in range(self._dice.choice((1, 5, 30)))]
            content = [{"role": "user", "content": text} for text in texts]
            imported = daemon.ask("session/import", content=content, format="neutral")

            def keep() -> None:
                self.imported[daemon.result(imported)["session_id"]] = texts

            return keep
        params: dict[str, dict[str, Any]] = {
            "session/compact": {"session_id": name, "keep_recent": 100},
            "session/undo": {"session_id": name},
            "session/redo": {"session_id": name},
            "session/search": {"query": "anything"},
            "session/close": {"session_id": f"other{self._dice.randrange(3)}"},
            "session/start": {"session_id": f"other{self._dice.randrange(3)}"},
        }
        method = self._dice.choice(list(params))
        return self._taken(daemon, daemon.ask(method, **params[method]))

    def _taken(self, daemon: Client, asked: int) -> Callable[[], None]:
        def take() -> None:
            try:
                daemon.result(asked)
            except Refused as refused:
                if refused.code == -32603:
                    raise AssertionError(f"{refused.message}: {daemon.log()[-4_000:]}") from refused

        return take

    def _text(self) -> str:
        self._made += 1
        length = self._dice.choices((1, 5, 40, 2_000), (8, 8, 8, 1))[0]
        return f"mark{self._made}x anything. " + "word " * length


def run(seed: int, kills: int, until: float | None = None, start: Start = Daemon) -> tuple[int, int]:
    """(kills, acknowledged messages that were looked for). Raises `Lost`."""
    done = checked = 0
    while done < kills and (until is None or time.monotonic() < until):
        with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
            killed = Killed(Path(folder) / "home", random.Random(f"{seed} {done}"), start)
            for _ in range(min(HOME_KILLS, kills - done)):
                killed.round()
            done, checked = done + killed.kills, checked + killed.checked + killed.searched
    return done, checked


def main() -> int:
    """Raises where something was lost."""
    asked = argparse.ArgumentParser(prog="python -m tests.faults.real.killing", description=__doc__)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--kills", type=int, default=100)
    asked.add_argument("--minutes", type=float, default=None)
    asked.add_argument("--forked", action="store_true")
    told = asked.parse_args()
    until = None if told.minutes is None else time.monotonic() + 60 * told.minutes
    start: Start = Daemon
    if told.forked:
        load()
        start = Forked
    began = time.monotonic()
    kills, checked = run(told.seed, told.kills, until, start)
    a_minute = round(60 * kills / (time.monotonic() - began))
    print(
        json.dumps(
            {"fault": "SIGKILL", "times": kills, "looked_for": checked, "lost": 0, "a_minute": a_minute}
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
