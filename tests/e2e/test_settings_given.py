"""A client's settings: given in two layers; valid ones are kept, invalid ones reported; they can be unset."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.conftest import Spawn
from tests.support.client import Daemon
from tests.support.talk import CHARS4, assistant, turns, user

Initialize = Callable[..., Daemon]

FIRST = "initializationOptions"
CHANGED = "didChangeConfiguration"


@pytest.fixture
def initialized(spawn: Spawn) -> Initialize:
    """Return a function that starts a daemon whose client gives these settings at `initialize`."""

    def make(**settings: Any) -> Daemon:
        daemon = spawn()
        daemon.call("initialize", processId=None, capabilities={}, initializationOptions=settings)
        daemon.notify("initialized")
        return daemon

    return make


def start(daemon: Daemon, **params: Any) -> dict[str, Any]:
    return dict(daemon.call("session/start", persist=False, **params))


def told(daemon: Daemon, *names: str) -> list[tuple[Any, str]]:
    """Return (value, source) of each setting in a new session."""
    session = start(daemon)["session_id"]
    settings = daemon.call("session/configure", session_id=session)["settings"]
    return [(settings[name]["value"], settings[name]["source"]) for name in names]


def change(daemon: Daemon, settings: Any) -> None:
    daemon.notify("workspace/didChangeConfiguration", settings=settings)


def shown(daemon: Daemon) -> list[str]:
    """Return the messages that were shown to the user so far."""
    daemon.call("daemon/ping")
    messages = [got.value for got in daemon.received if got.value.get("method") == "window/showMessage"]
    assert all(message["params"]["type"] == 2 for message in messages)
    return [message["params"]["message"] for message in messages]


# --- two layers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {},
        None,
        [],
        {"editor": {"fontSize": 12}},
        {"compactd": {}},
        {"compactd": None},
        {"compactd": []},
        {"compactd": {"path": "/usr/bin/compactd"}},
    ],
)
def test_a_change_that_is_about_something_else_changes_nothing(
    initialized: Initialize, settings: object
) -> None:
    daemon = initialized(compaction={"keep_messages": 3})

    change(daemon, settings)

    assert told(daemon, "keep_messages") == [(3, FIRST)]
    assert shown(daemon) == []


def test_a_change_goes_over_what_was_given_at_first(initialized: Initialize) -> None:
    daemon = initialized(compaction={"keep_messages": 3, "prune": True})

    change(daemon, {"compaction": {"keep_messages": 5}})
    both = told(daemon, "keep_messages", "prune")
    change(daemon, {"compactd": {"compaction": {"prune": False}}})
    other = told(daemon, "keep_messages", "prune")
    change(daemon, {"compaction": {}})
    none = told(daemon, "keep_messages", "prune")

    assert both == [(5, CHANGED), (True, FIRST)]
    assert other == [(3, FIRST), (False, CHANGED)], "a change replaces the change before"
    assert none == [(3, FIRST), (True, FIRST)]


def test_a_window_is_taken_from_either_place(initialized: Initialize) -> None:
    daemon = initialized(context_window=50_000)
    first = told(daemon, "context_window")
    change(daemon, {"context_window": 60_000})

    assert first == [(50_000, FIRST)]
    assert told(daemon, "context_window") == [(60_000, CHANGED)]


# --- valid settings are kept, others reported -------------------------------------------------------


def test_of_a_clients_settings_the_good_ones_are_kept_and_the_bad_ones_told_of(
    initialized: Initialize,
) -> None:
    daemon = initialized(compaction={"threshold_ratio": 9, "keep_messages": 3, "keeep": 1, "prune": None})
    first = start(daemon)["warnings"]
    change(daemon, {"compaction": {"keep_messages": "bad", "prune": True}})

    assert told(daemon, "keep_messages", "prune") == [(3, FIRST), (True, CHANGED)]
    assert [warning for warning in first if FIRST in warning] == first
    assert any("threshold_ratio" in warning for warning in first)
    assert any("keeep is not a setting" in warning for warning in first)
    at_first, later = shown(daemon)
    assert ["threshold_ratio" in at_first, "keeep" in at_first] == [True, True]
    assert [CHANGED in later, "keep_messages" in later] == [True, True]
    assert any(CHANGED in warning and "keep_messages" in warning for warning in start(daemon)["warnings"])


def test_warnings_end_with_the_settings_they_are_about(initialized: Initialize) -> None:
    daemon = initialized()
    change(daemon, {"compaction": {"keep_messages": "bad"}})
    before = start(daemon)["warnings"]
    change(daemon, {"compaction": {"keep_messages": 4}})

    assert len(before) == 1
    assert start(daemon)["warnings"] == []


@pytest.mark.parametrize("settings", [{"compaction": 5}, {"compaction": "x"}, {"compaction": [1]}])
def test_settings_of_another_kind_leave_what_was_set_and_are_told_of(
    initialized: Initialize, settings: object
) -> None:
    daemon = initialized(compaction={"keep_messages": 3})

    change(daemon, settings)

    assert told(daemon, "keep_messages") == [(3, FIRST)]
    assert len(shown(daemon)) == 1


def test_a_setting_outside_of_its_object_is_told_of(initialized: Initialize) -> None:
    daemon = initialized(compaction={"keep_messages": 3})

    change(daemon, {"keep_messages": 8})

    assert told(daemon, "keep_messages") == [(3, FIRST)]
    assert "keep_messages" in shown(daemon)[0]


UNKNOWN = {
    "keep_recent": "keep_recent_tokens",
    "compaction_prompt": "compact_prompt",
    "reserve": "reserve_tokens",
    "PRUNE_MINIMUM": "prune_minimum",
    "keep_mesages": "keep_messages",
    "zzz": None,
}


@pytest.mark.parametrize("name", UNKNOWN)
@pytest.mark.parametrize("method", ["session/start", "session/configure"])
def test_an_unknown_name_is_told_of_with_the_setting_that_is_most_like_it(
    daemon: Daemon, method: str, name: str
) -> None:
    session = start(daemon)["session_id"]

    done = daemon.call(method, session_id=session, compaction={name: 5, "prune_protect": 7})

    [warning] = done["warnings"]
    assert f"{method}: compaction.{name} is not a setting" in warning
    assert (UNKNOWN[name] or "perhaps") in warning or UNKNOWN[name] is None
    assert ("perhaps" in warning) == (UNKNOWN[name] is not None)
    settings = daemon.call("session/configure", session_id=session)["settings"]
    assert settings["prune_protect"]["value"] == 7


def test_each_call_with_an_unknown_name_is_told_so(daemon: Daemon) -> None:
    session = start(daemon)["session_id"]

    for _ in range(4):
        done = daemon.call("session/configure", session_id=session, compaction={"keeep": 1})
        assert len(done["warnings"]) == 1
    assert daemon.call("session/configure", session_id=session, compaction={"prune": True})["warnings"] == []


@pytest.mark.parametrize(
    ("name", "is_meant"), [("keep_recent_tokens", "keep_recent"), ("keep_mesages", "keep_messages")]
)
def test_a_setting_among_the_parameters_of_a_compaction_is_told_of(
    daemon: Daemon, name: str, is_meant: str
) -> None:
    session = start(daemon, compaction=CHARS4)["session_id"]
    daemon.call("session/append", session_id=session, messages=turns(10, 200))

    done = daemon.call("session/compact", session_id=session, dry_run=True, **{name: 4})
    plain = daemon.call("session/compact", session_id=session, dry_run=True, keep_messages=4)

    [warning] = done["warnings"]
    assert f"session/compact: {name} is not a parameter" in warning
    assert is_meant in warning
    assert "warnings" not in plain


def test_a_field_that_a_newer_client_may_send_is_not_told_of(daemon: Daemon) -> None:
    assert start(daemon, telemetry={"on": False}, future=True)["warnings"] == []


# --- taken back -------------------------------------------------------------------------------------


def test_a_setting_is_unset_in_both_layers_of_the_session(daemon: Daemon) -> None:
    session = start(daemon, compaction={"keep_messages": 7, "prune": True})["session_id"]
    daemon.call("session/configure", session_id=session, compaction={"keep_messages": 8})

    done = daemon.call("session/configure", session_id=session, unset=["keep_messages"])["settings"]

    assert done["keep_messages"] == {"value": None, "source": "profile default"}
    assert done["prune"] == {"value": True, "source": "session/start"}


@pytest.mark.parametrize(("given", "named"), [("preserve_count", "keep_messages"), ("auto", "enabled")])
def test_another_name_of_a_setting_unsets_it_and_is_unset_by_it(
    daemon: Daemon, given: str, named: str
) -> None:
    value: Any = 7 if given == "preserve_count" else False
    for set_by, unset_by in ((given, named), (named, given)):
        session = start(daemon, compaction={set_by: value})["session_id"]
        done = daemon.call("session/configure", session_id=session, unset=[unset_by])["settings"]
        assert done[named]["source"] == "profile default"


def test_what_is_set_in_the_same_call_counts(daemon: Daemon) -> None:
    session = start(daemon, compaction={"keep_messages": 7, "prune": True})["session_id"]

    done = daemon.call(
        "session/configure",
        session_id=session,
        unset=["keep_messages", "prune"],
        compaction={"keep_messages": 2},
    )["settings"]

    assert done["keep_messages"] == {"value": 2, "source": "session/configure"}
    assert done["prune"]["source"] == "profile default"


def test_title_prompt_tools_and_window_are_unset_too_and_stay_so(daemon: Daemon) -> None:
    tool = {"name": "run", "description": "x", "input_schema": {"type": "object"}}
    session = daemon.call(
        "session/start", title="Mine", system_prompt="Be brief.", tools=[tool], context_window=50_000
    )["session_id"]
    daemon.call("session/append", session_id=session, messages=[user(5), assistant(5)])

    unset = ["title", "system_prompt", "tools", "context_window"]
    daemon.call("session/configure", session_id=session, unset=unset)
    daemon.call("session/close", session_id=session)
    again = daemon.call("session/start", session_id=session)

    assert again["title"] != "Mine"
    assert again["context_window"] == start(daemon)["context_window"]
    context = daemon.call("session/context", session_id=session)
    assert (context.get("system") or None, context.get("tools"), context["epoch"]) == (None, None, 2)


def test_null_leaves_a_setting_as_it_is(daemon: Daemon) -> None:
    session = start(daemon, compaction={"keep_messages": 7})["session_id"]

    done = daemon.call("session/configure", session_id=session, compaction={"keep_messages": None})

    assert done["settings"]["keep_messages"]["value"] == 7


def test_a_name_that_is_no_setting_cannot_be_unset(daemon: Daemon) -> None:
    session = start(daemon)["session_id"]

    refused = daemon.refusal("session/configure", session_id=session, unset=["prune", "keep_mesages"])

    assert (refused.code, refused.data["path"]) == (-32602, "$.unset[1]")
    assert "keep_messages" in refused.message


# --- Lua's and PHP's empty table --------------------------------------------------------------------


def test_an_empty_list_is_an_empty_object_if_every_field_may_be_left_out(daemon: Daemon) -> None:
    for method in ("session/list", "daemon/info", "daemon/ping", "trust/list", "session/start"):
        assert daemon.call_raw(method, b"[]") is not None
        assert daemon.call_raw(method, b" [ ] ") is not None
    done = daemon.call_raw("session/start", b'{"persist":false,"compaction":[],"client":[],"title":null}')
    assert done["warnings"] == []
    assert daemon.refused(daemon.ask_raw("agent/state", b"[]")).code == -32602
    assert daemon.refused(daemon.ask_raw("session/list", b"[1]")).code == -32602
    assert daemon.refused(daemon.ask_raw("session/start", b'{"tools":{}}')).code == -32602
