"""LSP commands from an editor without compactd's extension: the session they act on, and their arguments."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Spawn
from tests.support.client import Daemon, Got
from tests.support.talk import CHARS4, turns

Answerer = Callable[[dict[str, Any]], Any]


def stored(daemon: Daemon, name: str, folder: Path | None = None) -> None:
    """Create a session of a project and close it again."""
    where = {} if folder is None else {"working_dir": str(folder)}
    daemon.call("session/start", session_id=name, title=f"About {name}", compaction=CHARS4, **where)
    daemon.call("session/append", session_id=name, messages=turns(6, 40))
    daemon.call("session/close", session_id=name)


def editor(daemon: Daemon, *folders: Path) -> Daemon:
    """Initialize `daemon` as an editor that has these folders open."""
    named = [{"uri": folder.as_uri(), "name": folder.name} for folder in folders]
    daemon.call("initialize", processId=None, rootUri=None, capabilities={}, workspaceFolders=named)
    daemon.notify("initialized")
    return daemon


def ask(daemon: Daemon, command: str, *arguments: object) -> int:
    """Send a command. Return the id of the request."""
    return daemon.ask("workspace/executeCommand", command=f"compactd.{command}", arguments=list(arguments))


def question(daemon: Daemon) -> Got:
    """Wait for the question to the user."""
    method = "window/showMessageRequest"
    return daemon.wait(lambda got: got.value.get("method") == method, method)


def reply(daemon: Daemon, asked: Got, result: object) -> None:
    """Send the user's answer to a question."""
    daemon.send(json.dumps({"jsonrpc": "2.0", "id": asked.value["id"], "result": result}).encode())


@pytest.fixture
def projects(tmp_path: Path) -> tuple[Path, Path]:
    here, there = tmp_path / "he re", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    return here, there


def test_looking_takes_no_lock(spawn: Spawn) -> None:
    agent, looking = spawn(), spawn()
    stored(agent, "s")

    state = looking.result(ask(looking, "state"))
    again = agent.call("session/start", session_id="s")

    assert (state["session_id"], state["status"]) == ("s", "idle")
    assert again["read_only"] is False
    assert agent.call("session/append", session_id="s", messages=turns(1, 5))
    assert looking.result(ask(looking, "state"))["status"] == "unknown"


def test_a_command_lets_go_of_a_session_that_it_opened(spawn: Spawn) -> None:
    agent, editing = spawn(), spawn()
    stored(agent, "s")

    assert (
        editing.result(ask(editing, "compact", {"session_id": "s", "keep_messages": 2}))["compacted"] is True
    )

    assert agent.call("session/start", session_id="s")["read_only"] is False


def test_a_session_that_the_client_opened_stays_open_after_a_command(spawn: Spawn) -> None:
    daemon = spawn()
    stored(daemon, "s")
    daemon.call("session/start", session_id="s")

    daemon.result(ask(daemon, "compact", {"keep_messages": 2}))

    assert daemon.call("session/context", session_id="s")["epoch"] == 2


def test_a_command_means_the_newest_session_of_the_workspace(
    spawn: Spawn, projects: tuple[Path, Path]
) -> None:
    here, there = projects
    agent, other = spawn(), spawn()
    (here / "deep").mkdir()
    stored(agent, "ours", here / "deep")
    stored(agent, "theirs", there)
    editing = editor(other, here)

    done = editing.result(ask(editing, "compact", {"keep_messages": 2}))
    state = editing.result(ask(editing, "state"))

    assert done["compacted"] is True
    assert (state["session_id"], state["compaction"]["count"]) == ("ours", 1)
    listed = {row["session_id"]: row for row in agent.call("session/list")["sessions"]}
    assert {name: row["compactions"] for name, row in listed.items()} == {"ours": 1, "theirs": 0}
    assert listed["theirs"]["working_dir"] == str(there)


@pytest.mark.parametrize("command", ["state", "compact"])
def test_without_a_session_of_the_workspace_the_person_is_asked(
    spawn: Spawn, projects: tuple[Path, Path], command: str
) -> None:
    here, there = projects
    agent, other = spawn(), spawn()
    stored(agent, "older", there)
    stored(agent, "newer", there)
    editing = editor(other, here)

    asked = ask(editing, command, {} if command == "state" else {"keep_messages": 2})
    shown = question(editing)
    titles = [action["title"] for action in shown.value["params"]["actions"]]
    reply(editing, shown, {"title": titles[1]})
    answer = editing.result(asked)

    assert titles == ["About newer (newer)", "About older (older)"]
    if command == "state":
        assert answer["session_id"] == "older"
    else:
        compacted = {row["session_id"]: row["compactions"] for row in agent.call("session/list")["sessions"]}
        assert compacted == {"older": 1, "newer": 0}


def test_a_person_who_picks_none_changes_nothing(spawn: Spawn, projects: tuple[Path, Path]) -> None:
    here, there = projects
    agent, other = spawn(), spawn()
    stored(agent, "theirs", there)
    editing = editor(other, here)

    asked = ask(editing, "compact")
    reply(editing, question(editing), None)

    refusal = editing.refused(asked)
    assert (refusal.code, "session_id" in refusal.message) == (1001, True)
    assert agent.call("session/list")["sessions"][0]["compactions"] == 0


def test_a_lock_is_named_as_the_reason(spawn: Spawn, projects: tuple[Path, Path]) -> None:
    here, _ = projects
    agent, unplaced, placed = spawn(), spawn(), spawn()
    stored(agent, "s", here)
    agent.call("session/start", session_id="s")

    refusals = [daemon.refused(ask(daemon, "compact")) for daemon in (unplaced, editor(placed, here))]

    assert [refusal.code for refusal in refusals] == [1004, 1004]
    assert unplaced.result(ask(unplaced, "state"))["session_id"] == "s"


def test_a_store_without_a_session_says_so(spawn: Spawn, projects: tuple[Path, Path]) -> None:
    refusal = editor(daemon := spawn(), projects[0]).refused(ask(daemon, "compact"))

    assert (refusal.code, "no session yet" in refusal.message) == (1001, True)
