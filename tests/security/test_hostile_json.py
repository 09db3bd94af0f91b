"""JSON that is made to break a parser: the daemon answers, and the next request is served as before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.client import Daemon
from tests.support.talk import CHARS4, user

DEEP = 10_000
KEYS = 20_000
DIGITS = 4_000
"""The client of these tests reads numbers of 4,300 at most; the daemon hands on what it was given."""

HOSTILE = {
    "lists in lists": "[" * DEEP + "]" * DEEP,
    "objects in objects": '{"a":' * DEEP + "1" + "}" * DEEP,
    "lists without an end": "[" * DEEP,
    "a number of many digits": "9" * DIGITS,
    "a number of many places": "0." + "3" * DIGITS,
    "a number beyond all numbers": "1e999999999",
    "a key that comes again and again": "{" + ",".join(['"a":1'] * 20_000) + "}",
    "many keys": "{" + ",".join(f'"k{number}":{number}' for number in range(KEYS)) + "}",
}


@pytest.fixture
def session(daemon: Daemon) -> str:
    return str(daemon.call("session/start", compaction=CHARS4)["session_id"])


def lives(daemon: Daemon, session: str) -> bool:
    """Return whether the daemon still answers, stores messages and returns them."""
    said = daemon.call("session/append", session_id=session, messages=[user(5)])["entry_ids"]
    history = daemon.call("session/history", session_id=session)["entries"]
    return bool(daemon.call("daemon/ping") == {} and history[-1]["entry_id"] == said[-1])


def answered(daemon: Daemon, method: str, params: str) -> dict[str, object]:
    """The one answer to a request, whatever it says."""
    value = daemon.answer(daemon.ask_raw(method, params.encode())).value
    assert ("result" in value) != ("error" in value)
    if "error" in value:
        assert value["error"]["code"] != -32603, value
    return value


@pytest.mark.parametrize("name", [name for name in HOSTILE if "without an end" not in name])
def test_wherever_it_stands_in_a_request_the_daemon_answers_and_goes_on(
    daemon: Daemon, session: str, name: str
) -> None:
    value = HOSTILE[name]
    call = '{"type":"tool_call","call_id":"c1","name":"x","arguments":' + value + "}"

    answers = [
        answered(daemon, "session/append", f'{{"session_id":"{session}","messages":[{message}]}}')
        for message in (
            '{"role":"assistant","content":[' + call + "]}",
            '{"role":"user","content":"a","meta":{"x":' + value + "}}",
            '{"role":"user","content":"a","unknown":' + value + "}",
            '{"role":"assistant","content":"a","usage":{"input_tokens":' + value + "}}",
            '{"role":"user","content":' + value + "}",
        )
    ]
    answered(daemon, "session/configure", f'{{"session_id":"{session}","compaction":{value}}}')
    answered(daemon, "overflow/classify", json.dumps({"status": 400, "body": value}))
    answered(daemon, "session/import", f'{{"content":{value}}}')

    assert "error" in answers[4]
    assert lives(daemon, session)
    assert answered(daemon, "session/context", f'{{"session_id":"{session}","format":"gemini"}}')


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize(
    "file", ['{"messages":[{"role":"user","content":"a","x":%s}]}', '{"type":"user","x":%s}\n', "%s"]
)
def test_as_a_file_it_is_read_or_refused_with_why(
    daemon: Daemon, session: str, tmp_path: Path, name: str, file: str
) -> None:
    path = tmp_path / "session.json"
    path.write_text(file % HOSTILE[name])

    answer = answered(daemon, "session/import", json.dumps({"path": str(path)}))

    if "error" in answer:
        assert answer["error"]["message"]  # type: ignore[index]
    assert lives(daemon, session)


def test_an_object_of_very_many_keys_comes_back_byte_for_byte(daemon: Daemon, session: str) -> None:
    keys = ("{" + ",".join(f'"k{number}":{number}' for number in range(200_000)) + "}").encode()
    message = (
        b'{"role":"assistant","content":[{"type":"tool_call","call_id":"c","name":"x","arguments":%b}]}'
        % keys
    )
    params = b'{"session_id":"%b","messages":[%b]}' % (session.encode(), message)

    said = daemon.call_raw("session/append", params)["entry_ids"]
    answer = daemon.answer(daemon.ask("session/expand", session_id=session, entry_ids=said))

    assert keys in answer.body


def test_keys_of_objects_are_hashed_with_a_secret_of_each_process(tmp_path: Path) -> None:
    """Keys that all fall on one place need that place to be known (PEP 456): it is another one each time."""
    seen = set()
    for number in range(2):
        with Daemon(tmp_path / str(number)) as daemon:
            environ = Path(f"/proc/{daemon.process.pid}/environ")
            seen |= set(environ.read_bytes().split(b"\0")) if environ.exists() else set()

    assert not any(one.startswith(b"PYTHONHASHSEED=") and one != b"PYTHONHASHSEED=random" for one in seen)
