"""The `data` of the errors, one type per error code: the facts that a program needs to react to the error.

A field that does not apply is null. Errors of JSON-RPC itself (-32700, -32600, -32601) and -32800 carry no
data.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from compactd.protocol import errors
from compactd.protocol.errors import CompactdError
from compactd.protocol.messages import Floor
from compactd.protocol.wire import FailureKind, Wire


class CompactdErrorData(Wire, frozen=True, kw_only=True):
    """Data of error -32603, a bug in compactd."""

    error_id: str | None = None
    """Identifies the line in the daemon's log that has more details; null if the log has none."""


class InvalidParamsData(Wire, frozen=True, kw_only=True):
    """Data of error -32602, a wrong parameter."""

    path: str | None = None
    """The field that is wrong or missing, such as `$.messages[2].role`. `$` is the params object."""
    format: str | UnsetType = UNSET
    """The value of `format` to give, if a message is in a provider's format. Otherwise left out."""


class FailureData(Wire, frozen=True, kw_only=True):
    """Only in errors of `turn/error`: how the failed model request was classified. This needs no session."""

    overflow: bool | UnsetType = UNSET
    """True if the request was too large for the model's window."""
    kind: FailureKind | UnsetType = UNSET
    """The kind of failure, as in `overflow/classify`."""
    fix: str | UnsetType = UNSET
    """What fixes it, as in `overflow/classify`."""


class SessionNotFoundData(FailureData, frozen=True, kw_only=True):
    """Data of error 1001, a session that does not exist or is not open here."""

    session_id: str | None = None
    """The session id in the request; null if it had none."""
    exists: bool = False
    """True if the session is stored, but not open here: `session/start` opens it."""


class SessionBusyData(Wire, frozen=True, kw_only=True):
    """Data of error 1002, a busy session."""

    holder: Literal["compaction", "redaction", "prompt", "hook"]
    """What the session is busy with. `prompt`: the daemon's own loop answers a prompt. `hook`: a hook of the
    session's agent, which takes only a moment."""
    compaction_id: str | None = None
    """The compaction that is running; null if none is."""
    turn_id: str | None = None
    """The prompt that is being answered; null if none is."""


class SessionCorruptData(Wire, frozen=True, kw_only=True):
    """Data of error 1003, a damaged session file."""

    session_id: str | None = None
    """The id of the session in the request."""
    path: str | None = None
    """The session's file, for `compactd doctor FILE`. Null if it is not known here."""
    line: int | None = None
    """The damaged line, counted from 1; null if the damage is not in a single line."""
    readable_before: int | None = None
    """Number of records that can be read before that line."""
    readable_after: int | None = None
    """Number of records that can be read after that line."""


class SessionLockedData(FailureData, frozen=True, kw_only=True):
    """Data of error 1004, a session that another process writes."""

    session_id: str | None = None
    """The id of the session in the request."""
    pid: int | None = None
    """The process that writes the session; null if it is not known or has ended since."""
    name: str | None = None
    """Name of that process, if the operating system provides it."""


class StorageFailedData(Wire, frozen=True, kw_only=True):
    """Data of error 1005, a failure to write the session."""

    reason: str | None = None
    """The operating system's name of the failure, such as `ENOSPC` or `EACCES`; null if the failure did not
    come from the operating system."""


class ProviderFailedData(Wire, frozen=True, kw_only=True):
    """Data of error 1006, a failure of a model provider."""

    provider: str | None = None
    """The provider that failed."""
    cause: Literal["status", "connection", "timeout", "stream", "answer", "limit"] | None = None
    """`status`: the provider refused the request. `connection`: no connection could be made. `timeout`: it
    took too long. `stream`: the answer broke off. `answer`: the answer is not valid. `limit`: the answer is
    too large."""
    status: int | None = None
    """HTTP status of the provider's answer; null if there is none."""
    code: str | None = None
    """The provider's own error code."""
    requests: int | None = None
    """How many requests were sent."""
    retry_after_s: float | None = None
    """How many seconds the provider asks to wait before the next request."""


class NoProviderData(Wire, frozen=True, kw_only=True):
    """Data of error 1007, a missing model provider or key."""

    provider: str | None = None
    """The provider that is needed; null if none is named."""
    model: str | None = None
    """The model that is needed; null if none is named."""
    env: tuple[str, ...] = ()
    """Environment variables of the daemon, any of which may contain the missing key. Empty if no key is
    missing."""


class CannotFitData(Wire, frozen=True, kw_only=True):
    """Data of error 1008, a request that cannot be made to fit. Sizes are in tokens."""

    used: int | None = None
    """Size that the request would have."""
    window: int | None = None
    """The model's window."""
    limit: int | None = None
    """The size that the request must not exceed: the target size, or what the window allows."""
    floor: Floor | None = None
    """What no compaction can remove. Null if no compaction was tried. If `least_target` is given, these are
    the parts at that size."""
    least_target: int | None = None
    """The least `target_tokens` that would do. Null if there is none, or if the request named no target."""


class LimitExceededData(Wire, frozen=True, kw_only=True):
    """Data of error 1009, something that exceeds a limit."""

    limit_bytes: int | None = None
    """The limit in bytes; null if the limit is not about bytes."""
    size_bytes: int | None = None
    """The size in bytes that exceeds it; null if it was not measured."""
    path: str | None = None
    """The field that is nested too deeply; null if the error is not about nesting."""


class FormatNotSupportedData(Wire, frozen=True, kw_only=True):
    """Data of error 1010, an unsupported format or version."""

    supported: tuple[str | int, ...] = ()
    """The names of formats that are supported, or the versions of session files."""
    format: str | int | None = None
    """The format or version that was requested or found; null if it has no name."""


class NothingToUndoData(Wire, frozen=True, kw_only=True):
    """Data of error 1011: there is nothing to undo or redo."""

    session_id: str | None = None
    """The id of the session in the request."""


DATA: Mapping[type[CompactdError], type[Struct]] = {
    errors.CompactdError: CompactdErrorData,
    errors.InvalidParams: InvalidParamsData,
    errors.SessionNotFound: SessionNotFoundData,
    errors.SessionBusy: SessionBusyData,
    errors.SessionCorrupt: SessionCorruptData,
    errors.SessionLocked: SessionLockedData,
    errors.StorageFailed: StorageFailedData,
    errors.ProviderFailed: ProviderFailedData,
    errors.NoProvider: NoProviderData,
    errors.CannotFit: CannotFitData,
    errors.LimitExceeded: LimitExceededData,
    errors.FormatNotSupported: FormatNotSupportedData,
    errors.NothingToUndo: NothingToUndoData,
}
"""The data type of each error. An error that is not listed has no data."""

BY_CODE: Mapping[int, type[Struct]] = {error.code: data for error, data in DATA.items()}
