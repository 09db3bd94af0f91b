"""The chat app with a fake provider on loopback: streaming, failures, interruptions."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from compactd.cli.chat.folds import CallFold, Rule
from compactd.cli.chat.markdown import Prose
from tests.support.loopback import Answer, Call, Fail, Loopback, Stall
from tests.support.own_loop import TOOLS
from tests.support.own_loop import environment as pointed_at
from tests.unit.cli.chat.staged import MODEL, Stage, client_of, staged

pytestmark = pytest.mark.asyncio(loop_scope="module")


@asynccontextmanager
async def talking(home: Path, server: Loopback, **start: Any) -> AsyncIterator[Stage]:
    """An app whose daemon asks `server`."""
    async with (
        client_of(home, **pointed_at("anthropic", server.base_url)) as client,
        staged(client, session="talk", is_echo=False, **start) as stage,
    ):
        yield stage


async def test_a_conversation_streams_runs_tools_fails_and_is_stopped(tmp_path: Path) -> None:
    script = (
        Answer(text="Good **morning**.\n\n- one\n- two", thinking="They greet."),
        Answer(text="I look.", calls=(Call("read", '{"path": "src/x.py"}'),)),
        Answer(text="It cannot be read.", input_tokens=100_000),
        Fail(status=401),
        Stall(text="half an answer"),
    )
    with Loopback(script) as server:
        async with talking(tmp_path, server, tools=TOOLS) as stage:
            await stage.says("Hello")
            [prose] = stage.app.conversation.query(Prose)
            assert prose.text == "Good **morning**.\n\n- one\n- two"
            await stage.sees("▸ thought")
            await stage.sees(" • one")

            await stage.says("Read it")
            [fold] = stage.app.query(CallFold)
            await stage.sees("▸ read  src/x.py · 1 line · failed")
            await stage.sees(" It cannot be read.")
            # The gauge is the provider's report, the cost is by the registry's prices.
            assert "◑ 50 % · 100k/200k · $0.30" in stage.lines()[-1]
            fold.focus()
            await stage.presses("enter")
            await stage.sees("This chat runs no tools.")

            await stage.says("Once more")
            await stage.sees("answered 401: invalid x-api-key")

            await stage.sends("Slowly")
            await stage.sees("half an answer")
            assert "answering" in stage.lines()[-1]
            await stage.presses("escape")
            await stage.sees("stopped; the text so far is kept")
            assert "half an answer" in stage.seen()
            assert "answering" not in stage.lines()[-1]


async def test_a_compaction_shows_how_far_it_is_and_esc_cancels_it(tmp_path: Path) -> None:
    long = "So it is. " * 400
    with Loopback((Stall(text="## Goal\n"),)) as server:
        async with talking(tmp_path, server, compaction={"model": MODEL}) as stage:
            said = [
                {"role": role, "content": f"{n} {long}"} for n in range(6) for role in ("user", "assistant")
            ]
            await stage.app.talk.client.call("session/append", {"session_id": "talk", "messages": said})
            await stage.rests()

            await stage.sends("/compact --keep 2")
            await stage.sees("compacting 12 messages")
            await stage.sees("Esc cancels")
            await stage.presses("escape")

            await stage.sees("the compaction was cancelled; nothing was changed")
            assert not stage.app.query(Rule)
            assert "Esc cancels" not in stage.seen()


@pytest.mark.parametrize(
    ("columns", "where"), [(130, "the summary, while it is written"), (80, "summarising: ")]
)
async def test_a_summary_is_seen_while_it_is_written_and_gone_when_it_is_not(
    tmp_path: Path, columns: int, where: str
) -> None:
    long = "So it is. " * 400
    with Loopback((Stall(text="## Goal\nThe parser reads \x1b[31mtabs"),)) as server:
        async with talking(tmp_path, server, compaction={"model": MODEL}) as stage:
            await stage.pilot.resize_terminal(columns, 40)
            said = [
                {"role": role, "content": f"{n} {long}"} for n in range(6) for role in ("user", "assistant")
            ]
            await stage.app.talk.client.call("session/append", {"session_id": "talk", "messages": said})
            await stage.rests()
            assert where not in stage.seen()

            await stage.sends("/compact --keep 2")

            await stage.sees(where)
            await stage.sees("The parser reads")
            assert "\x1b" not in stage.seen()
            await stage.presses("escape")
            await stage.sees("the compaction was cancelled; nothing was changed")
            assert where not in stage.seen()
            assert "The parser reads" not in stage.seen()


async def test_a_daemon_that_dies_while_it_answers_is_told_and_the_chat_goes_on(tmp_path: Path) -> None:
    with Loopback((Stall(text="half"), Answer(text="Whole."))) as server:
        async with talking(tmp_path, server) as stage:
            await stage.sends("One")
            await stage.sees("half")

            os.kill(stage.app.talk.client.pid, signal.SIGKILL)

            await stage.sees("the daemon stopped and was restarted.")
            await stage.rests()
            await stage.says("Two")
            await stage.sees(" Whole.")
            assert stage.seen().count("the daemon stopped") == 1


async def test_a_daemon_that_cannot_be_started_again_is_told_in_two_lines(tmp_path: Path) -> None:
    with Loopback() as server:
        async with talking(tmp_path, server) as stage:
            for _ in range(4):
                os.kill(stage.app.talk.client.pid, signal.SIGKILL)
                await stage.says("/search x")

            await stage.sees("the daemon ended with code -9")
            await stage.sees("The daemon's log")
