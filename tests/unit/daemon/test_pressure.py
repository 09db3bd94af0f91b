from __future__ import annotations

import sys

import pytest

from tests.support.child import block, request
from tests.unit.daemon.conftest import Spawn

MIB = 1 << 20
FRAMINGS = pytest.mark.parametrize("framing", ["headers", "lines"])


@FRAMINGS
def test_5000_requests_before_the_first_read_are_all_answered_in_their_order(
    spawn: Spawn, framing: str
) -> None:
    client = spawn(framing=framing)

    client.send(*(request(n, "test/echo", {"text": "x" * 200}) for n in range(5000)))

    assert [client.read()["id"] for _ in range(5000)] == list(range(5000))


def test_a_message_of_many_megabytes_comes_back_whole(spawn: Spawn) -> None:
    client = spawn()
    text = "é" * (4 * MIB)

    answer = client.call(1, "test/echo", {"text": text})

    assert answer["result"]["text"] == text


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_client_that_never_reads_is_not_read_from_for_ever(spawn: Spawn) -> None:
    client = spawn()
    client.call(0, "daemon/ping")
    before = client.memory_bytes()
    data = b"".join(block(request(n, "test/echo", {"text": "x" * MIB})) for n in range(128))

    sent = client.send_until_full(data, quiet_s=1.0)

    # 64 MiB unsent, what the pipes hold, and one message that is being read.
    assert 64 * MIB < sent < 70 * MIB
    assert client.memory_bytes() - before < 110 * MIB
    assert [client.read()["id"] for _ in range(64)] == list(range(64))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_small_requests_with_large_answers_wait_too_while_nobody_reads(spawn: Spawn) -> None:
    client = spawn()
    client.call(0, "daemon/ping")
    before = client.memory_bytes()
    flood = {"count": 1, "size_bytes": MIB, "droppable": False}

    client.send(*(request(n, "test/flood", flood) for n in range(200)))
    while client.memory_bytes() - before < 60 * MIB:
        pass
    notifications = sum(client.read().get("method") == "test/drop" for _ in range(400))

    assert notifications == 200
    assert client.peak_memory_bytes() - before < 110 * MIB


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_frame_above_the_limit_is_never_held(spawn: Spawn) -> None:
    client = spawn("--frame-limit", "1000000")
    client.call(0, "daemon/ping")
    before = client.memory_bytes()
    body = request(1, "test/echo", {"text": "x" * (48 * MIB)})

    client.send(body, request(2, "daemon/ping"))

    assert client.read()["error"]["code"] == 1009
    assert client.read()["id"] == 2
    assert client.memory_bytes() - before < 20 * MIB


def test_droppable_notifications_are_dropped_above_the_mark_and_others_never(spawn: Spawn) -> None:
    client = spawn()
    flood = {"count": 80, "size_bytes": MIB}

    client.send(
        request(1, "test/flood", {**flood, "droppable": True}),
        request(2, "test/flood", {**flood, "droppable": False}),
    )
    messages = []
    while not messages or messages[-1].get("id") != 2:
        messages.append(client.read())

    results = [m["result"] for m in messages if "id" in m]
    notifications = sum(m.get("method") == "test/drop" for m in messages)
    assert results[0]["sent"] + results[0]["dropped"] == 80
    assert results[0]["dropped"] >= 10
    assert results[1] == {"sent": 80, "dropped": 0}
    assert notifications == results[0]["sent"] + 80


def test_timers_and_tasks_have_their_turn_while_messages_wait(spawn: Spawn) -> None:
    client = spawn()

    client.send(
        request("ask", "test/ask", {"timeout_s": 0.001}),
        *(request(n, "test/echo", {"spin": 20_000}) for n in range(300)),
    )
    order = []
    while len(order) < 301:
        message = client.read()
        if "id" in message and "method" not in message:
            order.append(message["id"])

    assert order.index("ask") < 150
    assert [id for id in order if id != "ask"] == list(range(300))
