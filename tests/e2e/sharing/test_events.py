"""What the clients of a shared daemon see of each other."""

from __future__ import annotations

import json

from tests.support.child import line, request
from tests.support.client import Daemon
from tests.support.sharing import Shared
from tests.support.talk import CHARS4, user


def opened(shared: Shared, *names: str, session_id: str = "s") -> list[Daemon]:
    """Return clients with these names that have opened one session, one after the other."""
    clients = [shared.attach() for _ in names]
    for client, name in zip(clients, names, strict=True):
        client.call("session/start", session_id=session_id, client={"name": name})
    return clients


def test_each_client_gets_the_events_of_what_the_others_do(shared: Shared) -> None:
    one, two = opened(shared, "one", "two")

    one.call("session/append", session_id="s", messages=[user(5)])
    two.call("session/pin", session_id="s", entry_ids=["e1"])

    for client in (one, two):
        assert client.event("message_appended").value["params"]["client"] == "one"
        assert client.event("session_changed", what="pin").value["params"]["client"] == "two"
        assert [event["seq"] for event in client.events("s")] == [1, 2, 3]
    assert one.events("s") == two.events("s")


def test_a_client_gets_nothing_of_sessions_that_it_has_not_opened(shared: Shared) -> None:
    (one,) = opened(shared, "one")
    (two,) = opened(shared, "two", session_id="other")

    one.call("session/append", session_id="s", messages=[user(5)])
    one.call("session/compact", session_id="s")

    two.call("daemon/ping")
    assert two.events() == []


def test_a_client_may_listen_without_opening_the_session(shared: Shared) -> None:
    (one,) = opened(shared, "one")
    listener = shared.attach()

    assert listener.call("session/subscribe", session_id="s") == {"seq": 0, "missed": 0}
    one.call("session/append", session_id="s", messages=[user(5)])
    listener.event("usage_update")
    listener.call("session/unsubscribe", session_id="s")
    one.call("session/append", session_id="s", messages=[user(5)])
    listener.call("daemon/ping")

    assert [event["type"] for event in listener.events("s")] == ["message_appended", "usage_update"]
    # It does not hold the session open.
    one.call("session/close", session_id="s")
    assert listener.refusal("session/subscribe", session_id="s").data["exists"] is True


def test_a_client_of_its_own_daemon_may_want_no_events(daemon: Daemon) -> None:
    for session_id in ("quiet", "told"):
        daemon.call("session/start", session_id=session_id)
    daemon.call("session/unsubscribe", session_id="quiet")
    for session_id in ("quiet", "told"):
        daemon.call("session/append", session_id=session_id, messages=[user(5)])
    daemon.event("usage_update", session_id="told")
    assert daemon.events("quiet") == []

    daemon.call("session/start", session_id="quiet")
    daemon.call("session/append", session_id="quiet", messages=[user(5)])
    daemon.event("usage_update", session_id="quiet")


def test_the_events_since_a_number_come_again_after_the_answer(shared: Shared) -> None:
    (one,) = opened(shared, "one")
    one.call("session/append", session_id="s", messages=[user(5), user(5), user(5)])
    one.event("usage_update")

    late = shared.attach()
    answer = late.answer(late.ask("session/subscribe", session_id="s", since_seq=1))
    late.event("usage_update")

    assert answer.value["result"] == {"seq": 4, "missed": 0}
    assert late.events("s") == one.events("s")[1:]
    assert late.received.index(answer) == 0


def test_old_events_about_messages_come_again_and_the_rest_is_counted(shared: Shared) -> None:
    (one,) = opened(shared, "one")
    for _ in range(600):
        one.call("session/append", session_id="s", messages=[user(1)])
    # Now the oldest are not kept whole: an event of 100 kB takes their room.
    one.call("session/pin", session_id="s", entry_ids=["e1"] * 30_000)

    late = shared.attach()
    told = late.call("session/subscribe", session_id="s", since_seq=0)
    late.event("session_changed")

    events = late.events("s")
    assert told["missed"] > 0
    assert len(events) + told["missed"] == told["seq"]
    messages = [event for event in events if event["type"] == "message_appended"]
    assert messages == [event for event in one.events("s") if event["type"] == "message_appended"]
    assert [event["seq"] for event in events] == sorted(event["seq"] for event in events)


def test_numbers_of_a_daemon_that_has_ended_are_recognised(shared: Shared) -> None:
    opened(shared, "one")
    assert shared.attach().call("session/subscribe", session_id="s", since_seq=7) == {
        "seq": 0,
        "missed": None,
    }


def test_a_client_that_does_not_read_is_told_and_holds_up_nobody(shared: Shared) -> None:
    one, two = opened(shared, "one", "two")
    one.call("session/append", session_id="s", messages=[user(5)])
    sleeper = shared.connect()
    sleeper.sendall(line(request(1, "session/subscribe", {"session_id": "s"})))

    for _ in range(24):
        one.call("session/pin", session_id="s", entry_ids=["e1"] * 100_000)
        two.call("agent/state", session_id="s")

    with sleeper.makefile("rb") as output:
        bodies = (json.loads(body) for body in output)
        events = []
        for body in bodies:
            events += [body["params"]] if "params" in body else []
            if events and events[-1]["type"] == "events_dropped":
                break
        assert events[-1]["resume_after"] == events[-2]["seq"]
        again = request(2, "session/subscribe", {"session_id": "s", "since_seq": events[-2]["seq"]})
        sleeper.sendall(line(again))
        answer = next(body for body in bodies if body.get("id") == 2)
    assert answer["result"]["seq"] == two.events("s")[-1]["seq"]
    assert len(one.events("s")) == 26


def test_one_compacts_while_the_others_append_and_undo(shared: Shared) -> None:
    one, two, three = opened(shared, "one", "two", "three")
    one.call("session/configure", session_id="s", compaction={**CHARS4, "keep_recent_tokens": 50})
    one.call("session/append", session_id="s", messages=[user(50) for _ in range(40)])

    compacting = one.ask("session/compact", session_id="s", force=True)
    appending = two.ask("session/append", session_id="s", messages=[user(5)])
    state = three.ask("agent/state", session_id="s")
    assert one.result(compacting)["compacted"] is True
    two.result(appending)
    three.result(state)
    three.call("session/undo", session_id="s")

    for client in (one, two, three):
        ended = client.event("compaction_end").value["params"]
        assert (ended["status"], ended["client"]) == ("completed", "one")
    # All see one session: 41 messages, none of which is lost or repeated.
    seen = [
        [
            entry["entry_id"]
            for entry in client.call("session/history", session_id="s")["entries"]
            if "message" in entry
        ]
        for client in (one, two, three)
    ]
    assert seen[0] == seen[1] == seen[2]
    assert len(set(seen[0])) == 41
    assert two.call("agent/state", session_id="s")["message_count"] == 41
