"""What a client must know to go on where a daemon died: open sessions, and what may be asked twice."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Raw, Struct

from compactd.client.events import Params
from compactd.client.frames import Json, json_object

ONCE = frozenset(
    (
        "session/compact",
        "session/prune",
        "session/branch",
        "session/undo",
        "session/redo",
        "session/redact",
        "session/import",
        "agent/prompt",
        "agent/abort",
        "turn/begin",
        "turn/error",
        "model/set",
    )
)
"""Methods that would be carried out twice, or answered otherwise, if they were asked again."""

WITH_MESSAGES = ("session/append", "turn/end")

MOST_RESTARTS = 3
WITHIN_S = 60.0
"""A daemon that dies more often than that has a reason that another start does not mend."""

OURS = (None, "neutral")
"""Formats whose messages have an id of ours."""

_KEPT_ON_RESUME = ("client", "durability", "compaction")


class Remembered:
    """The sessions that are open through one client, and how often its daemon was started again."""

    def __init__(self) -> None:
        self._sessions: dict[str, dict[str, Json]] = {}
        self._restarts: list[float] = []

    def prepared(self, method: str, params: Params) -> Params:
        """`params`, with an id for each message, so that the same may be sent again and is kept once."""
        if method not in WITH_MESSAGES:
            return params
        fields = _fields(params)
        if fields.get("format") not in OURS:
            return params
        messages = fields.get("messages")
        if not isinstance(messages, Sequence) or isinstance(messages, str | bytes):
            return params
        return {**fields, "messages": [_with_id(message) for message in messages]}

    def note(self, method: str, params: Params, result: Raw) -> None:
        """A request was answered."""
        if method == "session/start":
            fields = json_object(Raw(msgspec.json.encode(params)))
            session_id = json_object(result).get("session_id")
            if isinstance(session_id, str) and fields.get("persist") is not False:
                kept = {name: fields[name] for name in _KEPT_ON_RESUME if name in fields}
                self._sessions[session_id] = {"session_id": session_id, **kept}
        elif method in ("session/close", "session/delete"):
            self._sessions.pop(str(_fields(params).get("session_id")), None)

    def to_resume(self) -> tuple[dict[str, Json], ...]:
        """Params of `session/start` for each session that is open."""
        return tuple(self._sessions.values())

    def lost(self, session_id: str) -> None:
        """It could not be opened again."""
        self._sessions.pop(session_id, None)

    def may_restart(self, now: float) -> bool:
        """Whether another start is worth it; counts it. `now`: seconds of a clock that only rises."""
        self._restarts = [at for at in self._restarts if now - at < WITHIN_S]
        if len(self._restarts) >= MOST_RESTARTS:
            return False
        self._restarts.append(now)
        return True


def is_repeatable(method: str, params: Params) -> bool:
    """Whether a request that `prepared` saw may be sent again without changing more than the first did."""
    if method in WITH_MESSAGES:
        return _fields(params).get("format") in OURS
    return method not in ONCE


def _fields(params: Params) -> Mapping[str, object]:
    if params is None:
        return {}
    if isinstance(params, Struct):
        return {field.encode_name: getattr(params, field.name) for field in msgspec.structs.fields(params)}
    return params


def _with_id(message: object) -> object:
    """A message whose sender gave it no id has one."""
    if isinstance(message, Mapping):
        return message if message.get("id") is not None else {"id": uuid.uuid4().hex, **message}
    if isinstance(message, Raw):
        given = json_object(message)
        if given and given.get("id") is None:
            # Its own bytes stay as they are, behind a first field.
            body = bytes(message).lstrip()[1:]
            return Raw(b'{"id":"%b",%b' % (uuid.uuid4().hex.encode(), body))
    return message
