"""The interface between the connection and the daemon: a table of methods and a function to call them."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Protocol

from msgspec import Raw, Struct

from compactd.daemon.rpc.request import Reply, Request
from compactd.protocol.methods import Method


class Service(Protocol):
    """The daemon as the connection sees it. Everything runs on the event loop's thread."""

    @property
    def methods(self) -> Mapping[str, Method]:
        """All compactd methods by name. The connection reads this once."""
        ...

    def call(self, method: Method, params: Struct, request: Request) -> Reply | Awaitable[Reply]:
        """Handle a call of `method`.

        A result is answered at once, without a task. An awaitable becomes a task whose first step runs
        before the next message is handled; cancelling the request cancels it. Raises any `CompactdError`.
        `params` is an instance of a subclass of `method.params`. Its `Raw` fields share the memory of the
        whole message.
        """
        ...

    def configure(self, settings: Raw, *, changed: bool) -> tuple[str, ...]:
        """Apply the settings object of `initializationOptions` or, with `changed`, of
        `workspace/didChangeConfiguration`. Return warnings for the user about what is ignored.
        """
        ...

    def newest_session(self) -> str | None:
        """Return the id of the session that a command without a `session_id` means, or None."""
        ...

    async def drain(self, timeout_s: float) -> None:
        """Wait until running compactions and prompts have ended, at most `timeout_s`. Called when no further
        request will come.
        """
        ...
