"""`model/set`: the new model's window applies at once. A context too large for it is compacted or refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.client import Daemon
from tests.support.talk import CHARS4, turns, user

LARGE = "anthropic/claude-sonnet-4-5"
SMALL = "openai/gpt-4o"
TINY = "openai/gpt-4"


@pytest.fixture
def daemon(spawn: Callable[..., Daemon]) -> Daemon:
    """Return a new daemon for each test, because it remembers what it learns about a model's window."""
    return spawn()


def filled(daemon: Daemon, tokens: int, **more: Any) -> str:
    settings = {**CHARS4, **more.pop("compaction", {})}
    name = str(daemon.call("session/start", model=LARGE, compaction=settings, **more)["session_id"])
    daemon.call("session/append", session_id=name, messages=[*turns(10, tokens // 20), user(20, seed=9)])
    return name


def decision(daemon: Daemon, name: str) -> dict[str, Any]:
    return dict(daemon.call("session/append", session_id=name, messages=[])["decision"])


def test_a_smaller_window_shows_at_once_in_threshold_percent_and_decision(daemon: Daemon) -> None:
    name = filled(daemon, 110_000)
    before = daemon.call("agent/state", session_id=name)["token_usage"]
    kind_before = decision(daemon, name)["kind"]
    at = daemon.now

    answer = daemon.call("model/set", session_id=name, model=SMALL)

    usage = answer["token_usage"]
    assert (answer["model"], usage["context_window"], usage["threshold_tokens"]) == (SMALL, 128_000, 102_400)
    assert usage["percent"] > before["percent"]
    assert usage["epoch"] == before["epoch"] + 1
    assert (kind_before, decision(daemon, name)["kind"]) == ("fits", "due")
    told = [event["type"] for event in daemon.events(name, after=at)]
    assert told[:2] == ["model_changed", "usage_update"]
    assert daemon.call("turn/begin", session_id=name)["compaction"]["compacted"] is True


def test_a_conversation_over_the_new_window_is_compacted_under_the_old_model_first(daemon: Daemon) -> None:
    name = filled(daemon, 150_000)

    answer = daemon.call("model/set", session_id=name, model=SMALL)

    done = answer["compaction"]
    assert (done["compacted"], done["trigger"]) == (True, "model_switch")
    assert answer["token_usage"]["current_context_tokens"] < 102_400
    assert decision(daemon, name)["kind"] == "fits"


def test_what_cannot_fit_is_refused_with_the_floor_and_the_model_stays(daemon: Daemon) -> None:
    name = str(daemon.call("session/start", model=LARGE, compaction=CHARS4)["session_id"])
    daemon.call("session/append", session_id=name, messages=[*turns(3, 100), user(20_000)])
    before = daemon.call("session/context", session_id=name)

    refusal = daemon.refusal("model/set", session_id=name, model=TINY)

    assert refusal.code == 1008
    assert refusal.data["floor"]["last_request"] == 20_000
    assert daemon.call("agent/state", session_id=name)["model"] == LARGE
    assert daemon.call("session/context", session_id=name) == before


def test_with_compaction_disabled_nothing_is_made_to_fit(daemon: Daemon) -> None:
    name = filled(daemon, 150_000, compaction={"enabled": False})

    assert daemon.refusal("model/set", session_id=name, model=SMALL).code == 1008
    assert daemon.call("agent/state", session_id=name)["model"] == LARGE


def test_the_same_model_again_changes_nothing(daemon: Daemon) -> None:
    name = filled(daemon, 1000)
    before = daemon.call("agent/state", session_id=name)["token_usage"]
    at = daemon.now

    assert daemon.call("model/set", session_id=name, model=LARGE)["token_usage"] == before
    assert daemon.events(name, after=at) == []


def test_an_unknown_model_is_a_guess_that_says_so(daemon: Daemon) -> None:
    name = filled(daemon, 1000)

    usage = daemon.call("model/set", session_id=name, model="acme/never-heard-of-1")["token_usage"]

    assert (usage["context_window"], usage["context_window_confidence"]) == (128_000, "guess")


def test_the_model_of_another_endpoint_is_another_model(daemon: Daemon) -> None:
    name = filled(daemon, 1000)
    model = {"provider": "anthropic", "id": "claude-sonnet-4-5", "base_url": "https://other.example"}

    answer = daemon.call("model/set", session_id=name, model=model)

    assert answer["token_usage"]["epoch"] == 2


def test_an_empty_name_is_refused(daemon: Daemon) -> None:
    name = filled(daemon, 1000)

    assert daemon.refusal("model/set", session_id=name, model=" ").code == -32602


def test_the_switch_survives_a_restart(spawn: Any) -> None:
    daemon = spawn()
    name = filled(daemon, 1000)
    daemon.call("model/set", session_id=name, model=SMALL)
    daemon.kill()

    again = spawn().call("session/start", session_id=name)

    assert (again["model"], again["context_window"]) == (SMALL, 128_000)
