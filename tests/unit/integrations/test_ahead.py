"""The process that reads a session while the summary is written: it answers like the hook itself, or not at
all, and it ends.
"""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path

import pytest

from compactd.integrations.hooks.ahead import ask
from compactd.integrations.hooks.hook_state import HookStateFiles, files_of, load
from tests.support.agent_transcripts import LIMIT, SUMMARY, Turn, past
from tests.support.hook_runs import PATIENT, Agent, ended, spawned

pytestmark = pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="there are no Unix sockets")

RAW = f"<summary>{SUMMARY}</summary>"
WAIT_S = 30.0


def files_at(home: Path, agent: Agent) -> HookStateFiles:
    return files_of({"COMPACTD_HOME": str(home / "data")}, "claude-code", agent.session.session_id)


def begun(home: Path) -> Agent:
    """Begin a compaction with the hook as a process, and wait until its helper is ready."""
    agent = Agent("claude-code", home)
    agent.session.say(*past())
    event = json.dumps(agent.session.event("PreCompact", trigger="manual")).encode()
    assert ended(spawned(home, "hook", "claude-code", "--deadline", "30"), event)[0] == 0
    until(files_at(home, agent).socket_path.exists)
    return agent


def until(is_so: object) -> None:
    """Wait until something is so. It fails after half a minute."""
    end = time.monotonic() + WAIT_S
    while not is_so():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.01)


def told_summary(agent: Agent) -> None:
    agent.at("SubagentStop", agent_id="f", agent_type="", last_assistant_message=RAW)


def test_its_answer_is_the_hooks_own(tmp_path: Path) -> None:
    short = tmp_path / "a"
    alone = tmp_path / "b"
    texts = []
    for home in (short, alone):
        home.mkdir()
        agent = begun(home) if home == short else Agent("claude-code", home)
        if home == alone:
            agent.session.say(*past())
            agent.before()
        told_summary(agent)
        texts.append((agent.start("compact").text, load(files_at(home, agent)).kept))

    assert texts[0] == texts[1]
    assert LIMIT in texts[0][0]
    assert not files_at(short, agent).socket_path.exists()


def test_it_answers_once_and_ends(tmp_path: Path) -> None:
    agent = begun(tmp_path)
    files = files_at(tmp_path, agent)
    state = load(files)
    files.path(".gone").write_bytes(files.path(".stretch").read_bytes())
    state.gone_bytes, state.summary, state.is_told = state.stretch_bytes, SUMMARY, True

    replies = [ask(files, state, PATIENT, WAIT_S), ask(files, state, PATIENT, WAIT_S)]

    assert replies[0] is not None
    assert LIMIT in replies[0].text
    assert replies[1] is None


def test_messages_that_it_did_not_read_are_left_to_the_hook(tmp_path: Path) -> None:
    agent = begun(tmp_path)
    agent.session.say(Turn("user", "Never touch src/late/written.py, whatever happens."))
    told_summary(agent)

    text = agent.start("compact").text

    assert LIMIT in text
    assert "src/late/written.py" in text
    until(lambda: not files_at(tmp_path, agent).socket_path.exists())


def test_a_session_that_goes_on_without_a_compaction_ends_it(tmp_path: Path) -> None:
    agent = begun(tmp_path)
    files = files_at(tmp_path, agent)

    agent.prompt()

    assert not files.socket_path.exists()


def test_a_socket_that_nobody_serves_is_no_hindrance(tmp_path: Path) -> None:
    agent = Agent("claude-code", tmp_path)
    agent.session.say(*past())
    agent.before()
    told_summary(agent)
    files_at(tmp_path, agent).socket_path.write_text("no socket")

    assert LIMIT in agent.start("compact").text
    assert not files_at(tmp_path, agent).socket_path.exists()


def test_a_process_that_is_ready_after_the_compaction_ends(tmp_path: Path) -> None:
    agent = Agent("claude-code", tmp_path)
    agent.session.say(*past())
    agent.before()
    agent.prompt()
    event = json.dumps(agent.session.event("PreCompact", trigger="manual")).encode()

    code, out, err = ended(spawned(tmp_path, "hook", "claude-code", "--ahead"), event)

    assert (code, out, err) == (0, b"", b"")
    assert not files_at(tmp_path, agent).socket_path.exists()
