"""Tests of the loopback provider itself, with the standard library's HTTP client."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.loopback import Answer, Call, Fail, Loopback, Redirect, Seen, Step
from tests.support.loopback.script import Cut, Plain, step_from
from tests.support.loopback.seen import count_chars

ROOT = Path(__file__).parents[3]


def post(base_url: str, path: str, body: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
    """(status, headers, body) of one request."""
    connection = http.client.HTTPConnection(base_url.removeprefix("http://"), timeout=10)
    try:
        connection.request("POST", path, json.dumps(body), {"X-Test": "1"})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def test_a_script_is_played_in_order_and_every_request_written_down() -> None:
    with Loopback([Fail(503, "busy"), Plain(Answer(text="hi")), Redirect("http://x/")]) as server:
        seen = [post(server.base_url, "/v1/chat/completions", {"n": n, "stream": True}) for n in range(4)]

    assert [status for status, _, _ in seen] == [503, 200, 307, 200]
    assert seen[0][2] == b"busy"
    assert json.loads(seen[1][2])["choices"][0]["message"]["content"] == "hi"
    assert seen[2][1]["Location"] == "http://x/"
    assert seen[3][2].endswith(b"data: [DONE]\n\n")
    assert [each.body["n"] for each in server.requests] == [0, 1, 2, 3]
    assert server.requests[0].headers["x-test"] == "1"


def test_anthropics_stream_is_the_documented_one() -> None:
    with Loopback([Answer(text="Hi", calls=(Call("read", '{"a":1}'),))]) as server:
        _, headers, body = post(server.base_url, "/v1/messages", {"stream": True})

    events = [line.removeprefix("event: ") for line in body.decode().split("\n") if line.startswith("event")]
    assert headers["Content-Type"] == "text/event-stream"
    assert events == [
        "message_start",
        "ping",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]


def test_ollamas_stream_is_a_json_object_a_line() -> None:
    with Loopback([Answer(text="hi there")]) as server:
        _, headers, body = post(server.base_url, "/api/chat", {})

    lines = [json.loads(line) for line in body.splitlines()]
    assert headers["Content-Type"] == "application/x-ndjson"
    assert [line["done"] for line in lines] == [False, False, True]
    assert "".join(line["message"]["content"] for line in lines) == "hi there"


def test_a_request_above_the_window_is_refused_and_takes_no_step() -> None:
    with Loopback([Answer(text="one")], window=10) as server:
        large = {"messages": [{"role": "user", "content": "x" * 41}], "stream": False}
        small = {"messages": [{"role": "user", "content": "x" * 40}], "stream": False}
        seen = [post(server.base_url, "/v1/chat/completions", body) for body in (large, small)]

    assert [status for status, _, _ in seen] == [400, 200]
    assert json.loads(seen[0][2])["error"]["code"] == "context_length_exceeded"
    assert json.loads(seen[1][2])["choices"][0]["message"]["content"] == "one"
    assert [(each.tokens, each.accepted) for each in server.requests] == [(11, False), (10, True)]


def test_system_tools_and_messages_are_counted_and_names_of_fields_are_not() -> None:
    body = {
        "model": "x" * 99,
        "system": "1234",
        "tools": [{"type": "function", "function": {"name": "1234", "parameters": {"type": "object"}}}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "12345"}]}],
    }

    assert count_chars(body) == 4


def test_a_reply_may_depend_on_the_request() -> None:
    def reply(seen: Seen) -> Step:
        return Answer(text="sum" if "Summarise" in seen.raw.decode() else "turn")

    with Loopback(reply=reply) as server:
        body = {"stream": False, "messages": [{"content": "Summarise"}]}
        _, _, answer = post(server.base_url, "/v1/messages", body)

    assert json.loads(answer)["content"] == [{"type": "text", "text": "sum"}]


def test_a_step_can_be_written_as_json() -> None:
    given = {"type": "Cut", "answer": {"text": "a", "calls": [{"name": "read"}]}, "after_bytes": 3}

    assert step_from(given) == Cut(Answer(text="a", calls=(Call("read"),)), 3)


def test_it_runs_by_itself_until_its_input_ends(tmp_path: Path) -> None:
    (tmp_path / "script.json").write_text(json.dumps([{"type": "Fail", "status": 401}, {"type": "Answer"}]))
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "tests.support.loopback", "--script", tmp_path / "script.json"),
            *("--record", tmp_path / "seen.jsonl", "--window", "1000"),
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    base_url = json.loads(process.stdout.readline())["base_url"]
    statuses = [post(base_url, "/v1/responses", {"stream": True})[0] for _ in range(2)]
    process.stdin.close()
    process.wait(10)
    process.stdout.close()

    seen = [json.loads(line) for line in (tmp_path / "seen.jsonl").read_text().splitlines()]
    assert statuses == [401, 200]
    assert [each["wire"] for each in seen] == ["openai_responses"] * 2
    assert process.returncode == 0
