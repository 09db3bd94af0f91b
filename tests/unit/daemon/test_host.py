from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable

import pytest
from msgspec import Raw

from compactd.daemon.lsp.editor import COMMANDS
from compactd.daemon.lsp.language_server import PyglsHost
from compactd.daemon.rpc.envelope import read_envelope
from compactd.daemon.rpc.outgoing import AnsweredWithError
from compactd.daemon.rpc.request import Request
from compactd.protocol.errors import Detail, SessionBusy

INITIALIZE = {"processId": None, "rootUri": None, "capabilities": {}}


def host_of(
    run: Callable[[str, tuple[Detail, ...], Request], Awaitable[bytes]], sent: list[bytes]
) -> PyglsHost:
    """A host with our commands, that does `run`."""
    return PyglsHost("compactd", "1", tuple(COMMANDS), run, sent.append)


async def nothing(command: str, arguments: tuple[Detail, ...], request: Request) -> bytes:
    """A command that gives back what it was asked."""
    return json.dumps([command, list(arguments)]).encode()


def asking() -> Request:
    """The client's request behind a command."""
    return Request(b"1", "workspace/executeCommand", lambda *_: True)


def execute(host: PyglsHost, command: str, *arguments: object) -> Awaitable[Raw]:
    """Asks pygls for a command."""
    params = {"command": command, "arguments": list(arguments)}
    return host.ask("workspace/executeCommand", Raw(json.dumps(params).encode()), asking())


@pytest.mark.parametrize(
    "params",
    [
        INITIALIZE,
        {},
        {"capabilities": {"general": {"positionEncodings": ["utf-8", "new"]}, "textDocument": 5}},
        {"capabilities": None, "processId": "x", "workspaceFolders": 7},
        {"capabilities": {"window": {"workDoneProgress": True}}, "rootPath": "/x", "trace": "verbose"},
    ],
)
def test_pygls_asks_for_no_documents_and_offers_our_commands_whoever_the_client_is(params: object) -> None:
    sent: list[bytes] = []
    host = host_of(nothing, sent)

    host.initialize(Raw(json.dumps(params).encode()))

    assert host.server.server_capabilities.text_document_sync is None
    assert host.server.server_capabilities.execute_command_provider.commands == list(COMMANDS)
    assert sent == []


async def test_a_command_gets_its_arguments_as_they_came() -> None:
    argument = {"class": 1, "x-y": None, "jsonrpc": "1.0", "type_name": [{"__h": 1.5}]}

    result = await execute(host_of(nothing, []), "compactd.undo", argument, "more")

    assert json.loads(bytes(result)) == ["compactd.undo", [argument, "more"]]


async def test_an_error_of_ours_passes_through_with_code_and_data() -> None:
    async def busy(command: str, arguments: tuple[Detail, ...], request: Request) -> bytes:
        raise SessionBusy("compacting", since=5)

    with pytest.raises(AnsweredWithError) as seen:
        await execute(host_of(busy, []), "compactd.undo")

    error = seen.value.error
    assert (error.code, error.message, bytes(error.data)) == (1002, "compacting", b'{"since": 5}')


async def test_a_bug_inside_pygls_is_one_of_ours_and_not_a_traceback_for_the_client() -> None:
    async def no_json(command: str, arguments: tuple[Detail, ...], request: Request) -> bytes:
        return b"no json"

    with pytest.raises(RuntimeError, match=r"pygls: .*DecodeError"):
        await execute(host_of(no_json, []), "compactd.undo")


async def test_params_that_pygls_does_not_take_are_refused() -> None:
    host = host_of(nothing, [])

    with pytest.raises(AnsweredWithError) as seen:
        await host.ask("workspace/executeCommand", Raw(b'{"command":5}'), asking())

    assert seen.value.error.code == -32602


async def test_an_editor_that_never_answers_gets_no_progress_and_a_late_answer_harms_nothing() -> None:
    sent: list[bytes] = []
    host = host_of(nothing, sent)

    assert await host.create_progress(0.001) is None

    request = json.loads(sent[0])
    assert request["method"] == "window/workDoneProgress/create"
    late = read_envelope(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": None}).encode())
    assert host.take_response(late)
    assert json.loads(bytes(await execute(host, "compactd.undo"))) == ["compactd.undo", []]


async def test_what_was_said_reaches_no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    async def fails(command: str, arguments: tuple[Detail, ...], request: Request) -> bytes:
        raise SessionBusy("compacting")

    host = host_of(fails, [])
    host.initialize(Raw(json.dumps({**INITIALIZE, "clientInfo": {"name": "secret"}}).encode()))
    host.notify("$/setTrace", Raw(b'{"value":"secret"}'))
    with pytest.raises(AnsweredWithError):
        await execute(host, "compactd.undo", {"a": "secret"})
    await asyncio.gather(execute(host_of(nothing, []), "compactd.undo", "secret"))

    assert "secret" not in caplog.text
