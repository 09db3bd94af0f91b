"""Texts that only mention an overflow, or say that something else is too long, are no overflow."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compactd.core.overflow.classify import FailureReport, classify

HERE = Path(__file__).parent / "texts"
PASSAGES: dict[str, str] = json.loads((HERE / "passages.json").read_text("utf-8"))
MENTIONS = (HERE / "mentions.txt").read_text("utf-8").splitlines()
STRANGERS = (HERE / "strangers.txt").read_text("utf-8").splitlines()
WORDINGS = [json.loads(line) for line in (HERE / "wordings.jsonl").read_text("utf-8").splitlines()]
REFUSALS = [row["text"] for row in WORDINGS if row["kind"] == "overflow" and not row.get("wrapped")]

TOO_LONG = "prompt is too long: 213462 tokens > 200000 maximum"


def is_overflow(text: str, status: int | None = None) -> bool:
    return classify(FailureReport(text=text, status=status)).overflow


@pytest.mark.parametrize("place", PASSAGES)
def test_no_wording_is_an_overflow_where_it_is_quoted(place: str) -> None:
    passages = [PASSAGES[place].format(text.replace('"', "'")) for text in REFUSALS]

    assert [passage for passage in passages if is_overflow(passage)] == []


@pytest.mark.parametrize("text", MENTIONS)
def test_a_line_that_mentions_an_overflow_is_none(text: str) -> None:
    assert not is_overflow(text)


@pytest.mark.parametrize("text", STRANGERS)
def test_another_thing_that_is_too_long_is_no_overflow(text: str) -> None:
    assert not is_overflow(text)


@pytest.mark.parametrize(
    "key", ["input", "input_value", "failed_generation", "arguments", "messages", "prompt", "content"]
)
@pytest.mark.parametrize("status", [None, 400, 422])
def test_an_echo_of_the_request_is_not_read(status: int | None, key: str) -> None:
    body = json.dumps({"error": {"message": "Field required", "type": "missing", key: TOO_LONG}})
    nested = json.dumps({"detail": [{"msg": "Field required", key: {"error": {"message": TOO_LONG}}}]})

    assert not is_overflow(body, status)
    assert not is_overflow(nested, status)


@pytest.mark.parametrize(
    "message",
    [
        f"Invalid value for messages[3].name: '{TOO_LONG}' does not match the pattern",
        f"Failed to parse tool arguments as JSON: {TOO_LONG}",
        f'tool_use arguments were not valid: "{TOO_LONG}" is not an object',
        f"Unexpected text `{TOO_LONG}` after the tool result",
    ],
)
def test_an_unrelated_refusal_that_quotes_the_request_is_no_overflow(message: str) -> None:
    found = classify(FailureReport(text=json.dumps({"error": {"message": message}}), status=400))

    assert (found.overflow, found.kind) == (False, "invalid_request")


def test_a_refusal_in_quotation_marks_alone_is_one() -> None:
    assert is_overflow(f'400 "{TOO_LONG}"')
    assert is_overflow(f'Error: request failed with message: "{TOO_LONG}"', 400)


SERVICED = (
    "[inference] | ValueError: {}\n[inference] | Traceback (most recent call last):\n"
    '[inference] |   File "/srv/app/serve.py", line 88, in handle\n[inference] |     return run(request)'
)


def test_a_services_lines_are_its_word_only_where_a_server_answered_with_them() -> None:
    text = SERVICED.format(TOO_LONG)

    assert is_overflow(text, 500)
    assert not is_overflow(text)


def test_lines_of_two_services_are_no_one_services_word() -> None:
    text = SERVICED.format(TOO_LONG) + "\n[router] | INFO: 3 models loaded\n[router] | INFO: ready"

    assert not is_overflow(text)
