"""The chat in a session that another client of the shared daemon has open."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from compactd.cli.chat.conversation import PromptText
from compactd.client import AsyncClient
from tests.support import own_loop
from tests.support.loopback import Answer, Gated, Loopback
from tests.unit.cli.chat.staged import client_of, staged

MODEL = own_loop.MODELS["openai"]
EMPTIED = "It is emptied by every write, " + "and by lines of it " * 30
OTHER = {"name": "the editor"}


@pytest.fixture
def provider() -> Iterator[Loopback]:
    with Loopback() as server:
        yield server


@pytest.fixture
def shared(provider: Loopback) -> Iterator[dict[str, str]]:
    """The environment of clients that share a daemon, which ends soon after them."""
    folder = Path(tempfile.mkdtemp(prefix="c", dir="/tmp"))
    sharing = {"COMPACTD_SHARED": "1", "COMPACTD_IDLE_EXIT": "0", "XDG_RUNTIME_DIR": str(folder)}
    yield {**own_loop.environment("openai", provider.base_url), **sharing, "COMPACTD_STRATEGY": "extract"}
    deadline = time.monotonic() + 20
    while list(folder.glob("compactd/*.sock")) and time.monotonic() < deadline:
        time.sleep(0.02)
    shutil.rmtree(folder)


async def open_both(other: AsyncClient) -> None:
    await other.call("session/start", {"session_id": "both", "model": MODEL, "client": OTHER})


def shown_prompts(app: object) -> list[str]:
    return [str(asked.content) for asked in app.query(PromptText)]  # type: ignore[attr-defined]


async def test_prompts_compactions_and_undos_of_others_are_shown_with_their_name(
    tmp_path: Path, shared: dict[str, str], provider: Loopback
) -> None:
    gate = threading.Event()
    provider.play(Gated(Answer(text=EMPTIED), gate, 4), Answer(text="Nothing else."))
    async with client_of(tmp_path, **shared) as other, client_of(tmp_path, **shared) as own:
        await open_both(other)
        async with staged(own, session="both", is_echo=False, model=MODEL) as stage:
            await other.agent_prompt(session_id="both", text="When is it emptied?")
            await stage.sees("from the editor")
            await stage.sees("It is")
            assert "lines of it" not in stage.seen()
            # A prompt of the chat waits below the answer that streams in.
            await stage.sends("What else?")
            await stage.sees("What else?")
            gate.set()
            await stage.sees("Nothing else.")
            await stage.rests()
            assert shown_prompts(stage.app) == ["When is it emptied?\nfrom the editor", "What else?"]

            await other.call("session/compact", {"session_id": "both", "keep_messages": 1})
            await stage.sees("compacted by the editor")
            await other.session_undo(session_id="both")
            await stage.sees("the editor undid a compaction")
            await other.session_redo(session_id="both")
            await stage.sees("the editor redid a compaction")
            assert shown_prompts(stage.app) == ["When is it emptied?\nfrom the editor", "What else?"]


async def test_an_idle_chat_joins_the_next_daemon_and_follows_on(
    tmp_path: Path, shared: dict[str, str], provider: Loopback
) -> None:
    provider.play(Answer(text="One."), Answer(text="Two."))
    async with client_of(tmp_path, **shared) as other, client_of(tmp_path, **shared) as own:
        await open_both(other)
        async with staged(own, session="both", is_echo=False, model=MODEL) as stage:
            await stage.says("First?")
            await stage.sees("One.")
            os.kill((await other.daemon_info()).pid, signal.SIGKILL)

            await stage.sees("the daemon stopped and was restarted.")
            await other.agent_prompt(session_id="both", text="Second?")
            await stage.sees("Two.")
            await stage.rests()
            assert shown_prompts(stage.app) == ["First?", "Second?\nfrom the editor"]
