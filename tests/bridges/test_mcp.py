"""Recall over MCP: the official client against the real command, over a session that a hook mirrored."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

import pytest
from mcp import Client as Mcp
from mcp import StdioServerParameters, stdio_client
from mcp_types import TextContent, Tool

from bridges.agents_made import COMMAND, ERROR, HASH, LIMIT, Turn, past
from bridges.hook_runs import Agent
from cli.command_line import COMPACTD, TIMEOUT_S, environment, run
from compactd.bridges.recall_sessions import Wanted, chosen
from compactd.client import Client
from compactd.rpc.wire import SessionInfo

T = TypeVar("T")


class Server:
    """`compactd mcp OPTIONS`, and the official client that speaks to it, in a loop of its own."""

    def __init__(self, home: Path, *options: str) -> None:
        command, *arguments = COMPACTD
        self._parameters = StdioServerParameters(
            command=command, args=[*arguments, "mcp", *options], env=environment(home), cwd=home
        )
        self._loop = asyncio.new_event_loop()
        self._ready: Future[Mcp] = Future()
        self._done = asyncio.Event()
        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._talk()))

    def __enter__(self) -> Server:
        self._thread.start()
        self.client = self._ready.result(TIMEOUT_S)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._done.set)
        self._thread.join(TIMEOUT_S)
        self._loop.close()

    def told(self, tool: str, **arguments: object) -> str:
        """What the tool said; with `error: ` before it where that was one."""
        result = self._wait(self.client.call_tool(tool, arguments))
        (block,) = result.content
        assert isinstance(block, TextContent)
        return f"error: {block.text}" if result.is_error else block.text

    def tools(self) -> dict[str, Tool]:
        return {tool.name: tool for tool in self._wait(self.client.list_tools()).tools}

    def _wait(self, asked: Coroutine[object, object, T]) -> T:
        return asyncio.run_coroutine_threadsafe(asked, self._loop).result(TIMEOUT_S)

    async def _talk(self) -> None:
        try:
            async with Mcp(stdio_client(self._parameters)) as client:
                self._ready.set_result(client)
                await self._done.wait()
        except BaseException as error:
            if self._ready.done():
                raise
            self._ready.set_exception(error)


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Agent:
    """With a session of Claude Code's that was compacted, and one of the daemon's, of another folder."""
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


def test_the_session_is_that_of_the_folder_unless_one_is_named(server: Server) -> None:
    assert server.told("context_state").startswith("session claude-code:")
    assert server.told("context_state", session="elsewhere").startswith("session elsewhere · Another one")
    assert "elsewhere" in server.told("context_state", session="nobody")
    assert server.told("context_state", session="nobody").startswith("error: ")


def test_bad_arguments_are_told_and_terminal_escapes_are_not_passed_on(server: Server) -> None:
    assert server.told("search_history", query="").startswith("error: The query is empty")
    assert server.told("search_history", query=["x"]).startswith("error: ")
    assert server.told("expand", entry_ids="e1", session="elsewhere").startswith("error: ")
    shown = server.told("search_history", query=HASH, session="elsewhere")
    assert ("red" in shown, "\x1b" in shown) == (True, False)


def test_what_is_mirrored_while_it_serves_is_found(server: Server, agent: Agent) -> None:
    before = server.told("search_history", query="xylophone")
    agent.session.say(Turn("user", "The new word is xylophone."))
    agent.stop()
    after = server.told("search_history", query="xylophone")

    assert before.startswith("Nothing in session")
    assert "The new word is xylophone." in after


def test_of_an_agent_the_newest_session_is_meant_and_none_where_the_folder_has_none(tmp_path: Path) -> None:
    stored = [about("codex:old", 1.0), about("codex:new", 3.0), about("mine", 5.0)]

    found = [
        chosen(wanted, stored, {"COMPACTD_HOME": str(tmp_path)})
        for wanted in (
            Wanted(agent="codex", folder=str(tmp_path)),
            Wanted(folder=str(tmp_path)),
            Wanted(session_id="new"),
            Wanted(session_id="codex"),
            Wanted(agent="pi"),
        )
    ]

    assert [one and one.session_id for one in found] == ["codex:new", None, "codex:new", None, None]


def about(session_id: str, updated_at: float) -> SessionInfo:
    return SessionInfo(
        session_id=session_id, title=None, model=None, message_count=1, compactions=0, bytes=1,
        updated_at=updated_at, open=False,
    )  # fmt: skip


def test_a_session_and_an_agent_together_are_refused(tmp_path: Path) -> None:
    ended = run(tmp_path, "mcp", "--session", "x", "--agent", "codex")

    assert (ended.code, "--session" in ended.err) == (2, True)
