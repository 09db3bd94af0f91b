"""The ACP proxy passes every line of an agent or an editor on unchanged, and keeps running."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.security.acp_editors import Editor, block, edited, mirrored, update
from tests.support.examples import examples

DEEP = 100_000

HOSTILE = {
    "an integer of 4,301 digits": b"9" * 4_301,
    "an integer of 5,000 digits in an object": b'{"a":' + b"1" + b"0" * 5_000 + b"}",
    "an integer of 70 bits": b'{"a":%d}' % 2**70,
    "a number beyond all numbers": b'{"a":1e999999}',
    "NaN": b'{"a":NaN}',
    "lists in lists": b"[" * DEEP + b"]" * DEEP,
    "lists as deep as the proxy reads and the daemon does not": b'{"a":' + b"[" * 900 + b"]" * 900 + b"}",
    "objects in objects": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    "half a surrogate pair": rb'{"a":"\ud83d"}',
    "half a surrogate pair as a text": rb'"\udc00"',
    "bytes that are not UTF-8": b'{"a":"\xff\xfe\xed\xa0\x80"}',
    "a key that comes again": b'{"a":1,"a":2,"a":3}',
    "a name that is not UTF-8": b'{"\xff":1}',
    "a megabyte of text": b'{"a":"' + b"x" * 1_000_000 + b'"}',
}
"""Values of JSON, or nearly."""

PLACES = {
    "a call's input": b'"tool_call","toolCallId":"h","title":"t","kind":"read","rawInput":%s',
    "a call's output": b'"tool_call_update","toolCallId":"h","status":"completed","rawOutput":%s',
    "a call's content": b'"tool_call_update","toolCallId":"h","content":[%s]',
    "a call's title": b'"tool_call","toolCallId":"h","title":%s',
    "a call's id": b'"tool_call","toolCallId":%s',
    "a piece of an answer": b'"agent_message_chunk","content":{"type":"text","text":%s}',
    "the usage": b'"usage_update","used":%s,"size":100000',
    "an update's kind": b"%s",
}
"""The places of a `session/update` in which a test puts odd values."""


def updated(place: bytes, value: bytes, session: bytes = b"s1") -> bytes:
    inner = b'{"sessionUpdate":' + place % value + b"}"
    return b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"%s","update":%s}}\n' % (
        session,
        inner,
    )


def test_an_agents_lines_go_on_byte_for_byte_and_the_turns_are_kept_without_them(tmp_path: Path) -> None:
    with edited(tmp_path) as editor:
        for number, value in enumerate(HOSTILE.values()):
            hostile = [updated(place, value) for place in PLACES.values()]
            odd = [b'{"jsonrpc":"2.0","id":%s,"result":%s}\n' % (value, value), value + b"\n"]
            said = update("agent_message_chunk", content=block(f"Step {number} is done."))
            sent = editor.scripted(str(number), [*hostile, *odd, said])
            editor.lines.clear()
            answer = editor.prompt(f"Never touch bank.toml. Step {number}")

            assert answer["result"] == {"stopReason": "end_turn"}
            assert [line for line in editor.lines if line in sent] == sent
        code = editor.close()

    assert (code, "Traceback" in editor.log) == (0, False)
    kept = mirrored(tmp_path)
    assert [one["content"] for one in kept if one["role"] == "user"] == [
        [block(f"Never touch bank.toml. Step {number}")] for number in range(len(HOSTILE))
    ]
    spoken = "".join(str(one["content"]) for one in kept if one["role"] == "assistant")
    assert [number for number in range(len(HOSTILE)) if f"Step {number} is done." not in spoken] == []


def test_an_editors_lines_go_on_byte_for_byte(tmp_path: Path) -> None:
    lines = [line for value in HOSTILE.values() for line in of_an_editor(value)]
    with edited(tmp_path) as editor:
        for line in lines:
            editor.send(line)
        answer = editor.prompt("Step one")
        code = editor.close()

    assert (answer["result"], code) == ({"stopReason": "end_turn"}, 0)
    assert [line for line in editor.got if line in lines] == lines
    assert "Traceback" not in editor.log


def of_an_editor(value: bytes) -> list[bytes]:
    return [
        b'{"jsonrpc":"2.0","method":"x/odd","params":%s}\n' % value,
        b'{"jsonrpc":"2.0","method":"session/set_mode","params":{"sessionId":"s1","configId":%s}}\n' % value,
        b'{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%s}}\n' % value,
        b'{"jsonrpc":"2.0","method":"session/load","params":{"sessionId":"s9","cwd":%s}}\n' % value,
        b'{"jsonrpc":"2.0","id":"q","method":"session/prompt","params":{"sessionId":"s1","prompt":%s}}\n'
        % value,
        b'{"jsonrpc":"2.0","method":"session/prompt","params":{"sessionId":"s1","prompt":[%s]}}\n' % value,
        b'{"jsonrpc":"2.0","id":%s,"method":"session/prompt","params":{"sessionId":"s1"}}\n' % value,
        b'{"jsonrpc":"2.0","id":77,"result":%s}\n' % value,
        value + b"\n",
    ]


def test_after_a_compaction_the_agents_lines_still_reach_the_editor_under_the_id_it_knows(
    tmp_path: Path,
) -> None:
    with edited(tmp_path) as editor:
        for number in range(6):
            editor.prompt(f"Read part{number}.py and say what it does. " * 40)
        compacted = editor.prompt("/compact")
        hostile = [updated(place, value, b"s2") for place in PLACES.values() for value in HOSTILE.values()]
        commands = [{"name": "fly", "description": "-", "weight": 2**70}, {"name": "compact"}]
        listed = update("available_commands_update", availableCommands=commands)
        listed["params"]["sessionId"] = "s2"
        editor.scripted("seven", [*hostile, listed])
        before = len(editor.lines)
        answer = editor.prompt("Step seven")
        half = rb'[{"type":"text","text":"A \ud83d smile"}]'
        half = b'{"id":900,"method":"session/prompt","params":{"sessionId":"s1","prompt":%s}}' % half
        editor.send(half + b"\n")
        last = editor.answer(900)
        code = editor.close()

    assert compacted["result"] == {"stopReason": "end_turn"}
    assert (answer["result"], last["result"], code) == (
        {"stopReason": "end_turn"},
        {"stopReason": "end_turn"},
        0,
    )
    came = editor.lines[before:]
    assert sum(b"sessionUpdate" in line or b'"update"' in line for line in came) >= len(hostile)
    readable = [line for line in came if b'"a":%d' % 2**70 in line]
    assert readable
    assert all(b'"sessionId":"s1"' in line for line in readable)
    names = [line for line in came if b"available_commands_update" in line]
    assert [one["name"] for one in json.loads(names[-1])["params"]["update"]["availableCommands"]] == [
        "fly", "compact", "context", "sessions",
    ]  # fmt: skip
    assert b"%d" % 2**70 in names[-1]
    assert b'"sessionId":"s2"' in editor.got[-1]


def test_a_usage_that_no_agent_has_is_not_counted_with(tmp_path: Path) -> None:
    with edited(tmp_path) as editor:
        told = [(10**400, 7), (7, 10**400), (-1, 7), (7, -1), (7, 0)]
        editor.scripted("one", [update("usage_update", used=used, size=size) for used, size in told])
        editor.prompt("Step one")
        answer = editor.prompt("/context")
        code = editor.close()

    assert (answer["result"], code) == ({"stopReason": "end_turn"}, 0)
    assert "of 100,000" in editor.lines[-2].decode()


def test_an_answer_nobody_waits_for_ends_nothing(tmp_path: Path) -> None:
    with edited(tmp_path) as editor:
        editor.scripted("one", [{"id": f"compactd-{number}", "result": {}} for number in range(5)])
        answer = editor.prompt("Step one")
        code = editor.close()

    assert (answer["result"], code) == ({"stopReason": "end_turn"}, 0)


NAMES = [
    *("sessionUpdate", "sessionId", "update", "content", "type", "text", "resource", "uri", "toolCallId"),
    *(
        "title",
        "kind",
        "status",
        "used",
        "size",
        "rawInput",
        "rawOutput",
        "availableCommands",
        "name",
        "path",
    ),
]
JSON = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20),
        st.sampled_from(["s1", "session/update", "tool_call", "text", "completed", "resource"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            st.sampled_from(NAMES),
            inner,
            max_size=5,
        ),
    ),
    max_leaves=12,
)  # fmt: skip
KINDS = st.sampled_from(
    [
        "tool_call",
        "tool_call_update",
        "agent_message_chunk",
        "user_message_chunk",
        "usage_update",
        "plan",
        "x",
    ]
)


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    """Nearly a line of ACP: any value anywhere, then bytes that are changed or left out."""
    fields = {
        "sessionUpdate": draw(KINDS),
        **draw(st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=6)),
    }
    said = draw(st.one_of(st.just(fields), JSON))
    message = draw(
        st.sampled_from(
            [
                {"method": "session/update", "params": {"sessionId": "s1", "update": said}},
                {"method": "session/request_permission", "id": said, "params": {"sessionId": "s1"}},
                {"id": "nobody", "result": said},
                {"id": said, "error": said},
                {"method": "x/y", "params": said},
            ]
        )
    )
    line = bytearray(
        json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=draw(st.booleans())).encode(
            "utf-8", "surrogatepass"
        )
    )
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(line) - 1))
        line[at : at + draw(st.integers(0, 3))] = draw(st.binary(max_size=3))
    return bytes(line).replace(b"\n", b" ") + b"\n"


FIELDS = ["content", "toolCallId", "title", "kind", "status", "rawInput", "rawOutput", "used", "size"]


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    """One for all examples: what one line breaks, the next shows."""
    with edited(tmp_path_factory.mktemp("home")) as one:
        yield one
        assert one.close() == 0


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(lines(), min_size=1, max_size=12))
def test_any_lines_of_an_agents_go_on_byte_for_byte(editor: Editor, sent: list[bytes]) -> None:
    editor.scripted("on", sent)
    editor.lines.clear()

    answer = editor.prompt("Go on")

    assert answer["result"] == {"stopReason": "end_turn"}
    assert [line for line in editor.lines if line in sent] == sent
    assert "Traceback" not in editor.log


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(lines(), min_size=1, max_size=12))
def test_any_lines_of_an_editors_go_on_byte_for_byte(editor: Editor, sent: list[bytes]) -> None:
    before = len(editor.got)
    for line in sent:
        editor.send(line)

    answer = editor.prompt("Go on")

    assert answer["result"] == {"stopReason": "end_turn"}
    assert editor.got[before:-1] == sent
