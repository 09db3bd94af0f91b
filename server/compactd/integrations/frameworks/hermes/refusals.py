"""What providers said when they refused requests, until the conversation is compacted.

Hermes does not tell a context engine why it shall compress. Its plugins hear of failed requests.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

from compactd.protocol.wire import RequestError

MAX_SESSIONS: Final = 256
_TOO_LARGE: Final = ("context_overflow", "payload_too_large", "long_context_tier")
"""Hermes' names of the reasons for which it compresses."""

_refusals: OrderedDict[str, RequestError] = OrderedDict()


def note(
    *,
    session_id: str = "",
    reason: str | None = None,
    status_code: int | None = None,
    error: Mapping[str, Any] | None = None,
    **_: Any,
) -> None:
    """Note a failed request: Hermes' hook `api_request_error`. Errors for another reason are left alone."""
    if reason not in _TOO_LARGE:
        return
    message = str((error or {}).get("message") or "")
    _refusals[session_id] = RequestError(
        status=status_code if isinstance(status_code, int) else None, message=message
    )
    while len(_refusals) > MAX_SESSIONS:
        _refusals.popitem(last=False)


def take(session_id: str) -> RequestError | None:
    """Return the last refusal in a conversation, and forget it."""
    return _refusals.pop(session_id, None)
