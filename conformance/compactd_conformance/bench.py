"""The definition of a check, and what a check uses: processes, sessions, and the report of a violation."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from msgspec import Struct

from compactd_conformance.frames import Broken, Framing, shorten_value
from compactd_conformance.model import HeldModel
from compactd_conformance.peer import Peer, environment
from compactd_conformance.talk import Message, Talk

T = TypeVar("T")

LINES: tuple[Framing, ...] = ("lines",)
HEADERS: tuple[Framing, ...] = ("headers",)
BOTH: tuple[Framing, ...] = ("headers", "lines")

SETTINGS: Mapping[str, object] = {"context_window": 100_000, "estimator": "chars4", "strategy": "extract"}
"""Settings of every session that a check starts: a token is four characters, and summaries are written
without a model.
"""

MAX_SENT_SHOWN = 4


class NotTried(Exception):
    """Raised by a check that cannot be run with the program under test. The message says why."""


class Check(Struct, frozen=True, kw_only=True):
    """One sentence of the protocol, and the function that tests it."""

    name: str
    law: str
    """Where the sentence comes from: the number of a law (docs/dev/behaviour.md), or a section of
    protocol.md.
    """
    says: str
    mend: str
    """How to fix a program that fails."""
    run: Callable[[Bench], None]
    framings: tuple[Framing, ...]
    """The framings of JSON-RPC in which the check is run: `headers`, `lines` or both."""


def check(
    name: str, *, law: str, says: str, mend: str, framings: tuple[Framing, ...] = HEADERS
) -> Callable[[Callable[[Bench], None]], Check]:
    """Return a decorator that turns a function into a `Check`. The function must raise `Broken` if the
    program violates `says`, a sentence of the protocol.
    """

    def made(run: Callable[[Bench], None]) -> Check:
        return Check(name=name, law=law, says=says, mend=mend, run=run, framings=framings)

    return made


def expect(holds: bool, expected: str, seen: object) -> None:
    """Raise `Broken` if `holds` is false. The error names what was `expected` and what was `seen`."""
    if not holds:
        raise Broken(expected, shorten_value(seen if isinstance(seen, bytes | str) else repr(seen)))


class Bench:
    """The processes of the command under test in one framing. Each process has a temporary data folder.

    Checks that need no process of their own share one process. Each check uses its own sessions.
    """

    def __init__(
        self, command: Sequence[str], environ: Mapping[str, str], framing: Framing, patience_s: float
    ) -> None:
        self.framing: Framing = framing
        self.patience_s = patience_s
        self.model = HeldModel()
        """The model `openai-chat/held`, whose answers a check can hold back. Such a check first
        calls `hold`.
        """
        self._command = command
        self._environ = environ
        self._folder = tempfile.TemporaryDirectory(prefix="conformance-", ignore_cleanup_errors=True)
        self._shared: Peer | None = None
        self._own: list[Peer] = []
        self._homes = 0
        self.sent_before: tuple[str, ...] = ()
        """The messages that an earlier check sent to compute a `SharedValue` that the current check
        examines."""

    @property
    def peer(self) -> Peer:
        """The process that checks share. It is started if it does not run."""
        if self._shared is None or not self._shared.is_alive:
            self._shared = self._start(self.home())
        return self._shared

    def home(self) -> Path:
        """Return a new data folder that does not exist yet."""
        self._homes += 1
        place = Path(self._folder.name) / str(self._homes)
        place.mkdir()
        return place / "home"

    def fresh(self, home: Path | None = None) -> Peer:
        """Start a process for this check only, with the data folder `home` or a new one. The process is
        killed when the check ends.
        """
        peer = self._start(home or self.home())
        self._own.append(peer)
        return peer

    def talk(self, *messages: Message, on: Peer | None = None, **params: object) -> Talk:
        """Start a session with these messages, in the process `on` or, by default, in the shared one."""
        peer = on or self.peer
        settings = {**SETTINGS, **_table(params.pop("compaction", None))}
        talk = Talk.start(peer, {"compaction": settings, **params})
        if messages:
            talk.append(*messages)
        return talk

    def sent(self) -> tuple[str, ...]:
        """Return the last `MAX_SENT_SHOWN` messages that this check sent, to all of its processes."""
        peers = [*([self._shared] if self._shared is not None else []), *self._own]
        texts = (*self.sent_before, *(text for peer in peers for text in peer.sent))
        # Pings are left out: they explain no failure.
        return (tuple(text for text in texts if "daemon/ping" not in text) or texts)[-MAX_SENT_SHOWN:]

    def begin(self) -> None:
        """Forget what the previous check sent."""
        self.sent_before = ()
        if self._shared is not None:
            self._shared.sent.clear()

    def end(self, *, is_broken: bool) -> None:
        """Stop the check's own processes, and the shared process too if it may be in a bad state."""
        for peer in self._own:
            peer.end()
        self._own.clear()
        if is_broken and self._shared is not None:
            self._shared.end()
            self._shared = None

    def close(self) -> None:
        """Stop everything and remove the folders."""
        self.end(is_broken=True)
        self.model.close()
        self._folder.cleanup()

    def _start(self, home: Path) -> Peer:
        env = {**environment(home, self._environ), **self.model.environ}
        return Peer(self._command, env, self.framing, self.patience_s)


class SharedValue(Generic[T]):
    """A value that several checks examine. The first check that needs the value computes it for its bench."""

    def __init__(self, make: Callable[[Bench], T]) -> None:
        self._make = make
        self._made: WeakKeyDictionary[Bench, tuple[T, tuple[str, ...]]] = WeakKeyDictionary()

    def on(self, bench: Bench) -> T:
        """Return the value for this bench; compute it if it was not computed yet."""
        if bench not in self._made:
            self._made[bench] = (self._make(bench), bench.sent())
        made, sent = self._made[bench]
        bench.sent_before = sent
        return made


def _table(value: object) -> dict[str, object]:
    return {str(name): one for name, one in value.items()} if isinstance(value, Mapping) else {}
