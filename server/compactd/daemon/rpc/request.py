"""A request that is being handled: its id, its progress, and the callbacks to run after its answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

from msgspec import Raw, Struct

if TYPE_CHECKING:
    import asyncio

Reply = Struct | Raw | None
"""A result: a struct, JSON that is already encoded, or null."""


class ProgressBegin(Struct, frozen=True, kw_only=True, tag="begin", tag_field="kind"):
    """LSP's `WorkDoneProgressBegin`."""

    title: str
    cancellable: bool = True
    percentage: int = 0


class ProgressReport(Struct, frozen=True, kw_only=True, tag="report", tag_field="kind", omit_defaults=True):
    """LSP's `WorkDoneProgressReport`."""

    message: str | None = None
    percentage: int | None = None


class ProgressEnd(Struct, frozen=True, kw_only=True, tag="end", tag_field="kind"):
    """LSP's `WorkDoneProgressEnd`."""


class ProgressParams(Struct, frozen=True, kw_only=True):
    """LSP's `$/progress`."""

    token: Raw
    value: ProgressBegin | ProgressReport | ProgressEnd


class Notify(Protocol):
    """A function that sends a notification. It returns false if it dropped a droppable one because the client
    does not read.
    """

    def __call__(self, method: str, params: Struct | Raw, droppable: bool = False) -> bool: ...


class Request(Struct, eq=False):
    """One call of a method, as its handler sees it."""

    id: bytes | None
    """The JSON text of the id, exactly as it came. None for a notification, which has no answer."""
    name: str
    """The name of the method."""
    _notify: Notify
    title: str = ""
    """The title that an editor shows for the progress, after `compactd:`. If empty, the method's name."""
    token: bytes | None = None
    """The JSON text of the client's `workDoneToken`."""
    task: asyncio.Future[Reply] | None = None
    """The task of a request that is not answered at once. Cancelling it cancels the request."""
    is_answered: bool = False
    """True after the answer was sent. For a notification, true after it was handled."""
    then: list[Callable[[], None]] = []
    """Callbacks to run after the answer."""
    unknown: tuple[str, ...] = ()
    """Unknown fields of the params that were ignored, for example `keep` or `compaction.keep`."""
    _progress: Literal["none", "begun", "ended"] = "none"

    def after(self, act: Callable[[], None]) -> None:
        """Call `act` right after the answer is sent, even if it is an error."""
        self.then.append(act)

    def progress(self, fraction: float, message: str | None = None) -> None:
        """Report progress (0 to 1) to a client that gave a `workDoneToken`. Otherwise do nothing."""
        self.begin()
        if self._progress == "begun":
            percentage = round(100 * min(max(fraction, 0.0), 1.0))
            self._report(ProgressReport(message=message, percentage=percentage), droppable=True)

    def begin(self) -> None:
        """Begin the progress, if there is a token and it has not begun."""
        if self.token is not None and self._progress == "none" and not self.is_answered:
            self._progress = "begun"
            self._report(ProgressBegin(title=f"compactd: {self.title or self.name}"))

    def end(self) -> None:
        """End the progress, if it has begun. The token is valid only until the answer."""
        if self._progress == "begun":
            self._report(ProgressEnd())
        self._progress = "ended"

    def take_after(self) -> Sequence[Callable[[], None]]:
        """Return the callbacks to run after the answer, and clear them."""
        acts, self.then = self.then, []
        return acts

    def _report(self, value: ProgressBegin | ProgressReport | ProgressEnd, droppable: bool = False) -> None:
        if self.token is not None:
            self._notify("$/progress", ProgressParams(token=Raw(self.token), value=value), droppable)
