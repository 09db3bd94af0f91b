"""What daemons of one database say to each other about a session."""

from __future__ import annotations

from msgspec import UNSET, Raw, Struct, UnsetType

from compactd.daemon.rpc.outgoing import ErrorObject
from compactd.protocol.messages import Event


class Forwarded(Struct, frozen=True, kw_only=True, tag="request"):
    """A client's request, for the daemon that writes the session."""

    session_id: str
    method: str
    params: Raw
    client: str | None = None
    """The name that the client gave itself."""
    shows_progress: bool = False
    """True if the client wants `$/progress`."""


class Question(Struct, frozen=True, kw_only=True, tag="question"):
    """A request to the client that gave a prompt, for the daemon to which it is connected."""

    session_id: str
    prompt_call: str
    """The id of the call with which the prompt came."""
    method: str
    params: Raw
    timeout_s: float


class Cancel(Struct, frozen=True, kw_only=True, tag="cancel"):
    """The cancellation of a request, for the daemon that carries it out."""

    call: str
    """The id of the call with which the request came."""


Asked = Forwarded | Question | Cancel
"""What gets an answer."""


class Follow(Struct, frozen=True, kw_only=True, tag="follow"):
    """The sender has a session open, and wants its events; or no longer, if `ends` is true."""

    session_id: str
    ends: bool = False


class LiveEvent(Struct, frozen=True, kw_only=True, tag="event"):
    """An event that a follower of the journal does not see, for the daemons that follow the session."""

    session_id: str
    event: Event
    records: int
    """How many records the session had when it happened."""
    client: str | None
    """The name of the client that caused it."""


class Progressed(Struct, frozen=True, kw_only=True, tag="progress"):
    """The progress of a request, for the daemon whose client it is."""

    call: str
    """The id of the call with which the request was sent."""
    fraction: float
    """From 0 to 1."""
    message: str | None


Told = Follow | LiveEvent | Progressed
"""What gets no answer."""


class Answered(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to a call. One of `result` and `error` is set, or `is_closed`."""

    result: Raw | UnsetType = UNSET
    error: ErrorObject | UnsetType = UNSET
    is_closed: bool = False
    """True if the request was not carried out, because the daemon has closed the session."""
    records: int = 0
    """How many records the session then had."""
