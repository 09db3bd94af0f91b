"""What a check is, and what it works with: programs, sessions, and one way to say what is wrong."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from msgspec import Struct

from compactd_conformance.frames import Broken, Framing, shown
from compactd_conformance.model import HeldModel
from compactd_conformance.peer import Peer, environment
from compactd_conformance.talk import Message, Talk

T = TypeVar("T")

LINES: tuple[Framing, ...] = ("lines",)
HEADERS: tuple[Framing, ...] = ("headers",)
BOTH: tuple[Framing, ...] = ("headers", "lines")

SETTINGS: Mapping[str, object] = {"context_window": 100_000, "estimator": "chars4", "strategy": "extract"}
"""Sizes are characters ÷ 4, and no summary asks a model."""

SENT_SHOWN = 4


class NotTried(Exception):
    """The check cannot be made on this program, and why."""


class Check(Struct, frozen=True, kw_only=True):
    """One sentence of the protocol, and how it is tried."""

    name: str
    law: str
    """Where the sentence stands: a law's number, or the contract's section."""
    says: str
    mend: str
    """What to do where it does not hold."""
    run: Callable[[Bench], None]
    framings: tuple[Framing, ...]
    """Each is tried."""


def check(
    name: str, *, law: str, says: str, mend: str, framings: tuple[Framing, ...] = HEADERS
) -> Callable[[Callable[[Bench], None]], Check]:
    """Makes a function a `Check`. The function raises `Broken` where the sentence does not hold."""

    def made(run: Callable[[Bench], None]) -> Check:
        return Check(name=name, law=law, says=says, mend=mend, run=run, framings=framings)

    return made


def expect(holds: bool, expected: str, seen: object) -> None:
    """Raises `Broken` unless it holds."""
    if not holds:
        raise Broken(expected, shown(seen if isinstance(seen, bytes | str) else repr(seen)))


class Bench:
    """The command under test in one framing: processes of it, each on a folder in a temporary place.

    Checks that ask for no process of their own share one, each with sessions of its own.
    """

    def __init__(
        self, command: Sequence[str], environ: Mapping[str, str], framing: Framing, patience_s: float
    ) -> None:
        self.framing: Framing = framing
        self.patience_s = patience_s
        self.model = HeldModel()
        """Writes the summaries of `openai-chat/held`; a check that uses it begins with `hold`."""
        self._command = command
        self._environ = environ
        self._folder = tempfile.TemporaryDirectory(prefix="conformance-", ignore_cleanup_errors=True)
        self._shared: Peer | None = None
        self._own: list[Peer] = []
        self._homes = 0
        self.sent_before: tuple[str, ...] = ()
        """What an earlier check sent for what this one looks at."""

    @property
    def peer(self) -> Peer:
        """The process that checks share."""
        if self._shared is None or not self._shared.is_alive:
            self._shared = self._start(self.home())
        return self._shared

    def home(self) -> Path:
        """A new data folder, that is not there yet."""
        self._homes += 1
        place = Path(self._folder.name) / str(self._homes)
        place.mkdir()
        return place / "home"

    def fresh(self, home: Path | None = None) -> Peer:
        """A process of this check's own, on this folder or a new one. It is killed when the check ends."""
        peer = self._start(home or self.home())
        self._own.append(peer)
        return peer

    def talk(self, *messages: Message, on: Peer | None = None, **params: object) -> Talk:
        """A new session with these messages, in the shared process unless another is named."""
        peer = on or self.peer
        settings = {**SETTINGS, **_table(params.pop("compaction", None))}
        talk = Talk.start(peer, {"compaction": settings, **params})
        if messages:
            talk.append(*messages)
        return talk

    def sent(self) -> tuple[str, ...]:
        """What this check sent last, of all its processes."""
        peers = [*([self._shared] if self._shared is not None else []), *self._own]
        texts = (*self.sent_before, *(text for peer in peers for text in peer.sent))
        # Pings only show that others were not waited for.
        return (tuple(text for text in texts if "daemon/ping" not in text) or texts)[-SENT_SHOWN:]

    def begin(self) -> None:
        """Forgets what the check before sent."""
        self.sent_before = ()
        if self._shared is not None:
            self._shared.sent.clear()

    def end(self, *, is_broken: bool) -> None:
        """Ends what the check started; the shared process too, where it may be in a bad state."""
        for peer in self._own:
            peer.end()
        self._own.clear()
        if is_broken and self._shared is not None:
            self._shared.end()
            self._shared = None

    def close(self) -> None:
        """Ends all, and removes the folders."""
        self.end(is_broken=True)
        self.model.close()
        self._folder.cleanup()

    def _start(self, home: Path) -> Peer:
        env = {**environment(home, self._environ), **self.model.environ}
        return Peer(self._command, env, self.framing, self.patience_s)


class Seen(Generic[T]):
    """What several checks look at: the first of them has it made."""

    def __init__(self, make: Callable[[Bench], T]) -> None:
        self._make = make
        self._made: WeakKeyDictionary[Bench, tuple[T, tuple[str, ...]]] = WeakKeyDictionary()

    def on(self, bench: Bench) -> T:
        """That of this bench."""
        if bench not in self._made:
            self._made[bench] = (self._make(bench), bench.sent())
        made, sent = self._made[bench]
        bench.sent_before = sent
        return made


def _table(value: object) -> dict[str, object]:
    return {str(name): one for name, one in value.items()} if isinstance(value, Mapping) else {}
