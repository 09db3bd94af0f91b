"""Values that are accepted but probably a mistake: the result has a warning."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.client import Daemon
from tests.support.talk import CHARS4, assistant, user


def warnings_of(daemon: Daemon, **params: Any) -> list[str]:
    return list(daemon.call("session/start", persist=False, **params)["warnings"])


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("antropic/claude-sonet-4-5", "anthropic/claude-sonnet-4-5"),
        ("anthropic/claude-sonnet-45-x", "anthropic/claude-sonnet-4-5"),
        ("opnai/gpt-4o", "openai/gpt-4o"),
        ("acme/unheard-of-9", None),
    ],
)
@pytest.mark.parametrize("method", ["session/start", "model/set"])
def test_a_model_that_nobody_knows_is_told_of_with_those_named_like_it(
    daemon: Daemon, method: str, name: str, near: str | None
) -> None:
    session = daemon.call("session/start", persist=False)["session_id"]

    [warning] = daemon.call(method, session_id=session, model=name)["warnings"]

    assert "is not in the registry" in warning
    assert "a guess" in warning
    assert (near in warning) if near else ("perhaps" not in warning)


def test_a_model_that_is_known_is_not_told_of(daemon: Daemon) -> None:
    assert warnings_of(daemon, model="anthropic/claude-sonnet-4-5") == []
    session = daemon.call("session/start", persist=False)["session_id"]
    assert "warnings" not in daemon.call("model/set", session_id=session, model="openai/gpt-4o")


def test_a_router_that_picks_a_model_is_told_of(daemon: Daemon) -> None:
    [warning] = warnings_of(daemon, model="openrouter/auto")

    assert "a router, which picks a model" in warning


def test_a_window_that_is_given_is_no_guess(daemon: Daemon) -> None:
    [warning] = warnings_of(daemon, model="acme/unheard-of-9", context_window=50_000)

    assert "guess" not in warning


@pytest.mark.parametrize("base_url", ["nonsense", "ftp://a.example", "https://", "localhost:11434"])
def test_an_endpoint_that_is_no_url_is_told_of(daemon: Daemon, base_url: str) -> None:
    model = {"provider": "openai", "id": "gpt-4o", "base_url": base_url}

    assert any("is not an http or https URL" in warning for warning in warnings_of(daemon, model=model))


def test_an_endpoint_that_is_one_is_not_told_of(daemon: Daemon) -> None:
    model = {"provider": "openai", "id": "gpt-4o", "base_url": "https://api.openai.com/v1"}

    assert warnings_of(daemon, model=model) == []


def test_a_folder_that_is_not_named_from_the_root_is_told_of(daemon: Daemon) -> None:
    [warning] = warnings_of(daemon, working_dir="src/here")

    assert "'src/here' is not an absolute path" in warning
    assert warnings_of(daemon, working_dir="/") == []


def test_a_parent_that_is_no_session_is_told_of(daemon: Daemon) -> None:
    parent = daemon.call("session/start")["session_id"]
    child = warnings_of(daemon, parent_session_id=parent)
    daemon.call("session/close", session_id=parent)

    assert child == warnings_of(daemon, parent_session_id=parent) == []
    [warning] = warnings_of(daemon, parent_session_id="nobody")
    assert "'nobody': no session has this id" in warning


@pytest.mark.parametrize("method", ["session/append", "turn/end"])
def test_a_report_that_counts_nothing_is_told_of(daemon: Daemon, method: str) -> None:
    session = daemon.call("session/start", compaction=CHARS4, persist=False)["session_id"]

    def said(messages: list[Any], **more: Any) -> list[str]:
        return list(daemon.call(method, session_id=session, messages=messages, **more).get("warnings", []))

    assert said([user(5), assistant(5)], usage={"input_tokens": 9, "output_tokens": 1}) == []
    assert said([user(5), assistant(5)], usage={"input_tokens": 0, "output_tokens": 0}) == []
    assert said([user(5), assistant(5)]) == []
    assert said([], usage={"prompt_tokens": 20, "completion_tokens": 2}) == []
    for messages, more, words in (
        ([assistant(5)], {"usage": {"foo": 1}}, "usage is not counted"),
        ([user(5), assistant(5, usage={"foo": 1})], {}, "messages[1].usage is not counted"),
        (
            [user(5)],
            {"usage": {"input_tokens": 5}},
            "usage: none of these messages is an answer of the model",
        ),
        ([user(5, usage={"input_tokens": 5})], {}, "messages[0].usage is ignored"),
    ):
        [warning] = said(messages, **more)
        assert warning.startswith(words)
