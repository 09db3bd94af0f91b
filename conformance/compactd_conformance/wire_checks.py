"""Checks of what is on the wire: framing, one answer per request, ids, batches, notifications, and user data
that comes back unchanged."""

from __future__ import annotations

import json

import msgspec

from compactd_conformance import shapes
from compactd_conformance.bench import BOTH, LINES, Bench, check, expect
from compactd_conformance.frames import ReceivedMessage, read, request
from compactd_conformance.peer import Peer
from compactd_conformance.talk import assistant, user

PING = request("alive", "daemon/ping")


def _codes(got: tuple[ReceivedMessage, ...]) -> list[int | None]:
    return [one.error.code if one.error is not None else None for one in got]


def _answers_by_end(peer: Peer, *ids: object) -> dict[object, tuple[ReceivedMessage, ...]]:
    """Close the program's input, and wait until the program ends. Return id -> all answers with this id.
    After the end, no further answer can come.
    """
    peer.stop()
    return {id: peer.answers(id) for id in ids}


@check(
    "framing-headers",
    law="Transport: framing",
    says="Header names are case-insensitive, header lines may end in LF or CRLF, headers other than "
    "`Content-Length` are ignored, and the length is in bytes.",
    mend="Read headers as LSP's base protocol defines them, and read as many bytes (not characters) as "
    "`Content-Length` says.",
)
def framing_headers(bench: Bench) -> None:
    """Send requests whose header blocks are spelled in different ways. Expect exactly one answer to each."""
    peer = bench.fresh()
    body = request("é😀", "daemon/ping", {"note": "größe 字 😀"})

    peer.send_raw(b"content-LENGTH:%d\n\n%b" % (len(body), body))
    peer.send_raw(b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\n" + peer.frame(body))
    peer.send_raw(b"X-Other: a:b\r\n" + peer.frame(PING))

    answers = _answers_by_end(peer, "é😀", "alive")
    seen = [len(answers["é😀"]), len(answers["alive"])]
    expect(seen == [2, 1], "three answers, one to each header block", f"{seen} answers")


@check(
    "framing-lines",
    law="Transport: framing",
    says="If the first byte that the client sends is `{`, `[`, white space or the beginning of a byte "
    "order mark, both sides write one JSON object per line.",
    mend="Choose the framing by the first byte, and answer in the same framing.",
    framings=LINES,
)
def framing_lines(bench: Bench) -> None:
    """Start connections with different first bytes. Expect one JSON object per line after each."""
    for start in (b"", b"\n", b" \t\r\n", b"\xef\xbb\xbf"):
        peer = bench.fresh()
        peer.send_raw(start + PING + b"\n" + request("é", "daemon/ping") + b"\r\n\n")

        answers = _answers_by_end(peer, "alive", "é")
        seen = [len(one) for one in answers.values()]
        expect(seen == [1, 1], f"two answers, in lines, after a start of {start!r}", f"{seen} answers")


@check(
    "one-answer",
    law="Transport: every request gets exactly one answer",
    says="Every request is answered exactly once, whether it is correct, wrong or about an unknown session.",
    mend="Send every answer from a single place in the code, and note that the request was answered.",
    framings=BOTH,
)
def one_answer(bench: Bench) -> None:
    """Send ten requests, good and bad. Expect exactly one answer to each."""
    peer = bench.fresh()
    asked: tuple[tuple[str, dict[str, object]], ...] = (
        ("daemon/ping", {}),
        ("session/start", {"session_id": "one"}),
        ("session/append", {"session_id": "one", "messages": [user("Hello")]}),
        ("session/context", {"session_id": "one"}),
        ("session/compact", {"session_id": "one"}),
        ("session/undo", {"session_id": "one"}),
        ("session/context", {"session_id": "nobody"}),
        ("session/append", {"session_id": "one", "messages": "none"}),
        ("agent/state", {"session_id": "one"}),
        ("session/close", {"session_id": "one"}),
    )
    ids = [peer.ask(method, params) for method, params in asked]

    answers = _answers_by_end(peer, *ids)
    wrong = {f"{asked[at][0]} ({id})": len(answers[id]) for at, id in enumerate(ids) if len(answers[id]) != 1}
    expect(not wrong, "one answer to each of ten requests", f"answers to {wrong}")


@check(
    "bad-requests-are-answered",
    law="Transport: every request gets exactly one answer",
    says="Bad input is answered with an error: -32700 (parse error) for bad JSON, -32600 (invalid request) "
    "for JSON that is not a request, -32601 (method not found) for an unknown method, -32602 "
    "(InvalidParams) for bad params. The program then goes on reading.",
    mend="Answer with `id: null` if the input has no id, and continue to read.",
    framings=BOTH,
)
def bad_requests(bench: Bench) -> None:
    """Send each kind of bad input. Expect the error code for that kind, and an answer to the next request."""
    peer = bench.fresh()
    nameless = (b'{"jsonrpc":"2.0","id":', b'{"jsonrpc":"2.0","method":5}', b'"hello"', b"7")

    peer.send(*nameless)
    unknown = peer.ask("no/such")
    bad = peer.ask("session/append", {"session_id": "s", "messages": 5})
    peer.send(PING)

    answers = _answers_by_end(peer, None, unknown, bad, "alive")
    codes = sorted(code or 0 for code in _codes(answers[None]))
    expect(
        codes == [-32700, -32600, -32600, -32600],
        "error -32700, and -32600 three times, with id null",
        f"{codes}",
    )
    expect(
        _codes(answers[unknown]) == [-32601], ("error -32601 for an unknown method"), _codes(answers[unknown])
    )
    expect(_codes(answers[bad]) == [-32602], "error -32602 for bad params", _codes(answers[bad]))
    expect(_codes(answers["alive"]) == [None], "an answer to the ping that follows", _codes(answers["alive"]))


@check(
    "header-without-length",
    law="Transport: every request gets exactly one answer",
    says="Headers without `Content-Length` are answered with error -32700 (parse error) and `id: null`, "
    "and the next message is read.",
    mend="Answer at the empty line that ends the headers, then read the next headers.",
)
def header_without_length(bench: Bench) -> None:
    """Send a header block without a length. Expect error -32700 (parse error), and an answer to the next
    block."""
    peer = bench.fresh()
    peer.send(PING)
    peer.send_raw(b"Content-Type: x\r\n\r\n")
    peer.send(request("next", "daemon/ping"))

    answers = _answers_by_end(peer, None, "next")
    expect(_codes(answers[None]) == [-32700], "one error -32700 with id null", _codes(answers[None]))
    expect(_codes(answers["next"]) == [None], "an answer to the next request", _codes(answers["next"]))


@check(
    "length-that-is-none",
    law="Transport: framing",
    says="A `Content-Length` that is not a number is answered with error -32700 (parse error) at once, and "
    "the program ends.",
    mend="Answer, then exit, because the program cannot know where the next message begins.",
)
def length_that_is_none(bench: Bench) -> None:
    """Send a `Content-Length` that is not a number. Expect error -32700 (parse error) and the end of the
    connection."""
    peer = bench.fresh()
    peer.send(PING)
    peer.send_raw(b"Content-Length: ten\r\n\r\n")

    peer.wait(lambda got: got.id == b"null" and got.error is not None, "error -32700 with id null")
    peer.wait_for_end()
    expect(
        _codes(peer.answers(None)) == [-32700], ("one error -32700 with id null"), _codes(peer.answers(None))
    )


@check(
    "batches-are-refused",
    law="Transport: every request gets exactly one answer",
    says="A JSON-RPC batch (an array of requests) is answered with one error -32600 (invalid request), and "
    "none of its requests is carried out.",
    mend="Refuse an array without looking at its elements.",
    framings=BOTH,
)
def batches(bench: Bench) -> None:
    """Send two batches, and check that none of their requests was carried out."""
    peer = bench.fresh()
    peer.call("daemon/ping", {}, shapes.Nothing)
    peer.send(b"[" + request("b1", "session/start", {"session_id": "batched"}) + b"," + PING + b"]", b"[]")
    rows = peer.call("session/list", {}, shapes.Rows).sessions

    answers = _answers_by_end(peer, None, "b1", "alive")
    expect(
        _codes(answers[None]) == [-32600, -32600],
        "one error -32600 for each of two batches",
        _codes(answers[None]),
    )
    expect(not answers["b1"] and not answers["alive"], "no answer to a request in a batch", answers)
    expect(not rows, "no session started by a request in a batch", rows)


@check(
    "notifications-are-not-answered",
    law="Transport: JSON-RPC 2.0",
    says="Nothing is ever sent in reply to a notification, or to an answer to which there is no request, "
    "even if they have errors.",
    mend="Answer only messages with an `id` and a `method`.",
)
def notifications(bench: Bench) -> None:
    """Send notifications that contain errors. Expect no answers."""
    peer = bench.fresh()
    peer.send(PING)
    peer.notify("no/such", {"a": 1})
    peer.notify("daemon/ping", {})
    peer.notify("session/append", {"messages": 5})
    peer.notify("$/cancelRequest", {"id": 999})
    peer.send(b'{"jsonrpc":"2.0","id":"nobody asked","result":1}')

    peer.stop()
    seen = [got.body for got in peer.received if not got.method]
    expect(len(seen) == 1, "one answer, to the ping", b" ".join(seen))


@check(
    "ids-come-back",
    law="Transport: JSON-RPC 2.0",
    says="An answer has the id of its request unchanged, and two requests with the same id get two answers.",
    mend="Keep the bytes of the id, and do not assume that a client's ids are unique.",
)
def ids(bench: Bench) -> None:
    """Send ids of different types and spellings. Expect each id back unchanged."""
    peer = bench.fresh()
    given = (b"7", b"7", b"-7", b"12345678901234567890", '"é\\u0041"'.encode(), b'""')
    for id in given:
        peer.send(b'{"jsonrpc":"2.0","id":%b,"method":"daemon/ping"}' % id)

    peer.stop()
    seen = sorted(got.id for got in peer.received)
    expect(seen == sorted(given), f"the ids {b' '.join(sorted(given)).decode()}", b" ".join(seen))


@check(
    "unknown-fields",
    law="Versions: what may be added",
    says="Unknown fields are ignored, and an optional field that is null counts as left out.",
    mend="Ignore unknown fields, because newer clients send fields that you do not know. Treat null like a "
    "field that was left out.",
)
def unknown_fields(bench: Bench) -> None:
    """Send unknown fields and nulls. Expect that they change nothing."""
    params = {"model": None, "title": None, "compaction": None, "colour": "blue", "persist": None}

    started = bench.peer.call("session/start", params, shapes.Started)
    one = {**user("Hello"), "meta": {"mine": 1}, "usage": None, "colour": [1]}
    done = bench.peer.call(
        "session/append",
        {"session_id": started.session_id, "messages": [one], "usage": None},
        shapes.Appended,
    )
    expect(len(done.entry_ids) == 1, "one message appended", done.entry_ids)


@check(
    "bad-params-name-the-field",
    law="Errors: -32602",
    says="If params are bad, the error has the path of the bad field in `data.path`. If one message of a "
    "`session/append` is bad, none of its messages is stored.",
    mend="Check all messages of an append before you store the first, and name the bad field in the error.",
)
def bad_params(bench: Bench) -> None:
    """Append a good and a bad message in one call. Expect an error with the path of the bad field, and
    neither message in the history."""
    talk = bench.talk(user("Hello"))

    fault = talk.refusal("session/append", messages=[user("kept?"), {"role": "judge", "content": "no"}])
    path = read(fault.data, shapes.Path).path
    expect(fault.code == -32602, "error -32602", f"{fault.code}: {fault.message}")
    expect("messages[1]" in path, "data.path with messages[1]", path)
    expect(
        talk.history_texts() == ("Hello",),
        "no message of the refused append in the session",
        talk.history_texts(),
    )


@check(
    "arguments-keep-their-bytes",
    law="Transport: a user's own data",
    says="`session/context` and `session/history` return the arguments of a tool call byte for byte, with "
    "the same case, order of keys, white space, numbers and escapes.",
    mend="Store arguments as the raw JSON text; do not parse it and write it again, and do not change the "
    "case of keys.",
    framings=BOTH,
)
def arguments(bench: Bench) -> None:
    """Append tool calls with unusual arguments. Expect the same bytes in the context and in the history."""
    odd = rb'{ "filePath" :"a.py","AKey":1.0,"a_key":1E+05,"n":123456789012345678901234567890,"e":"\u00e9\/"}'
    params = (
        b'{"session_id":"%b","messages":[{"role":"user","content":"go"},{"role":"assistant","content":'
        b'[{"type":"tool_call","call_id":"t","name":"run","arguments":%b}]},'
        b'{"role":"tool","content":[{"type":"tool_result","call_id":"t","content":"ok"}]}]}'
    )
    talk = bench.talk()
    talk.peer.result(talk.peer.ask_raw("session/append", params % (talk.id.encode(), odd)), shapes.Appended)

    for method in ("session/context", "session/history"):
        body = talk.peer.answer(talk.ask(method)).body
        expect(
            odd in body,
            f"the arguments {odd.decode()} in the result of {method}",
            _around(body, b'"arguments":'),
        )


def _around(body: bytes, mark: bytes) -> bytes:
    at = body.find(mark)
    return body[at : at + 300] if at >= 0 else body


@check(
    "openai-arguments-stay-a-string",
    law="Transport: a user's own data",
    says="The `arguments` of a tool call in OpenAI's format, a string that contains JSON, are returned "
    "unchanged.",
    mend="Store the string; do not parse it and write it again.",
)
def openai_arguments(bench: Bench) -> None:
    """Append a tool call whose arguments are a string. Expect the same string back."""
    written = '{"Path" :  "a.py",\n "n": 1.0}'
    call = {"id": "call_1", "type": "function", "function": {"name": "run", "arguments": written}}
    talk = bench.talk()
    talk.append(
        user("go"),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "ok"},
        format="openai",
    )

    body = talk.peer.answer(talk.ask("session/context", format="openai")).body
    expect(json.dumps(written).encode() in body, f"the string {written!r}", _around(body, b'"arguments":'))


MARKS = ("ü", "字", "😀", "ß𐍈")
"""Texts of characters that have two, three or four bytes in UTF-8. The characters of four bytes are two units
in UTF-16, so a program that counts units could cut them in the middle.
"""


@check(
    "no-character-is-cut",
    law="Never again: UTF-8 cut in the middle",
    says="No title, search snippet, shortened tool output or summary contains an incomplete character.",
    mend="Shorten texts between characters, never inside the bytes or UTF-16 units of one.",
    framings=BOTH,
)
def no_character_is_cut(bench: Bench) -> None:
    """Let the program shorten texts of multi-byte characters, and look for incomplete characters."""
    talk = bench.talk(compaction={"tool_output_chars": 101})
    # Each additional letter at the beginning moves all places where the program cuts by one byte.
    for shift in range(4):
        for mark in MARKS:
            call = f"{shift}{mark}"
            talk.append(
                user("x" * shift + mark * 150),
                {
                    "role": "assistant",
                    "content": [
                        {"type": "tool_call", "call_id": call, "name": "run", "arguments": {"a": mark * 99}}
                    ],
                },
                {
                    "role": "tool",
                    "content": [
                        {"type": "tool_result", "call_id": call, "content": "x" * shift + mark * 999}
                    ],
                },
                assistant("x" * shift + mark * 80),
            )
    talk.compact(keep_recent=300)

    asked = [talk.ask(method) for method in ("session/history", "session/context")]
    asked += [talk.ask("session/search", query=mark * 3) for mark in MARKS]
    for one in asked:
        body = talk.peer.answer(one).body.decode()
        at = body.find("\ufffd")
        expect(at < 0 and not _has_half(body), "only complete characters", body[max(0, at - 80) : at + 20])


def _has_half(body: str) -> bool:
    r"""Return whether the JSON text contains a lone surrogate such as `\ud83d`."""
    try:
        str(msgspec.json.decode(body.encode())).encode()
    except (UnicodeEncodeError, msgspec.DecodeError):
        return True
    return False


@check(
    "another-providers-shape-is-refused",
    law="Methods: session/append",
    says="If `session/append` has no `format` and a message has a tool call in OpenAI's or Anthropic's "
    "format, the answer is error -32602 (InvalidParams), and `data.format` names the format to give.",
    mend="Look for `tool_calls` and for block types of providers before you accept a message.",
)
def other_shapes(bench: Bench) -> None:
    """Append messages in other formats without `format`. Expect an error that names the format."""
    talk = bench.talk()
    call = {"id": "q2", "type": "function", "function": {"name": "x", "arguments": "{}"}}
    shaped = {
        "openai": assistant("", tool_calls=[call]),
        "anthropic": {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "q3", "name": "x", "input": {}}],
        },
    }
    for format, message in shaped.items():
        fault = talk.refusal("session/append", messages=[message])
        expect(
            fault.code == -32602,
            f"error -32602 for a message in the format {format}",
            f"{fault.code}: {fault.message}",
        )
        named = read(fault.data, shapes.Format).format
        expect(named == format, f"the format {format} in the error's data", named)
    expect(talk.history_texts() == (), "no stored message", talk.history_texts())


@check(
    "an-empty-list-is-an-empty-object",
    law="Methods",
    says="If a method can be called without params, `[]` is accepted as no params, because languages that do "
    "not distinguish an empty list from an empty object send it. `models/forget` without params forgets no "
    "context window and answers error -32602 (InvalidParams).",
    mend="Treat `[]` as `{}` if the method has no required params.",
)
def empty_list(bench: Bench) -> None:
    """Send an empty list as the params of two methods. Expect the same answers as without params."""
    peer = bench.peer
    peer.result(peer.ask_raw("session/list", b"[]"), shapes.Rows)
    fault = peer.error_answer(peer.ask_raw("models/forget", b"[]"))
    expect(fault.code == -32602, "error -32602 from models/forget", f"{fault.code}: {fault.message}")


CHECKS = (
    framing_headers,
    framing_lines,
    one_answer,
    bad_requests,
    header_without_length,
    length_that_is_none,
    batches,
    notifications,
    ids,
    unknown_fields,
    bad_params,
    arguments,
    openai_arguments,
    no_character_is_cut,
    other_shapes,
    empty_list,
)
"""The checks in the order in which they run."""
