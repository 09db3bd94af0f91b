"""Wrong parameters: each is named by its path, and nothing of the request is done."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.refusals import polite
from tests.support.client import Daemon

TEXT = {"role": "user", "content": "x"}
BAD_PARAMS: dict[str, tuple[str, dict[str, Any], str]] = {
    "no session id": ("session/append", {"session_id": None, "messages": []}, "$.session_id"),
    "an empty session id": ("session/context", {"session_id": ""}, "$.session_id"),
    "a session id with a line end": ("session/start", {"session_id": "a\nb"}, "$.session_id"),
    "a session id of 257 characters": ("session/start", {"session_id": "x" * 257}, "$.session_id"),
    "a number for a text": ("session/start", {"system_prompt": 5}, "$.system_prompt"),
    "a text for a number": ("session/compact", {"keep_recent": "many"}, "$.keep_recent"),
    "a text for a list": ("session/append", {"messages": "hello"}, "$.messages"),
    "no messages": ("session/append", {}, "$.messages"),
    "a message that is no object": ("session/append", {"messages": [TEXT, 7]}, "$.messages[1]"),
    "an unknown role": (
        "session/append",
        {"messages": [TEXT, {"role": "robot", "content": "x"}]},
        "$.messages[1].role",
    ),
    "no content": ("session/append", {"messages": [{"role": "user"}]}, "$.messages[0].content"),
    "a content of the wrong kind": (
        "session/append",
        {"messages": [{"role": "user", "content": 7}]},
        "$.messages[0].content",
    ),
    "a block without a type": (
        "session/append",
        {"messages": [{"role": "user", "content": [{"text": "x"}]}]},
        "$.messages[0].content[0].type",
    ),
    "a text block without its text": (
        "session/append",
        {"messages": [{"role": "user", "content": [{"type": "text"}]}]},
        "$.messages[0].content[0].text",
    ),
    "a call without an id": (
        "session/append",
        {"messages": [{"role": "assistant", "content": [{"type": "tool_call", "name": "run"}]}]},
        "$.messages[0].content[0].call_id",
    ),
    "a tool message of plain text": (
        "session/append",
        {"messages": [{"role": "tool", "content": "x"}]},
        "$.messages[0].content",
    ),
    "a call in a user message": (
        "session/append",
        {"messages": [{"role": "user", "content": [{"type": "tool_call", "call_id": "t", "name": "run"}]}]},
        "$.messages[0].content[0]",
    ),
    "a result in an assistant message": (
        "turn/end",
        {"messages": [{"role": "assistant", "content": [{"type": "tool_result", "call_id": "t"}]}]},
        "$.messages[0].content[0]",
    ),
    "a usage that is no object": ("session/append", {"messages": [TEXT], "usage": 7}, "$.usage"),
    "negative usage": (
        "session/append",
        {"messages": [TEXT], "usage": {"input_tokens": -1, "output_tokens": 1}},
        "$.usage.input_tokens",
    ),
    "half a token": (
        "session/append",
        {"messages": [TEXT], "usage": {"prompt_tokens": 1.5, "completion_tokens": 1}},
        "$.usage.prompt_tokens",
    ),
    "more tokens than there are": (
        "session/append",
        {"messages": [TEXT], "usage": {"input_tokens": 10**30, "output_tokens": 1}},
        "$.usage.input_tokens",
    ),
    "a message's own negative usage": (
        "session/append",
        {"messages": [TEXT, {"role": "assistant", "content": "x", "usage": {"input": 5, "output": -5}}]},
        "$.messages[1].usage.output",
    ),
    "an epoch that was never handed out": ("session/append", {"messages": [TEXT], "epoch": 99}, "$.epoch"),
    "an epoch of 0": ("session/append", {"messages": [TEXT], "epoch": 0}, "$.epoch"),
    "two budgets": ("session/compact", {"keep_recent": 5, "target_tokens": 5}, "$.target_tokens"),
    "two names of one budget and another": (
        "session/compact",
        {"preserve_count": 5, "keep_recent": 5},
        "$.keep_messages",
    ),
    "a budget of 0": ("session/compact", {"keep_recent": 0}, "$.keep_recent"),
    "a negative budget": ("session/compact", {"keep_messages": -3}, "$.keep_messages"),
    "a target of 0": ("session/compact", {"target_tokens": 0}, "$.target_tokens"),
    "an unknown strategy": ("session/compact", {"strategy": "magic"}, "$.strategy"),
    "an empty query": ("session/search", {"query": ""}, "$.query"),
    "a limit of 0": ("session/search", {"query": "x", "limit": 0}, "$.limit"),
    "an entry that is not there": ("session/history", {"from": "e99"}, "$.from"),
    "a window below 0": ("session/start", {"context_window": -1}, "$.context_window"),
    "an empty model": ("session/start", {"model": " "}, "$.model"),
    "a model without its id": ("session/start", {"model": {"provider": "x"}}, "$.model.id"),
    "a tool without a name": ("session/start", {"tools": [{"description": "x"}]}, "$.tools[0].name"),
    "a lookup of nothing": ("models/lookup", {"model": ""}, "$.model"),
    "a count of nothing": ("tokens/count", {}, "$.text"),
    "a count of two things": ("tokens/count", {"text": "x", "messages": []}, "$.text"),
    "a profile that is none": (
        "session/start",
        {"compaction": {"profile": "fastest"}},
        "$.compaction.profile",
    ),
    "a ratio above 1": (
        "session/configure",
        {"compaction": {"threshold_ratio": 1.01}},
        "$.compaction.threshold_ratio",
    ),
    "a ratio of 0": (
        "session/configure",
        {"compaction": {"threshold_ratio": 0}},
        "$.compaction.threshold_ratio",
    ),
    "keep of 0": (
        "session/configure",
        {"compaction": {"keep_recent_tokens": 0}},
        "$.compaction.keep_recent_tokens",
    ),
    "negative keep": (
        "session/configure",
        {"compaction": {"preserve_count": -1}},
        "$.compaction.preserve_count",
    ),
    "a negative reserve": (
        "session/configure",
        {"compaction": {"reserve_tokens": -1}},
        "$.compaction.reserve_tokens",
    ),
    "a window beyond all numbers": (
        "session/configure",
        {"compaction": {"context_window": 10**20}},
        "$.compaction.context_window",
    ),
    "a negative cost": ("session/configure", {"compaction": {"max_cost": -0.5}}, "$.compaction.max_cost"),
    "an estimator that is none": (
        "session/configure",
        {"compaction": {"estimator": "dice"}},
        "$.compaction.estimator",
    ),
    "a word for a switch": ("session/configure", {"compaction": {"enabled": "no"}}, "$.compaction.enabled"),
    "a text for a list of tools": (
        "session/configure",
        {"compaction": {"protected_tools": "skill"}},
        "$.compaction.protected_tools",
    ),
}


@pytest.mark.parametrize("case", BAD_PARAMS)
def test_a_wrong_parameter_is_named_and_nothing_changes(daemon: Daemon, session: str, case: str) -> None:
    method, params, path = BAD_PARAMS[case]
    if method.startswith(("session/", "turn/")) and method != "session/start":
        params = {"session_id": session, **params}
    before = daemon.call("session/history", session_id=session)
    state = daemon.call("agent/state", session_id=session)

    error = polite(daemon, daemon.refusal(method, **params), -32602)

    assert error.data["path"] == path
    assert path in error.message
    assert daemon.call("session/history", session_id=session) == before
    assert daemon.call("agent/state", session_id=session) == state


def test_params_that_are_no_object_are_named_as_such(daemon: Daemon) -> None:
    error = polite(daemon, daemon.refused(daemon.ask_raw("session/start", b"[1, 2]")), -32602)

    assert error.data["path"] == "$"


def test_fields_that_nobody_knows_are_ignored(daemon: Daemon) -> None:
    started = daemon.call("session/start", colour="blue", compaction={"estimator": "chars4", "flavour": 3})

    appended = daemon.call(
        "session/append", session_id=started["session_id"], messages=[{**TEXT, "mood": "good"}], shoe=44
    )

    assert appended["entry_ids"] == ["e1"]
    context = daemon.call("session/context", session_id=started["session_id"])
    assert context["messages"][0]["mood"] == "good", "a message's own fields are the user's data"


@pytest.mark.parametrize("method", ["session/append", "session/context"])
def test_a_format_that_is_not_supported_is_told_with_those_that_are(
    daemon: Daemon, session: str, method: str
) -> None:
    params = {"messages": [TEXT]} if method == "session/append" else {}

    error = polite(daemon, daemon.refusal(method, session_id=session, format="cobol", **params), 1010)

    assert {"neutral", "openai", "anthropic"} <= set(error.data["supported"])
    assert "anthropic" in error.message
