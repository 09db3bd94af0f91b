"""An error that quotes a limit from other text does not make a model's window smaller for later sessions."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.client import Daemon
from tests.support.talk import turns, user

Spawn = Callable[..., Daemon]

SONNET = "anthropic/claude-sonnet-4-5"
KNOWN = 200_000
DAY_S = 86_400.0


def quoted(window: int = 2000, requested: int = 5000) -> str:
    return (
        f"This model's maximum context length is {window} tokens. However, you requested {requested} tokens"
    )


def started(daemon: Daemon, tokens: int = 100) -> str:
    """A session of about so many tokens."""
    session = str(daemon.call("session/start", model=SONNET)["session_id"])
    messages = [*turns(10, tokens // 20), user(20, seed=9)]
    daemon.call("session/append", session_id=session, messages=messages)
    return session


def window(daemon: Daemon, session: str | None = None) -> int:
    """The window of `session`, or of a new one."""
    session = session or started(daemon)
    return int(daemon.call("agent/state", session_id=session)["token_usage"]["context_window"])


def fail(daemon: Daemon, session: str, message: str, status: int = 400) -> dict[str, Any]:
    error = {"status": status, "body": {"error": {"message": message}}}
    return dict(daemon.call("turn/error", session_id=session, error=error))


@pytest.mark.parametrize("tokens", [100, 40_000])
@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, f"Failed to download image from https://x/{quoted()}."),
        (400, f"Unsupported file: {quoted()}.png"),
        (400, f"litellm.BadRequestError: AnthropicException - unexpected content: {quoted()}"),
        (500, f"Internal error while processing: {quoted()}"),
        (503, quoted()),
        (400, "messages.3.content.0.text: invalid input: prompt is too long: 5000 tokens > 2000 maximum"),
        (400, quoted()),
    ],
    ids=["url", "file-name", "gateway", "500", "503", "field", "alone"],
)
def test_one_quotation_holds_in_no_other_session(
    status: int, message: str, tokens: int, spawn: Spawn
) -> None:
    daemon = spawn()
    session = started(daemon, tokens)

    fail(daemon, session, message, status)
    fail(daemon, session, message, status)  # the same file is still in the conversation

    assert window(daemon) == KNOWN
    daemon.kill()
    again = spawn()
    assert window(again) == KNOWN
    assert window(again, started(again, tokens)) == KNOWN
    assert again.call("models/lookup", model=SONNET)["context_window"] == KNOWN


@pytest.mark.parametrize("status", [500, 502, 503, 529])
def test_a_failure_of_the_server_itself_teaches_nothing_at_all(status: int, spawn: Spawn, home: Path) -> None:
    daemon = spawn()
    session = started(daemon, 120_000)

    fail(daemon, session, quoted(100_000, 120_500), status)

    assert window(daemon, session) == KNOWN
    assert not (home / "observed.jsonl").exists()


def test_a_window_that_is_far_larger_than_what_was_sent_holds_in_its_session_alone(spawn: Spawn) -> None:
    daemon = spawn()
    session = started(daemon, 1000)

    fail(daemon, session, quoted(100_000, 120_000))

    assert (window(daemon, session), window(daemon)) == (100_000, KNOWN)


def test_a_size_that_is_far_from_what_was_sent_is_a_quotation(spawn: Spawn) -> None:
    daemon = spawn()
    session = started(daemon, 150_000)

    fail(daemon, session, quoted(60_000, 61_000))

    assert (window(daemon, session), window(daemon)) == (60_000, KNOWN)


def test_a_small_window_that_two_requests_of_two_sizes_met_is_learned(spawn: Spawn) -> None:
    daemon = spawn()
    first, second = started(daemon, 24_000), started(daemon, 33_000)

    fail(daemon, first, quoted(16_384, 24_100))
    alone = (window(daemon, first), window(daemon))
    fail(daemon, first, quoted(16_384, 24_100))
    repeated = window(daemon)
    fail(daemon, second, quoted(16_384, 33_050))

    assert (alone, repeated) == ((16_384, KNOWN), KNOWN)
    assert window(daemon) == 16_384
    daemon.kill()
    assert window(spawn()) == 16_384


def test_a_plausible_rejection_is_learned_at_once(spawn: Spawn) -> None:
    daemon = spawn()

    fail(daemon, started(daemon, 110_000), quoted(100_000, 111_000))

    assert window(daemon) == 100_000


def test_a_session_that_was_accepted_above_a_doubtful_window_forgets_it(spawn: Spawn) -> None:
    daemon = spawn()
    session = started(daemon, 1000)
    fail(daemon, session, quoted(2000, 5000))
    before = window(daemon, session)

    daemon.call("turn/begin", session_id=session)
    reply = {"role": "assistant", "content": "Done."}
    usage = {"input_tokens": 9000, "output_tokens": 10}
    daemon.call("turn/end", session_id=session, messages=[reply], usage=usage)

    assert (before, window(daemon, session)) == (2000, KNOWN)


def test_another_model_or_a_word_of_the_user_ends_a_doubtful_window(spawn: Spawn) -> None:
    daemon = spawn()
    first, second = started(daemon, 1000), started(daemon, 1100)
    for session in (first, second):
        fail(daemon, session, quoted(2000, 5000))

    daemon.call("model/set", session_id=first, model="anthropic/claude-opus-4-5")
    forgotten = daemon.call("models/forget", model=SONNET)

    assert (forgotten, window(daemon, first), window(daemon, second)) == ({"forgotten": 1}, KNOWN, KNOWN)


# --- what is there already --------------------------------------------------------------------------------


def written(home: Path, **fields: Any) -> None:
    """A line of `observed.jsonl`, as an earlier version left it."""
    line = {
        "model": "claude-sonnet-4-5", "window": 100_000, "by": "rejection", "at": time.time(),
        "provider": "anthropic", "known": KNOWN, **fields,
    }  # fmt: skip
    home.mkdir(parents=True, exist_ok=True)
    with (home / "observed.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, 100_000),
        ({"at": time.time() - 13 * DAY_S}, 100_000),
        ({"at": time.time() - 15 * DAY_S}, KNOWN),
        ({"at": time.time() + 400 * DAY_S}, KNOWN),
        ({"window": 2000}, KNOWN),
        ({"window": 2000, "by": "server"}, 2000),
        ({"by": "server", "at": time.time() - 15 * DAY_S}, KNOWN),
        ({"by": "sighting"}, KNOWN),
        ({"known": 180_000}, KNOWN),
    ],
    ids=["young", "13-days", "15-days", "future", "tiny", "own-word", "old-word", "sighting", "other-row"],
)
def test_a_file_of_an_earlier_version_is_judged_by_todays_rules(
    fields: dict[str, Any], expected: int, spawn: Spawn, home: Path
) -> None:
    written(home, **fields)

    assert window(spawn()) == expected


def test_a_session_is_told_that_a_learned_window_is_in_force(spawn: Spawn, home: Path) -> None:
    written(home)
    daemon = spawn()

    (warning,) = daemon.call("session/start", model=SONNET)["warnings"]
    daemon.call("models/forget", model=SONNET)
    after = daemon.call("session/start", model=SONNET)["warnings"]

    assert "100,000" in warning
    assert "200,000" in warning
    assert "`compactd models claude-sonnet-4-5 --forget`" in warning
    assert after == []


def test_the_list_says_until_when_a_window_counts_and_why_one_does_not(spawn: Spawn, home: Path) -> None:
    at = time.time()
    written(home, at=at)
    written(home, window=2000, model="claude-opus-4-5", at=at)

    opus, sonnet = spawn().call("models/list", provider="anthropic")["observed"]

    assert (sonnet["confirmed"], sonnet["until"], sonnet["doubt"]) == (True, at + 14 * DAY_S, "")
    assert (opus["confirmed"], "less than a quarter" in opus["doubt"]) == (False, True)


@pytest.mark.parametrize("message", [quoted(), f"Unsupported file: {quoted()}.png"], ids=["own", "quoted"])
def test_a_doubtful_window_counts_in_its_session_after_a_restart_too_until_it_is_forgotten(
    message: str, spawn: Spawn
) -> None:
    daemon = spawn()
    session = started(daemon, 4000)
    fail(daemon, session, message)
    fail(daemon, session, "context_length_exceeded")
    assert window(daemon, session) == 2000
    daemon.kill()

    again = spawn()
    again.call("session/start", session_id=session)
    assert (window(again, session), window(again)) == (2000, KNOWN)

    again.call("models/forget", all=True)
    assert window(again, session) == KNOWN
    again.kill()
    last = spawn()
    last.call("session/start", session_id=session)
    assert window(last, session) == KNOWN
