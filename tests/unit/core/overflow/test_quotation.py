"""Text about errors, quotations of the request, and other things that are too long are no overflow."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compactd.core.overflow.classify import FailureReport, Verdict, classify

HERE = Path(__file__).parent / "texts"
PASSAGES: dict[str, str] = json.loads((HERE / "passages.json").read_text("utf-8"))
MENTIONS = (HERE / "mentions.txt").read_text("utf-8").splitlines()
STRANGERS = (HERE / "strangers.txt").read_text("utf-8").splitlines()
WORDINGS = [json.loads(line) for line in (HERE / "wordings.jsonl").read_text("utf-8").splitlines()]
REFUSALS = [row["text"] for row in WORDINGS if row["kind"] == "overflow" and not row.get("wrapped")]

TOO_LONG = "prompt is too long: 213462 tokens > 200000 maximum"


def found(text: str, status: int | None = None) -> Verdict:
    return classify(FailureReport(text=text, status=status))


def is_overflow(text: str, status: int | None = None) -> bool:
    return found(text, status).overflow


@pytest.mark.parametrize("status", [None, 200])
@pytest.mark.parametrize("place", PASSAGES)
def test_no_quoted_wording_names_a_window_for_other_sessions(place: str, status: int | None) -> None:
    passages = [PASSAGES[place].format(text.replace('"', "'")) for text in REFUSALS]

    assert [passage for passage in passages if found(passage, status).is_own] == []


@pytest.mark.parametrize("place", ["issue", "issuejson", "pytest", "role", "stdout", "toolresult"])
def test_no_wording_is_an_overflow_in_a_record_or_among_five_lines(place: str) -> None:
    passages = [PASSAGES[place].format(text.replace('"', "'")) for text in REFUSALS]

    assert [passage for passage in passages if is_overflow(passage)] == []


@pytest.mark.parametrize(
    "place",
    [
        "changelog",
        "chat",
        "chinese",
        "code2",
        "commit",
        "diff",
        "elixir",
        "expect",
        "french",
        "jest",
        "js",
        "logjson",
        "prose",
        "prose2",
        "prose3",
        "readme",
        "russian",
        "rust",
        "so",
        "yaml",
    ],
)
def test_three_of_four_wordings_are_no_overflow_where_somebody_writes_about_them(place: str) -> None:
    passages = [PASSAGES[place].format(text.replace('"', "'")) for text in REFUSALS]

    assert sum(map(is_overflow, passages)) <= len(passages) / 4


@pytest.mark.parametrize("status", [None, 200])
@pytest.mark.parametrize("text", MENTIONS)
def test_no_line_that_mentions_an_overflow_names_a_window_for_other_sessions(
    text: str, status: int | None
) -> None:
    assert not found(text, status).is_own


def test_a_third_of_the_lines_that_mention_an_overflow_are_none() -> None:
    assert sum(map(is_overflow, MENTIONS)) <= len(MENTIONS) * 2 / 3


TOLD = (
    f'Why does it say "{TOO_LONG}"?',
    f"- I get this: {TOO_LONG}",
    f"# Errors\n\n{TOO_LONG}\n\nThis means that the conversation does not fit.",
    f"We saw '{TOO_LONG}' on the second machine.",
    f"It was late. The build ran. Nothing helped. {TOO_LONG}. Can you look?",
)


@pytest.mark.parametrize("text", TOLD)
def test_two_signs_of_somebody_who_tells_of_an_error_make_it_none(text: str) -> None:
    assert not is_overflow(text)


@pytest.mark.parametrize(
    "text",
    [
        f"Sorry, I had a problem talking to the model: {TOO_LONG}",
        f"{TOO_LONG}. Compact now?",
        f'Error: "{TOO_LONG}"',
        f"{TOO_LONG}\n- use /compact\n- use a larger model",
        f"Error. {TOO_LONG}. The request was not sent. Nothing was saved.",
    ],
    ids=["narrator", "question", "quotation", "list", "sentences"],
)
def test_one_such_sign_leaves_an_error_an_error(text: str) -> None:
    assert is_overflow(text)


def test_a_failure_that_is_repeated_at_each_attempt_is_one_failure() -> None:
    text = "\n".join(f"stream error: {TOO_LONG}; retrying {n}/8 in {n * 97}ms" for n in range(1, 9))

    assert is_overflow(text)


def test_long_prose_is_an_error_only_if_a_server_answered_with_it() -> None:
    prose = f"It stopped at night.\nThe log is short:\n{TOO_LONG}\nWith another model\nit works.\n"

    assert not found(prose).overflow
    assert not found(prose, 200).overflow
    assert found(prose, 400).overflow


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"type": "tool_result", "tool_use_id": "t1", "content": TOO_LONG, "is_error": True}),
        json.dumps({"stdout": TOO_LONG, "stderr": "", "exit_code": 1}),
        json.dumps({"level": "error", "ts": "2026-01-01T00:00:00Z", "msg": TOO_LONG, "service": "billing"}),
        json.dumps({"number": 12, "title": TOO_LONG, "html_url": "https://github.com/x/y/issues/12"}),
        json.dumps({"role": "user", "content": TOO_LONG}),
    ],
    ids=["tool", "command", "log", "issue", "message"],
)
def test_a_record_that_holds_an_error_is_none(text: str) -> None:
    assert not found(text).overflow


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
    seen = found(json.dumps({"error": {"message": message}}), 400)

    assert (seen.overflow, seen.kind) == (False, "invalid_request")


def test_a_refusal_in_quotation_marks_alone_is_one() -> None:
    assert is_overflow(f'400 "{TOO_LONG}"')
    assert is_overflow(f'Error: request failed with message: "{TOO_LONG}"', 400)


SERVICED = (
    "[inference] | ValueError: {}\n[inference] | Traceback (most recent call last):\n"
    '[inference] |   File "/srv/app/serve.py", line 88, in handle\n[inference] |     return run(request)'
)


def test_a_services_name_before_each_line_changes_nothing() -> None:
    text = SERVICED.format(TOO_LONG)

    assert is_overflow(text, 500)
    assert is_overflow(text)
