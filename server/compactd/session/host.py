"""The interface between a session and the process that runs it: clock, workers, settings, models, client."""

from __future__ import annotations

from asyncio import Task
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from typing import Literal, Protocol, TypeVar

from msgspec import Raw, Struct

from compactd.core.models.lookup import Lookup
from compactd.core.models.observed import Observed
from compactd.models.providers.provider import Provider
from compactd.protocol.messages import Event, Message
from compactd.protocol.settings import GivenSettings
from compactd.session.loop_limits import LoopLimits

T = TypeVar("T")


class ClientFailed(Exception):
    """The client did not answer a request of the daemon. `is_gone` is true if no client is connected any
    more.
    """

    def __init__(self, message: str, *, is_gone: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.is_gone = is_gone


class ClientRef(Protocol):
    """A client of this process, as the sessions see it."""

    @property
    def is_connected(self) -> bool:
        """False once the client has left."""
        ...

    def name_in(self, session_id: str) -> str | None:
        """Return the name that the client gave itself for a session, or None if it gave none."""
        ...


acting: ContextVar[ClientRef | None] = ContextVar("compactd_client", default=None)
"""The client for which the running code works: the one whose request it handles, or whose prompt it answers.
None if that is no client, for example for changes of another process.
"""


AgentStatus = Literal["running", "streaming", "executing_tools"]


class AgentGate(Protocol):
    """The part of the daemon's agent loop (`agent/loop.py`) that a session needs."""

    @property
    def status(self) -> AgentStatus | None:
        """What the loop is doing, or None if no prompt is being answered."""
        ...

    @property
    def turn_id(self) -> str | None:
        """The id of the prompt that is being answered, or None."""
        ...

    def blocks_caller(self) -> bool:
        """Return true if a prompt is being answered, unless the caller is itself a step of that prompt."""
        ...

    def require_acceptable(self, messages: Iterable[Message]) -> None:
        """Raise `SessionBusy` if the client must not append these messages now, because a prompt is being
        answered.
        """
        ...

    async def abort(self) -> bool:
        """Stop the prompt that is being answered. Return false if there is none."""
        ...

    def stop(self) -> Task[None] | None:
        """Ask the loop to stop the current answer; it stops at its next step. Return the task to wait for, or
        None if nothing is being answered. Does not wait.
        """
        ...

    def give_up(self) -> None:
        """Stop the prompt that is being answered, because its client has left. The next one is answered if
        its client is still there.
        """
        ...

    async def wait_ended(self) -> None:
        """Wait until no prompt is being answered."""
        ...


class SessionHost(Protocol):
    """The services that a session needs from the process that runs it: clock, workers, settings, models and
    client. `daemon/app.py` implements them.
    """

    def now(self) -> float:
        """Return the time in Unix seconds."""
        ...

    def emit(self, session_id: str, seq: int, event: Event) -> None:
        """Send an event to the clients that have opened the session or subscribed to it."""
        ...

    def note_grown(self, session_id: str) -> None:
        """Note that messages or a usage report were added to a session. While the daemon is idle, the next
        compaction of the session is then prepared. O(1).
        """
        ...

    def notice(self, session_id: str, text: str) -> None:
        """Show the users of a session one line, if their clients can do that."""
        ...

    async def in_worker(self, work: Callable[[], T]) -> T:
        """Run `work` in a worker thread and return its result."""
        ...

    async def run_compute(self, work: Callable[[], T], tokens: int) -> T:
        """Run `work` in a worker thread and return its result. Use this for work whose time grows with
        `tokens`.

        Large work runs one at a time, in the order of the calls. Small work also runs one at a time, but next
        to large work.
        """
        ...

    async def read_settings(self, working_dir: str | None) -> None:
        """Read the settings files for a session whose working directory is `working_dir`. Call this before
        opening the session.
        """
        ...

    def layers(self, session_id: str, working_dir: str | None) -> tuple[tuple[str, GivenSettings], ...]:
        """Return (source, settings) for each place outside the session that has settings, highest priority
        first. Reads no file.
        """
        ...

    def switch(self, names: Sequence[str]) -> str | None:
        """Return the first of the environment variables `names` that is switched on, or None."""
        ...

    def lookup(self, model: str | None, base_url: str | None) -> Lookup | None:
        """Return what is known about a model, or None if `model` is None."""
        ...

    async def read_keys(self) -> None:
        """Read the user's key files that `provider` needs. Takes up to a few seconds, without blocking the
        event loop.
        """
        ...

    def provider(self, model: str, base_url: str | None) -> tuple[Provider, str]:
        """Return (the provider that serves a model, the name by which this provider knows the model). Raises
        `NoProvider`.
        """
        ...

    async def ask_client(
        self, session_id: str, first: ClientRef | None, method: str, params: Struct | Raw, timeout_s: float
    ) -> tuple[Raw, ClientRef]:
        """Send a request about a session to the client `first`. If that client has left or does not answer
        such requests, ask another one of the session that does. Return (the answer, the client that gave
        it). Raises `ClientFailed`.
        """
        ...

    async def loop_limits(self) -> LoopLimits:
        """Return the user's limits on the daemon's agent loop."""
        ...

    def observed_window(self, found: Lookup, base_url: str | None) -> Observed | None:
        """Return the observed window of the model `found`, or None if there is none that is new enough to be
        used.
        """
        ...

    async def ask_server(self, model: str | None, base_url: str | None) -> None:
        """Ask a model server on this machine for the model's window, if the user allowed that, and store the
        answer.
        """
        ...

    def learn(
        self,
        found: Lookup,
        base_url: str | None,
        window: int,
        *,
        requested: int | None,
        sent: int,
        is_own: bool,
    ) -> Observed | None:
        """Store the window that a provider's rejection named for the model `found`, and return the
        observation. Return None if the observation says nothing new.

        All sizes are tokens: `requested` is the request's size as the rejection states it, `sent` the size as
        compactd estimated it. `is_own` is true if the provider's own message names the window, false if text
        that the message quotes names it. A doubtful observation (a sighting) counts only in the session that
        saw it, until a second observation confirms it.
        """
        ...
