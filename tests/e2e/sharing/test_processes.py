"""How a shared daemon begins and ends, and what a client does that finds none, or another one."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from tests.e2e.sharing.conftest import Share
from tests.e2e.sharing.test_events import opened
from tests.support.client import PATIENCE_S, SERVE, Daemon, environment
from tests.support.sharing import ATTACH, Shared, own_sockets
from tests.support.talk import user

INFO = b'{"jsonrpc":"2.0","id":1,"method":"daemon/info"}\n'


class Place:
    """A folder for the sockets of one test, and clients that use it."""

    def __init__(self, home: Path, env: dict[str, str]) -> None:
        self.home = home
        self.env = env
        self.folder = Path(env["XDG_RUNTIME_DIR"]) / "compactd"

    def client(self, *command: str, **env: str) -> Daemon:
        """Start a client that attaches, or runs another command."""
        return Daemon(self.home, env={**self.env, **env}, command=command or ATTACH)

    def run(self, *command: str, **env: str) -> subprocess.CompletedProcess[bytes]:
        """Run a command with one request as its input."""
        return subprocess.run(
            command,
            input=INFO,
            env=environment(self.home, {**self.env, **env}),
            capture_output=True,
            timeout=60,
        )

    def sockets(self) -> list[Path]:
        return sorted(self.folder.glob("*.sock"))


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A place in which no daemon runs yet. Those that are started end soon after their clients."""
    with own_sockets(idle_exit_s=1) as env:
        yield Place(tmp_path / "home", env)


def wait_until_ended(pid: int) -> None:
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return
        if state == "Z":
            return
        time.sleep(0.05)
    raise AssertionError(f"{pid} still runs")


def test_the_first_client_starts_the_daemon_and_the_last_one_ends_it(place: Place) -> None:
    with place.client() as one, place.client() as two:
        info = one.call("daemon/info")
        pid = info["pid"]
        assert two.call("daemon/info")["pid"] == pid
        assert pid not in (one.process.pid, two.process.pid)
        (path,) = place.sockets()
        assert info["socket"] == str(path)
        assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
        assert (one.stop(), two.stop()) == (0, 0)
    wait_until_ended(pid)
    assert place.sockets() == []
    # Nothing but its empty log is left.
    assert [file.read_bytes() for file in place.folder.iterdir()] == [b""]


def test_clients_that_begin_at_once_have_one_daemon(place: Place) -> None:
    with ThreadPoolExecutor(6) as threads:
        done = list(threads.map(lambda _: place.run(*ATTACH), range(6)))
    pids = {json.loads(one.stdout)["result"]["pid"] for one in done}
    assert [(one.returncode, one.stderr) for one in done] == [(0, b"")] * 6
    assert len(pids) == 1


@pytest.mark.parametrize("command", [(*SERVE, "--shared"), SERVE])
def test_serve_can_use_the_shared_daemon(place: Place, command: tuple[str, ...]) -> None:
    with place.client() as one, place.client(*command, COMPACTD_SHARED="1") as two:
        assert one.call("daemon/info")["pid"] == two.call("daemon/info")["pid"]


def test_ctrl_c_ends_the_client_and_not_the_daemon(place: Place) -> None:
    with place.client() as one, place.client() as two:
        pid = two.call("daemon/info")["pid"]
        # As a terminal does: the signal goes to the whole process group.
        assert os.getpgid(pid) != os.getpgid(one.process.pid)
        one.process.send_signal(signal.SIGINT)
        assert one.process.wait(PATIENCE_S) in (130, -signal.SIGINT)
        assert two.call("daemon/info")["pid"] == pid


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_the_daemon_is_not_a_child_of_the_client_that_started_it(place: Place) -> None:
    with place.client(*SERVE, COMPACTD_SHARED="1") as one:
        pid = one.call("daemon/info")["pid"]
        parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        assert parent not in (one.process.pid, os.getpid())
        assert Path(f"/proc/{one.process.pid}/task/{one.process.pid}/children").read_text() == ""


def test_serve_alone_starts_nothing(place: Place) -> None:
    with place.client(*SERVE) as one:
        info = one.call("daemon/info")
        assert (info["pid"], info.get("socket"), info.get("clients")) == (one.process.pid, None, None)
    assert not place.folder.exists()


def test_another_data_folder_has_another_daemon(place: Place, tmp_path: Path) -> None:
    with place.client() as one, place.client(COMPACTD_HOME=str(tmp_path / "other")) as two:
        assert one.call("daemon/info")["pid"] != two.call("daemon/info")["pid"]


def test_without_a_daemon_no_start_says_so(place: Place) -> None:
    done = place.run(*ATTACH, "--no-start")
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"no daemon listens at" in done.stderr
    assert b"`compactd serve --listen`" in done.stderr


def test_a_socket_that_a_dead_daemon_left_is_replaced(place: Place) -> None:
    with place.client() as one:
        pid = one.call("daemon/info")["pid"]
        os.kill(pid, signal.SIGKILL)
        assert one.process.wait(PATIENCE_S) == 1
    (path,) = place.sockets()
    with place.client() as two:
        assert two.call("daemon/info")["pid"] != pid
        assert place.sockets() == [path]


@pytest.mark.parametrize("kind", ["link", "file", "foreign"])
def test_what_is_no_socket_of_ours_is_left_alone(share: Share, place: Place, kind: str) -> None:
    shared = share()
    path = shared.folder / "other"
    if kind == "link":
        path.symlink_to(shared.path)
    elif kind == "file":
        path.write_text("mine")
    else:
        if os.getuid() != 0:
            pytest.skip("only root can give files away")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
            link.bind(str(path))
        os.chown(path, 65534, 65534)
    expected = b"belongs to another user" if kind == "foreign" else b"is not a socket"

    for command in ((*ATTACH, "--socket", str(path)), (*SERVE, "--listen", "--socket", str(path))):
        done = place.run(*command)
        assert (done.returncode, done.stdout) == (1, b"")
        assert expected in done.stderr
    assert path.is_symlink() or path.exists()


def test_a_folder_that_others_may_enter_is_closed_and_a_foreign_one_refused(place: Place) -> None:
    place.folder.mkdir()
    place.folder.chmod(0o777)
    with place.client() as one:
        one.call("daemon/ping")
        assert place.folder.stat().st_mode & 0o777 == 0o700
    if os.getuid() == 0:
        os.chown(place.folder, 65534, 65534)
        done = place.run(*ATTACH)
        assert done.returncode == 1
        assert b"is not a folder of yours" in done.stderr
        # A client that did not ask for it gets a daemon of its own.
        done = place.run(*SERVE, COMPACTD_SHARED="1")
        assert done.returncode == 0
        assert b"this client gets a daemon of its own" in done.stderr
        assert json.loads(done.stdout)["result"]["sessions"] == 0
        os.chown(place.folder, 0, 0)


def test_a_second_daemon_at_one_socket_is_refused(shared: Shared) -> None:
    command = (*SERVE, "--listen", "--socket", str(shared.path))
    done = subprocess.run(command, env=environment(shared.home), capture_output=True, timeout=60)
    assert done.returncode == 1
    assert b"another daemon listens at" in done.stderr
    assert f"process {shared.pid}".encode() in done.stderr


def test_a_newer_version_is_started_next_to_the_older_one(place: Place) -> None:
    """The older daemon keeps its clients and their sessions, and ends with the last of them."""
    with place.client() as probe:
        pid = probe.call("daemon/info")["pid"]
        (path,) = place.sockets()
        probe.stop()
    wait_until_ended(pid)
    older = path.with_name(f"{path.name.split('-')[0]}-0.0.1.sock")
    listening = (*SERVE, "--listen", "--socket", str(older), "--idle-exit", "60")
    with Daemon(place.home, env=place.env, command=listening) as old:
        while not older.exists():
            time.sleep(0.01)
        one = place.client(*ATTACH, "--socket", str(older))
        one.call("session/start", session_id="s")
        one.call("session/append", session_id="s", messages=[user(5)])
        with place.client() as two:
            told = two.call("session/start", session_id="s")
            assert told["read_only"] is True
            until = time.monotonic() + PATIENCE_S
            while older.exists() and time.monotonic() < until:
                time.sleep(0.02)
            assert not older.exists()
            # The old one goes on for its client, and the new one follows.
            one.call("session/append", session_id="s", messages=[user(5)])
            two.event("message_appended")
            assert old.process.poll() is None
            one.stop()
            assert old.process.wait(PATIENCE_S) == 0
            two.event("writer_changed", owner="none")
            assert two.call("session/start", session_id="s")["read_only"] is False
            two.call("session/append", session_id="s", messages=[user(5)])


def test_a_daemon_that_is_asked_to_end_stores_everything(shared: Shared) -> None:
    one, two = opened(shared, "one", "two")
    ids = [one.ask("session/append", session_id="s", messages=[user(50)]) for _ in range(50)]
    assert shared.terminate() == 0
    assert [client.process.wait(PATIENCE_S) for client in (one, two)] == [0, 0]
    answered = 0
    for id in ids:
        with suppress(TimeoutError):
            answered += "result" in one.answer(id).value
    assert not shared.path.exists()
    shared.start()
    (again,) = opened(shared, "one")
    assert len(again.call("session/history", session_id="s")["entries"]) >= answered


def test_bad_options_are_refused(place: Place) -> None:
    for options in (
        ["--socket", "relative"],
        ["--frame-limit", "7"],
        ["--no-such"],
        ["--listen"],
        ["--idle-exit", "5"],
    ):
        done = place.run(*ATTACH, *options)
        assert (done.returncode, done.stdout) == (2, b""), options
        assert done.stderr.startswith(b"usage: compactd attach")


def test_the_frame_limit_is_each_clients_own(shared: Shared) -> None:
    command = (*ATTACH, "--socket", str(shared.path), "--frame-limit", "2048")
    with Daemon(shared.home, command=command) as small:
        assert small.refusal("daemon/ping", pad="x" * 4_000).code == 1009
    assert shared.attach().call("daemon/ping") == {}


def test_an_editor_that_dies_takes_only_its_own_connection(shared: Shared) -> None:
    (one,) = opened(shared, "one")
    editor = subprocess.Popen(["sleep", "60"])
    two = shared.attach()
    two.call("initialize", processId=editor.pid, rootUri=None, capabilities={})
    editor.kill()
    editor.wait()
    assert two.process.wait(PATIENCE_S) == 0
    one.call("session/append", session_id="s", messages=[user(5)])


def test_exit_without_shutdown_has_the_code_of_lsp(shared: Shared) -> None:
    one, two = shared.attach(), shared.attach()
    one.notify("exit")
    two.call("shutdown")
    two.notify("exit")
    assert (one.process.wait(PATIENCE_S), two.process.wait(PATIENCE_S)) == (1, 0), two.log()
