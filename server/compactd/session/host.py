"""What a session needs from the process it lives in."""

from __future__ import annotations

from asyncio import Task
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, Protocol, TypeVar

from msgspec import Raw, Struct

from compactd.core.models.lookup import Lookup
from compactd.core.models.observed import Observed
from compactd.models.providers.protocol import Provider
from compactd.protocol.messages import Event, Message
from compactd.protocol.settings import GivenSettings
from compactd.session.loop_limits import LoopLimits

T = TypeVar("T")


class ClientFailed(Exception):
    """The client did not do what the daemon asked of it. `is_gone`: there is no client any more."""

    def __init__(self, message: str, *, is_gone: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.is_gone = is_gone


AgentStatus = Literal["running", "streaming", "executing_tools"]


class AgentGate(Protocol):
    """The agent's loop of a session, as far as the rest of the session asks it anything."""

    @property
    def status(self) -> AgentStatus | None:
        """What the loop is doing, None if it answers no prompt."""
        ...

    @property
    def turn_id(self) -> str | None:
        """The prompt that is being answered."""
        ...

    def holds_others(self) -> bool:
        """True for whoever is no step of the prompt that is being answered."""
        ...

    def accepts(self, messages: Iterable[Message]) -> None:
        """Raises `SessionBusy` if a client must not append these messages now."""
        ...

    async def abort(self) -> bool:
        """Stops the prompt that is being answered. False if there is none."""
        ...

    def stop(self) -> Task[None] | None:
        """Stops it at its next step; what ends with it, or None if nothing runs."""
        ...

    async def ended(self) -> None:
        """Returns when nothing runs."""
        ...


class World(Protocol):
    """What a session needs from the process it lives in."""

    def now(self) -> float:
        """Unix seconds."""
        ...

    def emit(self, session_id: str, seq: int, event: Event) -> None:
        """Tells the client."""
        ...

    def notice(self, text: str) -> None:
        """Shows a line to the person, where the client can."""
        ...

    async def in_worker(self, work: Callable[[], T]) -> T:
        """What `work` gives back, from another thread."""
        ...

    async def in_turn(self, work: Callable[[], T], tokens: int) -> T:
        """As `in_worker`, for what computes the longer the more `tokens` it is about: one at a time, in the
        order in which it was asked for; small ones beside a large one."""
        ...

    async def read_settings(self, working_dir: str | None) -> None:
        """Reads the files of settings of a session in that folder, before it is opened."""
        ...

    def layers(self, working_dir: str | None) -> tuple[tuple[str, GivenSettings], ...]:
        """The settings from outside the session, highest first. Reads no file."""
        ...

    def switch(self, names: Sequence[str]) -> str | None:
        """The first of these switches that is on in the environment."""
        ...

    def lookup(self, model: str | None, base_url: str | None) -> Lookup | None:
        """What is known of a model; none where the session names none."""
        ...

    async def read_keys(self) -> None:
        """Reads what `provider` needs of the user's files; within seconds, beside the loop."""
        ...

    def provider(self, model: str, base_url: str | None) -> tuple[Provider, str]:
        """Who answers for a model, and the name it has there. Raises `NoProvider`."""
        ...

    async def ask_client(self, method: str, params: Struct, timeout_s: float) -> Raw:
        """The client's answer to a request of ours. Raises `ClientFailed`."""
        ...

    async def loop_limits(self) -> LoopLimits:
        """The user's limits on the daemon's own loop."""
        ...

    def observed(self, found: Lookup, base_url: str | None) -> Observed | None:
        """The window that the model's server taught, if that is still in force."""
        ...

    async def ask_server(self, model: str | None, base_url: str | None) -> None:
        """Has a model server on this machine say its window, where the user agreed to that."""
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
        """Keeps the window that a rejection named; none if that is nothing new. `sent`: the request's tokens
        by our estimate. `is_own`: the provider's own sentence names it. A sighting counts only in the session
        that saw it."""
        ...
