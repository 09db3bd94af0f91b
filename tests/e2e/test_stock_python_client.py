"""The stock clients of pygls and pytest-lsp run whole sessions: no code of compactd is needed for that."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_lsp
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pytest_lsp import ClientServerConfig, LanguageClient, make_test_lsp_client

from tests.support.client import PATIENCE_S, SERVE, environment
from tests.support.sharing import ATTACH
from tests.support.talk import CHARS4, turns, user


def plain(value: Any) -> Any:
    """Convert a result from pygls, an object with attributes, to plain data."""
    if hasattr(value, "_asdict"):
        return {name: plain(one) for name, one in value._asdict().items()}
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value


async def ask(client: LanguageClient, method: str, **params: Any) -> Any:
    """Call a method of compactd with pygls' public API. Return the result."""
    asked = client.protocol.send_request_async(method, params)
    return plain(await asyncio.wait_for(asked, PATIENCE_S))


def listening_client() -> LanguageClient:
    """Return pytest-lsp's client, changed to keep the events that it receives."""
    client = make_test_lsp_client()
    client.events = []  # type: ignore[attr-defined]

    @client.feature("agent/event")
    def keep(params: Any) -> None:
        client.events.append(plain(params))  # type: ignore[attr-defined]

    return client


@pytest.mark.parametrize("command", [SERVE, ATTACH], ids=["serve", "attach"])
async def test_pytest_lsps_client_runs_a_session_from_initialize_to_exit(
    tmp_path: Path, sockets: dict[str, str], command: Sequence[str]
) -> None:
    client = listening_client()
    await client.start_io(*command, env=environment(tmp_path / "home", sockets))

    made = await client.initialize_session(
        types.InitializeParams(capabilities=types.ClientCapabilities(), process_id=None)
    )
    session = (
        await ask(client, "session/start", compaction={"context_window": 100_000, **CHARS4}, title="Mine")
    )["session_id"]
    messages = [user(0, content="Fix the loader"), *turns(8, 400)]
    appended = await ask(client, "session/append", session_id=session, messages=messages)
    state = await ask(client, "agent/state", session_id=session)
    compacted = plain(
        await asyncio.wait_for(
            client.workspace_execute_command_async(
                types.ExecuteCommandParams(
                    command="compactd.compact", arguments=[{"session_id": session, "keep_recent": 900}]
                )
            ),
            PATIENCE_S,
        )
    )
    context = await ask(client, "session/context", session_id=session, format="anthropic")
    error = None
    try:
        await ask(client, "session/context", session_id="nobody")
    except JsonRpcException as refused:
        error = refused
    undone = plain(
        await client.workspace_execute_command_async(types.ExecuteCommandParams(command="compactd.undo"))
    )
    listed = plain(
        await client.workspace_execute_command_async(types.ExecuteCommandParams(command="compactd.sessions"))
    )
    await asyncio.wait_for(client.shutdown_session(), PATIENCE_S)
    await asyncio.wait_for(client.stop(), PATIENCE_S)

    assert made.capabilities.text_document_sync is None
    assert made.server_info is not None
    assert made.server_info.name == "compactd"
    assert made.capabilities.execute_command_provider is not None
    assert set(made.capabilities.execute_command_provider.commands) == {
        "compactd.compact",
        "compactd.undo",
        "compactd.state",
        "compactd.sessions",
    }
    assert appended["entry_ids"] == [f"e{n}" for n in range(1, 18)]
    assert state["token_usage"]["context_window"] == 100_000
    assert compacted["compacted"] is True
    assert context["tokens"] == compacted["tokens_after"]
    assert error is not None
    assert error.code == 1001
    assert undone["compaction_id"] == compacted["compaction_id"]
    assert undone["message_count"] == 17
    assert [row["title"] for row in listed["sessions"]] == ["Mine"]
    passed_over = ("compaction_progress", "message_appended")
    told = [event["type"] for event in client.events if event["type"] not in passed_over]  # type: ignore[attr-defined]
    assert told == ["usage_update", "compaction_start", "compaction_end", "usage_update", "usage_update"]
    assert any(message.message.startswith("Conversation compacted") for message in client.log_messages)


CONFIG = ClientServerConfig(
    server_command=[sys.executable, "-m", "compactd", "--stdio"],
    client_factory=listening_client,
    # Nothing of the person who runs this is read; its one session is kept in memory.
    server_env=environment(Path("/nonexistent/compactd")),
)


@pytest_lsp.fixture(config=CONFIG)
async def editor(lsp_client: LanguageClient) -> Any:
    """An editor as pytest-lsp plays it."""
    await lsp_client.initialize_session(
        types.InitializeParams(
            capabilities=types.ClientCapabilities(
                window=types.WindowClientCapabilities(work_done_progress=True)
            ),
            initialization_options={"compactd": {"compaction": {"keep_recent_tokens": 1234}}},
        )
    )
    yield
    await lsp_client.shutdown_session()


async def test_an_editors_configuration_and_progress_work_with_pytest_lsps_own_fixture(
    editor: LanguageClient,
) -> None:
    started = await ask(
        editor, "session/start", persist=False, compaction={"context_window": 100_000, **CHARS4}
    )
    session = started["session_id"]
    settings = (await ask(editor, "session/configure", session_id=session))["settings"]
    editor.workspace_did_change_configuration(
        types.DidChangeConfigurationParams(settings={"compaction": {"keep_recent_tokens": 4321}})
    )
    changed = (await ask(editor, "session/configure", session_id=session))["settings"]
    await ask(editor, "session/append", session_id=session, messages=turns(12, 400))
    done = plain(
        await asyncio.wait_for(
            editor.workspace_execute_command_async(types.ExecuteCommandParams(command="compactd.compact")),
            PATIENCE_S,
        )
    )

    assert settings["keep_recent_tokens"] == {"value": 1234, "source": "initializationOptions"}
    assert changed["keep_recent_tokens"]["value"] == 4321
    assert done["compacted"] is True
    assert done["kept_messages"] == 10, "4,321 tokens are within 11 messages of 400; forward to a user's"
    (reports,) = editor.progress_reports.values()
    assert isinstance(reports[0], types.WorkDoneProgressBegin)
    assert isinstance(reports[-1], types.WorkDoneProgressEnd)
