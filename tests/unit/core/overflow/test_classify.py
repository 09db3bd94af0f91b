"""Whether a failed request was an overflow (by words, codes, usage, status), and what would make it fit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compactd.core.overflow.classify import FailureReport, Verdict, classify
from tests.unit.core.overflow.wrappers import WRAPPERS

HERE = Path(__file__).parent / "texts"
WORDINGS = [json.loads(line) for line in (HERE / "wordings.jsonl").read_text("utf-8").splitlines()]
REPORTED = [json.loads(line) for line in (HERE / "reported.jsonl").read_text("utf-8").splitlines()]
PLAIN = [row for row in WORDINGS if not row.get("wrapped") and row["kind"] != "other"]

TOO_LONG = "prompt is too long: 213462 tokens > 200000 maximum"


def verdict(text: str, status: int | None = None, **known: object) -> Verdict:
    return classify(FailureReport(text=text, status=status, **known))


def due(row: dict[str, object]) -> tuple[object, ...]:
    return (row["kind"], row.get("limit"), row.get("requested"), row["fix"])


def said(found: Verdict) -> tuple[object, ...]:
    assert found.overflow == (found.kind == "overflow")
    return (found.kind, found.limit, found.requested, found.fix)


@pytest.mark.parametrize("row", WORDINGS, ids=lambda row: row["text"][:60])
def test_a_wording_means_what_it_says(row: dict[str, object]) -> None:
    found = verdict(row["text"], row.get("status"))

    assert said(found) == due(row), found.evidence


@pytest.mark.parametrize("row", REPORTED, ids=lambda row: f"{row['provider']}: {row['text'][:50]}")
def test_a_reported_failure_is_what_its_thread_shows(row: dict[str, object]) -> None:
    found = verdict(row["text"], row.get("status"), provider=row["provider"])

    assert said(found) == due(row), (row["source"], found.evidence)


@pytest.mark.parametrize("name", WRAPPERS)
def test_a_wording_means_the_same_in_any_wrapper(name: str) -> None:
    wrap = WRAPPERS[name]

    wrong = [
        (row["text"], found)
        for row in PLAIN
        if said(found := verdict(wrap(row["text"]), row.get("status"))) != due(row)
    ]

    assert wrong == []


@pytest.mark.parametrize("status", [200, 400, 404, 413, 422, 500, 503, None])
def test_an_overflow_is_one_under_any_status_but_402_and_429(status: int | None) -> None:
    assert verdict(TOO_LONG, status).overflow


@pytest.mark.parametrize(("status", "kind"), [(429, "rate_limit"), (402, "quota")])
def test_402_and_429_are_never_an_overflow_whatever_the_words(status: int, kind: str) -> None:
    found = verdict(TOO_LONG, status, bodiless_is_overflow=True)

    assert (found.overflow, found.kind) == (False, kind)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("context_length_exceeded", "overflow"),
        ("model_context_window_exceeded", "overflow"),
        ("exceed_context_size_error", "overflow"),
        ("prompt_too_long", "overflow"),
        ("INPUT_TOKENS_LIMIT_EXCEEDED", "overflow"),
        ("ContextLengthExceededException", "overflow"),
        ("rate_limit_exceeded", "rate_limit"),
        ("ThrottlingException", "rate_limit"),
        ("RESOURCE_EXHAUSTED", "rate_limit"),
        ("insufficient_quota", "quota"),
        ("request_too_large", "payload_too_large"),
        ("string_above_max_length", "payload_too_large"),
        ("array_above_max_length", "invalid_request"),
        ("content_filter", "content_filter"),
        ("authentication_error", "auth"),
        ("invalid_api_key", "auth"),
        ("overloaded_error", "server"),
        ("invalid_request_error", "invalid_request"),
    ],
)
def test_a_code_decides_where_no_words_do(code: str, kind: str) -> None:
    body = json.dumps({"error": {"code": code, "message": "Bad Request"}})

    assert verdict(body, 400).kind == kind
    assert verdict("", 400, code=code).kind == kind


def test_words_beat_the_code_and_the_class_name() -> None:
    text = 'litellm.RateLimitError: {"error":{"message":"' + TOO_LONG + '","code":"invalid_request_error"}}'

    assert verdict(text, 400).kind == "overflow"


def test_a_class_name_decides_last() -> None:
    assert verdict("litellm.ContextWindowExceededError: Provider returned error", 400).overflow


def test_an_embedders_input_limit_is_neither_cured_nor_learned() -> None:
    text = "the input length exceeds the context length"

    assert verdict(text, 400, provider="ollama").overflow
    assert not verdict(text, 400, provider="ollama-embedding").overflow
    assert not verdict("This embedding model's maximum context length is 8192 tokens, got 9000", 400).teaches


# --- what it teaches ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "teaches"),
    [
        (TOO_LONG, True),
        ("Your input exceeds the context window of this model.", False),
        ("max_tokens is too large: 9000. This model supports at most 4096 completion tokens.", False),
        ("Rate limit reached on tokens per min (TPM): Limit 30000, Used 1, Requested 31000.", False),
    ],
)
def test_only_a_windows_limit_is_learned(text: str, teaches: bool) -> None:
    assert verdict(text, 400).teaches is teaches


def test_a_limit_below_64_is_no_window() -> None:
    text = "This model's maximum context length is 3 tokens. However, your request has 8 input tokens."

    found = verdict(text, 400)

    assert (found.overflow, found.limit, found.requested, found.teaches) == (True, None, 8, False)


def test_a_number_that_is_the_errors_code_is_no_limit() -> None:
    text = '{"error":{"message":"invalid params, context window exceeds limit (2013)"}}'

    assert verdict(text, 400, code="2013").limit is None


def test_named_fields_of_the_body_are_its_figures() -> None:
    body = '{"error":{"message":"exceeds the available context size","n_prompt_tokens":1407,"n_ctx":256}}'

    found = verdict(body, 500)

    assert (found.requested, found.limit) == (1407, 256)


# --- fewer output tokens ------------------------------------------------------------------------------

COUNTING_STOPPED = (
    "This model's maximum context length is 131072 tokens. However, you requested 102400 output tokens "
    "and your prompt contains at least 28673 input tokens, for a total of at least 131073 tokens."
)


def test_a_count_that_stopped_at_the_limit_proves_no_room_for_the_prompt() -> None:
    assert verdict(COUNTING_STOPPED, 400).fix == "compact"


def test_a_count_that_stopped_is_completed_by_the_sessions_own() -> None:
    assert verdict(COUNTING_STOPPED, 400, used=60_000).fix == "lower_output"
    assert verdict(COUNTING_STOPPED, 400, used=140_000).fix == "compact"


def test_a_prompt_above_the_limit_is_not_cured_by_less_output() -> None:
    text = (
        "This model's maximum context length is 8192 tokens. However, you requested 9500 tokens "
        "(9000 in the messages, 500 in the completion)."
    )

    assert verdict(text, 400).fix == "compact"


# --- no words -----------------------------------------------------------------------------------------

BODILESS = ["", "400 status code (no body)", "413 status code (no body)", "Error: 400 Bad Request"]


@pytest.mark.parametrize("text", BODILESS)
@pytest.mark.parametrize("status", [400, 413])
def test_a_refusal_without_a_body_is_judged_by_usage(status: int, text: str) -> None:
    assert verdict(text, status, used=250_000, window=200_000).overflow
    assert not verdict(text, status, used=20_000, window=200_000).overflow


@pytest.mark.parametrize("text", BODILESS)
def test_without_usage_only_a_provider_known_to_do_so_is_believed(text: str) -> None:
    assert verdict(text, 400, provider="cerebras").overflow
    assert not verdict(text, 400, provider="openai").overflow
    assert not verdict(text, 400).overflow


@pytest.mark.parametrize("text", BODILESS)
def test_klaudes_rule_takes_every_bodiless_400_and_413_and_no_429(text: str) -> None:
    assert verdict(text, 400, bodiless_is_overflow=True, used=10, window=200_000).overflow
    assert verdict(text, 413, bodiless_is_overflow=True).overflow
    assert verdict(text, 429, bodiless_is_overflow=True).kind == "rate_limit"


@pytest.mark.parametrize(
    ("stop_reason", "used", "output", "overflow"),
    [
        ("stop", 200_001, 5, True),
        ("stop", 200_000, 5, False),
        ("length", 198_000, 0, True),
        ("length", 197_999, 0, False),
        ("max_tokens", 190_000, 8_000, True),
        ("MAX_TOKENS", 20_000, 64_000, False),
        ("incomplete:max_output_tokens", 199_000, 60, True),
        ("model_context_window_exceeded", 100, 5, True),
        ("tool_use", 199_999, 5, False),
    ],
)
def test_usage_tells_an_overflow_that_nobody_reported(
    stop_reason: str, used: int, output: int, overflow: bool
) -> None:
    found = verdict("", 200, used=used, output=output, window=200_000, stop_reason=stop_reason)

    assert found.overflow is overflow


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request"), (401, "auth"), (402, "quota"), (403, "auth"), (404, "invalid_request"),
        (413, "payload_too_large"), (422, "invalid_request"), (429, "rate_limit"), (500, "server"),
        (503, "server"), (529, "server"), (200, "other"), (None, "other"),
    ],
)  # fmt: skip
def test_a_status_decides_where_nothing_else_does(status: int | None, kind: str) -> None:
    assert verdict("", status).kind == kind


def test_the_evidence_never_quotes_the_text() -> None:
    text = '{"error":{"message":"' + TOO_LONG + '"},"input":"my secret"}'

    assert "213462" not in verdict(text, 400).evidence
    assert "secret" not in verdict(text, 400).evidence
