"""Rules for retries: whether and when a failed request is sent again. They are the same for every provider.

They follow the official SDKs (openai 2.x and anthropic 0.x `_base_client`, read 2026-10): obey
`x-should-retry`; retry 408, 409, 429 and 5xx; wait as long as the provider asks, or else with a delay that
doubles, with jitter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from msgspec import Struct

from compactd.models.providers.json_fields import Fields, NoJson, read_list
from compactd.models.providers.provider import ProviderFailure

RETRIED = frozenset((408, 409, 425, 429))
"""Statuses below 500 that are retried: timeout, a lock, too early, too many requests."""

NEVER = frozenset((501, 505, 511))
"""Statuses from 500 on that are not retried: not implemented, HTTP version, a network login is needed."""

FINAL_KINDS = frozenset(("overflow", "output_limit", "auth", "quota", "content_filter", "invalid_request"))
"""Kinds of failures (as in `overflow/classify`) after which the same request would fail again, whatever the
status. llama.cpp and gateways answer 500 to an overflow, and several providers answer 429 if the account has
no money."""

_DAY_S = 86_400.0


class Clock(Protocol):
    """The clock by which retries wait. Tests replace it."""

    def now(self) -> float:
        """Return the time in Unix seconds."""
        ...

    async def sleep(self, delay_s: float) -> None:
        """Return after `delay_s` seconds."""
        ...

    def random(self) -> float:
        """Return a random number that is at least 0 and below 1."""
        ...


class RetryPolicy(Struct, frozen=True, kw_only=True):
    """The maximum number of requests, and the delays between them."""

    requests: int = 3
    """The maximum number of requests for one answer, including the first."""
    first_s: float = 0.5
    """The delay before the first retry, in seconds. Each later delay is twice as long as the one before."""
    longest_s: float = 8.0
    """The maximum delay in seconds. A delay that the provider asks for may be longer."""
    patience_s: float = 120.0
    """In seconds. If the provider asks for a longer delay than this, the request is not retried."""
    jitter: float = 0.25
    """The maximum share of the delay that is subtracted at random, so that clients do not retry at the
    same time."""


def delay_of(
    failure: ProviderFailure, request: int, policy: RetryPolicy, random: Callable[[], float]
) -> float | None:
    """Return how many seconds to wait before request number `request` (2 is the first retry). None means: do
    not retry, for example because the provider asks for a longer delay than `policy.patience_s`.

    `random` returns a number that is at least 0 and below 1, for the jitter.
    """
    if request > policy.requests or not may_pass(failure):
        return None
    if failure.retry_after_s is not None:
        return failure.retry_after_s if failure.retry_after_s <= policy.patience_s else None
    # Limit the exponent, so that a large attempt does not overflow a float.
    delay: float = min(policy.longest_s, policy.first_s * 2.0 ** min(request - 2, 20))
    return delay * (1 - policy.jitter * random())


def may_pass(failure: ProviderFailure) -> bool:
    """Return whether the same request could succeed later. After an overflow, for example, or with a
    wrong key, the request would only fail again."""
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


def _may_pass_by_its_words(failure: ProviderFailure) -> bool:
    """Return whether the same request could succeed later, judged by the error's text."""
    # Rarely needed, and its patterns take time to compile.
    from compactd.core.overflow.classify import FailureReport, classify

    verdict = classify(
        FailureReport(status=failure.status, code=failure.code, text=failure.text, provider=failure.provider)
    )
    # A single request above a per-minute limit (`rate_limit`, `compact`) is still above it a minute later.
    return verdict.kind not in FINAL_KINDS and verdict.fix != "compact"


# --- the delay a provider names ---------------------------------------------------------------------------


def retry_after(headers: Mapping[str, str], body: str, now: float) -> float | None:
    """Return the delay in seconds that a provider's error asks for: in a header, in the JSON field
    `retryDelay` (Google), or in words. None if the error names no delay. O(body).

    `headers` have lower-case names. `now` is the time in Unix seconds; it is needed if the error names a
    time instead of a delay. For a time in the past, return 0. A delay of several days is returned unchanged.
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
    """Return the finite number in a text, at least 0; None if there is none."""
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None


def _seconds_or_date(text: str, now: float) -> float | None:
    """Return the delay in seconds for the value of a `retry-after` header, which is a number of seconds or a
    date. None if it is neither."""
    if (seconds := _number(text)) is not None:
        return seconds
    from email.utils import parsedate_to_datetime  # 4 ms, and few servers write a date

    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except (ValueError, TypeError, OverflowError):
        return _iso_time(text, now)


def _iso_time(text: str, now: float) -> float | None:
    # "2026-03-01T10:00:00Z" (anthropic-ratelimit-requests-reset, Anthropic's "Rate limits", seen 2026-10)
    """Return the seconds until an ISO 8601 time, at least 0; None if the text is not one."""
    from datetime import datetime

    try:
        return max(0.0, datetime.fromisoformat(text).timestamp() - now)
    except (ValueError, OverflowError):
        return None


def _google_delay(body: str) -> float | None:
    # error.details[]: {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}
    """Return the delay in Google's error details; None if there is none."""
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
    """Return the delay in the text of an error; None if there is none."""
    import re

    found = re.search(
        rf"(?:try again|retry)\s+(?:in|after)\s+({_DURATION})", body[:_WORDS_CHARS], re.IGNORECASE
    )
    return duration_s(found.group(1)) if found else None


def duration_s(text: str) -> float | None:
    """Return the seconds of `6m0s`, `20ms`, `1h2m` or `26 seconds`, or None if it is not a duration."""
    import re

    parts = re.findall(r"(\d{1,9}(?:\.\d{1,12})?)\s?(ms|milli|s|m|h|d)", text.lower())
    if not parts:
        return None
    return float(sum(float(number) * _UNITS_S["ms" if unit == "milli" else unit] for number, unit in parts))


def _reset(headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds until every rate limit that is used up is reset, according to the headers. None if
    they name no such time."""
    waits = []
    for name, value in headers.items():
        if "ratelimit" not in name or "reset" not in name:
            continue
        # A limit that is not used up did not cause the refusal. Its reset time does not matter.
        left = headers.get(name.replace("reset", "remaining"))
        if left is not None and _number(left) != 0:
            continue
        if (wait := _until(value, now)) is not None:
            waits.append(wait)
    return max(waits) if waits else None


def _until(value: str, now: float) -> float | None:
    """Return the seconds until the reset that a header's `value` names as a delay or a time. None if `value`
    is invalid."""
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
"""The HTTP status that corresponds to an error code. It is used for errors inside a stream or inside an
answer with status 200."""


def error_in(error: Fields) -> tuple[int | None, str | None]:
    """Return (the HTTP status that corresponds to the error, its code) for an error object of any
    provider. Each is None if unknown."""
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
    """Return the error code in an error's body; None if the body names none or is not JSON."""
    given = error_body(body)
    inner = given.object("error") if "error" in given else given
    words = (inner.text("code"), inner.text("type"), inner.text("status"), given.text("code"))
    return next((word for word in words if word), None)


def error_body(body: str) -> Fields:
    """Return the JSON object in an error's body; an empty one if there is none. Google sends a list that
    contains the object."""
    raw = body.encode("utf-8", "replace")
    if raw.lstrip()[:1] == b"[":
        raw = next((bytes(item) for item in read_list(raw)), b"{}")
    try:
        return Fields(raw)
    except NoJson:
        return Fields(b"{}")
