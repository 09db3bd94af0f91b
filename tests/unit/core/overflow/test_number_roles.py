"""Refusals that say more than one sentence: a field's value, a unit, what is left, a month, a log record."""

from __future__ import annotations

import json

import pytest

from compactd.core.overflow.classify import FailureReport, Verdict, classify


def found(text: str, status: int | None = None) -> Verdict:
    return classify(FailureReport(text=text, status=status))


def refused(field: str, value: int) -> str:
    """Return the error with which pydantic refuses a field's value."""
    return json.dumps(
        {"detail": [{"loc": ["body", field], "msg": "Input should be at least 1", "input": value}]}
    )


def test_a_negative_output_budget_is_an_overflow_for_nobody_sends_one() -> None:
    assert found(refused("max_tokens", -512), 422).kind == "overflow"
    assert found(refused("max_tokens", 0), 422).kind == "invalid_request"
    assert found(refused("temperature", -3), 422).kind == "invalid_request"


@pytest.mark.parametrize("code", ["prompt_too_long", "input_too_long"])
def test_a_unit_of_characters_beats_a_code_that_names_a_length(code: str) -> None:
    text = json.dumps({"error": code, "message": "Maximum prompt length is 10,000 characters"})

    assert found(text, 400).kind == "payload_too_large"
    assert found(json.dumps({"error": code, "message": "start a fresh chat."}), 413).kind == "overflow"


def test_what_is_left_of_a_window_is_neither_its_limit_nor_what_was_sent() -> None:
    verdict = found("Context overflow: 4100 tokens do not fit in the remaining 2900 of 8192")

    assert (verdict.kind, verdict.limit, verdict.requested) == ("overflow", 8192, None)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Monthly token limit exceeded.", "quota"),
        ("This call would cost about $2.10 (41000 prompt tokens), above your $2.00 limit", "quota"),
        ("Token limit exceeded: 60000 tokens per 60s", "rate_limit"),
        ("Token limit exceeded: the response was truncated.", "output_limit"),
        ("Tool result exceeds available context; retrieve artifact a1.", "other"),
        ("Warning: tool output is large (30k tokens) and may fill the context window", "other"),
        ("File content (9120 tokens) exceeds the token limit (8000 tokens).", "other"),
        ("The attached file is too large for the model's context window", "overflow"),
        ("The text is too long for the model. Start a new chat.", "overflow"),
        ("This thread has hit its length limit. Start a new thread.", "overflow"),
    ],
)
def test_the_thing_that_is_too_long_tells_the_kind(text: str, kind: str) -> None:
    assert found(text).kind == kind


def test_a_record_of_one_failure_at_error_level_is_the_providers_word_others_are_not() -> None:
    record = {
        "level": "error",
        "timestamp": "2026-05-11T18:09:44Z",
        "error": "Context size has been exceeded.",
    }

    assert found(json.dumps(record)).overflow
    assert not found(json.dumps(record | {"level": "info"})).overflow
    assert not found("\n".join([json.dumps(record)] * 4)).overflow


def test_a_clients_advice_behind_a_refusal_makes_no_list_of_it() -> None:
    said = "Session token limit exceeded: 132,400 tokens > 131,072 limit."
    advice = "\n\nSolutions:\n   - Start a new session\n   - Increase the limit"

    assert (found(said + advice).limit, found(said + advice).requested) == (131072, 132400)
    assert not found(f"Notes of today\n - {said}\n - Start a new session\n - Increase the limit").overflow
