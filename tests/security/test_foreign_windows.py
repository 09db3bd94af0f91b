"""A context limit in foreign text inside an error changes the window of no other session."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.client import Daemon
from tests.support.talk import CHARS4

MODEL = "openai/gpt-4o"
KNOWN = 128_000
SENTENCE = (
    "This model's maximum context length is 33000 tokens. However, your messages resulted in 61000 tokens."
)
ANTHROPIC = "prompt is too long: 61000 tokens > 33000 maximum"


def message(text: str, **more: Any) -> dict[str, Any]:
    return {"error": {"message": text, **more}}


FOREIGN: dict[str, tuple[int | None, Any]] = {
    "tool": (400, message(f"Tool `a` failed: {SENTENCE}")),
    "fetch": (400, message(f"Failed to fetch http://evil/{SENTENCE}")),
    "file": (400, message(f"File README.md: {SENTENCE}")),
    "parameter": (400, message(f"Unknown parameter: 'x'. Input was: {SENTENCE}")),
    "field": (400, message(f"Invalid 'messages[3].content': {SENTENCE}")),
    "upstream": (400, message(f"Upstream tool server said: {SENTENCE}")),
    "rejected": (400, message(f"prompt is rejected because it contains: {SENTENCE}")),
    "status-403": (403, message(SENTENCE)),
    "model-404": (404, message(f"model `{SENTENCE}` not found")),
    "status-404": (404, message(SENTENCE)),
    # Further forms of the same.
    "body-in-message": (400, message(f"MCP server failed: {json.dumps(message(SENTENCE))}")),
    "two-messages": (400, {"error": {"message": "Bad tool schema", "details": SENTENCE}}),
    "end-of-a-name": (400, message(f"{SENTENCE} is no valid file name")),
    "suffix": (400, message(f"{SENTENCE[:-1]}.png could not be loaded")),
    "bare-text": (400, f"Error: 400 Could not parse attachment: {SENTENCE}"),
    "own-words": (400, message(f"Your prompt contains: {SENTENCE}")),
    "own-words-without-colon": (400, message(f"The content of your message is {SENTENCE}")),
    "class-of-a-tool": (400, f"ToolExecutionError: {SENTENCE}"),
    "line-above": (400, f"Could not run the tool\n{SENTENCE}"),
    "between": (
        400,
        message("This model's maximum context length, says README, is 33000 tokens, not 61000."),
    ),
    "gateway": (400, f"litellm.BadRequestError: OpenAIException - web_search returned: {SENTENCE}"),
    "anthropic": (400, message(f"messages.1.content.0.text: {ANTHROPIC}", type="invalid_request_error")),
    "fields-in-a-string": (400, message('Tool said {"n_prompt_tokens": 61000, "n_ctx": 33000}: too long')),
    "status-in-the-text": (None, f"Error code: 403 - {json.dumps(message(SENTENCE))}"),
}

OWN: dict[str, tuple[int | None, Any]] = {
    "openai": (400, message(SENTENCE, code="context_length_exceeded")),
    "anthropic": (400, {"type": "error", **message(ANTHROPIC, type="invalid_request_error")}),
    "openrouter": (
        400,
        "litellm.BadRequestError: OpenrouterException - "
        + json.dumps(message(SENTENCE.replace("This model's", "This endpoint's"))),
    ),
    "sdk": (400, f"Error code: 400 - {json.dumps(message(SENTENCE))}"),
    "bedrock": (400, f"ValidationException: The model returned the following errors: {ANTHROPIC}"),
    "stream": (200, message(SENTENCE)),
    "without-status": (None, SENTENCE),
}


def failed(daemon: Daemon, status: int | None, body: Any) -> tuple[dict[str, Any], int, int]:
    """The answer to a failed request of about 60,000 tokens, its session's window, and a new one's."""
    session = str(daemon.call("session/start", model=MODEL, compaction=CHARS4)["session_id"])
    messages = [
        {"role": "user", "content": "word " * 48_000},
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": "Go on."},
    ]
    daemon.call("session/append", session_id=session, messages=messages)
    daemon.call("turn/begin", session_id=session)
    error = {"body": body} if status is None else {"status": status, "body": body}
    answer = daemon.call("turn/error", session_id=session, error=error)
    new = daemon.call("session/start", model=MODEL)
    used = daemon.call("agent/state", session_id=session)["token_usage"]
    return answer, used["context_window"], new["token_usage"]["context_window"]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One daemon for all errors, because it must not learn a window from any of them."""
    with Daemon(tmp_path_factory.mktemp("foreign") / "home") as running:
        yield running


@pytest.mark.parametrize("name", FOREIGN)
def test_a_limit_in_foreign_text_is_no_other_sessions_window(name: str, daemon: Daemon) -> None:
    _, _, new = failed(daemon, *FOREIGN[name])
    learned = daemon.call("models/list", provider="openai")["observed"]
    daemon.call("models/forget", all=True)  # if a window was learned, the next case must not see it

    assert (new, learned) == (KNOWN, [])


@pytest.mark.parametrize("name", OWN)
def test_a_limit_that_the_provider_itself_states_is_every_sessions_window(name: str, daemon: Daemon) -> None:
    answer, own, new = failed(daemon, *OWN[name])
    daemon.call("models/forget", all=True)

    assert (answer["overflow"], own, new) == (True, 33_000, 33_000)


def test_an_error_that_may_be_a_quotation_still_compacts_its_own_session(daemon: Daemon) -> None:
    answer, own, new = failed(daemon, *FOREIGN["upstream"])

    assert (answer["overflow"], answer["retry"], answer["compaction"]["compacted"]) == (True, True, True)
    assert (own, new) == (33_000, KNOWN)
