"""Recall over MCP: the official client and the real command, on a session that a hook mirrored."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from compactd.client import Client
from compactd.integrations.mcp.recall_sessions import SessionChoice, choose_session
from compactd.protocol.wire import SessionInfo
from tests.support.agent_transcripts import COMMAND, ERROR, HASH, LIMIT, Turn, past
from tests.support.command_line import environment, run
from tests.support.hook_runs import Agent
from tests.support.mcp_command import Server


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Agent:
    """Return an agent with a compacted session of Claude Code, and one of the daemon's in another folder."""
    home = tmp_path_factory.mktemp("home")
    agent = Agent("claude-code", home)
    agent.session.cwd = str(home)
    agent.session.say(*past(4))
    agent.stop()
    agent.session.compact().say(Turn("user", "What is next?"))
    agent.stop()
    with Client(env=environment(home)) as client:
        client.session_start(session_id="elsewhere", working_dir=str(home / "other"), title="Another one")
        client.session_append(
            session_id="elsewhere", messages=[{"role": "user", "content": f"Look at {HASH} \x1b[31mred"}]
        )
    return agent


@pytest.fixture(scope="module")
def server(agent: Agent) -> Iterator[Server]:
    with Server(agent.home) as server:
        yield server


def test_the_official_client_lists_the_tools_which_say_when_to_use_them(server: Server) -> None:
    tools = server.tools()

    assert set(tools) == {"search_history", "expand", "context_state"}
    assert all("compact" in str(tool.description) for tool in tools.values())
    assert "when you miss a detail from before the compaction" in str(tools["search_history"].description)
    assert [tool.annotations and tool.annotations.read_only_hint for tool in tools.values()] == [True] * 3


def test_claude_code_loads_the_descriptions_of_the_tools_at_once(server: Server) -> None:
    assert [tool.meta for tool in server.tools().values()] == [{"anthropic/alwaysLoad": True}] * 3


def test_of_a_mirrored_sessions_context_only_the_agents_report_is_told(agent: Agent) -> None:
    """compactd knows neither the agent's window nor when it compacts."""
    other = Agent("claude-code", agent.home, "5c5cb639-bbbb")
    other.session.cwd = str(agent.home / "sizes")
    Path(other.session.cwd).mkdir()
    other.session.say(*past(2))
    other.stop()
    reports = [
        row["message"]["usage"]["cache_read_input_tokens"] + 10
        for row in map(json.loads, other.session.path.read_text().splitlines())
        if "usage" in row.get("message", {})
    ]
    with Server(agent.home, folder=Path(other.session.cwd)) as server:
        before = server.told("context_state")
        other.session.compact()
        other.stop()
        after = server.told("context_state")

    assert f"context: {reports[-1]:,} tokens in the request of " in before
    assert "compactions: 0" in before
    for state in (before, after):
        assert not any(word in state for word in ("%", "due at", "of 128,000", "guess"))
    assert ("context:" in after, "compactions: 1" in after) == (False, True)


def test_a_guessed_window_is_not_told(agent: Agent) -> None:
    with Client(env=environment(agent.home)) as client:
        client.session_start(session_id="known", model="openai/gpt-4o")
        client.session_append(session_id="known", messages=[{"role": "user", "content": "Hello."}])
    told = []
    for name in ("known", "elsewhere"):
        with Server(agent.home, "--session", name) as server:
            told.append(server.told("context_state"))

    known, guessed = told
    assert ("of 128,000" in known, "a compaction is due at" in known) == (True, True)
    assert "context: " in guessed
    assert ("%" in guessed, "due at" in guessed) == (False, False)


def test_the_line_that_was_lost_is_found_by_a_phrase_by_words_and_by_parts(server: Server) -> None:
    phrase = server.told("search_history", query="public API of the parser")
    words = server.told("search_history", query="why does half_even fail", limit=2)
    parts = server.told("search_history", query="pytest maxfail")
    nothing = server.told("search_history", query="zygomorphic")

    assert (LIMIT in phrase, "compacted away" in phrase) == (True, True)
    assert ERROR in words
    assert COMMAND in parts
    assert nothing.startswith("Nothing in session claude-code:")


def test_expand_shows_messages_whole_and_all_that_a_compaction_removed(server: Server) -> None:
    found = server.told("search_history", query=HASH, limit=1)
    entry_id = found.split("[", 1)[1].split(" ", 1)[0]

    whole = server.told("expand", entry_ids=[entry_id])
    removed = server.told("expand")
    unknown = server.told("expand", entry_ids=["e999"])

    assert HASH in whole
    assert [part in removed for part in (LIMIT, COMMAND, ERROR)] == [True, True, True]
    assert unknown.startswith("error: ")
    assert "compactions: 1" in server.told("context_state")


def test_an_answer_keeps_its_budget(server: Server) -> None:
    search = server.told("search_history", query="rounding", limit=50, budget=100)
    expand = server.told("expand", budget=100)
    whole = server.told("expand", budget=20_000)

    assert len(search) < 4 * 100 + 400
    assert len(expand) < 4 * 100 + 400
    assert "more messages" in expand
    assert len(whole) > 2 * len(expand)


def test_the_user_can_let_the_model_name_a_session_of_another_folder(server: Server, agent: Agent) -> None:
    assert server.told("context_state").startswith("session claude-code:")
    with Server(agent.home, "--all-projects") as wide:
        assert wide.told("context_state").startswith("session claude-code:")
        other = wide.told("context_state", session="elsewhere")
        unknown = wide.told("context_state", session="nobody")
    assert other.startswith("session elsewhere\n(tool) title: Another one\n")
    assert unknown.startswith("error: No session is called 'nobody'. Name one with `session`")
    assert "elsewhere" in unknown


def test_bad_arguments_are_told_and_terminal_escapes_are_not_passed_on(server: Server, agent: Agent) -> None:
    assert server.told("search_history", query="").startswith("error: The query is empty")
    assert server.told("search_history", query=["x"]).startswith("error: ")
    assert server.told("expand", entry_ids="e1").startswith("error: ")
    with Server(agent.home, "--session", "elsewhere") as named:
        shown = named.told("search_history", query=HASH)
    assert ("red" in shown, "\x1b" in shown) == (True, False)


def test_what_is_mirrored_while_it_serves_is_found(server: Server, agent: Agent) -> None:
    before = server.told("search_history", query="xylophone")
    agent.session.say(Turn("user", "The new word is xylophone."))
    agent.stop()
    after = server.told("search_history", query="xylophone")

    assert before.startswith("Nothing in session")
    assert "The new word is xylophone." in after


def test_without_a_session_of_the_folder_none_is_meant_unless_the_user_opened_all(tmp_path: Path) -> None:
    stored = [about("codex:old", 1.0), about("codex:new", 3.0), about("mine", 5.0)]
    folder, environ = str(tmp_path), {"COMPACTD_HOME": str(tmp_path)}

    found = [
        choose_session(wanted, stored, environ)
        for wanted in (
            SessionChoice(folder=folder, agent="codex"),
            SessionChoice(folder=folder),
            SessionChoice(folder=folder, session_id="new"),
            SessionChoice(folder=folder, session_id="codex:new"),
            SessionChoice(folder=folder, agent="codex", all_projects=True),
            SessionChoice(folder=folder, session_id="new", all_projects=True),
            SessionChoice(folder=folder, session_id="codex", all_projects=True),
            SessionChoice(folder=folder, agent="pi", session_id="mine", all_projects=True),
        )
    ]

    named = [one and one.session_id for one in found]
    assert named == [None, None, None, "codex:new", "codex:new", "codex:new", None, None]


def about(session_id: str, updated_at: float) -> SessionInfo:
    return SessionInfo(
        session_id=session_id, title=None, model=None, message_count=1, compactions=0, bytes=1,
        updated_at=updated_at, open=False,
    )  # fmt: skip


def test_a_session_and_an_agent_together_are_refused(tmp_path: Path) -> None:
    ended = run(tmp_path, "mcp", "--session", "x", "--agent", "codex")

    assert (ended.code, "--session" in ended.err) == (2, True)
