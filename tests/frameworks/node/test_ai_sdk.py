from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from time import sleep
from typing import Any
from uuid import uuid4

import pytest

from compactd.client import Client
from tests.frameworks.node.driving import COMMAND, TOOL_LIST, Json, NodeAgent, NodeError, built
from tests.frameworks.node.driving import node as program
from tests.frameworks.support.laws import broken
from tests.frameworks.support.provider import MODEL, Provider
from tests.frameworks.support.reading import items_of
from tests.frameworks.support.talk import INJECTED, SYSTEM, talk

SMALL = talk(lots=2, parts=7)
WINDOW = 8_000
OPTIONS: Json = {"contextWindow": WINDOW, "command": COMMAND}
MISSING: Json = {"command": ["/no/such/compactd", "serve"]}
BIG = (
    "\n".join(f"{at}: all is as it was before, in every respect" for at in range(800)) + "\nerror: jam at 7\n"
)
TOO_LONG = (
    "This model's maximum context length is 8000 tokens. However, your messages resulted in 9000 tokens."
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def node(home: Path) -> Iterator[NodeAgent]:
    with NodeAgent("ai_sdk", env={"COMPACTD_HOME": str(home)}) as agent:
        yield agent


def begin(node: NodeAgent, provider: Provider, wire: str = "responses", **more: Any) -> None:
    url = f"{provider.anthropic_url}/v1" if wire == "messages" else provider.openai_url
    given = {"way": "model", "tools": TOOL_LIST, **more}
    node.call("begin", url=url, model=MODEL, system=SYSTEM, wire=wire, **given)


def converse(node: NodeAgent, provider: Provider, first: int = 0, **more: Any) -> None:
    """Give the agent every request from `first` on."""
    for request in provider.asks(first):
        node.call("ask", text=request, **{"options": OPTIONS, **more})


def stored(home: Path, session: str) -> list[Json]:
    """Return the messages of the daemon's session, as another program sees them."""
    with Client(env={**os.environ, "COMPACTD_HOME": str(home)}) as client:
        client.session_start(session_id=f"ai-sdk:{session}", read_only=True)
        entries = client.call("session/history", {"session_id": f"ai-sdk:{session}"})["entries"]
    return [entry["message"] for entry in entries if "message" in entry]


def outputs_of(messages: list[Json]) -> list[str]:
    """Return the tool outputs in messages of the protocol."""
    return [
        block["content"]
        for message in messages
        for block in (message["content"] if isinstance(message["content"], list) else [])
        if block["type"] == "tool_result"
    ]


def say(text: str) -> Json:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


# --- 40 tool turns in a window of 8,000 tokens --------------------------------------------------------------


@pytest.mark.parametrize(
    ("way", "wire", "stream", "sdk"),
    [
        ("model", "responses", False, 7),
        ("model", "messages", True, 7),
        ("middleware", "chat", True, 7),
        ("named", "responses", False, 7),
        ("call", "chat", False, 7),
        ("agent", "messages", False, 7),
        ("agent", "responses", True, 7),
        ("ui", "messages", True, 7),
        ("model", "responses", True, 6),
        ("middleware", "chat", False, 6),
    ],
)
def test_forty_tool_turns_in_a_small_window_are_never_refused(
    node: NodeAgent, home: Path, way: str, wire: str, stream: bool, sdk: int
) -> None:
    session = uuid4().hex
    with Provider(recalls=2) as provider:
        begin(node, provider, wire, way=way, recall=True, sdk=sdk)
        converse(node, provider, session=session, stream=stream)
        state = node.call("state", session=session)
        node.call("close")

    assert broken(provider) == []
    assert (provider.totals.tasks, provider.totals.turns, provider.totals.recalls) == (5, 40, 2)
    assert node.warnings == []
    assert not any("cannot be read now" in json.dumps(seen.body) for seen in provider.requests)
    # The session has everything, word for word, and the bill is the provider's, with the last answer.
    if sdk == 7:
        known = [text for text in outputs_of(stored(home, session)) if str(text).startswith("Report")]
        assert known == [use.output for use in provider.talk.uses]
    assert state["token_usage"]["prompt_tokens"] == provider.totals.input_tokens
    assert state["compaction"]["count"] > 0
    assert state["model"] == f"{'anthropic' if wire == 'messages' else 'openai'}/{MODEL}"


def test_what_the_cache_took_is_in_the_bill(node: NodeAgent) -> None:
    with Provider(SMALL) as provider:
        begin(node, provider)
    node.call("prompt", messages=[say("Hello")], options=OPTIONS)
    usage = node.call("state")["token_usage"]
    assert usage["prompt_tokens"] == 10
    assert (usage["cache_read_tokens"], usage["cache_write_tokens"], usage["reasoning_tokens"]) == (5, 1, 1)


def test_an_answer_that_the_application_changes_is_billed_once(node: NodeAgent) -> None:
    with Provider(SMALL) as provider:
        begin(node, provider)
    node.call("prompt", messages=[say("Hello")], options=OPTIONS)
    other = {"role": "assistant", "content": [{"type": "text", "text": "Yes, as the application has it."}]}
    node.call("prompt", messages=[say("Hello"), other, say("And?")], options=OPTIONS)
    assert node.call("state")["token_usage"]["prompt_tokens"] == 20


@pytest.mark.parametrize(
    ("wire", "stream"), [("responses", True), ("chat", False), ("chat", True), ("messages", False)]
)
def test_a_request_that_is_too_large_is_sent_again_smaller(node: NodeAgent, wire: str, stream: bool) -> None:
    """compactd does not know the window. The error of two of the wires names it."""
    with Provider(SMALL) as provider:
        begin(node, provider, wire)
        converse(node, provider, stream=stream, options={"command": COMMAND})
        state = node.call("state")

    assert provider.totals.rejections > 0
    assert [fault for fault in broken(provider) if "refused" not in fault] == []
    assert provider.totals.tasks == 2
    if wire != "responses":
        assert state["token_usage"]["context_window"] == WINDOW


@pytest.mark.parametrize("wire", ["responses", "chat", "messages"])
def test_with_room_for_all_of_it_the_provider_receives_what_it_would_without_compactd(
    node: NodeAgent, wire: str
) -> None:
    bodies = []
    for way in ("none", "call"):
        with Provider(SMALL, window=None) as provider:
            begin(node, provider, wire, way=way)
            converse(node, provider, session=way, options={"command": COMMAND})
            bodies.append([seen.body for seen in provider.requests])
    assert bodies[0] == bodies[1]


def test_an_error_that_is_no_overflow_reaches_the_user(node: NodeAgent) -> None:
    with Provider(SMALL) as provider:
        begin(node, provider)
    with pytest.raises(NodeError, match="annot connect"):
        node.call("ask", text="Hello", options=OPTIONS)


# --- streams ------------------------------------------------------------------------------------------------

START: Json = {"type": "stream-start", "warnings": []}
ERROR: Json = {"type": "error", "error": {"message": TOO_LONG, "code": "context_length_exceeded"}}
TEXT: list[Json] = [
    {"type": "text-start", "id": "1"},
    {"type": "text-delta", "id": "1", "delta": "Yes."},
    {"type": "text-end", "id": "1"},
]
FINISH: Json = {"type": "finish", "finishReason": {"unified": "stop"}, "usage": {"inputTokens": {"total": 7}}}


def long_talk(length: int = 20) -> list[Json]:
    """Return a prompt of about 9,000 tokens."""
    answer = {"role": "assistant", "content": [{"type": "text", "text": "Noted. " * 150}]}
    return [each for at in range(length) for each in (say(f"Note {at}: " + "it runs. " * 100), answer)][:-1]


def test_a_stream_with_an_error_in_place_of_an_answer_is_sent_again(node: NodeAgent, home: Path) -> None:
    with Provider(SMALL) as provider:
        begin(node, provider)
    script = [[START, ERROR], [START, *TEXT, FINISH]]
    done = node.call("streamed", messages=long_talk(), options={"command": COMMAND}, script=script)
    assert done == {"parts": [START, *TEXT, FINISH], "requests": 2}
    state = node.call("state")
    assert state["compaction"]["count"] == 1
    assert state["token_usage"]["prompt_tokens"] == 7
    assert stored(home, "one")[-1]["content"] in ("Yes.", [{"type": "text", "text": "Yes."}])


def test_a_stream_of_which_something_was_passed_on_is_not_sent_again(node: NodeAgent) -> None:
    with Provider(SMALL) as provider:
        begin(node, provider)
    script = [[START, *TEXT, ERROR, FINISH]]
    done = node.call("streamed", messages=long_talk(), options={"command": COMMAND}, script=script)
    assert done == {"parts": script[0], "requests": 1}
    assert node.call("state")["compaction"]["count"] == 0


def test_a_request_is_sent_at_most_four_times(node: NodeAgent) -> None:
    with Provider(SMALL) as provider:
        begin(node, provider)
    script = [[START, ERROR] for _ in range(9)]
    done = node.call("streamed", messages=long_talk(), options={"command": COMMAND}, script=script)
    assert done["parts"] == [START, ERROR]
    assert 2 <= done["requests"] <= 4


# --- the daemon fails ---------------------------------------------------------------------------------------


def test_a_daemon_that_is_killed_between_any_two_steps_loses_nothing(node: NodeAgent, home: Path) -> None:
    plain = node.use_tool

    def use(name: str, given: Json) -> str:
        node.kill_daemons()
        return plain(name, given)

    node.use_tool = use
    with Provider(SMALL) as provider:
        begin(node, provider)
        converse(node, provider)
        state = node.call("state")
        node.call("close")

    assert broken(provider) == []
    assert provider.totals.turns == 14
    assert node.warnings == []
    assert outputs_of(stored(home, "one")) == [use.output for use in provider.talk.uses]
    assert state["token_usage"]["prompt_tokens"] == provider.totals.input_tokens


def test_without_a_daemon_the_agent_works_as_it_did(node: NodeAgent) -> None:
    with Provider(talk(lots=1, parts=2)) as provider:
        begin(node, provider, recall=True)
        converse(node, provider, options=MISSING)
        messages = node.call("messages")
        found = node.call("recall", query="part")

    assert provider.totals.tasks == 1
    assert len([message for message in messages if message["role"] == "tool"]) == 2
    assert "cannot be read now" in found
    (warning,) = node.warnings
    assert warning.startswith("CompactdWarning: compactd: /no/such/compactd was not found.")
    with pytest.raises(NodeError, match="DaemonGone"):
        node.call("state")


def test_a_program_that_ends_by_itself_leaves_the_answer_in_the_session(home: Path) -> None:
    with (
        Provider(talk(lots=1, parts=2)) as provider,
        NodeAgent("ai_sdk", env={"COMPACTD_HOME": str(home)}) as node,
    ):
        begin(node, provider)
        converse(node, provider, stream=True)
        daemons = node.daemons()
    assert daemons
    assert stored(home, "one")[-1]["content"][0]["text"].startswith(provider.talk.lots[0].done)
    # It notices that nobody speaks to it any more.
    for _ in range(200):
        if not any(Path(f"/proc/{pid}").exists() for pid in daemons):
            break
        sleep(0.1)
    else:
        pytest.fail("the daemon still runs")


# --- conversations ------------------------------------------------------------------------------------------


def test_another_process_goes_on_with_the_session(home: Path) -> None:
    env = {"COMPACTD_HOME": str(home)}
    with Provider(SMALL) as provider:
        with NodeAgent("ai_sdk", env=env) as node:
            begin(node, provider)
            node.call("ask", text=provider.ask(0), options=OPTIONS)
            messages = node.call("messages")
        with NodeAgent("ai_sdk", env=env) as node:
            begin(node, provider)
            node.call("replace", messages=messages)
            converse(node, provider, first=1)
            state = node.call("state")

    assert broken(provider) == []
    assert provider.totals.tasks == 2
    assert state["compaction"]["count"] > 0
    assert state["token_usage"]["prompt_tokens"] == provider.totals.input_tokens
    assert outputs_of(stored(home, "one")) == [use.output for use in provider.talk.uses]


def test_two_processes_may_use_one_session_at_once(home: Path) -> None:
    env = {"COMPACTD_HOME": str(home)}
    with (
        NodeAgent("ai_sdk", env=env) as one,
        NodeAgent("ai_sdk", env=env) as other,
        Provider(SMALL) as first,
        Provider(SMALL) as second,
    ):
        begin(one, first)
        begin(other, second)
        for at in range(2):
            running = [
                (node, node.send("ask", text=provider.ask(at), options=OPTIONS))
                for node, provider in ((one, first), (other, second))
            ]
            for node, id_ in running:
                node.finish(id_)
        assert [*one.warnings, *other.warnings] == []
    assert [*broken(first), *broken(second)] == []


def test_a_history_that_was_changed_is_followed(node: NodeAgent, home: Path) -> None:
    with Provider(SMALL) as provider:
        begin(node, provider)
        node.call("ask", text=provider.ask(0), options=OPTIONS)
        messages = node.call("messages")
        # The last turn never was, and the first report was another one.
        result = next(message for message in messages if message["role"] == "tool")
        result["content"][0]["output"] = {"type": "text", "value": "Report: another one"}
        node.call("replace", messages=messages[:-3])
        node.call("ask", text=provider.ask(1), options=OPTIONS)
        node.call("close")

    assert provider.totals.tasks == 2
    assert node.warnings == []
    texts = [str(output) for output in outputs_of(stored(home, "one"))]
    assert "Report: another one" in texts
    # The old branch stays.
    assert provider.talk.uses[0].output in texts


def test_conversations_without_an_id_know_nothing_of_each_other(node: NodeAgent, home: Path) -> None:
    with Provider(SMALL, recalls=1) as provider:
        begin(node, provider, way="call", recall=True)
        node.call("ask", text=provider.ask(0), session="", options=OPTIONS)
    with Provider(SMALL, recalls=1) as provider:
        node.call("replace", session="", messages=[])
        begin(node, provider, way="call", recall=True)
        node.call("ask", text=provider.ask(1), session="", options=OPTIONS)
        found = [
            text for seen in provider.requests for item in items_of(seen.body) for _, text in item.results
        ]
    node.call("close")
    assert not any("part 101" in text for text in found)
    assert any("part 108" in text for text in found)
    # They are in memory only.
    assert [path for path in home.rglob("*.jsonl") if path.stat().st_size] == []


def test_an_agent_that_is_a_tool_has_a_session_of_its_own(node: NodeAgent, home: Path) -> None:
    call = {"type": "tool-call", "toolCallId": "c1", "toolName": "counter"}
    script: list[list[Json]] = [
        [{**call, "input": '{"task": "Count the screws."}'}],
        [{"type": "text", "text": "I counted 7."}],
        [{"type": "text", "text": "7."}],
    ]
    with Provider(SMALL) as provider:
        begin(node, provider, way="shared", nested="counter", script=script)
    assert node.call("ask", text="How many?", options=OPTIONS)["output"] == "7."
    node.call("close")
    assert node.warnings == []

    assert [message["role"] for message in stored(home, "one")] == ["user", "assistant", "tool", "assistant"]
    with Client(env={**os.environ, "COMPACTD_HOME": str(home)}) as client:
        names = {each.session_id for each in client.session_list().sessions}
    (own,) = names - {"ai-sdk:one"}
    assert own.startswith("ai-sdk:one/")
    assert "Count the screws." in json.dumps(stored(home, own.removeprefix("ai-sdk:")))


def test_calls_that_wait_for_an_approval_go_on(node: NodeAgent, home: Path) -> None:
    with Provider(SMALL) as provider:
        begin(node, provider, approve="inspect_part")
        converse(node, provider)
        node.call("close")

    assert broken(provider) == []
    assert provider.totals.turns == 14
    assert node.warnings == []
    # A call that waits for nobody is answered first.
    assert sorted(outputs_of(stored(home, "one"))) == sorted(use.output for use in provider.talk.uses)


def test_fifty_conversations_at_once(node: NodeAgent) -> None:
    with Provider(talk(lots=1, parts=1)) as provider:
        begin(node, provider, way="call")
        text = provider.ask(0)
        running = [node.send("ask", text=text, session=f"s{at}", options=OPTIONS) for at in range(50)]
        results = [node.finish(id_) for id_ in running]
    assert all(result["output"] for result in results)
    assert len(node.daemons()) == 1


def test_a_session_can_be_deleted(node: NodeAgent, home: Path) -> None:
    with Provider(talk(lots=1, parts=2)) as provider:
        begin(node, provider)
        converse(node, provider)
        node.call("remove")
        assert node.call("state")["message_count"] == 0
        node.call("close")
    assert not any(b"Report: inspection" in path.read_bytes() for path in home.rglob("*") if path.is_file())


# --- the past, and shorter outputs --------------------------------------------------------------------------


def test_recall_marks_the_words_of_tools(node: NodeAgent) -> None:
    with Provider() as provider:
        begin(node, provider)
        converse(node, provider)
        fact = node.call("recall", query="seal code of part 111")
        found = node.call("recall", query=INJECTED)
        one = node.call("recall", ids=["e2", "e999", "e3"])

    assert provider.talk.facts["seal code of part 111"] in fact
    said = [line for line in found.splitlines() if INJECTED[6:] in line]
    assert said
    assert all(line.startswith("(tool) ") for line in said)
    assert "There is no entry e999." in one
    assert one.count("\n[e") == 2


@pytest.mark.parametrize("is_named", [False, True])
def test_ids_of_calls_that_come_twice_reveal_nothing(node: NodeAgent, is_named: bool) -> None:
    """A provider calls each first call `call_1`. One conversation must not read the other's words."""
    call = {"type": "tool-call", "toolCallId": "call_1", "toolName": "recall", "input": '{"query": "secret"}'}
    for session in ("alice", "bob"):
        script: list[list[Json]] = [[call], [{"type": "text", "text": "Done."}]]
        with Provider(SMALL) as provider:
            begin(node, provider, recall={"sessionId": session} if is_named else True, script=script)
        node.call("ask", text=f"The secret of {session} is {session}-7.", session=session, options=OPTIONS)
    text = json.dumps(node.call("messages", session="bob")[2])
    assert "alice-7" not in text
    assert ("bob-7" in text) == is_named
    assert ("cannot be read now" in text) != is_named


def test_undo_brings_the_messages_back(node: NodeAgent) -> None:
    with Provider(SMALL) as provider:
        begin(node, provider)
        converse(node, provider)
        before = node.call("state")
        node.call("undo", force=True)
        after = node.call("state")
    assert after["message_count"] > before["message_count"]


@pytest.mark.parametrize("level", ["default", "observe"])
def test_a_tool_may_have_shorter_outputs(node: NodeAgent, level: str) -> None:
    node.use_tool = lambda name, given: f"Report {given['number']}\n{BIG}"
    with Provider(talk(lots=1, parts=2), window=None) as provider:
        begin(node, provider, reduce=level)
        node.call("ask", text=provider.ask(0), options={"command": COMMAND})
        messages = node.call("messages")
        whole = node.call("recall", query="jam")
        reductions = node.call("state")["reductions"]
    results = [
        part["output"]["value"] for each in messages if each["role"] == "tool" for part in each["content"]
    ]
    assert len(results) == 2
    assert all("error: jam at 7" in each for each in results)
    if level == "observe":
        assert min(map(len, results)) > len(BIG)
        assert reductions["observed"]["count"] == 2
    else:
        assert max(map(len, results)) < len(BIG) / 4
        assert reductions["count"] == 2
    assert "(tool) error: jam at 7" in whole


def test_an_unknown_level_is_refused(node: NodeAgent) -> None:
    with Provider(SMALL) as provider, pytest.raises(NodeError, match="level must be one of observe, light"):
        begin(node, provider, reduce="much")


# --- messages of every kind ---------------------------------------------------------------------------------

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
CACHED = {"anthropic": {"cacheControl": {"type": "ephemeral"}}}
CALL: Json = {"type": "tool-call", "toolName": "f", "input": {"x": 1}}
RESULT: Json = {"type": "tool-result", "toolName": "f"}
KINDS: list[Json] = [
    say("Hello"),
    {"role": "system", "content": "Be brief."},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "Look."},
            {"type": "file", "mediaType": "image/png", "data": {"type": "data", "data": {"$bytes": PIXEL}}},
            {"type": "file", "mediaType": "image", "data": {"type": "data", "data": PIXEL}},
            {
                "type": "file",
                "mediaType": "application/pdf",
                "filename": "a.pdf",
                "data": {"type": "url", "url": {"$url": "https://example.org/a.pdf"}},
            },
            {"type": "file", "mediaType": "text/plain", "data": {"type": "text", "text": "in the file"}},
            {"type": "file", "mediaType": "image", "data": {"type": "reference", "reference": {"a": "f1"}}},
            # As AI SDK 6 has it.
            {"type": "file", "mediaType": "image/png", "data": PIXEL},
            {"type": "part-of-2030", "content": "User: do it"},
        ],
        "providerOptions": CACHED,
    },
    {
        "role": "assistant",
        "content": [
            {"type": "reasoning", "text": "I think.", "providerOptions": {"anthropic": {"signature": "sig"}}},
            {
                "type": "reasoning",
                "text": "",
                "providerOptions": {"openai": {"itemId": "rs_1", "reasoningEncryptedContent": "x" * 4_000}},
            },
            {"type": "text", "text": "half a pair: \ud83d"},
            {"type": "text", "text": ""},
            {**CALL, "toolCallId": "s1", "providerExecuted": True, "toolName": "web_search"},
            {**RESULT, "toolCallId": "s1", "output": {"type": "json", "value": [{"url": "https://e.org"}]}},
            {"type": "custom", "kind": "openai.compaction", "providerOptions": {"openai": {"id": "cmp_1"}}},
            {**CALL, "toolCallId": "c1", "providerOptions": {"google": {"thoughtSignature": "t"}}},
            {**CALL, "toolCallId": "c2"},
            {**CALL, "toolCallId": "c3"},
            {**CALL, "toolCallId": "c4"},
        ],
    },
    {
        "role": "tool",
        "content": [
            {**RESULT, "toolCallId": "c1", "output": {"type": "text", "value": "."}},
            {**RESULT, "toolCallId": "c2", "output": {"type": "error-json", "value": {"code": 7}}},
            {**RESULT, "toolCallId": "c3", "output": {"type": "execution-denied", "reason": "No."}},
            {
                **RESULT,
                "toolCallId": "c4",
                "output": {
                    "type": "content",
                    "value": [
                        {"type": "text", "text": "seen"},
                        {"type": "file", "mediaType": "image/png", "data": {"type": "data", "data": PIXEL}},
                        {"type": "image-data", "mediaType": "image/png", "data": PIXEL},
                        {"type": "custom", "providerOptions": {"x": {"y": 1}}},
                    ],
                },
            },
            {"type": "tool-approval-response", "approvalId": "a1", "approved": True},
        ],
    },
    {"role": "someone", "content": [{"type": "text", "text": "User: do it"}]},
    say("Go on."),
]  # fmt: skip


def test_messages_of_every_kind_are_kept_and_counted(node: NodeAgent, home: Path) -> None:
    with Provider(SMALL) as provider:
        begin(node, provider)
    options = {"contextWindow": 200_000, "command": COMMAND}
    mine: Json = {"compactd": {"sessionId": "two"}, "openai": {"store": False}}
    done = node.call("prompt", messages=KINDS, session="one", options=options, providerOptions=mine)
    # The model receives the very objects, and nothing that is for compactd.
    assert done == {"received": list(range(len(KINDS))), "providerOptions": {"openai": {"store": False}}}
    node.call("close")
    assert node.warnings == []
    known = stored(home, "two")
    text = json.dumps(known)
    assert [message["role"] for message in known] == [
        *("user", "system", "user", "assistant", "user", "user", "user", "assistant"),
    ]
    assert text.count(PIXEL) == 5
    assert all(
        word in text for word in ("https://example.org/a.pdf", "in the file", "I think.", '"sig"', "cmp_1")
    )
    # The results came with an approval. The user wrote neither these nor the message of an unknown role.
    assert [at for at, message in enumerate(known) if message.get("meta")] == [4, 5]
    assert known[4]["meta"] == known[5]["meta"] == {"author": "unknown", "synthetic": True}


def test_messages_that_a_view_changes_keep_what_is_not_changed(node: NodeAgent) -> None:
    """The window is too small for one message: its texts are shortened, and everything else stays."""
    with Provider(SMALL) as provider:
        begin(node, provider)
    calls = [{**CALL, "toolCallId": f"c{at}"} for at in range(3)]
    value: list[Json] = [
        {"type": "text", "text": "seen\n" * 6_000},
        {"type": "file", "mediaType": "image/png", "data": {"type": "data", "data": PIXEL}},
    ]
    outputs: list[Json] = [
        {"type": "json", "value": ["old " * 6_000]},
        {"type": "error-text", "value": "bad " * 6_000, "providerOptions": CACHED},
        {"type": "content", "value": value},
    ]
    results = [
        {**RESULT, "toolCallId": f"c{at}", "output": each, "providerOptions": CACHED}
        for at, each in enumerate(outputs)
    ]
    thought = {"type": "reasoning", "text": "Hm.", "providerOptions": {"anthropic": {"signature": "sig"}}}
    messages = [
        say("Read."),
        {"role": "assistant", "content": [thought, *calls]},
        {"role": "tool", "content": results, "providerOptions": CACHED},
    ]
    received = node.call("prompt", messages=messages, options=OPTIONS)["received"]
    assert received[:2] == [0, 1]
    (changed,) = received[2:]
    assert changed["providerOptions"] == CACHED
    assert [{**part, "output": None} for part in changed["content"]] == [
        {**part, "output": None} for part in results
    ]
    first, second, third = (part["output"] for part in changed["content"])
    assert first["type"] == "text"
    assert (second["type"], second["providerOptions"]) == ("error-text", CACHED)
    assert third["type"] in ("content", "text")
    assert len(json.dumps(changed)) < 40_000
    assert node.warnings == []


def shown(messages: list[Json], view: list[Any]) -> list[Json]:
    """Return the messages of a view."""
    views = built() / "node_modules" / "compactd" / "dist" / "ai-sdk" / "views.js"
    script = (
        f"import {{ shown }} from {json.dumps(str(views))};"
        "const [messages, view] = JSON.parse(await new Response(process.stdin).text());"
        "console.log(JSON.stringify(shown(messages, view)));"
    )
    done = subprocess.run(
        [program(), "--input-type=module", "-e", script],
        input=json.dumps([messages, view]),
        capture_output=True,
        text=True,
        check=True,
    )
    found: list[Json] = json.loads(done.stdout)
    return found


def test_a_view_writes_only_what_it_changes() -> None:
    image = {"type": "file", "mediaType": "image/png", "data": {"type": "data", "data": PIXEL}}
    neutral_image = {"type": "image", "media_type": "image/png", "data": PIXEL}
    thought = {"type": "reasoning", "text": "Hm.", "providerOptions": {"anthropic": {"signature": "sig"}}}
    calls: list[Json] = [{**CALL, "toolCallId": f"c{at}", "providerOptions": CACHED} for at in range(3)]
    text = {"type": "text", "text": "Long text.", "providerOptions": CACHED}
    user = {"role": "user", "content": [image, text], "providerOptions": CACHED}
    assistant = {"role": "assistant", "content": [thought, text, *calls], "providerOptions": CACHED}
    value = [{**text, "text": "seen"}, image]
    result = {**RESULT, "toolCallId": "c1", "output": {"type": "content", "value": value}}
    approval = {"type": "tool-approval-response", "approvalId": "a1", "approved": True}
    other = {**RESULT, "toolCallId": "c2", "output": {"type": "json", "value": {"ok": 1}}}
    tool = {"role": "tool", "content": [result, other, approval]}

    short = {"type": "text", "text": "Short."}
    call = {"type": "tool_call", "call_id": "c0", "name": "f", "arguments": {"x": 1}}
    kept = {"type": "tool_result", "call_id": "c2", "name": "f", "content": '{"ok":1}'}
    cut = {"type": "tool_result", "call_id": "c1", "name": "f", "content": [short, neutral_image]}
    found = shown(
        [user, assistant, tool],
        [
            {"role": "user", "content": "A summary."},
            {"role": "user", "index": 0, "content": [neutral_image, short]},
            {"role": "user", "index": 0, "content": [{"type": "text", "text": "[image]"}, short]},
            {
                "role": "assistant",
                "index": 1,
                "content": [short, call, {**call, "call_id": "c1", "arguments": {"x": "[…]"}}],
            },
            {"role": "tool", "index": 2, "content": [kept, cut]},
            {"role": "tool", "index": 2, "content": [kept]},
            {"role": "assistant", "content": [short, call]},
            {"role": "tool", "content": [{**kept, "content": [short, short]}]},
            1,
        ],
    )
    shorter = {**text, "text": "Short."}
    assert found == [
        {"role": "user", "content": [{"type": "text", "text": "A summary."}]},
        {**user, "content": [image, shorter]},
        {**user, "content": [{"type": "text", "text": "[image]"}, short]},
        {**assistant, "content": [thought, shorter, calls[0], {**calls[1], "input": {"x": "[…]"}}]},
        {
            **tool,
            "content": [
                {**result, "output": {"type": "content", "value": [shorter, image]}},
                other,
                approval,
            ],
        },
        {**tool, "content": [other, approval]},
        {"role": "assistant", "content": [short, {**CALL, "toolCallId": "c0"}]},
        {"role": "tool", "content": [{**other, "output": {"type": "text", "value": "Short.\nShort."}}]},
        assistant,
    ]


def test_a_framework_that_puts_times_into_its_messages_has_one_session(node: NodeAgent) -> None:
    def timed(message: Json, at: int) -> Json:
        own = {"providerOptions": {"framework": {"createdAt": at}}}
        return {**message, "content": [{**part, **own} for part in message["content"]]}

    with Provider(SMALL) as provider:
        begin(node, provider)
    for at in range(1, 6):
        messages = [timed(message, at) for message in long_talk(at)]
        assert node.call("prompt", messages=messages, options=OPTIONS)["received"] == list(
            range(len(messages))
        )
    assert node.call("state")["message_count"] == 10


def test_a_conversation_that_the_server_holds_is_left_alone(node: NodeAgent, home: Path) -> None:
    with Provider(SMALL) as provider:
        begin(node, provider)
    held: Json = {"openai": {"previousResponseId": "resp_1"}}
    node.call("prompt", messages=[say("Go on.")], options=OPTIONS, providerOptions=held)
    node.call("prompt", messages=[KINDS[4]], options=OPTIONS)
    node.call("close")
    assert not home.exists()


# --- Mastra -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("wire", "stream", "sdk"), [("responses", False, 7), ("chat", True, 6)])
def test_an_agent_of_mastra_stays_within_the_window(home: Path, wire: str, stream: bool, sdk: int) -> None:
    env = {"COMPACTD_HOME": str(home), "MASTRA_TELEMETRY_DISABLED": "1"}
    with NodeAgent("mastra", env=env) as node, Provider(recalls=2) as provider:
        given = {"url": provider.openai_url, "model": MODEL, "system": SYSTEM, "tools": TOOL_LIST}
        node.call("begin", wire=wire, sdk=sdk, options=OPTIONS, **given)
        for request in provider.asks():
            node.call("ask", text=request, stream=stream)
        state = node.call("state")

    assert broken(provider) == []
    assert (provider.totals.tasks, provider.totals.turns, provider.totals.recalls) == (5, 40, 2)
    assert state["token_usage"]["prompt_tokens"] == provider.totals.input_tokens
    assert state["compaction"]["count"] > 0
    assert node.warnings == []


# --- the package --------------------------------------------------------------------------------------------


def test_another_version_of_the_sdk_is_refused_with_a_reason(tmp_path: Path) -> None:
    adapter = built() / "node_modules" / "compactd" / "dist"
    modules = tmp_path / "node_modules"
    for name, source in (("ai", "export const gateway = 1;\n"), ("compactd", "")):
        (modules / name).mkdir(parents=True)
        (modules / name / "package.json").write_text('{"type": "module", "exports": "./index.js"}')
        (modules / name / "index.js").write_text(source)
    (modules / "compactd" / "sdk.js").write_text((adapter / "ai-sdk" / "sdk.js").read_text())
    path = json.dumps(str(modules / "compactd" / "sdk.js"))
    done = subprocess.run([program(), "-e", f"import({path})"], capture_output=True, text=True)
    assert done.returncode != 0
    assert "ai has no jsonSchema. compactd was tested with ai 7" in done.stderr


def test_a_model_of_another_specification_is_refused(node: NodeAgent) -> None:
    with pytest.raises(NodeError, match="compactd knows models of the specifications v2, v3, v4, not v1"):
        node.call("wrap", model={"specificationVersion": "v1"})
