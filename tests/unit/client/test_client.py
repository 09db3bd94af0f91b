"""The Python client, with the real daemon and with faulty processes."""

from __future__ import annotations

import os
import sys
import threading

import pytest
from msgspec import Raw

from compactd.client import STDERR_LINES, Client, DaemonGone, Event, RpcError
from compactd.protocol.wire import AppendResult, ContextResult, StartResult

MUTE = "import sys; sys.stdin.buffer.read()"
"""Takes everything in and never answers."""

DEAF = """
import signal, sys
print("ready", file=sys.stderr, flush=True)
signal.pause()
"""
"""Does not even notice that its input has ended."""

NOISY = """
import sys
sys.stdin.buffer.readline()
for number in range(1000):
    print("line", number, file=sys.stderr)
"""


@pytest.fixture
def env(tmp_path):
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "COMPACTD_HOME": str(tmp_path)}


def python(program: str) -> tuple[str, ...]:
    return (sys.executable, "-c", program)


@pytest.mark.parametrize("framing", ["lsp", "lines"])
def test_a_call_is_answered_in_either_framing_and_the_daemon_ends_in_peace(env, framing) -> None:
    client = Client(env=env, framing=framing)

    info = client.call("daemon/info")
    code = client.close()

    assert info["pid"] == client.pid
    assert (code, client.close()) == (0, 0)


def test_results_come_as_the_types_of_the_wire(env) -> None:
    with Client(env=env) as client:
        started = client.ask("session/start", {"persist": False, "context_window": 9_000}, StartResult)
        appended = client.ask(
            "session/append",
            {"session_id": started.session_id, "messages": [{"role": "user", "content": "Hello."}]},
            AppendResult,
        )

    assert started.token_usage.context_window == 9_000
    assert (len(appended.entry_ids), appended.decision.kind) == (1, "fits")


def test_an_error_keeps_its_code_and_its_data(env) -> None:
    with Client(env=env) as client, pytest.raises(RpcError) as caught:
        client.call("session/context", {"session_id": "nobody"})

    assert (caught.value.code, caught.value.data["exists"]) == (1001, False)


def test_a_users_json_keeps_its_line_ends_behind_a_length_and_its_meaning_on_one_line(env) -> None:
    call = b'{"type":"tool_call","call_id":"c","name":"run","arguments":{\n"a": 1}}'
    message = Raw(b'{"role":"assistant",\n"content":[%b]}' % call)
    seen = {}

    for framing in ("lsp", "lines"):
        with Client(env=env, framing=framing) as client:
            session_id = client.ask("session/start", {"persist": False}, StartResult).session_id
            client.call("session/append", {"session_id": session_id, "messages": [message]})
            context = client.ask("session/context", {"session_id": session_id}, ContextResult)
            seen[framing] = bytes(context.messages[0])

    assert b'{\n"a": 1}' in seen["lsp"]
    assert b'{ "a": 1}' in seen["lines"]


def test_events_wait_in_their_order_until_they_are_taken(env) -> None:
    with Client(env=env) as client:
        session_id = client.ask("session/start", {"persist": False}, StartResult).session_id
        for text in ("one", "two"):
            client.call("session/append", {"session_id": session_id, "messages": [user(text)]})
        events = client.events(timeout_s=30)
        seen = [next(events) for _ in range(4)]

    assert [(event.type, event.seq) for event in seen] == [
        ("message_appended", 1),
        ("usage_update", 2),
        ("message_appended", 3),
        ("usage_update", 4),
    ]
    first, second = seen[1], seen[3]
    assert first.session_id == session_id
    assert first.fields["usage"]["current_context_tokens"] < second.fields["usage"]["current_context_tokens"]


def test_events_go_to_a_function_where_one_was_given(env) -> None:
    seen: list[Event] = []
    has_come = threading.Event()

    def take(event: Event) -> None:
        seen.append(event)
        if event.type == "usage_update":
            has_come.set()

    with Client(env=env, on_event=take) as client:
        session_id = client.ask("session/start", {"persist": False}, StartResult).session_id
        client.call("session/append", {"session_id": session_id, "messages": [user("one")]})
        assert has_come.wait(30)
        assert list(client.events(timeout_s=0)) == []

    assert [(event.session_id, event.type) for event in seen] == [
        (session_id, "message_appended"),
        (session_id, "usage_update"),
    ]


def test_calls_from_several_threads_each_get_their_own_answer(env) -> None:
    texts = ["ab" * length for length in range(1, 40)]
    seen: dict[str, object] = {}

    with Client(env=env) as client:

        def count(text: str) -> None:
            seen[text] = client.call("tokens/count", {"text": text})["tokens"]

        threads = [threading.Thread(target=count, args=(text,)) for text in texts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        alone = {text: client.call("tokens/count", {"text": text})["tokens"] for text in texts}

    assert seen == alone


def test_a_call_that_is_not_answered_in_time_is_given_up() -> None:
    with Client(python(MUTE)) as client, pytest.raises(TimeoutError, match="daemon/ping"):
        client.call("daemon/ping", timeout_s=0.05)


def test_requests_that_are_sent_at_once_are_answered_in_their_order(env) -> None:
    with Client(env=env) as client:
        client.call("session/start", {"session_id": "s", "persist": False})
        requests = [
            ("session/append", {"session_id": "s", "messages": [{"role": "user", "content": "Hello."}]}),
            ("session/expand", {"session_id": "s", "entry_ids": ["none"]}),
            ("session/history", {"session_id": "s"}),
        ]
        appended, refused, history = client.ask_all(requests)

    assert isinstance(appended, Raw)
    assert isinstance(refused, RpcError)
    assert refused.code == -32602
    assert b"Hello." in bytes(history)
    with pytest.raises(DaemonGone):
        client.ask_all(requests)


def test_requests_that_are_sent_at_once_are_all_given_up() -> None:
    with Client(python(MUTE)) as client:
        with pytest.raises(TimeoutError, match="daemon/ping"):
            client.ask_all([("daemon/ping", {}), ("daemon/info", {})], timeout_s=0.05)
        assert client._running()._waiting == {}


def test_requests_are_carried_out_although_nobody_waits_for_their_answers(env) -> None:
    append = ("session/append", {"session_id": "s", "messages": [{"role": "user", "content": "Hello."}]})
    with Client(env=env) as client:
        client.call("session/start", {"session_id": "s", "persist": False})
        client.send_all([append, ("agent/state", {"session_id": "s"})])
        later = client.send_all([append, ("session/expand", {"session_id": "s", "entry_ids": ["none"]})])
        history = client.call("session/history", {"session_id": "s"})
        appended, refused = later.wait()

        assert client._running()._waiting == {}

    assert len(history["entries"]) == 2

    assert isinstance(appended, Raw)
    assert isinstance(refused, RpcError)


def test_requests_whose_answers_are_waited_for_in_vain_are_given_up() -> None:
    with Client(python(MUTE)) as client:
        pending = client.send_all([("daemon/ping", {}), ("daemon/info", {})])
        with pytest.raises(TimeoutError, match="daemon/ping"):
            pending.wait(0.05)
        assert client._running()._waiting == {}


def test_the_end_of_the_daemon_is_told_when_its_answers_are_waited_for() -> None:
    with Client(python("")) as client:
        client._running()._reading["stdout"].join()
        pending = client.send_all([("daemon/ping", {})])
        with pytest.raises(DaemonGone, match="daemon/ping"):
            pending.wait()


def test_a_daemon_that_does_not_end_is_killed() -> None:
    client = Client(python(DEAF))

    code = client.close(timeout_s=0.05)

    assert code == -9


def test_a_daemon_that_ended_is_told_with_the_end_of_its_log() -> None:
    client = Client(python(NOISY))

    with pytest.raises(DaemonGone) as first:
        client.call("daemon/ping")
    with pytest.raises(DaemonGone):
        client.call("daemon/ping")

    log = first.value.stderr.splitlines()
    assert (len(log), log[-1]) == (STDERR_LINES, "line 999")
    assert client.close() == 0


def test_what_is_not_the_protocol_ends_the_conversation() -> None:
    with Client(python("print('hello')"), framing="lines") as client, pytest.raises(DaemonGone) as caught:
        client.call("daemon/ping")

    assert "does not follow the protocol" in caught.value.stderr


def test_a_command_that_does_not_exist_is_told_at_once(tmp_path) -> None:
    with pytest.raises(DaemonGone, match="could not be started"):
        Client((str(tmp_path / "nothing"),))


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}
