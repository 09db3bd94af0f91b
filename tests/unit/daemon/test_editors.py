from __future__ import annotations

import json

import pytest

from tests.support.child import notification, request
from tests.support.raw_client import RawClient
from tests.unit.daemon.conftest import Spawn

COMMANDS = ["compactd.compact", "compactd.undo", "compactd.state", "compactd.sessions"]
FRAMINGS = pytest.mark.parametrize("framing", ["headers", "lines"])


def initialize(client: RawClient, **params: object) -> dict:
    """The answer to an editor's first words."""
    answer = client.call(
        "i", "initialize", {"processId": None, "rootUri": None, "capabilities": {}, **params}
    )
    client.send(notification("initialized", {}))
    return answer


def execute(client: RawClient, id: object, command: str, *arguments: object, **more: object) -> dict:
    """The answer to `workspace/executeCommand`."""
    params = {"command": command, "arguments": list(arguments), **more}
    return client.call(id, "workspace/executeCommand", params)


@pytest.fixture(scope="module")
def editor(shared: RawClient) -> RawClient:
    initialize(shared)
    return shared


@pytest.fixture(scope="module")
def showing(shared_lines: RawClient) -> RawClient:
    """An editor that can show progress."""
    initialize(shared_lines, capabilities={"window": {"workDoneProgress": True}})
    execute(shared_lines, "first", "compactd.sessions")
    return shared_lines


@FRAMINGS
def test_initialize_tells_the_protocol_and_asks_for_no_documents(spawn: Spawn, framing: str) -> None:
    result = initialize(spawn(framing=framing))["result"]

    assert set(result["capabilities"]) == {"executeCommandProvider", "experimental"}
    assert result["capabilities"]["executeCommandProvider"] == {
        "commands": COMMANDS,
        "workDoneProgress": True,
    }
    assert result["capabilities"]["experimental"]["compactd"]["protocol_version"] == "1.0"
    assert "daemon/ping" in result["capabilities"]["experimental"]["compactd"]["methods"]
    assert result["serverInfo"]["name"] == "compactd"


@pytest.mark.parametrize(
    "params",
    [None, {}, {"capabilities": None}, {"capabilities": {"window": 5}, "processId": "x", "trace": 1}],
)
def test_initialize_accepts_what_it_is_given(spawn: Spawn, params: object) -> None:
    client = spawn()

    assert "result" in client.call(1, "initialize", params)
    assert client.call(2, "daemon/ping")["result"] == {}


def test_initialize_with_params_that_are_no_object_is_refused_and_may_be_repeated(spawn: Spawn) -> None:
    client = spawn()

    assert client.call(1, "initialize", [])["error"]["code"] == -32602
    assert "result" in initialize(client)
    assert initialize(client)["error"]["code"] == -32600


def test_settings_of_initialize_are_known_to_the_next_request(spawn: Spawn) -> None:
    client = spawn()

    client.send(
        request(1, "initialize", {"capabilities": {}, "initializationOptions": {"a": 1}}),
        request(2, "session/list"),
    )

    assert client.answer(2)["result"] == {"text": '{"a": 1}', "sessions": []}


@pytest.mark.parametrize(
    ("settings", "seen"),
    [
        ({"a": 1}, '{"a": 1}'),
        ({"compactd": {"b": 2}, "other": {}}, '{"b": 2}'),
        ({"compactd": None}, "before"),
        (None, "before"),
        ([1], "before"),
    ],
)
def test_changed_configuration_is_known_to_the_next_request(
    editor: RawClient, settings: object, seen: str
) -> None:
    editor.send(
        notification("workspace/didChangeConfiguration", {"settings": {"compactd": "before"}}),
        notification("workspace/didChangeConfiguration", {"settings": settings}),
        request(1, "session/list"),
    )

    assert editor.answer(1)["result"]["text"].strip('"') == seen


def test_settings_that_are_refused_are_said_in_the_editors_log_after_the_answer(spawn: Spawn) -> None:
    client = spawn()

    client.send(request(1, "initialize", {"capabilities": {}, "initializationOptions": {"refuse": 1}}))

    assert client.read()["id"] == 1
    message = client.read()
    assert (message["method"], message["params"]["type"]) == ("window/logMessage", 1)
    assert message["params"]["message"] == "the settings for compactd were not applied: not these"


def test_what_is_ignored_of_the_settings_is_shown_to_the_person(spawn: Spawn) -> None:
    client = spawn()

    client.send(
        request(1, "initialize", {"capabilities": {}, "initializationOptions": {"odd": 1}}),
        notification("workspace/didChangeConfiguration", {"settings": {"compactd": {"odd": 2}}}),
        notification("workspace/didChangeConfiguration", {"settings": [1]}),
        notification("workspace/didChangeConfiguration", {"settings": []}),
        request(2, "daemon/ping"),
    )

    assert client.read()["id"] == 1
    for told in (
        "odd, at first",
        "odd, changed",
        "the settings for compactd are ignored: they must be an object",
    ):
        message = client.read()
        assert message["method"] == "window/showMessage"
        assert message["params"] == {"type": 2, "message": f"compactd: {told}"}
    assert client.read()["id"] == 2


def test_an_empty_table_of_lua_is_an_empty_object(editor: RawClient) -> None:
    assert execute(editor, 1, "compactd.sessions", [])["result"] == editor.call(2, "session/list")["result"]


def test_a_client_that_never_said_initialize_gets_no_log_messages(spawn: Spawn) -> None:
    client = spawn()

    client.send(
        notification("workspace/didChangeConfiguration", {"settings": {"refuse": 1}}),
        request(1, "daemon/ping"),
    )

    assert client.read()["id"] == 1


# --- commands ---------------------------------------------------------------------------------------


def test_a_command_gives_what_its_method_gives(editor: RawClient) -> None:
    assert execute(editor, 1, "compactd.sessions")["result"] == editor.call(2, "session/list")["result"]


@pytest.mark.parametrize("id", [1.5, None, "x", 10**20])
def test_a_command_may_have_any_id(editor: RawClient, id: object) -> None:
    assert execute(editor, id, "compactd.sessions")["id"] == id


def test_an_error_of_a_commands_method_keeps_its_code_and_data(editor: RawClient) -> None:
    answer = execute(editor, 1, "compactd.undo", {"session_id": "é"})

    assert answer["error"] == {"code": 1011, "message": "é: nothing", "data": {"session_id": "é"}}


@pytest.mark.parametrize(
    ("params", "path"),
    [
        ({"command": "compactd.nothing"}, "$.command"),
        ({"command": 5}, "$.command"),
        ({}, "$.command"),
        ({"command": "compactd.undo", "arguments": {}}, "$.arguments"),
        ({"command": "compactd.undo", "arguments": [5]}, "$.arguments[0]"),
        ({"command": "compactd.undo", "arguments": [{"session_id": 5}]}, "$.arguments[0].session_id"),
    ],
)
def test_bad_params_of_a_command_are_refused_with_their_path(
    editor: RawClient, params: object, path: str
) -> None:
    answer = editor.call(1, "workspace/executeCommand", params)

    assert answer["error"]["code"] == -32602
    assert answer["error"]["data"] == {"path": path}
    assert answer["error"]["message"].count(path) == 1


def test_a_command_without_a_session_means_the_newest_and_needs_no_initialize(spawn: Spawn) -> None:
    client = spawn()
    assert execute(client, 1, "compactd.undo")["error"]["code"] == 1001

    client.send(
        request(2, "test/sleep", {"session_id": "older"}), request(3, "test/sleep", {"session_id": "newer"})
    )

    for arguments in ([], [None], [{}], [{"session_id": None}]):
        assert execute(client, 4, "compactd.undo", *arguments)["error"]["data"] == {"session_id": "newer"}


def test_a_command_that_is_cancelled_cancels_its_work_and_is_answered_after_it(editor: RawClient) -> None:
    execute(editor, 0, "compactd.sessions")
    editor.received.clear()

    editor.send(
        request(
            "c",
            "workspace/executeCommand",
            {"command": "compactd.compact", "arguments": [{"session_id": "c"}]},
        )
    )
    while editor.read().get("method") != "test/asleep":
        pass
    editor.send(notification("$/cancelRequest", {"id": "c"}))
    answer = editor.answer("c")

    assert answer["error"]["code"] == -32800
    assert [m["method"] for m in editor.received[:-1]] == ["test/asleep", "test/cancelled"]
    assert editor.call(2, "daemon/ping")["result"] == {}


def test_a_command_that_is_cancelled_before_pygls_is_there_is_answered(spawn: Spawn) -> None:
    client = spawn()

    client.send(
        request(
            "c",
            "workspace/executeCommand",
            {"command": "compactd.compact", "arguments": [{"session_id": "c"}]},
        ),
        notification("$/cancelRequest", {"id": "c"}),
    )

    assert client.read()["error"]["code"] == -32800
    assert client.call(2, "daemon/ping")["result"] == {}


def test_a_command_that_was_read_before_the_input_ended_is_answered(spawn: Spawn) -> None:
    client = spawn()

    client.send(request(1, "workspace/executeCommand", {"command": "compactd.sessions"}))
    client.close_stdin()

    assert client.rest_messages() == [{"jsonrpc": "2.0", "id": 1, "result": {"text": "none", "sessions": []}}]
    assert client.wait() == 0


def compact(client: RawClient, **params: object) -> None:
    """Begins a compaction of a session p."""
    arguments = [{"session_id": "p"}]
    client.send(
        request(
            "c", "workspace/executeCommand", {"command": "compactd.compact", "arguments": arguments, **params}
        )
    )


def test_an_editor_that_can_show_progress_is_asked_for_one_and_told(showing: RawClient) -> None:
    compact(showing)

    create = showing.read()
    assert create["method"] == "window/workDoneProgress/create"
    showing.send(json.dumps({"jsonrpc": "2.0", "id": create["id"], "result": None}).encode())
    begin, report = showing.read(), showing.read()
    showing.read()
    showing.send(notification("window/workDoneProgress/cancel", {"token": create["params"]["token"]}))
    answer = showing.answer("c")

    token = create["params"]["token"]
    assert [m["params"]["token"] for m in (begin, report)] == [token, token]
    assert begin["params"]["value"] == {
        "kind": "begin",
        "title": "compactd: session/compact",
        "cancellable": True,
        "percentage": 0,
    }
    assert showing.received[-2]["params"] == {"token": token, "value": {"kind": "end"}}
    assert answer["error"]["code"] == -32800


@pytest.mark.parametrize("more", [{}, {"workDoneToken": "mine"}], ids=["without a token", "with a token"])
def test_params_that_are_refused_show_no_progress(showing: RawClient, more: dict[str, str]) -> None:
    showing.received.clear()

    answer = execute(showing, "bad", "compactd.compact", {"session_id": 5}, **more)

    assert answer["error"]["data"] == {"path": "$.arguments[0].session_id"}
    assert showing.received == [answer]


def test_an_editor_that_refuses_a_progress_has_its_compaction_all_the_same(showing: RawClient) -> None:
    compact(showing)

    create = showing.read()
    refusal = {"jsonrpc": "2.0", "id": create["id"], "error": {"code": 1, "message": "no"}}
    showing.send(json.dumps(refusal).encode())

    assert showing.read()["method"] == "test/asleep"
    showing.send(notification("$/cancelRequest", {"id": "c"}))
    assert showing.answer("c")["error"]["code"] == -32800


def test_an_editor_that_gave_a_token_is_not_asked_for_one(showing: RawClient) -> None:
    compact(showing, workDoneToken="mine")

    assert [showing.read()["params"].get("token") for _ in range(2)] == ["mine", "mine"]
    showing.send(notification("window/workDoneProgress/cancel", {"token": "mine"}))
    assert showing.answer("c")["error"]["code"] == -32800


def test_an_editor_that_cannot_show_progress_is_not_asked_for_one(editor: RawClient) -> None:
    compact(editor)

    assert editor.read()["method"] == "test/asleep"
    editor.send(notification("$/cancelRequest", {"id": "c"}))
    editor.answer("c")


@pytest.mark.parametrize(
    "message",
    [
        notification("$/setTrace", {"value": "verbose"}),
        notification("$/setTrace", {"value": "nonsense"}),
        notification("$/setTrace"),
        notification("initialized"),
        notification("window/workDoneProgress/cancel", {"token": "unknown"}),
        notification("workspace/didChangeConfiguration"),
        notification("workspace/didChangeConfiguration", [1]),
        notification("workspace/executeCommand", {"command": "compactd.sessions"}),
        notification("textDocument/didOpen", {"textDocument": {"uri": "file:///x", "text": "secret"}}),
        notification("workspace/didChangeWorkspaceFolders", {"event": {"added": [], "removed": []}}),
        b'{"jsonrpc":"2.0","id":"lsp-1","result":null}',
        b'{"jsonrpc":"2.0","id":"lsp-1","error":5}',
    ],
)
def test_what_pygls_is_told_gets_no_answer_and_harms_nothing(editor: RawClient, message: bytes) -> None:
    editor.send(message, request(1, "daemon/ping"))

    assert editor.read() == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert execute(editor, 2, "compactd.sessions")["id"] == 2


def test_an_editors_session_leaves_nothing_on_stderr(spawn: Spawn) -> None:
    client = spawn()
    initialize(client)
    client.send(notification("$/setTrace", {"value": "verbose"}))
    execute(client, 1, "compactd.undo", {"session_id": "a secret"})
    execute(client, 2, "compactd.sessions")

    client.call(3, "shutdown")
    client.send(notification("exit"))

    assert client.wait() == 0
    assert client.log() == "drained\n"
