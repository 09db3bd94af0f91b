"""Opening, closing and configuring a session that others have open."""

from __future__ import annotations

from typing import Any

from tests.e2e.sharing.conftest import Share
from tests.e2e.sharing.test_events import opened
from tests.support.client import Daemon
from tests.support.sharing import Shared
from tests.support.talk import user

INITIALIZE: dict[str, Any] = {"processId": None, "rootUri": None, "capabilities": {}}


def test_the_session_keeps_its_own_values(shared: Shared) -> None:
    one, two = shared.attach(), shared.attach()
    own = {
        "model": "openai/gpt-4o",
        "system_prompt": "Be brief.",
        "title": "Ours",
        "compaction": {"keep_recent_tokens": 4_000},
        "tools": [{"name": "look", "input_schema": {"type": "object"}}],
    }
    one.call("session/start", session_id="s", **own)
    same = two.call("session/start", session_id="s", **own)
    assert same["warnings"] == []

    other = {
        "model": "anthropic/claude-sonnet-4-5",
        "context_window": 9_000,
        "system_prompt": "Be long.",
        "title": "Mine",
        "compaction": {"keep_recent_tokens": 9},
        "tools": [],
    }
    told = two.call("session/start", session_id="s", **other)

    (warning,) = told["warnings"]
    assert warning.startswith(
        "not applied, because another client has the session open: model, system_prompt, tools, title, "
        "compaction."
    )
    assert (told["model"], told["title"]) == ("openai/gpt-4o", "Ours")
    state = two.call("agent/state", session_id="s")
    assert state["compaction"]["settings"]["keep_recent_tokens"]["value"] == 4_000
    assert state["tools"] == ["look"]
    # A client that wants it for all says so.
    two.call("model/set", session_id="s", model="anthropic/claude-sonnet-4-5")
    assert one.event("model_changed").value["params"]["model"] == "anthropic/claude-sonnet-4-5"


def test_a_client_gives_the_session_what_it_does_not_have_yet(shared: Shared) -> None:
    one, two = shared.attach(), shared.attach()
    one.call("session/start", session_id="s")
    told = two.call("session/start", session_id="s", model="openai/gpt-4o", title="Ours")
    assert (told["warnings"], told["model"], told["title"]) == ([], "openai/gpt-4o", "Ours")


def test_an_editors_settings_count_for_the_sessions_that_it_opened_first(shared: Shared) -> None:
    plain, editor = shared.attach(), shared.attach()
    editor.call(
        "initialize", **INITIALIZE, initializationOptions={"compaction": {"keep_recent_tokens": 4_321}}
    )
    plain.call("session/start", session_id="plain")
    editor.call("session/start", session_id="own")
    told = editor.call("session/start", session_id="plain")

    def kept(client: Daemon, session_id: str) -> object:
        state = client.call("agent/state", session_id=session_id)
        return state["compaction"]["settings"]["keep_recent_tokens"]["value"]

    assert kept(editor, "own") == 4_321
    assert kept(plain, "plain") != 4_321
    (warning,) = told["warnings"]
    assert warning.endswith("opened the session first: this client's settings keep_recent_tokens")
    # When the first client leaves, the editor is the first.
    plain.call("session/close", session_id="plain")
    assert kept(editor, "plain") == 4_321


def test_a_session_is_closed_when_its_last_client_closes_it(shared: Shared) -> None:
    one, two = opened(shared, "one", "two")
    one.call("session/append", session_id="s", messages=[user(5)])

    one.call("session/close", session_id="s")
    two.call("session/append", session_id="s", messages=[user(5)])
    one.call("daemon/ping")
    assert not [event for event in one.events("s") if event["type"] == "session_closed"]
    assert len([event for event in one.events("s") if event["type"] == "message_appended"]) == 1

    two.call("session/close", session_id="s")
    two.event("session_closed", reason="closed")
    (row,) = two.call("session/list")["sessions"]
    assert (row["open"], row["message_count"]) == (False, 2)


def test_a_client_that_leaves_closes_what_only_it_had_open(shared: Shared) -> None:
    one, two = opened(shared, "one", "two")
    one.call("session/start", session_id="own")
    assert one.stop() == 0

    rows = {row["session_id"]: row["open"] for row in two.call("session/list")["sessions"]}
    assert rows == {"s": True, "own": False}
    two.call("session/append", session_id="s", messages=[user(5)])


def test_an_imported_session_is_open_as_long_as_its_client_stays(shared: Shared) -> None:
    one, two = shared.attach(), shared.attach()
    content = {"messages": [{"role": "user", "content": "Hello."}]}
    session_id = one.call("session/import", content=content)["session_id"]
    one.call("session/append", session_id=session_id, messages=[user(5)])
    one.event("message_appended")
    one.stop()

    (row,) = two.call("session/list")["sessions"]
    assert (row["open"], row["message_count"]) == (False, 2)


def test_a_session_that_others_have_open_is_not_replaced_by_an_import(shared: Shared) -> None:
    one, two = shared.attach(), shared.attach()
    messages: list[dict[str, object]] = [{"role": "user", "content": "Hello."}]
    one.call("session/import", content={"messages": messages}, session_id="s")
    two.call("session/start", session_id="s")
    messages.append({"role": "assistant", "content": "Good morning."})
    one.call("session/import", content={"messages": messages}, session_id="s")

    two.event("message_appended", entry_id="e2")
    assert not [event for event in two.events("s") if event["type"] == "session_closed"]
    seen = two.call("session/context", session_id="s")["messages"]
    assert [message["content"][0]["text"] for message in seen] == ["Hello.", "Good morning."]


def test_a_session_that_others_have_open_is_not_deleted(shared: Shared) -> None:
    one, two = opened(shared, "one", "two")
    refused = two.refusal("session/delete", session_id="s")
    assert refused.code == 1004
    assert refused.message == "Another client has this session open (one): close it there first."
    one.call("session/close", session_id="s")
    two.call("session/delete", session_id="s")
    two.event("session_closed", reason="deleted")


def test_an_editors_command_leaves_the_session_open_for_others(shared: Shared) -> None:
    (one,) = opened(shared, "one")
    one.call("session/append", session_id="s", messages=[user(50) for _ in range(40)])
    editor = shared.attach()
    editor.call("initialize", **INITIALIZE)
    editor.notify("initialized")
    command = {"command": "compactd.compact", "arguments": [{"session_id": "s", "keep_recent": 100}]}
    editor.call("workspace/executeCommand", **command)
    one.event("compaction_end")
    editor.stop()
    one.call("session/append", session_id="s", messages=[user(5)])


def test_the_hook_is_asked_whoever_compacts(shared: Shared) -> None:
    one, two = shared.attach(), shared.attach()
    one.call("session/start", session_id="s", client={"name": "one", "compaction_hook": True})
    two.call("session/start", session_id="s", client={"name": "two"})
    two.call("session/append", session_id="s", messages=[user(50) for _ in range(40)])

    asked = two.ask("session/compact", session_id="s", force=True, keep_recent=100)
    hook = one.wait(lambda got: got.value.get("method") == "session/compacting", "session/compacting")
    answer = b'{"jsonrpc":"2.0","id":"%b","result":{"cancel":true}}' % str(hook.value["id"]).encode()
    one.send(answer)

    assert "cancelled it" in two.result(asked)["reason"]
    # Without the client, the others are not held up.
    one.stop()
    assert two.call("session/compact", session_id="s", force=True, keep_recent=100)["compacted"] is True


def test_what_is_on_disk_is_there_for_the_next_daemon(share: Share) -> None:
    shared = share()
    one, two = opened(shared, "one", "two")
    one.call("session/append", session_id="s", messages=[user(5, id="m1")])
    two.call("session/append", session_id="s", messages=[user(5, id="m2")])
    shared.kill()
    assert [client.process.wait(20) for client in (one, two)] == [1, 1]
    assert "the shared daemon (process" in one.log()

    shared.start()
    (again,) = opened(shared, "one")
    entries = again.call("session/history", session_id="s")["entries"]
    assert [entry["message"]["id"] for entry in entries] == ["m1", "m2"]
