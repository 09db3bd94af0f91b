"""A failed model request of Pydantic AI, as compactd classifies it."""

from __future__ import annotations

from typing import Final

from msgspec import Raw
from pydantic_ai.exceptions import (
    AgentRunError,
    ModelAPIError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    UsageLimitExceeded,
    UserError,
)

from compactd.integrations.frameworks.pydantic_ai.blocks import json_text
from compactd.protocol.wire import RequestError

_OWN: Final = (UsageLimitExceeded, UserError)
"""Errors that the framework raises before or after the request."""
_MAX_CHARS: Final = 20_000


def request_error(error: BaseException) -> RequestError | None:
    """Return what an error says about the request; None if no provider was asked. A group counts as its first
    member that names an overflow, otherwise as its first.
    """
    members = _members(error)
    overflows = [one for one in members if isinstance(one, ModelContextWindowExceededError)]
    for one in [*overflows, *members]:
        found = _one(one)
        if found is not None:
            return found
    return None


def _members(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [one for inner in error.exceptions for one in _members(inner)]
    return [error]


def _one(error: BaseException) -> RequestError | None:
    if isinstance(error, _OWN) or not isinstance(error, Exception):
        return None
    if isinstance(error, ModelAPIError):
        status = error.status_code if isinstance(error, ModelHTTPError) else None
        code = error.provider_error_code
        if code is None and isinstance(error, ModelContextWindowExceededError):
            code = "context_length_exceeded"
        return _described(error, status, code, error.body)
    if isinstance(error, AgentRunError):
        return _described(error, None, None, None)
    # A provider's own exception, from a model class that does not translate it.
    status = getattr(error, "status_code", None)
    code = getattr(error, "code", None)
    return _described(error, status, code, getattr(error, "body", None))


def _described(error: Exception, status: object, code: object, body: object) -> RequestError:
    return RequestError(
        status=status if isinstance(status, int) and not isinstance(status, bool) else None,
        code=code if isinstance(code, str | int) and not isinstance(code, bool) else None,
        message=_message(error)[:_MAX_CHARS],
        body=Raw(b"null") if body is None else Raw(json_text(body).encode()),
    )


def _message(error: Exception) -> str:
    try:
        return str(error)
    except Exception:
        return type(error).__name__
