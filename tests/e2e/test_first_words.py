"""The first steps of a newcomer: one line in, one line out; either framing; no set-up."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.e2e.conftest import Spawn
from tests.support.client import PATIENCE_S, SERVE, environment


def test_one_line_on_stdin_gives_one_line_with_a_session_and_its_window(home: Path) -> None:
    line = (
        '{"jsonrpc":"2.0","id":1,"method":"session/start","params":{"model":"anthropic/claude-sonnet-4-5"}}\n'
    )

    done = subprocess.run(
        SERVE, input=line.encode(), capture_output=True, env=environment(home), timeout=PATIENCE_S
    )

    assert done.returncode == 0
    assert done.stdout.count(b"\n") == 1
    assert done.stdout.endswith(b"\n")
    answer = json.loads(done.stdout)
    assert (answer["jsonrpc"], answer["id"]) == ("2.0", 1)
    result = answer["result"]
    assert isinstance(result["session_id"], str)
    assert result["session_id"]
    assert result["token_usage"]["context_window"] == 200_000
    assert (result["resumed"], result["read_only"], result["message_count"]) == (False, False, 0)
    assert result["model"] == "anthropic/claude-sonnet-4-5"
    assert result["seq"] == 0


def test_nothing_but_the_protocol_stands_on_stdout_and_nothing_at_all_on_stderr(home: Path) -> None:
    line = '{"jsonrpc":"2.0","id":1,"method":"session/start","params":{}}\n'

    done = subprocess.run(
        SERVE, input=line.encode(), capture_output=True, env=environment(home), timeout=PATIENCE_S
    )

    assert json.loads(done.stdout)["id"] == 1
    assert done.stderr == b""


@pytest.mark.parametrize("framing", ["lines", "headers"])
def test_a_conversation_goes_in_and_comes_out_in_either_framing(spawn: Spawn, framing: str) -> None:
    daemon = spawn(framing=framing)
    session = daemon.call("session/start")["session_id"]

    appended = daemon.call(
        "session/append",
        session_id=session,
        messages=[
            {"role": "user", "content": "What does é cost?"},
            {"role": "assistant", "content": [{"type": "text", "text": "一 €"}]},
        ],
    )
    context = daemon.call("session/context", session_id=session)

    assert appended["entry_ids"] == ["e1", "e2"]
    assert [message["content"] for message in context["messages"]] == [
        "What does é cost?",
        [{"type": "text", "text": "一 €"}],
    ]
    assert daemon.stop() == 0


def test_all_that_was_asked_is_answered_when_the_input_ends(home: Path) -> None:
    lines = [{"id": 1, "method": "session/start", "params": {"session_id": "s"}}]
    lines += [
        {
            "id": 2 + n,
            "method": "session/append",
            "params": {"session_id": "s", "messages": [{"role": "user", "content": f"{n}"}]},
        }
        for n in range(200)
    ]
    given = "".join(json.dumps({"jsonrpc": "2.0", **line}) + "\n" for line in lines)

    done = subprocess.run(
        SERVE, input=given.encode(), capture_output=True, env=environment(home), timeout=PATIENCE_S
    )

    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0
    assert [one["id"] for one in said if "id" in one] == list(range(1, 202))
    assert [one["result"]["entry_ids"] for one in said if one.get("id", 1) > 1] == [
        [f"e{n + 1}"] for n in range(200)
    ]


def test_a_daemon_without_a_session_tells_its_version_and_paths(spawn: Spawn, home: Path) -> None:
    daemon = spawn()

    info = daemon.call("daemon/info")

    assert info["pid"] == daemon.process.pid
    assert info["sessions"] == 0
    assert info["paths"]["data"] == str(home)
    assert not home.exists(), "nothing is written before a session is there"
    assert daemon.call("daemon/ping") == {}


def test_tokens_are_counted_exactly_where_the_models_own_tokenizer_is_here(spawn: Spawn) -> None:
    daemon = spawn()

    exact = daemon.call("tokens/count", model="openai/gpt-4o", text="hello world")
    guessed = daemon.call("tokens/count", text="hello world")

    assert (exact["tokens"], exact["exact"]) == (2, True)
    assert guessed["exact"] is False
    assert guessed["tokens"] > 0


def test_what_editors_add_to_the_command_line_is_taken(home: Path) -> None:
    line = b'{"jsonrpc":"2.0","id":1,"method":"daemon/ping"}\n'

    for options in (["--stdio"], ["--stdio", "--clientProcessId=1"], ["serve", "--stdio"]):
        done = subprocess.run(
            [*SERVE[:-1], *options],
            input=line,
            capture_output=True,
            env=environment(home),
            timeout=30,
            check=False,
        )
        assert (done.returncode, json.loads(done.stdout)) == (0, {"jsonrpc": "2.0", "id": 1, "result": {}})
