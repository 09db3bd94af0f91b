"""What the connection asks of the daemon behind it: a table of methods and one function to call them."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Protocol

from msgspec import Raw, Struct

from compactd.daemon.rpc.request import Reply, Request
from compactd.protocol.methods import Method


class Service(Protocol):
    """The inside of the daemon, as the connection knows it. All of it runs on the loop's thread."""

    @property
    def methods(self) -> Mapping[str, Method]:
        """Every method of ours by its name. Read once."""
        ...

    def call(self, method: Method, params: Struct, request: Request) -> Reply | Awaitable[Reply]:
        """Does what `method` says.

        A result is answered at once, without a task. An awaitable becomes a task whose first step runs
        before the next message is looked at; a cancelled request cancels it. Raises any `CompactdError`.
        `params` is an instance of a subclass of `method.params`; its `Raw` fields share the memory of
        the whole message.
        """
        ...

    def configured(self, settings: Raw, *, changed: bool) -> tuple[str, ...]:
        """Takes the settings object of `initializationOptions`, or, with `changed`, of
        `workspace/didChangeConfiguration`. Gives back what of it is ignored and why, for a person."""
        ...

    def newest_session(self) -> str | None:
        """The session that a command without a `session_id` means."""
        ...

    async def drained(self, timeout_s: float) -> None:
        """Lets running compactions end: nobody will ask for anything any more."""
        ...
