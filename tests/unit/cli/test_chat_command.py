"""`compactd chat` with a fake provider on loopback, over each provider's wire format."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.loopback import Answer, Fail, Loopback
from tests.support.own_loop import MODELS, environment


def chat(
    home: Path, server: Loopback, wire: str, text: str, *options: str
) -> subprocess.CompletedProcess[str]:
    env = {
        **os.environ,
        "COMPACTD_HOME": str(home),
        "XDG_CONFIG_HOME": str(home / "config"),
        **environment(wire, server.base_url),
    }
    return subprocess.run(
        [sys.executable, "-m", "compactd", "chat", *options],
        input=text,
        capture_output=True,
        text=True,
        env=env,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("wire", ["openai", "ollama", "anthropic"])
def test_a_conversation_goes_on_from_line_to_line(tmp_path: Path, wire: str) -> None:
    with Loopback((Answer(text="Good morning."), Answer(text="Good night."))) as server:
        done = chat(tmp_path, server, wire, "Hello\nBye\n", "--model", MODELS[wire])

        assert done.returncode == 0, done.stderr
        assert "Good morning.\n" in done.stdout
        assert "Good night.\n" in done.stdout
        assert "Good morning." in server.requests[1].raw.decode()


def test_without_a_model_the_first_line_says_so(tmp_path: Path) -> None:
    with Loopback() as server:
        done = chat(tmp_path, server, "anthropic", "", "--echo")

        assert done.stdout.splitlines()[0].partition(", ")[2].startswith("no model, window ")


def test_a_stored_conversation_is_taken_up_again(tmp_path: Path) -> None:
    with Loopback((Answer(text="I shall."), Answer(text="Seven."))) as server:
        first = chat(tmp_path, server, "anthropic", "Remember 7\n", "--model", MODELS["anthropic"])
        name = first.stdout.split()[1].rstrip(",")

        again = chat(tmp_path, server, "anthropic", "Which?\n", "--session", name)

        assert "Seven." in again.stdout
        assert "Remember 7" in server.requests[1].raw.decode()


def test_its_own_commands_ask_no_model(tmp_path: Path) -> None:
    with Loopback() as server:
        done = chat(tmp_path, server, "anthropic", "/state\n/compact\n", "--model", MODELS["anthropic"])

        assert "of 200,000 tokens" in done.stdout
        assert "No compaction needed" in done.stdout
        assert server.requests == []


def test_with_json_each_event_is_a_line(tmp_path: Path) -> None:
    with Loopback((Answer(text="Hi."),)) as server:
        done = chat(tmp_path, server, "anthropic", "Hello\n", "--model", MODELS["anthropic"], "--json")

        events = [json.loads(line)["event"] for line in done.stdout.splitlines()]
        assert events[0]["type"] == "agent_start"
        assert events[-1]["type"] == "agent_end"


def test_a_provider_that_refuses_is_told_and_the_exit_code_is_1(tmp_path: Path) -> None:
    with Loopback((Fail(status=401),)) as server:
        done = chat(tmp_path, server, "anthropic", "Hello\n", "--model", MODELS["anthropic"])

        assert done.returncode == 1
        assert "(1006)" in done.stderr
        assert "Traceback" not in done.stderr


def test_without_a_model_it_says_how_to_name_one(tmp_path: Path) -> None:
    with Loopback() as server:
        done = chat(tmp_path, server, "anthropic", "Hello\n")

        assert done.returncode == 2
        assert "--model" in done.stderr
