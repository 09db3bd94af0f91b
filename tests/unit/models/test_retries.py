"""When a request is sent again: the rules as values, without any request."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactd.models.providers.provider import Cause, ProviderFailure
from compactd.models.providers.retries import (
    RetryPolicy,
    code_in,
    delay_of,
    duration_s,
    may_pass,
    retry_after,
)

NOW = 1_760_000_000.0  # Thu, 09 Oct 2025 08:53:20 GMT


def failure(
    status: int | None = 503, text: str = "", cause: Cause = "status", **more: object
) -> ProviderFailure:
    return ProviderFailure(cause=cause, provider="openai", status=status, text=text, **more)  # type: ignore[arg-type]


QUOTA = '{"error":{"code":"insufficient_quota","message":"You exceeded your current quota."}}'


# --- the delay a provider names ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "body", "seconds"),
    [
        ({}, "", None),
        ({"retry-after": "7"}, "", 7.0),
        ({"retry-after": "1.5"}, "", 1.5),
        ({"retry-after": "0"}, "", 0.0),
        ({"retry-after": "-5"}, "", None),
        ({"retry-after": "inf"}, "", None),
        ({"retry-after": "nan"}, "", None),
        ({"retry-after": "soon"}, "", None),
        ({"retry-after": "Thu, 09 Oct 2025 08:53:50 GMT"}, "", 30.0),
        ({"retry-after": "Thu, 09 Oct 2025 08:00:00 GMT"}, "", 0.0),
        ({"retry-after": "2025-10-09T08:53:30Z"}, "", 10.0),
        ({"retry-after-ms": "250", "retry-after": "7"}, "", 0.25),
        ({"retry-after-ms": "x", "retry-after": "7"}, "", 7.0),
        ({"x-ratelimit-reset": str(int(NOW) + 20)}, "", 20.0),
        ({"x-ratelimit-reset": str(int(NOW + 20) * 1000)}, "", 20.0),
        ({"x-ratelimit-reset": "12"}, "", 12.0),
        ({"ratelimit-reset": "12"}, "", 12.0),
        ({"x-ratelimit-reset-requests": "6m0s", "x-ratelimit-remaining-requests": "0"}, "", 360.0),
        ({"x-ratelimit-reset-requests": "6m0s", "x-ratelimit-remaining-requests": "3"}, "", None),
        (
            {
                "x-ratelimit-reset-requests": "1s",
                "x-ratelimit-remaining-requests": "9",
                "x-ratelimit-reset-tokens": "20ms",
                "x-ratelimit-remaining-tokens": "0",
            },
            "",
            0.02,
        ),
        (
            {
                "anthropic-ratelimit-requests-reset": "2025-10-09T08:54:20Z",
                "anthropic-ratelimit-requests-remaining": "0",
            },
            "",
            60.0,
        ),
        ({}, "Rate limit reached. Please try again in 7.66s. Visit …", 7.66),
        ({}, "Please try again in 20ms.", 0.02),
        ({}, "Please try again in 1m30s", 90.0),
        ({}, "try again in 1h2m3s", 3723.0),
        ({}, "Please retry after 26 seconds.", 26.0),
        ({}, "Please retry in 34.074824224s.", 34.074824224),
        ({}, "retry in 3s", 3.0),
        ({}, "try again in 2 minutes and 5 seconds", 125.0),
        ({}, "try again in 120 milliseconds", 0.12),
        ({}, "try again later", None),
        ({}, "it took 20 s, 429 tokens", None),
        ({}, json.dumps({"error": {"details": [{"@type": "x.RetryInfo", "retryDelay": "34s"}]}}), 34.0),
        ({}, json.dumps({"error": {"details": [{"retryDelay": "0.5s"}]}}, indent=2), 0.5),
        ({}, '{"retryDelay": "soon"}', None),
        ({"retry-after": "3"}, "Please try again in 20s", 3.0),
    ],
)
def test_a_delay_is_read_in_every_form(headers: dict[str, str], body: str, seconds: float | None) -> None:
    seen = retry_after(headers, body, NOW)

    assert seen == (seconds if seconds is None else pytest.approx(seconds))


@settings(deadline=None)
@given(
    st.dictionaries(st.sampled_from(["retry-after", "retry-after-ms", "x-ratelimit-reset"]), st.text()),
    st.text(),
)
def test_no_header_and_no_body_breaks_it(headers: dict[str, str], body: str) -> None:
    seen = retry_after(headers, body, NOW)

    assert seen is None or seen >= 0


def test_a_body_made_to_be_slow_is_not() -> None:
    for body in (
        "retry in " + "1s " * 50_000,
        "try again in " + "9" * 100_000,
        '"retryDelay": "' + "1" * 90_000,
    ):
        retry_after({}, body, NOW)


@pytest.mark.parametrize(
    ("text", "seconds"), [("6m0s", 360.0), ("20ms", 0.02), ("1d", 86_400.0), ("x", None)]
)
def test_durations_are_gos(text: str, seconds: float | None) -> None:
    assert duration_s(text) == seconds


# --- whether ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_failure", "passes"),
    [
        (failure(500), True),
        (failure(502), True),
        (failure(503, "overloaded"), True),
        (failure(529, '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'), True),
        (failure(599), True),
        (failure(501), False),
        (failure(505), False),
        (failure(408), True),
        (failure(409), True),
        (failure(425), True),
        (failure(429, "Too many requests"), True),
        (failure(429, ""), True),
        (failure(429, QUOTA), False),
        (failure(429, "Your credit balance is too low"), False),
        (failure(400), False),
        (failure(401), False),
        (failure(402), False),
        (failure(403), False),
        (failure(404), False),
        (failure(413), False),
        (failure(422), False),
        (failure(500, "prompt is too long: 213462 tokens > 200000 maximum"), False),
        (failure(500, "the request exceeds the available context size"), False),
        (failure(503, "maximum context length is 4096 tokens, you requested 5000 tokens"), False),
        (failure(500, "the model produced 500 tokens"), True),
        (failure(None, "overloaded, please try again"), True),
        (failure(400, "x", should_retry=True), True),
        (failure(500, "x", should_retry=False), False),
        (failure(None, cause="connection"), True),
        (failure(None, cause="timeout"), True),
        (failure(None, cause="stream"), True),
        (failure(None, cause="answer"), False),
        (failure(None, cause="limit"), False),
    ],
)
def test_what_may_pass_is_told_from_what_will_not(given_failure: ProviderFailure, passes: bool) -> None:
    assert may_pass(given_failure) is passes


# --- how long ---------------------------------------------------------------------------------------------


def test_our_delays_double_up_to_the_longest() -> None:
    policy = RetryPolicy(requests=9)

    seen = [delay_of(failure(), request, policy, lambda: 0.0) for request in range(2, 11)]

    assert seen == [0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0, 8.0, None]


@settings(deadline=None)
@given(st.floats(0, 1, exclude_max=True), st.integers(2, 1_000_000))
def test_jitter_takes_off_a_quarter_at_most(random: float, request: int) -> None:
    policy = RetryPolicy(requests=2_000_000)

    delay = delay_of(failure(), request, policy, lambda: random)

    longest = min(8.0, 0.5 * 2.0 ** min(request - 2, 20))
    assert delay is not None
    assert 0.75 * longest <= delay <= longest


def test_a_delay_that_the_provider_names_is_taken_as_it_is() -> None:
    assert delay_of(failure(429, retry_after_s=42.0), 2, RetryPolicy(), lambda: 0.9) == 42.0
    assert delay_of(failure(429, retry_after_s=120.0), 2, RetryPolicy(), lambda: 0.9) == 120.0
    assert delay_of(failure(429, retry_after_s=120.1), 2, RetryPolicy(), lambda: 0.9) is None


def test_who_wants_no_retries_gets_none() -> None:
    assert delay_of(failure(), 2, RetryPolicy(requests=1), lambda: 0.0) is None


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ('{"error":{"code":"invalid_api_key","type":"invalid_request_error"}}', "invalid_api_key"),
        ('{"type":"error","error":{"type":"overloaded_error","message":"x"}}', "overloaded_error"),
        ('[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}]', "RESOURCE_EXHAUSTED"),
        ('{"code":"invalid-argument","error":"too long"}', "invalid-argument"),
        ('{"error":"no"}', None),
        ("<html>", None),
        ("", None),
    ],
)
def test_a_code_is_found_in_every_shape(body: str, code: str | None) -> None:
    assert code_in(body) == code
