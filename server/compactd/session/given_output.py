"""A tool's output as a client gives it, to be reduced."""

from __future__ import annotations

from msgspec import Raw, Struct


class GivenOutput(Struct, frozen=True, kw_only=True):
    """A tool's output as a client gave it."""

    name: str
    arguments: Raw
    text: str
    wrapped: str | None = None
    """The text as the client gave it, if `text` is only a field of it."""
    call_id: str | None = None
    is_error: bool = False
    is_compared: bool = True
    """Whether lines that the view shows elsewhere may be left out."""

    @property
    def original(self) -> str:
        """The text as the client gave it."""
        return self.text if self.wrapped is None else self.wrapped
