"""A request while it is being worked on: its id, what is to follow its answer, its progress."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec
from msgspec import Raw, Struct

if TYPE_CHECKING:
    import asyncio

Reply = Struct | Raw | None
"""A result: a struct, JSON that was encoded already, or null."""


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
    """Sends a notification; a droppable one may be left out while the client does not read."""

    def __call__(self, method: str, params: Struct | Raw, droppable: bool = False) -> bool: ...


class Request(Struct, eq=False):
    """One call of a method, as its handler sees it. Made with the first three."""

    id: bytes | None
    """The JSON text of the id, exactly as it came; None for a notification, which has no answer."""
    name: str
    """The method."""
    _notify: Notify
    title: str = ""
    """What an editor shows above the progress, behind our name; empty: the method."""
    token: bytes | None = None
    """The JSON text of the client's `workDoneToken`."""
    task: asyncio.Future[Reply] | None = None
    """Where it takes longer than one step. Cancelling it cancels the request."""
    is_answered: bool = False
    """The answer is on its way, or would be if there were one to give."""
    then: list[Callable[[], None]] | None = None
    """What is to follow the answer."""
    unknown: tuple[str, ...] = ()
    """Fields of the params that were ignored because nobody knows them: `keep`, `compaction.keep`."""
    _progress: Literal["none", "begun", "ended"] = "none"

    def after(self, act: Callable[[], None]) -> None:
        """Calls `act` right after the answer was put on its way, also where that is an error."""
        if self.then is None:
            self.then = []
        self.then.append(act)

    def progress(self, fraction: float, message: str | None = None) -> None:
        """Tells a client that gave a `workDoneToken` how far the work is: 0 to 1. Else does nothing."""
        self.begin()
        if self._progress == "begun":
            percentage = round(100 * min(max(fraction, 0.0), 1.0))
            self._report(ProgressReport(message=message, percentage=percentage), droppable=True)

    def begin(self) -> None:
        """Begins the progress, if there is a token and it has not begun."""
        if self.token is not None and self._progress == "none" and not self.is_answered:
            self._progress = "begun"
            self._report(ProgressBegin(title=f"compactd: {self.title or self.name}"))

    def end(self) -> None:
        """Ends the progress, if it has begun: the token is good until the answer."""
        if self._progress == "begun":
            self._report(ProgressEnd())
        self._progress = "ended"

    def take_after(self) -> Sequence[Callable[[], None]]:
        """What is to follow the answer, handed out once."""
        acts, self.then = self.then, None
        return acts or ()

    def _report(self, value: ProgressBegin | ProgressReport | ProgressEnd, droppable: bool = False) -> None:
        if self.token is not None:
            self._notify("$/progress", ProgressParams(token=Raw(self.token), value=value), droppable)


encode = msgspec.json.Encoder().encode
"""Any value of the wire as compact JSON."""
