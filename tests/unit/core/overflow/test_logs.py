"""A program's log of one refusal counts as the refusal."""

from __future__ import annotations

import pytest

from compactd.core.overflow.classify import FailureReport, Verdict, classify

SAID = "the prompt of 9001 tokens exceeds the context window of 8192"
BODY = (
    '{"error": {"message": "This model\'s maximum context length is 8192 tokens. However, your messages '
    'resulted in 9001 tokens.", "type": "invalid_request_error", "code": "context_length_exceeded"}}'
)

PLACED = (
    "handler.go:3283: stream broke off, retrying (attempt 1/3, account 11736): context_length_exceeded · "
    "response.failed · Your input exceeds the context window of this model.",
    f"relay.go:88: upstream refused: {BODY}",
    f"client.py:512: Error code: 400 - {BODY}",
    f"[server.cpp:88] {BODY}",
    f"proxy.rs:41:9: status 400: {BODY}",
    f"gateway.ts:7: openai.BadRequestError: {SAID}",
    "bridge.js:700: context_window_exceeded: your input exceeds the context window of this model",
    "retry.go:12: context_length_exceeded - the input is longer than the context window (attempt 1/3)\n"
    "retry.go:12: context_length_exceeded - the input is longer than the context window (attempt 2/3)",
    f"[server.cpp:88] {SAID}",
    "stream.rs:19: provider refused (context_length_exceeded): input exceeds the context window",
    "handler.go:88: upstream error for account 11736: context_length_exceeded",
)

SERVER_LOG = (
    "slot launch_slot_: id  0 | task 2119 | processing task\n"
    "slot update_slots: id  0 | task 2119 | new prompt, n_ctx_slot = 131072, n_keep = 0, "
    "n_prompt_tokens = 896012\n"
    "slot      release: id  0 | task 2119 | stop processing: n_past = 0, truncated = 0\n"
    "srv    send_error: task id = 2119, error: {}"
)
TOO_LARGE = (
    "the request exceeds the available context size. try increasing the context size or enable context shift"
)

CARD = (
    "⚠️  API call failed (attempt 1/10): APIError\n   🔌 Provider: somebody  Model: some-5.5\n"
    "   🌐 Endpoint: https://api.example.org/v1\n   📝 Error: {}"
)


def found(text: str, status: int | None = None) -> Verdict:
    return classify(FailureReport(text=text, status=status))


@pytest.mark.parametrize("text", PLACED)
def test_a_loggers_line_with_a_providers_error_is_the_refusal(text: str) -> None:
    seen = found(text)

    assert seen.overflow
    assert (seen.limit, seen.requested) in ((8192, 9001), (None, None))


def test_the_lines_of_a_model_server_are_the_answer_to_their_one_request() -> None:
    seen = found(SERVER_LOG.format(TOO_LARGE), 200)

    assert (seen.kind, seen.limit, seen.requested) == ("overflow", 131072, 896012)


@pytest.mark.parametrize(
    ("before", "behind"),
    [
        ("", "\nsrv  update_slots: no tokens to decode\nsrv  update_slots: all slots are idle"),
        ("srv  params_from_: Chat format: Content-only\n", ""),
        ("main: server is listening on 127.0.0.1:8080\n", ""),
        ("", "\nsrv  log_server_r: request: POST /v1/chat/completions 127.0.0.1 400"),
    ],
)
def test_other_lines_of_that_server_change_nothing(before: str, behind: str) -> None:
    seen = found(before + SERVER_LOG.format(TOO_LARGE) + behind)

    assert (seen.kind, seen.limit, seen.requested) == ("overflow", 131072, 896012)


def test_the_number_of_a_task_is_never_what_was_requested() -> None:
    for text in (
        f"slot update_slots: id  0 | task 2119 | {TOO_LARGE}",
        f"srv    send_error: task id = 2119, error: {TOO_LARGE}",
        f"slot launch_slot_: id  3 | task 90119 | processing task\nsrv  update: wait\n"
        f"srv    send_error: task id = 90119, error: {TOO_LARGE}",
    ):
        seen = found(text, 500)

        assert (seen.overflow, seen.limit, seen.requested) == (True, None, None), text


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("Your input exceeds the context window of this model. Please adjust your input.", "overflow"),
        (SAID, "overflow"),
        (f"HTTP 400: {BODY}", "overflow"),
        ("Rate limit reached for requests per minute", "rate_limit"),
        ("Your credit balance is too low", "quota"),
        ("Incorrect API key provided", "auth"),
    ],
)
def test_a_card_says_what_its_error_says(error: str, kind: str) -> None:
    assert found(CARD.format(error)).kind == kind


@pytest.mark.parametrize(
    "card",
    [
        "❌ Request failed after 3 retries\n  Model: some-5.5\n  Status: 400\n  Message: {}",
        "API error\nProvider: somebody\nModel: some-5.5\nReason: {}",
        "LLM call failed: BadRequestError\n- \n Endpoint: https://api.example.org\n Error: {}".replace(
            "- \n", ""
        ),
        "⚠️ Completion failed\n  Provider: somebody\n  Request ID: 12345\n  Attempt: 2/3\n  Error: {}",
    ],
)
def test_cards_of_other_agents_are_read_alike(card: str) -> None:
    seen = found(card.format(SAID))

    assert (seen.kind, seen.limit, seen.requested) == ("overflow", 8192, 9001)


@pytest.mark.parametrize(
    "text",
    [
        SERVER_LOG.format(TOO_LARGE) + "\nWhy does it say that although the window is large enough?",
        CARD.format(SAID) + "\n   Expected: the session is compacted\n   Actual: the agent stops",
        CARD.format(SAID) + "\n\nHow do I get rid of this?",
    ],
)
def test_a_log_or_card_that_somebody_asks_about_is_none(text: str) -> None:
    assert not found(text).overflow
