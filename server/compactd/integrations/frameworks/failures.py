"""What a provider's SDK raised, as `turn/error` takes it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import Raw

from compactd.protocol.messages import NULL
from compactd.protocol.wire import RequestError

MAX_ATTEMPTS = 4
"""How often one model request is sent: the daemon answers at most three rejections with a compaction."""

_MAX_CAUSES = 8


def request_error(error: BaseException, *, is_overflow: bool = False) -> RequestError:
    """Return the error in the form of `turn/error`: with the HTTP status, the code and the body, where the
    exception or one of its causes has them as the SDKs of OpenAI, Anthropic and httpx name them.

    `is_overflow`: the framework has already recognised the error as an overflow.
    """
    status, code, body = None, None, NULL
    for each in _causes(error):
        status = status or _int(getattr(each, "status_code", None))
        found = getattr(each, "code", None)
        code = code or (found if isinstance(found, str | int) else None)
        if body == NULL:
            body = _body(each)
    if is_overflow and code is None:
        code = "context_length_exceeded"
    return RequestError(status=status, code=code, message=str(error), body=body)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and what it was raised from."""
    each: BaseException | None = error
    for _ in range(_MAX_CAUSES):
        if each is None:
            return
        yield each
        each = each.__cause__ or each.__context__


def _body(error: BaseException) -> Raw:
    body = getattr(error, "body", None)
    if body is None:
        response = getattr(error, "response", None)
        body = getattr(response, "text", None)
    if not body or not isinstance(body, str | dict | list):
        return NULL
    return Raw(msgspec.json.encode(body, enc_hook=repr))


def _int(value: object) -> int | None:
    return value if isinstance(value, int) else None
