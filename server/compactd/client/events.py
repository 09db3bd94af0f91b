"""What a client is told: events, errors, and the daemon's end. The same for both clients."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Raw, Struct

from compactd.client.frames import ErrorObject, Incoming, Json, json_object

Params = Struct | Mapping[str, object] | None
"""Of a call: a struct of `protocol/wire.py`, or a table of anything that becomes JSON."""

TIMEOUT_S = 60.0
CLOSE_S = 10.0
HURRY_S = 0.5
EVENTS_KEPT = 10_000
STDERR_LINES = 200
STDERR_LINE_BYTES = 4096

RESUMED = "client_resumed"
"""An event of the client's own: the daemon had died, and the session is open again in a new one."""

METHOD_NOT_FOUND = -32601
HANDLER_FAILED = -32603


class RpcError(Exception):
    """The daemon answered with an error. `code` is the contract's, `data` is for programs."""

    def __init__(
        self, code: int, message: str, data: dict[str, Json] | None = None, stderr: str = ""
    ) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        self.message = message
        self.data = data or {}
        self.stderr = stderr
        """The end of the daemon's log as it stood."""


class DaemonGone(Exception):
    """The daemon ended before it answered, or could not be started. `stderr`: the end of its log."""

    def __init__(self, message: str, stderr: str = "") -> None:
        super().__init__(message)
        self.stderr = stderr


class Interrupted(DaemonGone):
    """The daemon died before it answered something that may not be asked twice; a new one runs.

    Nothing that was acknowledged is lost. Whether this request was carried out is not known: look.
    """


class Event(Struct, frozen=True):
    """An `agent/event`, or the client's own `client_resumed`."""

    session_id: str
    seq: int
    type: str
    fields: dict[str, Json]
    """All of its params."""


def event_of(params: Raw) -> Event | None:
    """The event in the params of an `agent/event`; None where they are something else."""
    fields = json_object(params)
    session_id, seq, kind = fields.get("session_id"), fields.get("seq"), fields.get("type")
    if isinstance(session_id, str) and isinstance(seq, int) and isinstance(kind, str):
        return Event(session_id, seq, kind, fields)
    return None


def resumed(session_id: str, result: Raw) -> Event:
    """Tells that a session is open again, with the result of its `session/start`."""
    return Event(session_id, 0, RESUMED, json_object(result))


def result_of(answer: Incoming, stderr: str) -> Raw:
    """Raises `RpcError` where the answer is one."""
    if answer.error is not None:
        error = answer.error
        raise RpcError(error.code, error.message, json_object(error.data), stderr)
    return answer.result


def refusal(message: str, code: int = METHOD_NOT_FOUND) -> ErrorObject:
    """What the daemon is answered where it asked for something that is not done here."""
    return ErrorObject(code, message)


def as_raw(value: object) -> Raw:
    """Anything that becomes JSON."""
    return Raw(msgspec.json.encode(value))


def own_command() -> tuple[str, ...]:
    """How this Python starts a daemon of this package."""
    is_in_source = False
    # The folder we stand in may have been removed.
    with contextlib.suppress(OSError):
        is_in_source = Path(__file__).resolve().parents[2] == Path.cwd()
    # With -m alone, any file of that folder could be imported in place of another's.
    isolated = "-I" if sys.flags.isolated else "-P"
    safe = () if is_in_source else (isolated,)
    return (sys.executable, *safe, "-m", "compactd", "serve")
