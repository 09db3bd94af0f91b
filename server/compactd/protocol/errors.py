"""All errors that a client can receive: one class for each case in which a client can react differently.

    CompactdError
    ├── InvalidParams        -32602  a field is wrong; `data.path` names it
    ├── Cancelled            -32800  the client cancelled the request
    ├── SessionNotFound       1001   `data.exists` is true if the session is stored but not open
    ├── SessionBusy           1002   a compaction, a redaction or a prompt is running
    ├── SessionCorrupt        1003   `data` says what could be read
    ├── SessionLocked         1004   another process writes the session
    ├── StorageFailed         1005   disk full, read-only, no permission
    ├── ProviderFailed        1006   a model provider gave no usable answer
    ├── NoProvider            1007   a model is needed and none is configured
    ├── CannotFit             1008   `data.floor`: system, tools, last request, summary
    ├── LimitExceeded         1009   a message is too large or nested too deeply, or a result is too large
    ├── FormatNotSupported    1010   `data.supported` lists what is supported
    └── NothingToUndo         1011   there is no compaction or prune to undo or redo

An error's message says what failed, for which session or file, and what to do. It contains no text of a
conversation, no key and no path.
"""

from __future__ import annotations

from typing import ClassVar

Detail = str | int | float | bool | None | list["Detail"] | dict[str, "Detail"]
"""What `data` of an error may contain: plain JSON."""


class CompactdError(Exception):
    """The base class: a code of the protocol, a sentence that says what to do, and data for programs."""

    code: ClassVar[int] = -32603

    def __init__(self, message: str, **data: Detail) -> None:
        super().__init__(message)
        self.message = message
        self.data: dict[str, Detail] = data


class InvalidParams(CompactdError):
    """A parameter is missing or wrong. `path` says where, such as `$.messages[2].role`."""

    code = -32602

    def __init__(self, message: str, path: str | None = None, **data: Detail) -> None:
        if path is not None:
            data = {"path": path, **data}
            message = f"{message} - at `{path}`"
        super().__init__(message, **data)


class Cancelled(CompactdError):
    """The request was cancelled before it was done. Changes that were already in the journal stay."""

    code = -32800


class SessionNotFound(CompactdError):
    """No session has this id, or it is not open here. Open it with `session/start`, or list sessions with
    `session/list`."""

    code = 1001


class SessionBusy(CompactdError):
    """A compaction or a prompt of this session is running. Wait until it ends, or cancel it."""

    code = 1002


class SessionCorrupt(CompactdError):
    """The session's file is damaged in the middle. `data` says which line, and how much could be read."""

    code = 1003


class SessionLocked(CompactdError):
    """Another process has this session open for writing. Open it read-only, or end that process first."""

    code = 1004


class StorageFailed(CompactdError):
    """The session could not be written. Everything that was acknowledged before is stored. Free disk space or
    repair permissions."""

    code = 1005


class ProviderFailed(CompactdError):
    """The model provider failed. Try again, or use a strategy that needs no model."""

    code = 1006


class NoProvider(CompactdError):
    """A model is needed but no provider is configured. Use strategy `extract`, which needs none."""

    code = 1007


class CannotFit(CompactdError):
    """No compaction can make the request fit. `data.floor` lists the tokens that no compaction can remove. If
    `data.least_target` is not null, `session/compact` with that target works."""

    code = 1008


class LimitExceeded(CompactdError):
    """A message, file or result is too large, or a message is nested too deeply. `data` names the limit."""

    code = 1009


class FormatNotSupported(CompactdError):
    """The format of messages, or the format or version of a file, is not supported. `data.supported` lists
    those that are."""

    code = 1010


class NothingToUndo(CompactdError):
    """There is no compaction or prune to undo or redo."""

    code = 1011
