"""Clients of a shared daemon that flood, send garbage, die or never read, and many of them."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.e2e.sharing.conftest import Share
from tests.e2e.sharing.test_events import opened
from tests.support.child import line, request
from tests.support.client import PATIENCE_S
from tests.support.sharing import Shared
from tests.support.talk import user

CLIENTS = 200
LIMITED = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
os.execv(sys.argv[1], sys.argv[1:])
"""


def ask(link: socket.socket, id: int, method: str, params: object = None) -> dict:
    """Ask over a bare connection, and return the answer. Events before it are dropped."""
    link.sendall(line(request(id, method, params)))
    data = b""
    while True:
        data += link.recv(1 << 16)
        *bodies, rest = data.split(b"\n")
        for body in map(json.loads, bodies):
            if body.get("id") == id:
                return body
        data = rest


def wait_for_clients(client: object, count: int) -> None:
    """Wait until the daemon has so many clients."""
    until = time.monotonic() + PATIENCE_S
    while client.call("daemon/info").get("clients", 1) != count:  # type: ignore[attr-defined]
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x01\x02\x03 no JSON\n",
        b"{]\n" * 100,
        b"Content-Length: 99999999999\r\n\r\n",
        b"Content-Length: 17\r\n\r\n{",
        b"\0{}\n",
        b"\0" + b"x" * 10_000,
        b"",
    ],
)
def test_garbage_ends_at_most_its_own_connection(shared: Shared, garbage: bytes) -> None:
    (one,) = opened(shared, "one")
    with shared.connect() as link:
        link.sendall(garbage)
        one.call("session/append", session_id="s", messages=[user(5)])
    wait_for_clients(one, 1)


def test_a_client_that_dies_in_the_middle_of_a_frame(shared: Shared) -> None:
    one, two = opened(shared, "one", "two")
    frame = line(request(9, "session/append", {"session_id": "s", "messages": [user(50_000)]}))
    two.send_raw(frame[: len(frame) // 2])
    two.kill()
    wait_for_clients(one, 1)
    assert one.call("session/history", session_id="s")["entries"] == []


def test_a_client_that_is_killed_with_its_pipes_open_elsewhere(shared: Shared) -> None:
    """Its attach is killed, but somebody still has its pipes."""
    one, two = opened(shared, "one", "two")
    os.kill(two.process.pid, signal.SIGKILL)
    wait_for_clients(one, 1)


def test_a_client_that_floods_and_never_reads_holds_up_nobody(shared: Shared) -> None:
    (one,) = opened(shared, "one")
    one.call("session/append", session_id="s", messages=[user(50) for _ in range(200)])
    with shared.connect() as link:
        link.settimeout(0.5)
        asked = line(request(1, "session/context", {"session_id": "s"})) * 200
        with suppress(TimeoutError):
            while True:
                link.sendall(asked)
        for _ in range(20):
            one.call("session/append", session_id="s", messages=[user(5)])
    wait_for_clients(one, 1)
    assert one.call("agent/state", session_id="s")["message_count"] == 220


def test_two_hundred_clients_share_a_session(shared: Shared) -> None:
    (one,) = opened(shared, "one")
    with ExitStack() as stack:
        links = [stack.enter_context(shared.connect()) for _ in range(CLIENTS - 1)]
        for at, link in enumerate(links):
            ask(link, 1, "session/start", {"session_id": "s", "client": {"name": f"c{at}"}})
        assert one.call("daemon/info")["clients"] == CLIENTS
        ask(links[0], 2, "session/append", {"session_id": "s", "messages": [user(5)]})
        for at, link in enumerate(links[1:], 1):
            assert ask(link, 3, "agent/state", {"session_id": "s"})["result"]["message_count"] == 1, at
    wait_for_clients(one, 1)
    # All of theirs is given back.
    assert len(list(Path(f"/proc/{shared.pid}/fd").iterdir())) < 60


def test_ten_clients_on_a_full_disk(share: Share) -> None:
    shared = share(prefix=(sys.executable, "-c", LIMITED))
    clients = [shared.attach() for _ in range(10)]
    for at, client in enumerate(clients):
        client.call("session/start", session_id=f"s{at}")
    refused = []
    for turn in range(8):
        for at, client in enumerate(clients):
            id = client.ask("session/append", session_id=f"s{at}", messages=[user(8_000, id=f"m{turn}")])
            if "error" in client.answer(id).value:
                refused.append((at, turn))
    assert refused
    counts = [
        client.call("agent/state", session_id=f"s{at}")["message_count"] for at, client in enumerate(clients)
    ]
    assert counts == [8 - sum(at == one for one, _ in refused) for at in range(10)]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_a_client_of_another_user_is_refused(shared: Shared) -> None:
    # Even if the folder were open to all.
    shared.folder.chmod(0o755)
    shared.path.chmod(0o666)
    pid = os.fork()
    if pid == 0:
        code = 2
        try:
            os.setuid(65534)
            link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            link.settimeout(10)
            link.connect(str(shared.path))
            link.sendall(line(request(1, "daemon/info")))
            code = 0 if link.recv(100) == b"" else 1
        except (ConnectionError, BrokenPipeError):
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert shared.attach().call("daemon/ping") == {}
