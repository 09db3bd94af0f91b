"""SIGKILL at random moments of a daemon that appends, compacts, undoes, searches, imports and redacts.

`python -m faults.real.killing --seed 1 --kills 100`. The client keeps what was acknowledged; after each
kill the next daemon is asked for all of it.
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

from e2e.client import Daemon, Refused

REFUSALS = (1002, 1008, 1011)
"""Busy, nothing fits, nothing to undo."""


class Lost(AssertionError):
    """Something that was acknowledged did not come back."""


class Killed:
    """One home folder, its daemons one after another, and what a client was told."""

    def __init__(self, home: Path, dice: random.Random) -> None:
        self._home = home
        self._dice = dice
        self._made = 0
        self.said: dict[str, dict[str, str]] = {f"k{number}": {} for number in range(3)}
        """Session to entry to text, in order, as acknowledged."""
        self.kills = 0
        self.checked = 0

    def round(self) -> None:
        """One daemon: everything is looked at, something is asked for, and it is killed at any moment."""
        with Daemon(self._home) as daemon:
            for name in self.said:
                daemon.call("session/start", session_id=name, compaction={"context_window": 3_000})
                self._look(daemon, name)
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

    def _look(self, daemon: Daemon, name: str) -> None:
        history = daemon.call("session/history", session_id=name)["entries"]
        found = {one["entry_id"]: json.dumps(one["message"]) for one in history if one["kind"] == "message"}
        known = self.said[name]
        for entry_id, text in known.items():
            if text not in found.get(entry_id, ""):
                raise Lost(f"{name} {entry_id}: {text!r}")
        if [one for one in found if one in known] != sorted(known, key=lambda one: int(one[1:])):
            raise Lost(f"{name}: the order was changed")
        self.checked += len(known)

    def _ask(self, daemon: Daemon) -> Callable[[], None]:
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

    def _taken(self, daemon: Daemon, asked: int) -> Callable[[], None]:
        def take() -> None:
            try:
                daemon.result(asked)
            except Refused as refused:
                if refused.code == -32603:
                    raise AssertionError(refused.message) from refused

        return take

    def _text(self) -> str:
        self._made += 1
        return f"anything {self._made}. " + "word " * self._dice.choice((1, 5, 40, 2_000))


def run(seed: int, kills: int, until: float | None = None) -> tuple[int, int]:
    """(kills, acknowledged messages that were looked for). Raises `Lost`."""
    done = checked = 0
    while done < kills and (until is None or time.monotonic() < until):
        with tempfile.TemporaryDirectory() as folder:
            killed = Killed(Path(folder) / "home", random.Random(f"{seed} {done}"))
            # Not for ever on the same sessions: what is looked at grows.
            for _ in range(min(25, kills - done)):
                killed.round()
            done, checked = done + killed.kills, checked + killed.checked
    return done, checked


def main() -> int:
    """Raises where something was lost."""
    asked = argparse.ArgumentParser(prog="python -m faults.real.killing", description=__doc__)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--kills", type=int, default=100)
    asked.add_argument("--minutes", type=float, default=None)
    told = asked.parse_args()
    until = None if told.minutes is None else time.monotonic() + 60 * told.minutes
    kills, checked = run(told.seed, told.kills, until)
    print(json.dumps({"fault": "SIGKILL", "times": kills, "looked_for": checked, "lost": 0}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
