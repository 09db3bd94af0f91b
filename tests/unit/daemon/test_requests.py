from __future__ import annotations

import json

import pytest

from tests.support.child import block, notification, request
from tests.support.raw_client import RawClient
from tests.unit.daemon.conftest import Spawn

PING = request("alive", "daemon/ping")
ALIVE = {"jsonrpc": "2.0", "id": "alive", "result": {}}


def next_answer(client: RawClient, *bodies: bytes) -> dict:
    """The answer to what is sent; sees to it that it is the only one, and that the connection goes on."""
    client.send(*bodies, PING)
    answers = [client.read(), client.read()]
    answers.remove(ALIVE)
    assert client.call("and", "daemon/ping")["result"] == {}
    return answers[0]


def error(client: RawClient, *bodies: bytes) -> tuple[object, int]:
    """The id and code of the error that is answered."""
    answer = next_answer(client, *bodies)
    return answer["id"], answer["error"]["code"]


@pytest.fixture(params=["headers", "lines"])
def client(request: pytest.FixtureRequest, shared: RawClient, shared_lines: RawClient) -> RawClient:
    return shared if request.param == "headers" else shared_lines


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        (b"{", (None, -32700)),
        (b"nonsense", (None, -32700)),
        (b'{"jsonrpc":"2.0","id":1,"method":"test/echo","params":{"value":NaN}}', (None, -32700)),
        (b'{"jsonrpc":"2.0","id":1,"method":"test/echo","params":{"value":"\xff"}}', (None, -32700)),
        (b'[{"jsonrpc":"2.0","id":1,"method":"daemon/ping"}]', (None, -32600)),
        (b'{"jsonrpc":"2.0","id":1}', (1, -32600)),
        (b'{"jsonrpc":"1.0","id":1,"method":"daemon/ping"}', (1, -32600)),
        (b'{"jsonrpc":"2.0","id":1,"method":5}', (1, -32600)),
        (
            b'{"jsonrpc":"2.0","id":1,"method":"test/echo","params":' + b"[" * 3000 + b"]" * 3000 + b"}",
            (1, 1009),
        ),
        (request(1, "no/such"), (1, -32601)),
        (request(1, "$/no-such"), (1, -32601)),
        (request(1, "textDocument/hover", {"a": 1}), (1, -32601)),
        (request(1, "test/echo", [5]), (1, -32602)),
        (request(1, "test/echo", {"times": "x"}), (1, -32602)),
        (request(1, "test/echo", {"part": {}}), (1, -32602)),
        (request(1, "test/echo", {"value": "x" * 100_000}), (1, 1009)),
        (request(1, "test/fail", {"kind": "told"}), (1, 1001)),
        (request(1, "test/fail", {"kind": "told", "later": True}), (1, 1001)),
        (request(1, "test/fail", {"kind": "bug"}), (1, -32603)),
        (request(1, "test/fail", {"kind": "bug", "later": True}), (1, -32603)),
        (request(1, "test/fail", {"kind": "panic"}), (1, -32603)),
        (request(1, "test/fail", {"kind": "panic", "later": True}), (1, -32603)),
        (request(1, "test/fail", {"kind": "unencodable"}), (1, -32603)),
        (request(1, "test/fail", {"kind": "unencodable", "later": True}), (1, -32603)),
        (request(1, "test/fail", {"kind": "deep"}), (1, 1009)),
    ],
)
def test_whatever_a_request_holds_it_is_answered_once_and_the_connection_goes_on(
    client: RawClient, body: bytes, answer: tuple[object, int]
) -> None:
    assert error(client, body) == answer


@pytest.mark.parametrize(
    "body",
    [
        notification("no/such", {"a": 1}),
        notification("$/no-such"),
        notification("textDocument/didOpen", {"textDocument": {"text": "x"}}),
        notification("daemon/ping"),
        notification("test/echo", {"times": "x"}),
        notification("test/fail", {"kind": "bug"}),
        notification("test/fail", {"kind": "bug", "later": True}),
        notification("$/cancelRequest", {"id": 999}),
        notification("$/cancelRequest", {"id": [1]}),
        notification("$/cancelRequest"),
        notification("window/workDoneProgress/cancel", 5),
        notification("initialize", {}),
        b'{"jsonrpc":"2.0","id":"nobody asked","result":1}',
        b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"?"}}',
        b'{"jsonrpc":"2.0","result":1}',
    ],
)
def test_a_notification_or_a_response_to_nothing_is_never_answered(client: RawClient, body: bytes) -> None:
    assert next_answer(client, body, request(1, "daemon/ping")) == {"jsonrpc": "2.0", "id": 1, "result": {}}


@pytest.mark.parametrize(
    "id", ["1", "-7", "1.50", "1e2", "12345678901234567890", '"a\\u00e9\\u0000"', '""', "null"]
)
def test_an_id_comes_back_exactly_as_it_came(shared: RawClient, id: str) -> None:
    shared.send(b'{"jsonrpc":"2.0","id":%b,"method":"daemon/ping"}' % id.encode())

    assert shared.read_body() == b'{"jsonrpc":"2.0","id":%b,"result":{}}' % id.encode()


@pytest.mark.parametrize("params", [b"", b',"params":null', b',"params":{}'])
def test_params_that_are_absent_null_or_empty_are_the_same(client: RawClient, params: bytes) -> None:
    answer = next_answer(client, b'{"jsonrpc":"2.0","id":1,"method":"test/echo"%b}' % params)

    assert answer["result"] == {"value": None, "text": "", "times": 1, "part": None, "parts": []}


def test_bad_params_are_refused_with_the_path_of_the_field(client: RawClient) -> None:
    answer = next_answer(client, request(1, "test/echo", {"parts": [{"name": "a"}, {"name": 5}]}))

    assert answer["error"] == {
        "code": -32602,
        "message": "Expected `str`, got `int` - at `$.parts[1].name`",
        "data": {"path": "$.parts[1].name"},
    }


def test_an_error_of_the_daemon_carries_its_data(client: RawClient) -> None:
    answer = next_answer(client, request(1, "test/fail", {"kind": "told"}))

    assert answer["error"] == {
        "code": 1001,
        "message": "no session s9: start it",
        "data": {"session_id": None, "exists": True},
    }


@pytest.mark.parametrize("later", [False, True])
def test_a_bug_tells_the_client_a_number_and_the_log_the_rest(client: RawClient, later: bool) -> None:
    answer = next_answer(client, request(1, "test/fail", {"kind": "bug", "later": later}))

    number = answer["error"]["data"]["error_id"]
    _, found, logged = client.log().partition(f"error {number} in test/fail\nTraceback")
    assert found
    assert "ValueError: the secret of /home/someone" in logged
    assert "secret" not in json.dumps(answer)
    assert "Traceback" not in json.dumps(answer)


def test_an_error_about_a_file_whose_name_is_no_text_can_be_told(client: RawClient) -> None:
    answer = next_answer(client, request(1, "test/fail", {"kind": "surrogate"}))

    assert answer["error"] == {
        "code": 1001,
        "message": "no file a\ufffdb",
        "data": {"session_id": "c\ufffdd", "exists": False},
    }


def test_a_users_json_comes_back_byte_for_byte(shared: RawClient) -> None:
    value = '{ "b" : 1.50, "a":1E400,"__h":"\\u00e9é😀\\/","class":[ ],\n"jsonrpc":"1.0", "a":null}'.encode()

    shared.send(b'{"jsonrpc":"2.0","id":1,"method":"test/echo","params":{"value":%b}}' % value)

    assert b'"value":' + value + b"," in shared.read_body()


def test_a_users_json_over_several_lines_is_one_line_where_lines_are_messages(
    shared_lines: RawClient,
) -> None:
    # Its line breaks were no part of any string, so that a space says the same.
    value = b'{ "a":\r[1,\t2] }'

    shared_lines.send(b'{"jsonrpc":"2.0","id":1,"method":"test/echo","params":{"value":%b}}' % value)

    assert b'{ "a": [1,\t2] }' in shared_lines.read_body()


def test_lengths_count_bytes_both_ways(shared: RawClient) -> None:
    text = "é😀\u2028字" * 10
    body = json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "test/echo", "params": {"text": text}}, ensure_ascii=False
    ).encode()
    assert len(body) > len(body.decode())

    assert next_answer(shared, body)["result"]["text"] == text


def test_a_lone_surrogate_becomes_fffd_and_the_rest_stays_as_it_came(shared: RawClient) -> None:
    value = rb'{"cut":"\ud83d","whole":"\ud83d\ude00", "n" : 1.50,"escaped":"\\ud83d"}'

    shared.send(b'{"jsonrpc":"2.0","id":1,"method":"test/echo","params":{"value":%b}}' % value)

    assert value.replace(rb':"\ud83d",', rb':"\ufffd",') in shared.read_body()
    assert "U+FFFD" in shared.log()


def test_null_for_an_optional_field_is_as_if_it_were_left_out(client: RawClient) -> None:
    params = {"times": None, "part": {"name": "a", "times": None}, "value": {"keep": None}}

    answer = next_answer(client, request(1, "test/echo", params))

    assert answer["result"]["times"] == 1
    assert answer["result"]["part"] == {"name": "a", "times": 1}
    assert answer["result"]["value"] == {"keep": None}


def test_an_unknown_field_is_ignored_and_logged(client: RawClient) -> None:
    answer = next_answer(client, request(1, "test/echo", {"text": "a", "txet": "b"}))

    assert answer["result"]["text"] == "a"
    assert "test/echo: the field 'txet' is not known and was ignored" in client.log()


def test_a_request_in_the_oldest_of_headers_is_answered(shared: RawClient) -> None:
    body = request(1, "daemon/ping")

    shared.send_raw(
        b"content-type: application/vscode-jsonrpc; charset=utf-8\ncontent-length:%d\n\n" % len(body) + body
    )

    assert shared.read() == {"jsonrpc": "2.0", "id": 1, "result": {}}


def test_a_header_block_without_a_length_is_refused_and_the_next_is_read(shared: RawClient) -> None:
    shared.send_raw(b"Content-Type: x\r\n\r\n" + block(PING))

    first = shared.read()
    assert (first["id"], first["error"]["code"]) == (None, -32700)
    assert shared.read() == ALIVE


def test_a_frame_above_the_limit_is_refused_with_both_sizes(shared: RawClient) -> None:
    body = request("big", "test/echo", {"value": "x" * 200_000})

    answer = next_answer(shared, body)

    assert answer["id"] == "big"
    assert answer["error"]["code"] == 1009
    assert answer["error"]["data"] == {
        "limit_bytes": 100_000,
        "size_bytes": len(body),
        "path": None,
    }


def test_what_a_request_causes_comes_before_its_answer_and_what_follows_it_after(client: RawClient) -> None:
    client.send(request(1, "test/echo", {"before": True, "after": True}), PING)

    seen = [client.read() for _ in range(4)]

    assert [message.get("method", message.get("id")) for message in seen] == [
        "test/before",
        1,
        "test/after",
        "alive",
    ]


def test_also_what_the_very_first_request_causes_comes_before_its_answer(spawn: Spawn) -> None:
    client = spawn()

    client.send(request(1, "test/echo", {"before": True}))

    assert [client.read().get("method"), client.read().get("id")] == ["test/before", 1]


# --- several at once --------------------------------------------------------------------------------


def test_a_task_has_made_its_first_step_before_the_next_message_is_handled(client: RawClient) -> None:
    # Waking one that has not begun to sleep would be an error.
    for number in range(50):
        client.send(
            request(f"s{number}", "test/sleep", {"session_id": f"o{number}"}),
            request(f"w{number}", "test/echo", {"wake": f"o{number}"}),
        )
        assert "result" in client.answer(f"w{number}")
        assert client.answer(f"s{number}")["result"] == {"text": f"o{number}"}


def test_others_are_answered_while_one_waits(client: RawClient) -> None:
    client.send(request("long", "test/sleep", {"session_id": "l"}), PING)

    assert [client.read().get("method"), client.read()] == ["test/asleep", ALIVE]
    client.send(request("wake", "test/echo", {"wake": "l"}))
    assert client.answer("long")["result"] == {"text": "l"}


def test_a_cancelled_request_is_answered_once_after_what_it_caused(client: RawClient) -> None:
    client.send(
        request("c", "test/sleep", {"session_id": "c"}), notification("$/cancelRequest", {"id": "c"}), PING
    )

    seen = [client.read() for _ in range(4)]

    assert [message.get("method") for message in seen if "method" in message] == [
        "test/asleep",
        "test/cancelled",
    ]
    assert [m["error"]["code"] for m in seen if m.get("id") == "c"] == [-32800]
    assert (
        next_answer(client, notification("$/cancelRequest", {"id": "c"}), request(2, "daemon/ping"))["id"]
        == 2
    )


def test_an_id_in_use_twice_is_answered_twice_and_a_cancel_reaches_the_newest(client: RawClient) -> None:
    client.send(
        request(7, "test/sleep", {"session_id": "old"}),
        request(7, "test/sleep", {"session_id": "new"}),
        notification("$/cancelRequest", {"id": 7}),
    )
    first = client.answer(7)
    client.send(request("wake", "test/echo", {"wake": "old"}))
    second = client.answer(7)

    assert first["error"]["code"] == -32800
    assert second["result"] == {"text": "old"}


def test_progress_is_told_where_a_token_asks_for_it(client: RawClient) -> None:
    client.send(request(1, "test/sleep", {"session_id": "p", "workDoneToken": "t1"}))
    client.send(request(2, "test/echo", {"wake": "p"}))
    client.received.clear()
    client.answer(1)

    progress = [m["params"] for m in client.received if m.get("method") == "$/progress"]

    assert progress == [
        {
            "token": "t1",
            "value": {"kind": "begin", "title": "compactd: test/sleep", "cancellable": True, "percentage": 0},
        },
        {"token": "t1", "value": {"kind": "report", "message": "halfway", "percentage": 50}},
        {"token": "t1", "value": {"kind": "end"}},
    ]


def test_cancelling_a_progress_cancels_its_request(client: RawClient) -> None:
    client.send(request(1, "test/sleep", {"workDoneToken": 12}))
    client.send(notification("window/workDoneProgress/cancel", {"token": 12}))

    assert client.answer(1)["error"]["code"] == -32800
    assert client.received[-2]["params"]["value"] == {"kind": "end"}


# --- the daemon asks --------------------------------------------------------------------------------


def asked(client: RawClient, **params: object) -> dict:
    """The daemon's request to the client, after the client's to the daemon."""
    client.send(request("ask", "test/ask", params))
    while (message := client.read()).get("method") != "tool/execute":
        pass
    return message


def test_the_daemons_own_request_is_answered_by_the_clients_response(client: RawClient) -> None:
    question = asked(client)

    client.send(json.dumps({"jsonrpc": "2.0", "id": question["id"], "result": {"content": "é"}}).encode())

    assert json.loads(client.answer("ask")["result"]["text"]) == {"content": "é"}


def test_a_clients_error_is_one_of_the_daemon_if_nobody_takes_it(client: RawClient) -> None:
    question = asked(client)

    client.send(
        json.dumps({"jsonrpc": "2.0", "id": question["id"], "error": {"code": 5, "message": "no"}}).encode()
    )

    assert client.answer("ask")["error"]["code"] == -32603


@pytest.mark.parametrize("broken", [5, None, {}, {"code": "x"}])
def test_an_error_that_is_none_is_taken_for_one(client: RawClient, broken: object) -> None:
    question = asked(client)

    client.send(json.dumps({"jsonrpc": "2.0", "id": question["id"], "error": broken}).encode())

    assert client.answer("ask")["error"]["code"] == -32603


def test_a_question_that_nobody_answers_is_taken_back(client: RawClient) -> None:
    question = asked(client, timeout_s=0.01)

    cancel = client.read()

    assert (cancel["method"], cancel["params"]) == ("$/cancelRequest", {"id": question["id"]})
    assert client.answer("ask")["result"] == {"text": "TimeoutError"}


def test_a_question_is_given_up_when_the_input_ends(spawn: Spawn) -> None:
    client = spawn()
    asked(client)

    client.close_stdin()

    assert client.answer("ask")["result"] == {"text": "ConnectionError"}
    assert client.wait() == 0
