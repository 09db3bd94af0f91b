"""A user's own data comes back unchanged, JSON byte for byte (docs/dev/contract.md, "Transport")."""

from __future__ import annotations

import json

import pytest

from tests.e2e.conftest import Spawn
from tests.support.client import Daemon
from tests.support.talk import CHARS4, turns

ODD_JSON = {
    "spacing": b'{ "a" :1 ,\t"b":  [ 1,2 , 3 ] }',
    "case and order of keys": b'{"zKey":1,"AKey":2,"aKey":3,"_id":4,"a-b":5,"":6}',
    "whole and broken numbers": b'{"a":1,"b":1.0,"c":1.00,"d":1e5,"e":1E+05,"f":-0,"g":-0.0}',
    "large numbers": b'{"n":123456789012345678901234567890,"f":0.1000000000000000055511151231257827}',
    "escapes": rb'{"a":"\u00e9\u4e00","b":"\/","c":"\ud83d\ude00","d":"\u0000","e":"\"\\\b\f\n\r\t"}',
    "a key twice": b'{"a":1,"a":2}',
    "names of ours": b'{"jsonrpc":"2.0","id":7,"method":"exit","type":"text","role":"tool","crc":"00000000"}',
    "nothing": b"{}",
    "null inside": b'{"a":null,"b":[null,{}],"c":[]}',
    "beyond ASCII": '{"é":"一 😀","sep":"  "}'.encode(),
    "a text": rb'"{\"path\":  \"a.py\", \"n\": 1.0}"',
    "a list": b"[1, 2.50, {}]",
}


def message_with(arguments: bytes, result: bytes) -> bytes:
    """Params' messages: a call with these arguments, and its result with this content."""
    return (
        b'[{"role":"user","content":"go"},'
        b'{"role":"assistant","content":[{"type":"tool_call","call_id":"t","name":"run","arguments":%s}]},'
        b'{"role":"tool","content":[{"type":"tool_result","call_id":"t","content":%s}]}]'
        % (arguments, result)
    )


def started(daemon: Daemon) -> str:
    return str(daemon.call("session/start", compaction={"context_window": 100_000, **CHARS4})["session_id"])


def body_of(daemon: Daemon, method: str, session: str, **params: object) -> bytes:
    """The bytes of an answer."""
    return daemon.answer(daemon.ask(method, session_id=session, **params)).body


@pytest.mark.parametrize("kind", ODD_JSON)
def test_tool_arguments_come_back_byte_for_byte(daemon: Daemon, kind: str) -> None:
    odd = ODD_JSON[kind]
    session = started(daemon)

    daemon.call_raw(
        "session/append",
        b'{"session_id":"%s","messages":%s}' % (session.encode(), message_with(odd, b'"ok"')),
    )

    wanted = b'"arguments":' + odd + b"}"
    assert wanted in body_of(daemon, "session/context", session)
    assert wanted in body_of(daemon, "session/history", session)
    assert wanted in body_of(daemon, "session/expand", session, entry_ids=["e2"])


@pytest.mark.parametrize("kind", ODD_JSON)
def test_tool_results_come_back_byte_for_byte(daemon: Daemon, kind: str) -> None:
    odd = ODD_JSON[kind]
    session = started(daemon)

    daemon.call_raw(
        "session/append",
        b'{"session_id":"%s","messages":%s}' % (session.encode(), message_with(b"{}", odd)),
    )

    wanted = b'"content":' + odd + b"}"
    assert wanted in body_of(daemon, "session/context", session)
    assert wanted in body_of(daemon, "session/history", session)


def test_a_whole_message_with_its_own_fields_comes_back_as_it_was(daemon: Daemon) -> None:
    message = (
        b'{ "ID":5,  "content" : [ {"text":"\\u0041b", "type":"text", "cache_control":{"type":"ephemeral"}} ]'
        b', "role" :"user","meta":{"Kind":1.0, "custom": { "B":1,"a":2 }} }'
    )
    session = started(daemon)

    daemon.call_raw("session/append", b'{"session_id":"%s","messages":[%s]}' % (session.encode(), message))

    assert message in body_of(daemon, "session/history", session)


def test_the_bytes_survive_a_restart_a_compaction_and_its_undo(spawn: Spawn) -> None:
    daemon = spawn()
    session = started(daemon)
    for odd in ODD_JSON.values():
        daemon.call_raw(
            "session/append",
            b'{"session_id":"%s","messages":%s}' % (session.encode(), message_with(odd, odd)),
        )
    daemon.call("session/append", session_id=session, messages=turns(6, 400))
    before = body_of(daemon, "session/context", session).partition(b'"result":')[2]
    daemon.call("session/compact", session_id=session, keep_recent=900)
    daemon.kill()

    again = spawn()
    again.call("session/start", session_id=session)
    history = body_of(again, "session/history", session)
    again.call("session/undo", session_id=session)
    after = body_of(again, "session/context", session).partition(b'"result":')[2]

    for odd in ODD_JSON.values():
        assert b'"arguments":' + odd + b"}" in history
    assert after.replace(b'"epoch":3', b'"epoch":1') == before


def test_openais_arguments_stay_the_string_they_were(daemon: Daemon) -> None:
    written = '{"Path" :  "a.py",\n "n": 1.0, "big": 123456789012345678901234567890}'
    call = {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "run", "arguments": written}}
        ],
    }
    result = {"role": "tool", "tool_call_id": "call_1", "content": "{'not': json}"}
    session = started(daemon)

    daemon.call(
        "session/append",
        session_id=session,
        format="openai",
        messages=[{"role": "user", "content": "go"}, call, result],
    )

    neutral = daemon.call("session/context", session_id=session)["messages"]
    openai = daemon.call("session/context", session_id=session, format="openai")["messages"]
    block = next(block for block in neutral[1]["content"] if block["type"] == "tool_call")
    assert block["arguments"] == written
    assert openai[1]["tool_calls"][0]["function"]["arguments"] == written
    assert openai[2]["content"] == "{'not': json}"


def test_anthropics_input_keeps_its_bytes_in_anthropics_shape(daemon: Daemon) -> None:
    odd = ODD_JSON["whole and broken numbers"]
    session = started(daemon)

    daemon.call_raw(
        "session/append",
        b'{"session_id":"%s","format":"anthropic","messages":[{"role":"user","content":"go"},'
        b'{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"run","input":%s}]},'
        b'{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"ok"}]}]}'
        % (session.encode(), odd),
    )

    assert b'"input":' + odd in body_of(daemon, "session/context", session, format="anthropic")


def test_a_tools_schema_keeps_its_bytes(daemon: Daemon) -> None:
    schema = b'{ "type":"object", "properties":{"B":{"type":"number","default":1.0},"a":{"enum":[1,"1"]}} }'
    params = b'{"tools":[{"name":"run","input_schema":%s}]}' % schema

    session = daemon.call_raw("session/start", params)["session_id"]

    assert b'"input_schema":' + schema in body_of(daemon, "session/context", session)


def test_base64_is_counted_by_the_picture_and_kept_whole(daemon: Daemon) -> None:
    data = "iVBORw0KGgo" + "A" * 400_000
    session = started(daemon)
    picture = {"type": "image", "media_type": "image/png", "data": data, "width": 800, "height": 600}

    answer = daemon.call(
        "session/append", session_id=session, messages=[{"role": "user", "content": [picture]}]
    )

    assert answer["decision"]["used"] < 3000
    assert json.dumps(data).encode() in body_of(daemon, "session/context", session)
