"""Two nodes with one session: either may change it, and each sees what the other does."""

from __future__ import annotations

import json
import signal
import threading
import time

import pytest

from tests.e2e.fleet.conftest import Node
from tests.support.client import Daemon
from tests.support.loopback import Answer, Call, Loopback, Stall
from tests.support.own_loop import MODELS, TOOLS, Talk, environment
from tests.support.postgres import Server
from tests.support.talk import user

pytestmark = pytest.mark.system
SEEN_LIVE = {
    "agent_start",
    "turn_start",
    "message_start",
    "message_delta",
    "message_end",
    "tool_execution_start",
    "tool_execution_end",
    "turn_end",
    "agent_end",
}
"""Events of a prompt that the journal does not show."""


def texts(node: Daemon) -> list[str]:
    messages = node.call("session/context", session_id="s")["messages"]
    said = [message["content"] for message in messages]
    return [each if isinstance(each, str) else each[0]["text"] for each in said]


def say(node: Daemon, text: str, **more: object) -> dict[str, object]:
    message = {"role": "user", "content": text, **more}
    return node.call("session/append", session_id="s", messages=[message])


def two_nodes(node: Node) -> tuple[Daemon, Daemon]:
    """Start two nodes with one session. The first one writes it."""
    one, two = node(), node()
    for each in (one, two):
        each.call("session/start", session_id="s")
    return one, two


def test_either_node_may_append(node: Node) -> None:
    one, two = node(), node()
    for each in (one, two):
        started = each.call("session/start", session_id="s", client={"name": "test"})
        assert started["read_only"] is False

    for number in range(10):
        say((one, two)[number % 2], f"message {number}")

    assert texts(one) == texts(two) == [f"message {number}" for number in range(10)]
    two.event("message_appended", entry_id="e9")
    one.event("message_appended", entry_id="e10")


def test_a_node_is_notified_of_a_commit(node: Node) -> None:
    one, two = two_nodes(node)
    for number in range(3):
        say(one, str(number))
        # Without notifications, it reads every 5 seconds.
        two.event("message_appended", patience_s=4, entry_id=f"e{number + 1}")


def test_two_nodes_may_create_a_session_at_once(node: Node, server: Server, database: str) -> None:
    one, two = node(), node()
    server.sql(
        """
        CREATE FUNCTION compactd.wait() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN PERFORM pg_sleep(0.5); RETURN NULL; END $$;
        CREATE TRIGGER wait BEFORE INSERT ON compactd.records
            FOR EACH STATEMENT EXECUTE FUNCTION compactd.wait()
        """,
        database,
    )
    asked = one.ask("session/start", session_id="s")
    until = time.monotonic() + 10
    while not server.sql("SELECT 1 FROM compactd.sessions", database):
        assert time.monotonic() < until

    started = two.call("session/start", session_id="s")

    assert (started["resumed"], started["read_only"]) == (True, False)
    assert one.result(asked)["resumed"] is False
    say(one, "one")
    say(two, "two")
    assert texts(one) == texts(two) == ["one", "two"]


def test_what_a_node_has_answered_it_shows(node: Node) -> None:
    _, two = two_nodes(node)
    for number in range(20):
        assert say(two, str(number))["entry_ids"] == [f"e{number + 1}"]
        assert texts(two)[-1] == str(number)


def test_a_node_goes_on_when_the_writer_has_closed_the_session(node: Node) -> None:
    one, two = two_nodes(node)
    say(two, "one")
    one.call("session/close", session_id="s")
    say(two, "two")

    one.call("session/start", session_id="s")
    say(one, "three")
    assert texts(one) == texts(two) == ["one", "two", "three"]


def test_a_node_goes_on_when_the_writer_is_killed(node: Node) -> None:
    one, two = two_nodes(node)
    say(one, "one", id="m1")
    one.kill()
    started = time.monotonic()
    say(two, "two", id="m2")
    assert time.monotonic() - started < 15
    assert texts(two) == ["one", "two"]


def test_a_node_that_was_frozen_follows_the_one_that_took_the_session_over(node: Node) -> None:
    one, two = two_nodes(node)
    say(one, "one", id="m1")
    one.process.send_signal(signal.SIGSTOP)
    say(two, "two", id="m2")
    one.process.send_signal(signal.SIGCONT)

    say(one, "three", id="m3")
    assert texts(one) == texts(two) == ["one", "two", "three"]


def test_a_node_that_was_frozen_shows_what_others_wrote_meanwhile(node: Node) -> None:
    one, two = two_nodes(node)
    first = say(one, "one", id="m1")
    one.event("message_appended", entry_id=first["entry_ids"][0])
    one.process.send_signal(signal.SIGSTOP)
    second = say(two, "two", id="m2")
    one.process.send_signal(signal.SIGCONT)

    # Its clients ask nothing. It notices by itself that the session is another node's.
    one.event("message_appended", entry_id=second["entry_ids"][0])
    one.event("writer_changed", owner="other")
    assert texts(one) == ["one", "two"]
    third = say(two, "three", id="m3")
    one.event("message_appended", entry_id=third["entry_ids"][0])
    seqs = [event["seq"] for event in one.events("s")]
    assert seqs == list(range(1, len(seqs) + 1))


def test_a_node_that_was_frozen_closes_a_session_that_was_deleted_meanwhile(node: Node) -> None:
    one, two = two_nodes(node)
    say(one, "one", id="m1")
    one.process.send_signal(signal.SIGSTOP)
    say(two, "two", id="m2")
    two.call("session/delete", session_id="s")
    one.process.send_signal(signal.SIGCONT)

    assert one.event("session_closed").value["params"]["reason"] == "deleted"
    assert one.refusal("session/history", session_id="s").data["exists"] is False


def test_a_request_to_a_session_that_is_not_open_does_not_hold_up_others(
    node: Node, server: Server, database: str
) -> None:
    one = node()
    for name in ("s", "closed"):
        one.call("session/start", session_id=name)
    one.call("session/close", session_id="closed")
    refused = one.refusal("session/history", session_id="closed")
    assert (refused.code, refused.data["exists"]) == (1001, True)
    refused = one.refusal("session/append", session_id="never", messages=[user(1)])
    assert (refused.code, refused.data["exists"]) == (1001, False)

    locked = threading.Event()

    def lock() -> None:
        server.sql("BEGIN; LOCK TABLE compactd.sessions; SELECT pg_sleep(3); COMMIT", database)
        locked.set()

    holder = threading.Thread(target=lock)
    holder.start()
    while not server.sql("SELECT 1 FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted", database):
        time.sleep(0.05)
    asked = [
        one.ask("session/history", session_id="closed"),
        one.ask("session/close", session_id="closed"),
        one.ask("session/append", session_id="closed", messages=[user(1)]),
    ]
    one.call("session/history", session_id="s")
    assert not locked.is_set()
    assert {one.refused(each).code for each in asked} == {1001}
    holder.join()


def test_a_compaction_at_one_node_lets_the_other_append(node: Node) -> None:
    one, two = node(), node()
    for each in (one, two):
        each.call("session/start", session_id="s", context_window=200_000)
    one.call("session/append", session_id="s", messages=[user(400) for _ in range(60)])
    done = two.call("session/compact", session_id="s", keep_recent=2_000)
    assert done["compacted"] is True
    say(two, "afterwards")
    assert one.call("session/context", session_id="s")["epoch"] == 2
    assert texts(one) == texts(two)
    two.call("session/undo", session_id="s")
    assert texts(one) == texts(two)
    assert len(texts(one)) == 61


def test_the_tools_of_a_prompt_run_at_its_client_whichever_node_writes(node: Node) -> None:
    with Loopback() as provider:
        env = environment("anthropic", provider.base_url)
        one, two = node(env), node(env)
        for each in (one, two):
            each.call("session/start", session_id="s", model=MODELS["anthropic"], tools=TOOLS)
        provider.play(Answer(calls=(Call("read", "{}"),)), Answer(text="It is read."))
        talk = Talk(two, "s")
        two.call("agent/prompt", session_id="s", text="Read it.", workDoneToken="here")
        two.event("message_appended", entry_id="e4")

        assert [call["name"] for call in talk.executed] == ["read"]
        assert not [got for got in one.received if got.value.get("method") == "tool/execute"]
        shown = [each.call("session/context", session_id="s")["messages"] for each in (one, two)]
        assert shown[0] == shown[1]


def test_a_prompt_shows_the_same_events_at_each_node(node: Node) -> None:
    with Loopback() as provider:
        env = environment("anthropic", provider.base_url)
        nodes = [node(env) for _ in range(3)]
        for each in nodes:
            each.call("session/start", session_id="s", model=MODELS["anthropic"], tools=TOOLS)
        provider.play(
            Answer(text="I look.", calls=(Call("read", "{}"),)), Answer(text=" ".join(["word"] * 300))
        )
        talk = Talk(nodes[1], "s")
        turn = talk.prompt("Read it.")
        kinds = []
        for each in nodes:
            each.event("agent_end", turn_id=turn)
            events = [
                got.value["params"] for got in each.received if got.value.get("method") == "agent/event"
            ]
            kinds.append(
                [
                    (one["type"], one.get("delta"), one.get("message"), one.get("turn_id"))
                    for one in events
                    if one["type"] in SEEN_LIVE
                ]
            )
            said = [one["type"] for one in events]
            assert said.index("agent_end") > max(at for at, it in enumerate(said) if it == "message_appended")
            assert [one["seq"] for one in events] == sorted(one["seq"] for one in events)
        assert kinds[0] == kinds[1] == kinds[2]
        assert {kind for kind, *_ in kinds[0]} == SEEN_LIVE


def test_the_prompt_of_a_writer_that_dies_ends_with_an_error(node: Node) -> None:
    with Loopback() as provider:
        env = environment("anthropic", provider.base_url)
        nodes = [node(env) for _ in range(3)]
        for each in nodes:
            each.call("session/start", session_id="s", model=MODELS["anthropic"])
        provider.play(Stall("Let me"))
        turn = nodes[1].call("agent/prompt", session_id="s", text="Wait.")["turn_id"]
        for each in nodes[1:]:
            each.event("message_delta")
            assert each.call("agent/state", session_id="s")["status"] == "streaming"
        nodes[0].kill()

        say(nodes[1], "Are you there?")
        for each in nodes[1:]:
            failed = each.event("error", turn_id=turn).value["params"]
            assert failed["message"].endswith("Send the prompt again.")
            assert each.call("agent/state", session_id="s")["status"] in ("idle", "unknown")


def test_a_node_is_shown_the_progress_of_its_request(node: Node) -> None:
    one, two = two_nodes(node)
    one.call("session/append", session_id="s", messages=[user(400) for _ in range(60)])
    two.call("session/compact", session_id="s", keep_recent=2_000, workDoneToken="here")

    shown = [got.value["params"] for got in two.received if got.value.get("method") == "$/progress"]
    assert {each["token"] for each in shown} == {"here"}
    assert [each["value"]["kind"] for each in shown][:: len(shown) - 1] == ["begin", "end"]
    assert any(each["value"]["kind"] == "report" for each in shown)


def test_a_request_that_comes_while_the_writer_closes_the_session_is_carried_out(node: Node) -> None:
    one, two = node(), node()
    two.call("session/start", session_id="s")
    two.call("session/close", session_id="s")
    for number in range(15):
        one.call("session/start", session_id="s")
        two.call("session/start", session_id="s")
        closing = one.ask("session/close", session_id="s")
        say(two, str(number))
        assert one.result(closing) == {}
        assert texts(two) == [str(each) for each in range(number + 1)]
        two.call("session/close", session_id="s")


def test_a_request_that_is_cancelled_is_cancelled_at_the_writer(node: Node) -> None:
    with Loopback() as provider:
        env = environment("anthropic", provider.base_url)
        one, two = node(env), node(env)
        for each in (one, two):
            each.call("session/start", session_id="s", model=MODELS["anthropic"])
        one.call("session/append", session_id="s", messages=[user(400) for _ in range(60)])
        provider.play(Stall("A summary"))
        compacting = two.ask("session/compact", session_id="s", keep_recent=2_000, model=MODELS["anthropic"])
        one.event("compaction_start")

        two.notify("$/cancelRequest", id=compacting)

        assert two.refused(compacting).code == -32800
        assert one.event("compaction_end").value["params"]["status"] == "cancelled"


def test_a_hook_is_asked_of_its_client_whichever_node_asks_to_compact(node: Node) -> None:
    one, two = node(), node()
    one.call("session/start", session_id="s", client={"name": "one", "compaction_hook": True})
    two.call("session/start", session_id="s", client={"name": "two"})
    one.call("session/append", session_id="s", messages=[user(400) for _ in range(60)])
    compacting = two.ask("session/compact", session_id="s", keep_recent=2_000)
    asked = one.wait(lambda got: got.value.get("method") == "session/compacting", "session/compacting")
    one.send(json.dumps({"jsonrpc": "2.0", "id": asked.value["id"], "result": {}}).encode())

    assert two.result(compacting)["compacted"] is True
    assert not [got for got in two.received if got.value.get("method") == "session/compacting"]


def test_a_prompt_of_a_node_that_was_killed_is_stopped(node: Node) -> None:
    with Loopback() as provider:
        env = environment("anthropic", provider.base_url)
        one, two = node(env), node(env)
        for each in (one, two):
            each.call("session/start", session_id="s", model=MODELS["anthropic"], tools=TOOLS)
        provider.play(Stall("Let me"), Answer(calls=(Call("read", "{}"),)), Answer(text="Hello."))
        one.call("agent/prompt", session_id="s", text="Wait.")
        one.event("message_delta")
        two.call("agent/prompt", session_id="s", text="Read it.")
        two.kill()
        one.call("agent/abort", session_id="s")
        turn = one.call("agent/prompt", session_id="s", text="Are you there?")["turn_id"]

        assert one.event("agent_end", turn_id=turn).value["params"]["stop_reason"] == "stop"
        assert not [got for got in one.received if got.value.get("method") == "tool/execute"]


def test_an_error_of_the_writer_reaches_the_client(node: Node) -> None:
    _, two = two_nodes(node)
    assert two.refusal("session/undo", session_id="s").code == 1011
    assert two.refusal("session/pin", session_id="s", entry_ids=["e7"]).code == -32602


def test_requests_that_are_sent_at_once_keep_their_order(node: Node) -> None:
    one, two = two_nodes(node)
    said = [str(number) for number in range(200)]

    asked = [
        two.ask("session/append", session_id="s", messages=[{"role": "user", "content": text}])
        for text in said
    ]
    for id in asked:
        two.result(id)

    assert texts(one) == texts(two) == said


def test_requests_keep_their_order_when_the_writer_is_killed(node: Node) -> None:
    one, two = two_nodes(node)
    one.process.send_signal(signal.SIGSTOP)
    messages = [{"role": "user", "content": str(number), "id": f"m{number}"} for number in range(50)]

    asked = [two.ask("session/append", session_id="s", messages=[message]) for message in messages]
    one.kill()
    for id in asked:
        two.result(id)

    assert texts(two) == [message["content"] for message in messages]


def test_a_message_without_an_id_is_not_sent_twice(node: Node, server: Server, database: str) -> None:
    one, two = two_nodes(node)
    # The writer carries the request out, and dies before it answers.
    server.sql(
        """
        CREATE FUNCTION compactd.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = '53100'; END $$;
        CREATE TRIGGER refuse BEFORE UPDATE OF answer ON compactd.calls
            FOR EACH ROW EXECUTE FUNCTION compactd.refuse()
        """,
        database,
    )
    asked = two.ask("session/append", session_id="s", messages=[{"role": "user", "content": "once"}])
    one.event("message_appended")
    one.kill()

    refused = two.refused(asked)
    assert refused.code == 1005
    assert "perhaps after it carried the request out" in refused.message
    assert texts(two) == ["once"]


def test_a_call_of_another_version_is_refused(node: Node, server: Server, database: str) -> None:
    _, two = two_nodes(node)
    server.sql(
        """
        CREATE FUNCTION compactd.change() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN NEW.body = '{"type":"unheard_of","session_id":"s"}'; RETURN NEW; END $$;
        CREATE TRIGGER change BEFORE INSERT ON compactd.calls
            FOR EACH ROW EXECUTE FUNCTION compactd.change()
        """,
        database,
    )
    refused = two.refusal("session/append", session_id="s", messages=[user(10)])
    assert refused.code == 1005
    assert "Run the same version on all nodes" in refused.message
    server.sql(
        """
        DROP TRIGGER change ON compactd.calls;
        CREATE OR REPLACE FUNCTION compactd.change() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN NEW.answer = '{"result":{},"records":"many"}'; RETURN NEW; END $$;
        CREATE TRIGGER change BEFORE UPDATE OF answer ON compactd.calls
            FOR EACH ROW EXECUTE FUNCTION compactd.change()
        """,
        database,
    )
    refused = two.refusal("session/append", session_id="s", messages=[user(10)])
    assert "its answer cannot be read" in refused.message


def test_a_node_that_could_not_read_for_a_time_goes_on(node: Node, server: Server, database: str) -> None:
    one, two = two_nodes(node)
    server.sql("REVOKE SELECT ON compactd.records FROM daemon", database)
    say(one, "one")
    until = time.monotonic() + 20
    while "could not be read" not in two.log():
        assert time.monotonic() < until
        time.sleep(0.05)

    server.sql("GRANT SELECT ON compactd.records TO daemon", database)

    two.event("message_appended")
    assert texts(two) == ["one"]
