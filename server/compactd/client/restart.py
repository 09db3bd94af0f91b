"""What a client remembers so that it can continue after its daemon died: the open sessions, and which
requests may be sent again.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Raw, Struct

from compactd.client.events import Params
from compactd.client.frames import Json, json_object
from compactd.protocol.methods import FORMATS_WITH_IDS, ID_FIELDS, METHODS

MAX_RESTARTS = 3
RESTART_WINDOW_S = 60.0
"""The period, in seconds, in which the daemon is restarted at most `MAX_RESTARTS` times. After so many
failures, another restart would not help.
"""

_KEPT_ON_RESUME = ("client", "durability", "compaction", "reduce")


class RestartState:
    """The sessions that are open through one client, and the restarts of its daemon."""

    def __init__(self) -> None:
        self._sessions: dict[str, dict[str, Json]] = {}
        self._restarts: list[float] = []

    def with_ids(self, method: str, params: Params) -> Params:
        """Return `params` with an id for each message, so that a message that is sent twice is stored once,
        or with an id for the session that they start or the call that they reduce, so that this is done once.
        `params` stay unchanged if they have ids already, if the method takes none, or if the messages have
        another format.
        """
        if not _is_with_ids(method):
            return params
        fields = _fields(params)
        if (name := ID_FIELDS.get(method)) is not None:
            return params if fields.get(name) else {**fields, name: os.urandom(8).hex()}
        if fields.get("format") not in FORMATS_WITH_IDS:
            return params
        messages = fields.get("messages")
        if not isinstance(messages, Sequence) or isinstance(messages, str | bytes):
            return params
        return {**fields, "messages": [_with_id(message) for message in messages]}

    def note(self, method: str, params: Params, result: Raw) -> None:
        """Remember the session that an answered request opened, or forget the session that it closed or
        deleted. A session that is not stored (`persist` is false) is not remembered.
        """
        if method == "session/start":
            fields = json_object(Raw(msgspec.json.encode(params)))
            session_id = json_object(result).get("session_id")
            if isinstance(session_id, str) and fields.get("persist") is not False:
                kept = {name: fields[name] for name in _KEPT_ON_RESUME if name in fields}
                self._sessions[session_id] = {"session_id": session_id, **kept}
        elif method in METHODS and METHODS[method].ends:
            self._sessions.pop(str(_fields(params).get("session_id")), None)

    def to_resume(self) -> tuple[dict[str, Json], ...]:
        """Return, for each open session, the params of `session/start` that reopen it."""
        return tuple(self._sessions.values())

    def forget_session(self, session_id: str) -> None:
        """Forget a session that could not be reopened."""
        self._sessions.pop(session_id, None)

    def may_restart(self, now: float) -> bool:
        """Return whether another restart is allowed. If so, count it as done. `now`: seconds of a monotonic
        clock.
        """
        self._restarts = [at for at in self._restarts if now - at < RESTART_WINDOW_S]
        if len(self._restarts) >= MAX_RESTARTS:
            return False
        self._restarts.append(now)
        return True


def is_repeatable(method: str, params: Params) -> bool:
    """Return whether a request can be sent twice with the same effect as once. `params`: the result of
    `with_ids`.
    """
    if not _is_with_ids(method):
        return method not in METHODS or METHODS[method].repeat == "yes"
    return method in ID_FIELDS or _fields(params).get("format") in FORMATS_WITH_IDS


def _is_with_ids(method: str) -> bool:
    return method in METHODS and METHODS[method].repeat == "with_ids"


def _fields(params: Params) -> Mapping[str, object]:
    if params is None:
        return {}
    if isinstance(params, Struct):
        return {field.encode_name: getattr(params, field.name) for field in msgspec.structs.fields(params)}
    return params


def _with_id(message: object) -> object:
    """Return the message with an id, if its sender gave it none."""
    if isinstance(message, Mapping):
        return message if message.get("id") is not None else {"id": os.urandom(16).hex(), **message}
    if isinstance(message, Raw):
        given = json_object(message)
        if given and given.get("id") is None:
            # The message's own bytes stay unchanged after the new first field.
            body = bytes(message).lstrip()[1:]
            return Raw(b'{"id":"%b",%b' % (os.urandom(16).hex().encode(), body))
    return message
