"""Events and errors of the Python clients, and helpers that the blocking and the asyncio client share."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Raw, Struct

from compactd.client.frames import ErrorObject, Incoming, Json, json_object

Params = Struct | Mapping[str, object] | None
"""Params of a call: a struct of `protocol/wire.py`, or a mapping whose values can be encoded as JSON."""

TIMEOUT_S = 60.0
CLOSE_S = 10.0
HURRY_S = 0.5
EVENTS_KEPT = 10_000
STDERR_LINES = 200
STDERR_LINE_BYTES = 4096

RESUMED = "client_resumed"
"""The type of an event that the client itself creates: the daemon died, and the session is open again in a
new daemon.
"""

METHOD_NOT_FOUND = -32601
HANDLER_FAILED = -32603


class RpcError(Exception):
    """An error that the daemon sent as its answer. `code` is the protocol's error code; `data` is for
    programs."""

    def __init__(
        self, code: int, message: str, data: dict[str, Json] | None = None, stderr: str = ""
    ) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        self.message = message
        self.data = data or {}
        self.stderr = stderr
        """The end of the daemon's log when the error arrived."""


class DaemonGone(Exception):
    """The error that the daemon ended before it answered, or could not be started. `stderr` is the end of the
    daemon's log."""

    def __init__(self, message: str, stderr: str = "") -> None:
        super().__init__(message)
        self.stderr = stderr


class Interrupted(DaemonGone):
    """The error that the daemon died before it answered a request that must not be sent twice. The client has
    restarted the daemon.

    Everything that the old daemon had acknowledged is stored. Whether this request was carried out is
    unknown: check the session.
    """


class Event(Struct, frozen=True):
    """An `agent/event` of the daemon, or the client's own `client_resumed`."""

    session_id: str
    seq: int
    type: str
    fields: dict[str, Json]
    """All params of the event."""


def event_of(params: Raw) -> Event | None:
    """Return the event in the params of an `agent/event`; None if `session_id`, `seq` or `type` is missing or
    has the wrong type.
    """
    fields = json_object(params)
    session_id, seq, kind = fields.get("session_id"), fields.get("seq"), fields.get("type")
    if isinstance(session_id, str) and isinstance(seq, int) and isinstance(kind, str):
        return Event(session_id, seq, kind, fields)
    return None


def resumed_event(session_id: str, result: Raw) -> Event:
    """Return the `client_resumed` event of a session that was reopened. `result`: the result of its
    `session/start`.
    """
    return Event(session_id, 0, RESUMED, json_object(result))


def result_of(answer: Incoming, stderr: str) -> Raw | RpcError:
    """Return the result of an answer, or its error. `stderr`: the end of the daemon's log."""
    error = answer.error
    if error is None:
        return answer.result
    return RpcError(error.code, error.message, json_object(error.data), stderr)


def refusal(message: str, code: int = METHOD_NOT_FOUND) -> ErrorObject:
    """Return the error with which the client answers a request of the daemon that it cannot carry out. The
    default `code` says that the client has no function for the method.
    """
    return ErrorObject(code, message)


def as_raw(value: object) -> Raw:
    """Encode a value as JSON."""
    return Raw(msgspec.json.encode(value))


def own_command() -> tuple[str, ...]:
    """Return the command that runs this package's `compactd serve` with this Python."""
    is_in_source = False
    # The current folder may have been removed.
    with contextlib.suppress(OSError):
        is_in_source = Path(__file__).resolve().parents[2] == Path.cwd()
    # `-m` alone would import modules from the current folder.
    isolated = "-I" if sys.flags.isolated else "-P"
    safe = () if is_in_source else (isolated,)
    return (sys.executable, *safe, "-m", "compactd", "serve")
