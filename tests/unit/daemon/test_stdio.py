from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.child import block, line, request
from tests.unit.daemon.conftest import ENVIRONMENT, Spawn, echo_command

PINGS = [request(n, "daemon/ping") for n in (1, 2)]
ANSWERS = [b'{"jsonrpc":"2.0","id":%d,"result":{}}' % n for n in (1, 2)]
ENV = {**os.environ, **ENVIRONMENT}


def test_what_any_library_or_child_prints_lands_on_stderr_at_once_and_stdin_is_empty_for_them(
    spawn: Spawn,
) -> None:
    client = spawn()

    client.call(1, "test/echo", {"print": "hello"})

    assert client.log().splitlines() == ["hello", "hello of a child ''"]
    client.close_stdin()
    assert client.rest() == b""


@pytest.mark.parametrize("frame", [block, line])
def test_stdin_and_stdout_may_be_regular_files(tmp_path: Path, frame) -> None:
    (tmp_path / "in").write_bytes(b"".join(map(frame, PINGS)))

    with (tmp_path / "in").open("rb") as stdin, (tmp_path / "out").open("wb") as stdout:
        done = subprocess.run(echo_command(), stdin=stdin, stdout=stdout, env=ENV, timeout=20)

    assert done.returncode == 0
    assert (tmp_path / "out").read_bytes() == b"".join(map(frame, ANSWERS))


def test_stdin_and_stdout_may_be_one_socket() -> None:
    ours, theirs = socket.socketpair()
    with ours, subprocess.Popen(echo_command(), stdin=theirs, stdout=theirs, env=ENV) as daemon:
        theirs.close()
        ours.sendall(b"".join(map(block, PINGS)))
        ours.shutdown(socket.SHUT_WR)

        answers = b"".join(iter(lambda: ours.recv(65536), b""))

    assert answers == b"".join(map(block, ANSWERS))
    assert daemon.returncode == 0


def test_pipes_that_someone_made_non_blocking_are_read_and_written_whole() -> None:
    size = 3_000_000
    in_read, in_write = os.pipe()
    out_read, out_write = os.pipe()
    os.set_blocking(in_read, False)
    os.set_blocking(out_write, False)
    with subprocess.Popen(echo_command(), stdin=in_read, stdout=out_write, env=ENV) as daemon:
        os.close(in_read)
        os.close(out_write)
        os.write(
            in_write, block(request(1, "test/flood", {"count": 1, "size_bytes": size, "droppable": False}))
        )
        os.close(in_write)

        with os.fdopen(out_read, "rb") as out:
            data = out.read()

    assert data.count(b"x" * size) == 1
    assert data.endswith(b'{"jsonrpc":"2.0","id":1,"result":{"sent":1,"dropped":0}}')
    assert daemon.returncode == 0


@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
def test_a_stream_that_is_closed_from_the_start_harms_nobody(tmp_path: Path, closed: str) -> None:
    (tmp_path / "in").write_bytes(b"".join(map(line, PINGS)))
    command = " ".join(f"'{word}'" for word in echo_command())

    done = subprocess.run(
        ["/bin/sh", "-c", f"{command} {closed}"],
        stdin=(tmp_path / "in").open("rb"),
        stdout=(tmp_path / "out").open("wb"),
        stderr=subprocess.PIPE,
        env=ENV,
        timeout=20,
    )

    assert done.returncode == 0
    expected = b"".join(map(line, ANSWERS)) if closed == "2>&-" else b""
    assert (tmp_path / "out").read_bytes() == expected


def test_taking_stdio_imports_nothing_that_was_not_there() -> None:
    code = (
        "import sys; before = set(sys.modules); import compactd.daemon.rpc.stdio\n"
        "packages = {'__future__', 'compactd', 'compactd.daemon', 'compactd.daemon.rpc'}\n"
        "print(*sorted(set(sys.modules) - before - packages))"
    )

    done = subprocess.run([sys.executable, "-c", code], env=ENV, capture_output=True, text=True, timeout=20)

    assert done.stdout.split() == ["compactd.daemon.rpc.stdio"]


def test_the_transport_loads_neither_pygls_nor_http_nor_a_tokenizer() -> None:
    heavy = "{'pygls', 'lsprotocol', 'attrs', 'cattrs', 'httpx', 'tiktoken', 'json'}"
    code = f"import sys, compactd.daemon.rpc.connection; print(*({heavy} & {{*sys.modules}}))"

    done = subprocess.run([sys.executable, "-c", code], env=ENV, capture_output=True, text=True, timeout=20)

    assert done.stdout.split() == []
