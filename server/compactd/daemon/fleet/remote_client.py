"""A client that is connected to another daemon."""

from __future__ import annotations


class RemoteClient:
    """A client of another daemon: a `ClientRef`."""

    is_connected = True
    """Whether it is connected is known at its daemon only, which says so when it is asked."""

    def __init__(self, node: str, call_id: str, name: str | None) -> None:
        self.node = node
        self.call_id = call_id
        self._name = name

    def name_in(self, session_id: str) -> str | None:
        """Return the name that the client gave itself, or None."""
        return self._name
