"""Numbers in a refusal: a count of items is not tokens, a status before a quotation is not a limit."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from compactd.core.overflow.classify import FailureReport, Verdict, classify

COUNTED = (
    "'$.messages' is too long. Maximum length is 2048, but got 4970 items.",
    "'$.messages' is too long. Maximum length is 2048 items, but got 4970.",
    "'messages' is too long. Maximum length is 2048, but got 4970 elements.",
    "$.input is too long. At most 2048 entries are allowed, but got 4970.",
    "input array too long. Expected maximum length 2048, but got 2049.",
    "messages list is too long: maximum 100 messages, got 240 messages",
    "The conversation is too long. The limit is 500 turns, and 612 turns were received.",
    "input has 4970 items, which exceeds the maximum of 2048",
    "Prompt is too long. Maximum length is 128 parts, but got 300.",
)
TOKENS = (
    ("prompt is too long: 213462 tokens > 200000 maximum (35 messages)", 200000, 213462),
    ("Input too long: limit 8192 exceeded with 35 messages and 9001 tokens", 8192, 9001),
    ("messages are too long: 9001 > 8192 (35 messages)", 8192, 9001),
    ("Your prompt is too long: 9001 tokens in 35 items, maximum is 8192", 8192, 9001),
    ("Prompt is too long. The maximum is 8192 but the 12 messages came to 9001", 8192, 9001),
    ("The conversation (81 messages, 9001 tokens) exceeds the context window of 8192 tokens", 8192, 9001),
)
SUM = (
    "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 65537. "
    "Given: 79993 `inputs` tokens and 1024 `max_new_tokens`"
)


def found(text: str, status: int | None = None, code: str | None = None) -> Verdict:
    return classify(FailureReport(text=text, status=status, code=code))


@pytest.mark.parametrize("status", [None, 400])
@pytest.mark.parametrize("text", COUNTED)
def test_a_count_of_items_is_no_window(text: str, status: int | None) -> None:
    for body in (text, json.dumps({"error": {"message": text, "type": "invalid_request_error"}})):
        seen = found(body, status)

        assert (seen.kind, seen.limit, seen.requested) == ("invalid_request", None, None), body


@pytest.mark.parametrize(("text", "limit", "requested"), TOKENS)
def test_a_count_of_items_beside_tokens_changes_nothing(text: str, limit: int, requested: int) -> None:
    seen = found(text, 400)

    assert (seen.kind, seen.limit, seen.requested) == ("overflow", limit, requested)


def test_a_count_without_a_limit_only_tells_how_long_the_conversation_is() -> None:
    assert found("Your conversation is too long (212 messages). Please start a new one.").overflow


def test_a_list_that_is_only_spoken_of_is_not_what_is_too_long() -> None:
    assert found("Your prompt is too long, see the list of models with more room", 400).overflow


def test_a_value_of_the_request_beside_which_it_could_not_be_read_is_no_answer() -> None:
    text = 'Unexpected token near "message": "prompt is too long: 213462 tokens > 200000 maximum"'

    assert not found(text, 400).overflow


def test_a_length_in_characters_is_no_window() -> None:
    seen = found("'$.input' is too long. Maximum length is 10485760, but got 11000000 characters.", 400)

    assert (seen.kind, seen.limit) == ("payload_too_large", None)


@pytest.mark.parametrize(
    "wrapper",
    [
        "{}",
        '422 "{}"',
        'Too many model invoke failures: 422 "{}"',
        'INVOKE_RETRY_ERROR: Too many model invoke failures: 422 "{}"',
        'INVOKE_RETRY_ERROR: Too many model invoke failures: 422 "{}"\nError: 422 "{}"',
        "Too many failures: {}",
        "Gave up, upstream failed with 422: {}",
        'Provider failure: 424 {{"error": "{}", "error_type": "validation"}}',
    ],
)
def test_what_was_requested_is_the_sum_whatever_stands_before(wrapper: str) -> None:
    seen = found(wrapper.format(*[SUM] * 2))

    assert (seen.kind, seen.limit, seen.requested, seen.input) == ("overflow", 65537, 81017, 79993)


@pytest.mark.parametrize("said", [said for said, _, _ in TOKENS if "tokens" in said])
def test_too_many_failures_before_a_quotation_add_nothing(said: str) -> None:
    wrapped = found(f'Too many model invoke failures: 422 "{said}"')

    assert wrapped == replace(found(said), is_own=False)


@pytest.mark.parametrize(
    "kind", ["invalid_request_error", "BadRequestError", "invalid_argument", "ValidationException"]
)
def test_a_type_of_refused_requests_stands_in_for_the_status(kind: str) -> None:
    message = "A maximum of 4 blocks with cache_control may be provided. Found 5."

    assert found(json.dumps({"error": {"type": kind, "message": message}})).kind == "invalid_request"
    assert found(json.dumps({"error": {"type": "some_error", "message": message}})).kind == "other"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (
            "Failed to deserialize the JSON body into the target type: missing field `content`",
            "invalid_request",
        ),
        (
            '"SomeException - {\\"message\\":\\"Failed to deserialize the JSON body: unknown field `a`,'
            " expected one of `messages`, `max_tokens`, `service_tier`, `input`, `context`, `user` at line 1"
            '\\"}"',
            "invalid_request",
        ),
        ("TypeError: terminated\n    at Fetch.onAborted (node:internal/undici:12707:53)", "server"),
        ("llama_decode: failed to allocate compute buffers", "server"),
        ("TypeError: fetch failed: other side closed", "server"),
        (
            "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc",
            "server",
        ),
        (
            "alloc: not enough space in the buffer (needed 308691360, largest block 281657952)\n"
            'SOME_ASSERT: /src/alloc.c:173: !"not enough space in the buffer"\nzsh: abort      run -c 8192',
            "server",
        ),
        (
            "Prompt processing progress: 38912/50013\nPrompt processing progress: 40960/50013\n"
            '"POST /v1/chat/completions HTTP/1.1" 200\n'
            "libc++abi: terminating due to uncaught exception of type std::runtime_error:\n"
            "[METAL] Command buffer execution failed: Insufficient Memory",
            "server",
        ),
        (
            'failed: "error":\n("message":"max_tokens must be at least 16.""yype":"invalid_parameter"',
            "output_limit",
        ),
        ("The size of the input image exceeds the limit.", "payload_too_large"),
        ("The image exceeds the limit of 8000 pixels.", "invalid_request"),
    ],
)
def test_what_else_went_wrong_is_told_by_its_structure(text: str, kind: str) -> None:
    assert found(text).kind == kind


def test_a_code_of_an_unpaid_bill_goes_before_words_of_denied_access() -> None:
    text = (
        "'code': 'Arrearage', 'message': 'Access denied, please make sure your account is in good standing.'"
    )

    assert found(text, code="Arrearage").kind == "quota"
    assert found(text.replace("Arrearage", "Denied"), code="Denied").kind == "auth"
