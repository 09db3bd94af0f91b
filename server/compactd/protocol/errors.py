"""Every error a client can be told of, one class for each thing it can do something different about.

    CompactdError
    ├── InvalidParams        -32602  a field is wrong; `data.path` names it
    ├── Cancelled            -32800  the client took the request back
    ├── SessionNotFound       1001   `data.exists` is true where it is stored but not open
    ├── SessionBusy           1002   a compaction, a redaction or a prompt holds the session
    ├── SessionCorrupt        1003   `data` tells what could be saved
    ├── SessionLocked         1004   another process writes it
    ├── StorageFailed         1005   disk full, read-only, no permission
    ├── ProviderFailed        1006   a model provider gave no usable answer
    ├── NoProvider            1007   a model was asked for and none is configured
    ├── CannotFit             1008   `data.floor`: system, tools, last request, summary
    ├── LimitExceeded         1009   a frame, a nesting, a count above its limit
    ├── FormatNotSupported    1010   `data.supported` lists what is
    └── NothingToUndo         1011   no compaction or prune to take back, or to put in force again

A message says what was being done, with which thing, and what to do; it holds no conversation, key or path.
"""

from __future__ import annotations

from typing import ClassVar

Detail = str | int | float | bool | None | list["Detail"] | dict[str, "Detail"]
"""What `data` of an error may hold: plain JSON."""


class CompactdError(Exception):
    """The root: a code of the contract, a sentence that says what to do, and data for programs."""

    code: ClassVar[int] = -32603

    def __init__(self, message: str, **data: Detail) -> None:
        super().__init__(message)
        self.message = message
        self.data: dict[str, Detail] = data


class InvalidParams(CompactdError):
    """A parameter is missing or wrong. `path` is its place, as `$.messages[2].role`."""

    code = -32602

    def __init__(self, message: str, path: str | None = None, **data: Detail) -> None:
        if path is not None:
            data = {"path": path, **data}
            message = f"{message} - at `{path}`"
        super().__init__(message, **data)


class Cancelled(CompactdError):
    """The request was cancelled before it was done; nothing of it remains but what was journalled."""

    code = -32800


class SessionNotFound(CompactdError):
    """No session has this id, or none is open here under it. Start it, or list those there are."""

    code = 1001


class SessionBusy(CompactdError):
    """A compaction of this session is running, or a prompt: wait for its end, or cancel it."""

    code = 1002


class SessionCorrupt(CompactdError):
    """The session's file is damaged in the middle. `data` says which line and how much could be saved."""

    code = 1003


class SessionLocked(CompactdError):
    """Another process has this session open for writing. Read it, or end that process first."""

    code = 1004


class StorageFailed(CompactdError):
    """The session could not be written. What was acknowledged is safe; free space or mend permissions."""

    code = 1005


class ProviderFailed(CompactdError):
    """The model provider failed. Try again, or use a strategy that needs no model."""

    code = 1006


class NoProvider(CompactdError):
    """A model was asked for but no provider is configured. Use strategy `extract`, which needs none."""

    code = 1007


class CannotFit(CompactdError):
    """No compaction can make the request fit. `floor` says what takes the room."""

    code = 1008


class LimitExceeded(CompactdError):
    """Something is larger than its limit."""

    code = 1009


class FormatNotSupported(CompactdError):
    """This format is not known here."""

    code = 1010


class NothingToUndo(CompactdError):
    """There is no compaction or prune to take back, or to put in force again."""

    code = 1011
