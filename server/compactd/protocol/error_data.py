"""`data` of every error, one shape per code: what a program needs to act on it.

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
    """Data of -32603, a bug of compactd."""

    error_id: str | None = None
    """The line of the daemon's log that says more; null if the log has none."""


class InvalidParamsData(Wire, frozen=True, kw_only=True):
    """Data of -32602."""

    path: str | None = None
    """The field that is wrong or missing, such as `$.messages[2].role`. `$` is the params object."""
    format: str | UnsetType = UNSET
    """The `format` to give, if a message is in a provider's shape. Otherwise left out."""


class FailureData(Wire, frozen=True, kw_only=True):
    """Of `turn/error` alone: what the failed model request was, though there is no session to compact."""

    overflow: bool | UnsetType = UNSET
    """True if the request was too large for the model's window."""
    kind: FailureKind | UnsetType = UNSET
    """As in `overflow/classify`."""
    fix: str | UnsetType = UNSET
    """As in `overflow/classify`."""


class SessionNotFoundData(FailureData, frozen=True, kw_only=True):
    """Data of 1001."""

    session_id: str | None = None
    """The id that was asked for; null if none was."""
    exists: bool = False
    """True if the session is stored, but not open here: `session/start` opens it."""


class SessionBusyData(Wire, frozen=True, kw_only=True):
    """Data of 1002."""

    holder: Literal["compaction", "redaction", "prompt", "hook"]
    """What holds the session. `prompt`: the daemon's own loop. `hook`: a hook of the session's agent, for a
    moment."""
    compaction_id: str | None = None
    """The compaction that runs."""
    turn_id: str | None = None
    """The prompt that is being answered."""


class SessionCorruptData(Wire, frozen=True, kw_only=True):
    """Data of 1003."""

    session_id: str | None = None
    """The session that was asked for."""
    path: str | None = None
    """Its file, for `compactd doctor FILE`. Null if it is not known here."""
    line: int | None = None
    """The line that is damaged, from 1; null if no single line is."""
    readable_before: int | None = None
    """Records that can be read before that line."""
    readable_after: int | None = None
    """Records that can be read after that line."""


class SessionLockedData(FailureData, frozen=True, kw_only=True):
    """Data of 1004."""

    session_id: str | None = None
    """The session that was asked for."""
    pid: int | None = None
    """The process that writes the session; null if it is not known, or has ended since."""
    name: str | None = None
    """Name of that process, where the system tells it."""


class StorageFailedData(Wire, frozen=True, kw_only=True):
    """Data of 1005."""

    reason: str | None = None
    """The system's name of the failure, such as `ENOSPC` or `EACCES`; null if it was none of the system's."""


class ProviderFailedData(Wire, frozen=True, kw_only=True):
    """Data of 1006."""

    provider: str | None = None
    """Who failed."""
    cause: Literal["status", "connection", "timeout", "stream", "answer", "limit"] | None = None
    """`status`: it refused. `connection`: none could be made. `timeout`: too slow. `stream`: broken off.
    `answer`: what came is no answer. `limit`: too much came."""
    status: int | None = None
    """HTTP status."""
    code: str | None = None
    """The provider's own code of the error."""
    requests: int | None = None
    """How many requests were sent."""
    retry_after_s: float | None = None
    """Seconds after which the provider wants to be asked again."""


class NoProviderData(Wire, frozen=True, kw_only=True):
    """Data of 1007."""

    provider: str | None = None
    """The provider that was meant; null if none is named."""
    model: str | None = None
    """The model that was meant; null if none is named."""
    env: tuple[str, ...] = ()
    """Environment variables of the daemon, any of which may hold the key. Empty if the key is not what is
    missing."""


class CannotFitData(Wire, frozen=True, kw_only=True):
    """Data of 1008. Tokens."""

    used: int | None = None
    """Size that the request would have."""
    window: int | None = None
    """The model's window."""
    limit: int | None = None
    """What it had to fit in: a target, or the room in the window."""
    floor: Floor | None = None
    """What no compaction can remove. Null if removing was not tried."""


class LimitExceededData(Wire, frozen=True, kw_only=True):
    """Data of 1009."""

    limit_bytes: int | None = None
    """The limit, if it is one of bytes."""
    size_bytes: int | None = None
    """The size that exceeds it; null if it was not measured."""
    path: str | None = None
    """The field that is nested too deeply, if it is about nesting."""


class FormatNotSupportedData(Wire, frozen=True, kw_only=True):
    """Data of 1010."""

    supported: tuple[str | int, ...] = ()
    """What is supported here: names of formats, or versions of the session's file."""
    format: str | int | None = None
    """What was asked for, or found; null if it has no name."""


class NothingToUndoData(Wire, frozen=True, kw_only=True):
    """Data of 1011."""

    session_id: str | None = None
    """The session that was asked for."""


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
"""The type of each error's data. An error that is not here has none."""

BY_CODE: Mapping[int, type[Struct]] = {error.code: data for error, data in DATA.items()}
