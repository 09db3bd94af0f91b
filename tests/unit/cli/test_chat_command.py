"""`compactd chat` with a fake provider on loopback, over each provider's wire format."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from compactd.cli.chat.input import COMMANDS
from tests.support.command_line import run
from tests.support.loopback import Answer, Fail, Loopback, Stall
from tests.support.own_loop import MODELS, environment
from tests.support.terminals import in_terminal


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


def in_home(home: Path) -> dict[str, str]:
    """The variable that makes a command use the sessions of `chat`."""
    return {"COMPACTD_HOME": str(home)}


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


def test_the_commands_are_those_of_the_app(tmp_path: Path) -> None:
    long = "one two " * 60
    lines = [
        long,
        long,
        long,
        "/compact",
        "/compact the words --keep 1",
        "/undo",
        "/redo",
        "/context",
        "/branch",
    ]
    lines += ["/branch e2", "/search two", "/model", "/model openai/gpt-4o", "/help", "/exit", "never said"]
    with Loopback() as server:
        done = chat(tmp_path, server, "anthropic", "\n".join(lines), "--echo", "--model", MODELS["anthropic"])

    assert (done.returncode, done.stderr) == (0, "")
    for said in (
        "To compact anyway: /compact --keep 1",
        "✓ Compacted 4 messages",
        "undone: 6 messages in the context · /redo",
        "redone: ",
        "compacts at 160,000 tokens",
        "  e2  after: one two",
        "on a new branch: 2 messages in the context",
        "messages with “two”",
        "the model is anthropic/claude",
        "the model is openai/gpt-4o · ○ ",
    ):
        assert said in done.stdout, done.stdout
    for name in (one.name for one in COMMANDS):
        assert f"\n{name} " in done.stdout
    assert "never said" not in done.stdout
    assert "None" not in done.stdout


def test_an_unknown_command_is_no_prompt(tmp_path: Path) -> None:
    with Loopback() as server:
        done = chat(tmp_path, server, "anthropic", "/undoo\n", "--model", MODELS["anthropic"])

        assert (done.returncode, done.stderr) == (1, "there is no command /undoo; did you mean /undo?\n")
        assert server.requests == []


def test_a_chat_in_which_nothing_was_said_leaves_no_session_behind(tmp_path: Path) -> None:
    with Loopback() as server:
        chat(tmp_path, server, "anthropic", "Hello\n", "--echo")
        chat(tmp_path, server, "anthropic", "", "--echo")
        done = chat(tmp_path, server, "anthropic", "/sessions --all\n", "--echo", "--json")

    [first] = json.loads(done.stdout)["sessions"]
    assert first["title"] == "Hello"
    resumed = chat(tmp_path, server, "anthropic", "", "--echo", "--session", first["session_id"])
    assert resumed.returncode == 0
    left = run(tmp_path, "sessions", "--all", "--json", env=in_home(tmp_path)).json["sessions"]
    assert [one["session_id"] for one in left] == [first["session_id"]]


def test_another_session_is_picked_by_its_id(tmp_path: Path) -> None:
    with Loopback() as server:
        chat(tmp_path, server, "anthropic", "Long ago\n", "--echo", "--session", "one")
        done = chat(tmp_path, server, "anthropic", "/sessions\n/sessions one\n/search ago\n", "--echo")

    assert "  just now · Long ago · 2 messages · one\n" in done.stdout
    assert "session one, 2 messages in the context\n2 messages with “ago”" in done.stdout
    left = run(tmp_path, "sessions", "--all", "--json", env=in_home(tmp_path)).json["sessions"]
    assert [one["session_id"] for one in left] == ["one"]


def test_a_guessed_window_is_marked_and_nothing_is_none(tmp_path: Path) -> None:
    with Loopback() as server:
        done = chat(tmp_path, server, "anthropic", "/context\n/model\n", "--echo")

    assert "no model, window 128,000? tokens (a guess)\n" in done.stdout
    assert "0 of 128,000? tokens\n" in done.stdout
    assert "the model is not set" in done.stdout
    assert "None" not in done.stdout


def test_in_a_terminal_ctrl_d_quits_and_ctrl_c_quits_at_the_second_time(tmp_path: Path) -> None:
    by_end = in_terminal(
        tmp_path,
        "chat",
        "--echo",
        "--plain",
        typed=(("> ", "Hello\n"), ("\r\nHello\r\n> ", "\x04")),
        columns=200,
    )
    by_interrupt = in_terminal(
        tmp_path,
        "chat",
        "--echo",
        "--plain",
        typed=(
            ("> ", "\x03"),
            ("Ctrl-C again quits\r\n> ", "Bye\n"),
            ("\r\nBye\r\n> ", "\x03"),
            ("Bye\r\n> ^C\r\nCtrl-C again quits\r\n> ", "\x03"),
        ),
        columns=200,
    )

    assert by_end.code == 0
    assert "Echo mode: no model is asked." in by_end.text
    assert "is stored; continue it with: compactd chat --session" in by_end.lines[-1]
    assert by_interrupt.code == 130
    assert "is stored; continue it with: compactd chat --session" in by_interrupt.lines[-1]
    assert "Traceback" not in by_interrupt.text


def test_in_a_terminal_ctrl_c_stops_the_answer_and_the_chat_goes_on(tmp_path: Path) -> None:
    with Loopback((Stall(text="Half of it"), Answer(text="Whole."))) as server:
        env = environment("anthropic", server.base_url)
        screen = in_terminal(
            tmp_path,
            "chat",
            "--plain",
            "--model",
            MODELS["anthropic"],
            env=env,
            typed=(("> ", "One\n"), ("Half", "\x03"), ("again quits", "Two\n"), ("Whole.", "\x04")),
            columns=200,
        )

    assert screen.code == 0
    assert "stopped; the text so far is kept" in screen.text


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
