from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.child import block, notification, request
from tests.unit.daemon.conftest import Spawn

FRAMINGS = pytest.mark.parametrize("framing", ["headers", "lines"])


@FRAMINGS
def test_shutdown_is_answered_null_and_exit_after_it_ends_with_0(spawn: Spawn, framing: str) -> None:
    client = spawn(framing=framing)

    assert client.call(1, "shutdown") == {"jsonrpc": "2.0", "id": 1, "result": None}
    client.send(notification("exit"))
    assert client.wait() == 0
    assert client.rest() == b""


def test_after_shutdown_every_request_is_refused(spawn: Spawn) -> None:
    client = spawn()
    client.call(1, "shutdown")

    codes = [
        client.call(2, method)["error"]["code"]
        for method in ("daemon/ping", "no/such", "initialize", "shutdown")
    ]

    assert codes == [-32600] * 4


def test_exit_without_shutdown_ends_with_1(spawn: Spawn) -> None:
    client = spawn()

    client.send(notification("exit"))

    assert client.wait() == 1


def test_exit_sent_as_a_request_is_answered_too(spawn: Spawn) -> None:
    client = spawn()

    assert client.call(1, "exit")["result"] is None
    assert client.wait() == 1


def test_exit_answers_what_is_running_as_cancelled(spawn: Spawn) -> None:
    client = spawn()
    client.send(request("s", "test/sleep"), request("x", "shutdown"), notification("exit"))

    messages = client.rest_messages()

    assert [m["error"]["code"] for m in messages if m.get("id") == "s"] == [-32800]
    assert client.wait() == 0


@FRAMINGS
def test_all_that_was_read_before_the_end_of_the_input_is_answered(spawn: Spawn, framing: str) -> None:
    client = spawn(framing=framing)

    client.send(*(request(n, "daemon/ping") for n in range(500)))
    client.close_stdin()

    assert [m["id"] for m in client.rest_messages()] == list(range(500))
    assert client.wait() == 0


def test_an_input_that_ends_at_once_ends_the_daemon_with_0_and_no_output(spawn: Spawn) -> None:
    client = spawn()

    client.close_stdin()

    assert (client.rest(), client.wait()) == (b"", 0)


def test_a_last_line_without_a_newline_is_answered(spawn: Spawn) -> None:
    client = spawn(framing="lines")

    client.send_raw(b"\xef\xbb\xbf" + request(1, "daemon/ping"))
    client.close_stdin()

    assert client.read()["id"] == 1


def test_what_runs_when_the_input_ends_is_finished(spawn: Spawn) -> None:
    client = spawn()
    client.send(request("s", "test/sleep", {"session_id": "a"}), request("w", "test/echo", {"wake": "a"}))
    client.close_stdin()

    messages = client.rest_messages()

    assert [m["result"] for m in messages if m.get("id") == "s"] == [{"text": "a"}]
    assert (client.wait(), client.log()) == (0, "drained\n")


@pytest.mark.parametrize("deaf", [False, True])
def test_what_does_not_finish_in_time_is_answered_as_cancelled(spawn: Spawn, deaf: bool) -> None:
    client = spawn("--drain", "0.05", "--cancel", "0.05")
    client.send(request("s", "test/sleep", {"deaf": deaf}), request("t", "test/sleep", {"session_id": "t"}))
    client.close_stdin()

    messages = client.rest_messages()

    assert sorted((m["id"], m["error"]["code"]) for m in messages if "id" in m) == [
        ("s", -32800),
        ("t", -32800),
    ]
    assert client.wait() == 0


@pytest.mark.parametrize("length", [b"900000000000", b"9" * 5000, b"ten"])
def test_a_length_that_is_none_is_refused_at_once_and_ends_the_connection(
    spawn: Spawn, length: bytes
) -> None:
    client = spawn()

    client.send(request(1, "daemon/ping"))
    client.send_raw(b"Content-Length: " + length + b"\r\n\r\n" + block(request(2, "daemon/ping")))
    messages = client.rest_messages()

    assert [(m["id"], m.get("error", {}).get("code")) for m in messages] == [(1, None), (None, -32700)]
    assert client.wait() == 1


def test_a_client_that_is_gone_ends_the_daemon_as_the_end_of_the_input_does(spawn: Spawn) -> None:
    client = spawn()
    client.call(1, "daemon/ping")

    client.close_stdout()
    client.send(request(2, "daemon/ping"))

    assert client.wait() == 0
    assert client.log() == "drained\n"


def test_a_client_that_is_gone_in_the_middle_of_a_large_answer_does_too(spawn: Spawn) -> None:
    client = spawn()

    client.send(request(1, "test/flood", {"count": 8, "size_bytes": 1_000_000, "droppable": False}))
    client.read()
    client.close_stdout()

    assert client.wait() == 0


def test_a_parent_that_dies_ends_the_daemon_while_its_input_is_still_open(spawn: Spawn) -> None:
    client = spawn()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as parent:
        client.call(1, "initialize", {"processId": parent.pid, "capabilities": {}})
        client.call(2, "daemon/ping")
        parent.kill()

    assert client.wait() == 0


def test_a_parent_that_is_dead_already_ends_the_daemon(spawn: Spawn) -> None:
    client = spawn()
    with subprocess.Popen([sys.executable, "-c", ""]) as parent:
        parent.wait()

    client.send(request(1, "initialize", {"processId": parent.pid, "capabilities": {}}))

    assert client.read()["id"] == 1
    assert client.wait() == 0


@pytest.mark.parametrize("pid", [None, 0, "x"])
def test_a_parent_that_is_none_is_not_watched(spawn: Spawn, pid: object) -> None:
    client = spawn()

    client.call(1, "initialize", {"processId": pid, "capabilities": {}})

    assert client.call(2, "daemon/ping")["result"] == {}


def test_two_daemons_at_once_do_not_hold_each_others_pipes(spawn: Spawn) -> None:
    first = spawn()
    first.call(1, "daemon/ping")
    second = spawn()
    second.call(1, "daemon/ping")

    first.close_stdin()

    assert first.wait() == 0
    assert second.call(2, "daemon/ping")["result"] == {}
