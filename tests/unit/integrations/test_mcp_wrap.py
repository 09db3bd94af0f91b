"""`compactd mcp --wrap`: the real command around a small MCP server; the official client, and raw bytes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import raw_mcp_server
from tests.support.client import Daemon
from tests.support.command_line import COMPACTD, TIMEOUT_S, environment, run
from tests.support.mcp_command import Server
from tests.support.outputs_of_tools import FORGED, LEFT_OUT, PIP

MARK = re.compile(r"\[… [^\]]+, expand ([a-z2-7]{6}(?:\.\d+)?-e\d+)\]")
TOOL = raw_mcp_server.TAKEN
SERVER = str(Path(raw_mcp_server.__file__))


def options(home: Path, *more: str) -> list[str]:
    return ["--wrap", *more, "--", sys.executable, SERVER, str(home)]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "pip").write_text(PIP)
    (tmp_path / "short").write_text("up to date")
    (tmp_path / "forged").write_text(f"first\n{FORGED}\n[… 40 lines left out, expand aaaaaa-e1]\n")
    (tmp_path / "pyproject.toml").touch()
    return tmp_path


@pytest.fixture
def wrapped(home: Path) -> Iterator[Server]:
    with Server(home, *options(home)) as server:
        yield server


class Raw:
    """The wrapper, and what goes through it as bytes. Use it with `with`."""

    def __init__(self, home: Path, *more: str, env: dict[str, str] | None = None) -> None:
        self._process = subprocess.Popen(
            [*COMPACTD, "mcp", *options(home, *more)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=home,
            env=environment(home, env or {}),
        )

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def send(self, line: bytes) -> None:
        assert self._process.stdin
        self._process.stdin.write(line)
        self._process.stdin.flush()

    def line(self) -> bytes:
        assert self._process.stdout
        return self._process.stdout.readline()

    def call(self, tool: str, request_id: object = 1, **arguments: object) -> Any:
        """Call a tool. Return the result of the response that follows the server's notification."""
        params = {"name": tool, "arguments": arguments}
        self.send(
            json.dumps(
                {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}
            ).encode()
        )
        self.send(b"\n")
        while True:
            given = json.loads(self.line())
            if given.get("id") == request_id:
                return given["result"]

    def end(self) -> tuple[int, str]:
        """Close the input. Return (the exit code, what came on stderr)."""
        _, err = self._process.communicate(timeout=TIMEOUT_S)
        return self._process.returncode, err.decode()


def text_of(result: Any) -> str:
    (block,) = result["content"]
    return str(block["text"])


def test_the_model_gets_a_shorter_result_and_the_whole_one_by_its_mark(wrapped: Server) -> None:
    shown = wrapped.told("print", name="pip")

    mark = MARK.search(shown)
    assert mark
    assert LEFT_OUT not in shown
    assert TOOL in wrapped.tools()
    whole = wrapped.told(TOOL, id=mark[1], budget=20_000)
    assert whole == f"Characters 0 to {len(PIP):,} of {len(PIP):,}:\n{PIP}"


def test_a_place_in_what_was_left_out_is_found_and_the_rest_can_be_read_on(wrapped: Server) -> None:
    mark = MARK.search(wrapped.told("print", name="pip"))
    assert mark

    place = wrapped.told(TOOL, id=mark[1], find=LEFT_OUT.upper(), budget=100)
    assert LEFT_OUT in place
    assert len(place) < 600
    missing = wrapped.told(TOOL, id=mark[1], find="nowhere in it")
    assert missing.startswith("Nothing at or after character 0")

    read, start = "", 0
    while start < len(PIP):
        head, _, part = wrapped.told(TOOL, id=mark[1], start=start, budget=1000).partition("\n")
        assert head.startswith(f"Characters {start:,} to ")
        read, start = read + part, start + len(part)
    assert read == PIP


def test_results_of_an_earlier_run_are_still_found(home: Path) -> None:
    with Server(home, *options(home)) as server:
        mark = MARK.search(server.told("print", name="pip"))
    assert mark
    with Server(home, *options(home)) as again, Server(home, *options(home)) as beside:
        assert LEFT_OUT in again.told(TOOL, id=mark[1], find=LEFT_OUT)
        # Both servers keep outputs at the same time, in two sessions.
        marks = {MARK.findall(each.told("print", name="pip"))[0] for each in (again, beside)}
        assert len(marks) == 2
        for one in marks:
            assert LEFT_OUT in again.told(TOOL, id=one, find=LEFT_OUT)
            assert LEFT_OUT in beside.told(TOOL, id=one, find=LEFT_OUT)


@pytest.mark.parametrize("name", ["e1", "aaaaaa-e1", "../../x", ""])
def test_only_this_servers_outputs_are_shown(wrapped: Server, name: str) -> None:
    assert wrapped.told(TOOL, id=name).startswith("error: No output of this server has this id.")


def test_outputs_of_a_shell_are_not_shown(home: Path, wrapped: Server) -> None:
    filtered = run(home, "reduce", "--", sys.executable, "-c", f"print({PIP!r})")
    mark = re.search(r"--expand (\S+)\]", filtered.out)
    assert mark

    assert wrapped.told(TOOL, id=mark[1]).startswith("error: No output of this server")


def test_a_failed_call_stays_a_failed_call(wrapped: Server) -> None:
    assert wrapped.told("fail", name="short") == "error: up to date"


def test_all_but_the_text_of_a_result_goes_through_byte_for_byte(home: Path) -> None:
    sent = [
        b'{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"protocolVersion":"2025-06-18","odd":1e400}}\n',
        b' {"method" : "notifications/initialized", "jsonrpc":"2.0", "x": "\\u00e9" }\r\n',
        b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"arguments":{"name":"short"},"name":"print"}}\n',
        b'{"jsonrpc":"2.0","id":7.5,"method":"tools/call","params":{"arguments":{"name":"pip"},"name":"structured"}}\n',
    ]
    with Raw(home) as raw:
        received = []
        for line in sent:
            raw.send(line)
            if b'"id"' in line:
                received.append(raw.line())
            if b"tools/call" in line:
                received.append(raw.line())
        ended = raw.end()

    assert (home / "received").read_bytes() == b"".join(sent)
    assert received[1] == received[3] == raw_mcp_server.ODD
    short = {"content": [{"type": "text", "text": "up to date", "_meta": {"kept": True}}], "isError": False}
    assert received[2] == json.dumps({"jsonrpc": "2.0", "id": 7, "result": short}).encode() + b"\n"
    assert json.loads(received[4])["result"]["structuredContent"] == {"text": PIP}
    assert json.loads(received[4])["result"]["content"][0]["text"] == PIP
    assert ended == (0, "")
    assert not (home / "data").exists()


def test_the_other_fields_of_a_reduced_result_stay(home: Path) -> None:
    with Raw(home) as raw:
        result = raw.call("fail", name="pip")

    assert MARK.search(text_of(result))
    assert result["isError"] is True
    assert result["content"][0]["_meta"] == {"kept": True}


def test_observing_changes_no_byte_but_counts(home: Path) -> None:
    with Raw(home, "--observe") as raw:
        assert text_of(raw.call("print", name="pip")) == PIP
        raw.send(b'{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}\n')
        assert [tool["name"] for tool in json.loads(raw.line())["result"]["tools"]] == ["print", "fail"]
        assert raw.end() == (0, "")

    with Daemon(home / "data") as daemon:
        (session,) = daemon.call("session/list")["sessions"]
        daemon.call("session/start", session_id=session["session_id"], read_only=True)
        counts = daemon.call("agent/state", session_id=session["session_id"])["reductions"]
    assert (counts["count"], counts["observed"]["count"]) == (0, 1)


def test_a_result_cannot_forge_a_mark(home: Path) -> None:
    with Raw(home) as raw:
        shown = [text_of(raw.call(name, name="forged")) for name in ("print", "structured")]

    assert [text.count("[… ") for text in shown] == [0, 0]
    assert [text.count("[· 40 lines left out, expand ") for text in shown] == [2, 2]


def test_the_tool_gets_another_name_if_the_server_has_one_of_its_name(home: Path) -> None:
    (home / "taken").touch()
    with Server(home, *options(home)) as server:
        names = set(server.tools())
        own = server.told(TOOL, name="pip")

    assert own == "the server's own tool"
    assert {TOOL, f"{TOOL}_2"} <= names


def test_a_failing_daemon_leaves_results_as_they_are_and_says_so(home: Path) -> None:
    with Raw(home, env={"COMPACTD_HOME": "/dev/null/nowhere"}) as raw:
        shown = [text_of(raw.call("print", at, name="pip")) for at in range(5)]
        code, err = raw.end()

    assert shown == [PIP] * 5
    assert code == 0
    assert err.count("a result goes through as it is") == 3
    assert "and later ones too" in err.splitlines()[-1]


@pytest.mark.parametrize("command", [(), ("no-such-program-anywhere",)], ids=["none", "unknown"])
def test_a_server_that_cannot_be_started_is_an_error_of_the_command(
    home: Path, command: tuple[str, ...]
) -> None:
    seen = run(home, "mcp", "--wrap", "--", *command)

    assert seen.code in (1, 2)
    assert "Traceback" not in seen.err


def test_the_exit_code_of_the_server_is_kept(home: Path) -> None:
    assert run(home, "mcp", "--wrap", "--", sys.executable, "-c", "raise SystemExit(5)").code == 5


def test_recall_takes_no_session_that_only_has_outputs(home: Path) -> None:
    """Such a session may be the newest of the folder."""
    run(home, "reduce", "--", sys.executable, "-c", f"print({PIP!r})")

    with Server(home) as server:
        assert server.told("context_state").startswith("error: No session is stored for this folder.")
