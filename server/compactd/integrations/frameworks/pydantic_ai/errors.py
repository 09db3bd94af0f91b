"""A failed model request of Pydantic AI, as compactd classifies it."""

from __future__ import annotations

from typing import Final

from pydantic_ai.exceptions import (
    ModelContextWindowExceededError,
    ModelRetry,
    UnexpectedModelBehavior,
    UsageLimitExceeded,
    UserError,
)

from compactd.integrations.frameworks import failures
from compactd.protocol.wire import RequestError

_OWN: Final = (UsageLimitExceeded, UserError, ModelRetry, UnexpectedModelBehavior)
"""Errors that are the framework's own, and not the provider's."""


def request_error(error: BaseException) -> RequestError | None:
    """Return what an error says about the request; None if no provider refused it. A group, such as that of a
    `FallbackModel`, counts as its first member that is an overflow, otherwise as its last.
    """
    members = [one for one in _members(error) if isinstance(one, Exception) and not isinstance(one, _OWN)]
    for one in members:
        if isinstance(one, ModelContextWindowExceededError):
            return failures.request_error(one, is_overflow=True)
    return failures.request_error(members[-1]) if members else None


def _members(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [one for inner in error.exceptions for one in _members(inner)]
    return [error]
