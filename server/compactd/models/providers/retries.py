"""Whether a failed request is sent again, and when: the same rules for every provider.

As the official SDKs do (openai 2.x and anthropic 0.x `_base_client`, read 2026-10): `x-should-retry` is
obeyed; 408, 409, 429, every 5xx; a delay that the provider names, else one that doubles, with jitter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from msgspec import Struct

from compactd.models.providers.json_fields import Fields, NoJson, list_in
from compactd.models.providers.protocol import Failure

RETRIED = frozenset((408, 409, 425, 429))
"""Statuses below 500 that may pass: timeout, a lock, too early, too many requests."""

NEVER = frozenset((501, 505, 511))
"""Of the others: not implemented, HTTP version, a network that wants a login."""

FINAL_KINDS = frozenset(("overflow", "output_limit", "auth", "quota", "content_filter", "invalid_request"))
"""What the same request would meet again, whatever the status: llama.cpp and gateways answer 500 to an
overflow, several answer 429 where money is wanted."""

_DAY_S = 86_400.0


class Clock(Protocol):
    """What waiting needs of the world."""

    def now(self) -> float:
        """Unix seconds."""
        ...

    async def sleep(self, delay_s: float) -> None:
        """Comes back after `delay_s` seconds."""
        ...

    def random(self) -> float:
        """From 0 to below 1."""
        ...


class Retries(Struct, frozen=True, kw_only=True):
    """How often, and how long between."""

    requests: int = 3
    """Most requests for one answer, the first included."""
    first_s: float = 0.5
    longest_s: float = 8.0
    """Of the delays that we choose."""
    patience_s: float = 120.0
    """A provider that names a longer delay is not waited for."""
    jitter: float = 0.25
    """Share of our delay that is taken off at random, so that clients part."""


NO_RETRIES = Retries(requests=1)


def delay_of(failure: Failure, request: int, policy: Retries, random: Callable[[], float]) -> float | None:
    """Seconds until `request` (2 is the first repetition) may be sent; None: not again.

    None too where the provider's own delay is longer than `policy.patience_s`.
    """
    if request > policy.requests or not may_pass(failure):
        return None
    if failure.retry_after_s is not None:
        return failure.retry_after_s if failure.retry_after_s <= policy.patience_s else None
    # 2^20 is above every cap, and no power of a large attempt overflows a float.
    delay: float = min(policy.longest_s, policy.first_s * 2.0 ** min(request - 2, 20))
    return delay * (1 - policy.jitter * random())


def may_pass(failure: Failure) -> bool:
    """Whether the same request could succeed later. Quota, overflow, auth, a bad request: no."""
    if failure.should_retry is not None:
        return failure.should_retry
    match failure.cause:
        case "connection" | "timeout" | "stream":
            return True
        case "answer" | "limit":
            return False
        case "status":
            status = failure.status
            if status is None or status == 429 or (status >= 500 and status not in NEVER):
                return _may_pass_by_its_words(failure)
            return status in RETRIED


def _may_pass_by_its_words(failure: Failure) -> bool:
    from compactd.core.overflow.classify import Failure as Told  # rare, and its patterns take time to compile
    from compactd.core.overflow.classify import classify

    verdict = classify(
        Told(status=failure.status, code=failure.code, text=failure.text, provider=failure.provider)
    )
    # One request above a cap per minute (`rate_limit`, `compact`) is above it a minute later too.
    return verdict.kind not in FINAL_KINDS and verdict.fix != "compact"


# --- the delay a provider names ---------------------------------------------------------------------------


def retry_after(headers: Mapping[str, str], body: str, now: float) -> float | None:
    """Seconds to wait, as the answer says it: in a header, in Google's details, or in words. O(body).

    `headers` by lower-case names; `now` in Unix seconds, for those that name a time. None where nothing says
    so, and for what cannot be meant: a time in the past is 0, one beyond a day from now is returned as it is.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    named = headers.get("retry-after")
    if named is not None and (seconds := _seconds_or_date(named, now)) is not None:
        return seconds
    if (seconds := _google_delay(body)) is not None:
        return seconds
    if (seconds := _in_words(body)) is not None:
        return seconds
    return _reset(headers, now)


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None


def _seconds_or_date(text: str, now: float) -> float | None:
    if (seconds := _number(text)) is not None:
        return seconds
    from email.utils import parsedate_to_datetime  # 4 ms, and few servers write a date

    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except (ValueError, TypeError, OverflowError):
        return _iso_time(text, now)


def _iso_time(text: str, now: float) -> float | None:
    # "2026-03-01T10:00:00Z" (anthropic-ratelimit-requests-reset, Anthropic's "Rate limits", seen 2026-10)
    from datetime import datetime

    try:
        return max(0.0, datetime.fromisoformat(text).timestamp() - now)
    except (ValueError, OverflowError):
        return None


def _google_delay(body: str) -> float | None:
    # error.details[]: {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}
    if "retryDelay" not in body:
        return None
    import re

    found = re.search(r'"retryDelay"\s*:\s*"(\d{1,9}(?:\.\d{1,12})?)s"', body)
    return float(found.group(1)) if found else None


_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": _DAY_S}
_DURATION = r"(?:\d{1,9}(?:\.\d{1,12})?\s?(?:ms|s|m|h|d)(?:[a-z]{1,11})?[\s,]{0,2}(?:and )?){1,5}"
_WORDS_CHARS = 8_192


def _in_words(body: str) -> float | None:
    # "Please try again in 7.66s" (OpenAI, Groq), "retry after 26 seconds" (Azure), "Please retry in 34.07s"
    # (Gemini), "try again in 1h2m3s"; all seen 2026-10.
    import re

    found = re.search(
        rf"(?:try again|retry)\s+(?:in|after)\s+({_DURATION})", body[:_WORDS_CHARS], re.IGNORECASE
    )
    return duration_s(found.group(1)) if found else None


def duration_s(text: str) -> float | None:
    """Seconds of `6m0s`, `20ms`, `1h2m`, `26 seconds`; None for what is no duration."""
    import re

    parts = re.findall(r"(\d{1,9}(?:\.\d{1,12})?)\s?(ms|milli|s|m|h|d)", text.lower())
    if not parts:
        return None
    return float(sum(float(number) * _UNITS_S["ms" if unit == "milli" else unit] for number, unit in parts))


def _reset(headers: Mapping[str, str], now: float) -> float | None:
    """When the allowance that is used up comes back."""
    waits = []
    for name, value in headers.items():
        if "ratelimit" not in name or "reset" not in name:
            continue
        # A bucket that is not empty is not what refused: its reset is the time until it is full.
        left = headers.get(name.replace("reset", "remaining"))
        if left is not None and _number(left) != 0:
            continue
        if (wait := _until(value, now)) is not None:
            waits.append(wait)
    return max(waits) if waits else None


def _until(value: str, now: float) -> float | None:
    number = _number(value)
    if number is None:
        is_time = "T" in value or "-" in value
        return _iso_time(value, now) if is_time else duration_s(value)
    if number > 1e11:  # OpenRouter: Unix milliseconds
        return max(0.0, number / 1000 - now)
    if number > 1e8:  # Unix seconds
        return max(0.0, number - now)
    return number


# --- the code a provider names ----------------------------------------------------------------------------

_STATUS_OF = {
    "overloaded_error": 529,
    "overloaded": 529,
    "api_error": 500,
    "server_error": 500,
    "internal_server_error": 500,
    "internal_error": 500,
    "internal": 500,
    "unavailable": 503,
    "service_unavailable": 503,
    "timeout_error": 504,
    "deadline_exceeded": 504,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "resource_exhausted": 429,
    "insufficient_quota": 429,
    "authentication_error": 401,
    "unauthenticated": 401,
    "permission_error": 403,
    "permission_denied": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "invalid_request_error": 400,
    "invalid_argument": 400,
    "invalid_prompt": 400,
    "context_length_exceeded": 400,
    "billing_error": 402,
}
"""What an error without a status of its own stands for: inside a stream, or inside a 200."""


def error_in(error: Fields) -> tuple[int | None, str | None]:
    """(the status it stands for, its code) of an error object, in any provider's shape."""
    code = error.text("code") or error.text("type") or error.text("status") or None
    number = error.number("code") or error.number("status")
    if number is not None and 400 <= number <= 599:
        words = error.object("metadata").text("error_type") or error.text("status") or error.text("type")
        return int(number), words or None
    for word in (error.text("code"), error.text("type"), error.text("status")):
        if word.lower() in _STATUS_OF:
            return _STATUS_OF[word.lower()], code
    return None, code


def code_in(body: str) -> str | None:
    """The code of an error's body; None where it names none, or is no JSON."""
    given = error_body(body)
    inner = given.object("error") if "error" in given else given
    words = (inner.text("code"), inner.text("type"), inner.text("status"), given.text("code"))
    return next((word for word in words if word), None)


def error_body(body: str) -> Fields:
    """The object of an error's body; Google puts it into a list. An empty one where there is none."""
    raw = body.encode("utf-8", "replace")
    if raw.lstrip()[:1] == b"[":
        raw = next((bytes(item) for item in list_in(raw)), b"{}")
    try:
        return Fields(raw)
    except NoJson:
        return Fields(b"{}")
