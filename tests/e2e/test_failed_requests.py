"""`turn/error`: what a failed request was, what the daemon learns, and how the next one is made to fit."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.client import Daemon
from tests.support.talk import CHARS4, assistant, result, turns, user

Spawn = Callable[..., Daemon]

TOO_LONG = {
    "status": 400,
    "body": {
        "type": "error",
        "error": {
            "type": "invalid_request_error",
            "message": "prompt is too long: 151072 tokens > 131072 maximum",
        },
    },
    "provider": "anthropic",
}
"""Anthropic's wording (docs.anthropic.com, Errors; seen 2026-10) with other numbers."""

RATE_LIMIT = {
    "status": 429,
    "body": {"type": "error", "error": {"type": "rate_limit_error", "message": "Too many requests"}},
}

SONNET = "anthropic/claude-sonnet-4-5"


@pytest.fixture
def daemon(spawn: Callable[..., Daemon]) -> Daemon:
    """Return a new daemon for each test, because it remembers what it learns about a model's window."""
    return spawn()


def start(daemon: Daemon, **more: Any) -> str:
    return str(daemon.call("session/start", compaction=CHARS4, **more)["session_id"])


def filled(daemon: Daemon, tokens: int, **more: Any) -> str:
    """A session of about so many tokens in ten turns, with a last request of its own."""
    name = start(daemon, **more)
    daemon.call("session/append", session_id=name, messages=[*turns(10, tokens // 20), user(20, seed=9)])
    return name


def state(daemon: Daemon, name: str) -> dict[str, Any]:
    return dict(daemon.call("agent/state", session_id=name))


def test_an_overflow_is_compacted_at_once_to_a_fifth_of_the_window_and_sent_again(daemon: Daemon) -> None:
    name = filled(daemon, 150_000, model=SONNET)

    answer = daemon.call("turn/error", session_id=name, error=TOO_LONG)

    assert (answer["overflow"], answer["kind"], answer["retry"]) == (True, "overflow", True)
    done = answer["compaction"]
    assert (done["compacted"], done["trigger"], done["strategy"]) == (True, "overflow", "extract")
    assert done["tokens_after"] < done["tokens_before"]
    assert done["tokens_after"] < 131_072 // 5 + 131_072 // 16 + 7600
    assert 0 < answer["max_output_tokens"] <= 131_072
    told = [event["type"] for event in daemon.events(name)]
    assert told.index("overflow_detected") < told.index("compaction_start") < told.index("compaction_end")


def test_the_window_that_a_rejection_names_is_used_from_then_on(spawn: Spawn) -> None:
    daemon = spawn()
    name = filled(daemon, 100_000, model=SONNET)
    before = state(daemon, name)
    daemon.call("turn/error", session_id=name, error=TOO_LONG)
    began = daemon.call("turn/begin", session_id=name)
    after = state(daemon, name)

    assert before["token_usage"]["context_window"] == 200_000
    assert began["token_usage"]["context_window"] == 131_072
    assert after["budget"]["window"] == {"value": 131_072, "source": "a rejection"}
    assert after["budget"]["observed"]["value"] == 131_072
    assert after["budget"]["threshold"]["value"] == 104_858
    assert after["token_usage"]["context_window_confidence"] == "observed"

    daemon.kill()
    again = spawn()
    again.call("session/start", session_id=name)
    assert state(again, name)["token_usage"]["context_window"] == 131_072
    assert state(again, start(again, model=SONNET))["token_usage"]["context_window"] == 131_072
    elsewhere = start(
        again,
        model={"provider": "anthropic", "id": "claude-sonnet-4-5", "base_url": "https://other.example/v1"},
    )
    assert state(again, elsewhere)["token_usage"]["context_window"] == 200_000


def test_what_was_learned_is_listed_with_its_source_and_can_be_forgotten(spawn: Spawn) -> None:
    daemon = spawn()
    name = filled(daemon, 100_000, model=SONNET)
    daemon.call("turn/error", session_id=name, error=TOO_LONG)

    found = daemon.call("models/lookup", model=SONNET)
    (listed,) = daemon.call("models/list", provider="anthropic")["observed"]

    assert (found["context_window"], found["confidence"]) == (131_072, "observed")
    assert "200,000" in found["how"]
    assert (listed["window"], listed["by"], listed["provider"]) == (131_072, "rejection", "anthropic")
    assert daemon.call("models/forget", model=SONNET) == {"forgotten": 1}
    assert daemon.call("models/lookup", model=SONNET)["context_window"] == 200_000
    assert state(daemon, name)["token_usage"]["context_window"] == 200_000
    assert daemon.call("models/forget", all=True) == {"forgotten": 0}


def test_a_rejection_never_raises_a_window_that_is_known(spawn: Spawn) -> None:
    daemon = spawn()
    name = filled(daemon, 150_000, model=SONNET)
    larger = json.loads(json.dumps(TOO_LONG).replace("151072", "451072").replace("131072", "400000"))

    answer = daemon.call("turn/error", session_id=name, error=larger)

    assert answer["overflow"] is True
    assert state(daemon, name)["token_usage"]["context_window"] == 200_000


def test_a_guessed_window_takes_the_number_of_a_rejection(spawn: Spawn) -> None:
    daemon = spawn()
    name = filled(daemon, 60_000, model="acme/never-heard-of-1")
    error = json.loads(json.dumps(TOO_LONG).replace("151072", "65000").replace("131072", "60000"))

    daemon.call("turn/error", session_id=name, error={**error, "provider": "acme"})

    usage = state(daemon, name)["token_usage"]
    assert (usage["context_window"], usage["context_window_confidence"]) == (60_000, "observed")


def test_a_limit_below_what_the_provider_took_already_is_not_believed(spawn: Spawn) -> None:
    daemon = spawn()
    name = filled(daemon, 100_000, model=SONNET)
    daemon.call("turn/begin", session_id=name)
    daemon.call(
        "turn/end",
        session_id=name,
        messages=[assistant(10)],
        usage={"input_tokens": 150_000, "output_tokens": 10},
    )

    daemon.call("turn/error", session_id=name, error=TOO_LONG)

    assert state(daemon, name)["token_usage"]["context_window"] == 200_000


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (RATE_LIMIT, "rate_limit"),
        ({"status": 401, "message": "invalid x-api-key"}, "auth"),
        ({"status": 402, "message": "Insufficient credits"}, "quota"),
        ({"status": 529, "body": {"type": "error", "error": {"type": "overloaded_error"}}}, None),
    ],
)
def test_what_is_no_overflow_changes_nothing(daemon: Daemon, error: dict[str, Any], kind: str | None) -> None:
    name = filled(daemon, 10_000, model=SONNET)
    at = daemon.now
    before = daemon.call("session/context", session_id=name)

    answer = daemon.call("turn/error", session_id=name, error=error)

    assert (answer["overflow"], answer["retry"]) == (False, False)
    assert kind in (None, answer["kind"])
    assert answer["reason"]
    assert daemon.call("session/context", session_id=name) == before
    assert [e["type"] for e in daemon.events(name, after=at)] == []


def test_each_attempt_sends_strictly_less_and_the_fourth_gives_up_with_the_floor(daemon: Daemon) -> None:
    name = filled(daemon, 120_000, model=SONNET)
    vague = {"status": 400, "message": "Your input exceeds the context window of this model."}
    sizes = [daemon.call("session/context", session_id=name)["tokens"]]

    answers = []
    for _ in range(4):
        answers.append(daemon.call("turn/error", session_id=name, error=vague))
        sizes.append(daemon.call("session/context", session_id=name)["tokens"])

    assert [answer["retry"] for answer in answers] == [True, True, True, False]
    assert sizes[0] > sizes[1] > sizes[2] > sizes[3] == sizes[4]
    assert answers[3]["floor"]["last_request"] == 20
    assert "cannot fit" in answers[3]["reason"]


def test_an_answer_that_is_taken_in_starts_the_count_anew(daemon: Daemon) -> None:
    name = filled(daemon, 120_000, model=SONNET)
    vague = {"status": 400, "message": "Your input exceeds the context window of this model."}
    for _ in range(3):
        daemon.call("turn/error", session_id=name, error=vague)
    daemon.call("turn/end", session_id=name, messages=[assistant(10)])
    daemon.call("session/append", session_id=name, messages=[*turns(4, 1000), user(20)])

    assert daemon.call("turn/error", session_id=name, error=vague)["retry"] is True


def test_a_provider_that_counts_more_than_we_do_is_sent_less_in_its_own_measure(daemon: Daemon) -> None:
    name = filled(daemon, 100_000, model=SONNET)
    text = {"status": 400, "message": "prompt is too long: 400000 tokens > 200000 maximum"}

    answer = daemon.call("turn/error", session_id=name, error=text)

    assert answer["retry"] is True
    assert answer["compaction"]["tokens_after"] <= 100_040 // 2


def test_output_that_is_too_much_is_lowered_and_nothing_is_compacted(daemon: Daemon) -> None:
    name = filled(daemon, 100_000, model=SONNET)
    text = "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000, decrease input length or `max_tokens` and try again"  # noqa: E501

    answer = daemon.call("turn/error", session_id=name, error={"status": 400, "message": text})

    assert (answer["overflow"], answer["retry"]) == (True, True)
    assert answer["max_output_tokens"] == 10_000
    assert "compaction" not in answer


def test_with_compaction_disabled_the_overflow_reaches_the_caller(daemon: Daemon) -> None:
    name = str(
        daemon.call("session/start", model=SONNET, compaction={**CHARS4, "enabled": False})["session_id"]
    )
    daemon.call("session/append", session_id=name, messages=turns(10, 5000))

    answer = daemon.call("turn/error", session_id=name, error=TOO_LONG)

    assert (answer["overflow"], answer["retry"]) == (True, False)
    assert "disabled" in answer["reason"]


def test_what_cannot_be_made_smaller_says_so_with_the_floor(daemon: Daemon) -> None:
    name = start(daemon, model=SONNET)
    daemon.call("session/append", session_id=name, messages=[user(199_000)])

    answer = daemon.call("turn/error", session_id=name, error=TOO_LONG)

    assert (answer["overflow"], answer["retry"]) == (True, False)
    assert answer["floor"]["last_request"] == 199_000


def test_an_oversized_tail_is_clipped_so_that_it_fits(daemon: Daemon) -> None:
    name = start(daemon, model=SONNET)
    daemon.call(
        "session/append",
        session_id=name,
        messages=[user(50), assistant(10, "t1"), result("t1", 180_000)],
    )

    answer = daemon.call("turn/error", session_id=name, error=TOO_LONG)

    assert answer["retry"] is True
    assert answer["compaction"]["tokens_after"] <= 131_072


def test_without_a_session_the_refusal_still_says_what_the_failure_was(daemon: Daemon) -> None:
    refusal = daemon.refusal("turn/error", session_id="nobody", error=TOO_LONG)

    assert refusal.code == 1001
    assert (refusal.data["overflow"], refusal.data["kind"], refusal.data["fix"]) == (
        True,
        "overflow",
        "compact",
    )


def test_a_session_that_another_process_writes_says_what_the_failure_was(spawn: Spawn) -> None:
    owner, reader = spawn(), spawn()
    name = filled(owner, 1000, model=SONNET)
    reader.call("session/start", session_id=name)

    refusal = reader.refusal("turn/error", session_id=name, error=RATE_LIMIT)

    assert refusal.code == 1004
    assert (refusal.data["overflow"], refusal.data["kind"]) == (False, "rate_limit")


@pytest.mark.parametrize("status", [400, 413])
def test_an_error_without_a_body_is_an_overflow_under_klaude_and_by_size_elsewhere(
    daemon: Daemon, status: int
) -> None:
    klaude = str(daemon.call("session/start", model=SONNET, compaction={"profile": "klaude"})["session_id"])
    small, large = filled(daemon, 10_000, model=SONNET), filled(daemon, 210_000, model=SONNET)
    daemon.call("session/append", session_id=klaude, messages=[*turns(10, 2000), user(20)])
    error = {"status": status, "message": f"{status} status code (no body)"}

    assert daemon.call("turn/error", session_id=klaude, error=error)["overflow"] is True
    assert daemon.call("turn/error", session_id=small, error=error)["overflow"] is False
    assert daemon.call("turn/error", session_id=large, error=error)["overflow"] is True


def test_the_report_of_a_failed_request_is_billed_and_is_no_size(daemon: Daemon) -> None:
    name = filled(daemon, 10_000, model=SONNET)

    daemon.call(
        "turn/error", session_id=name, error=RATE_LIMIT, usage={"input_tokens": 900, "output_tokens": 5}
    )

    usage = state(daemon, name)["token_usage"]
    assert (usage["prompt_tokens"], usage["last_prompt_tokens"]) == (900, 0)
