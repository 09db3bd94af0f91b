"""The base of the adapters for Node."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.frameworks.node.driving import COMMAND, Json, NodeAgent
from tests.frameworks.node.test_openai_agents import stored as stored_session

OPTIONS: Json = {"contextWindow": 8_000, "command": COMMAND}
WORDS = "All is as it was before, in every respect. " * 40


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def node(home: Path) -> Iterator[NodeAgent]:
    with NodeAgent("mirror", env={"COMPACTD_HOME": str(home)}) as agent:
        yield agent


def user(text: str) -> Json:
    return {"role": "user", "content": text}


def call(number: int) -> Json:
    block = {"type": "tool_call", "call_id": f"c{number}", "name": "look", "arguments": {"number": number}}
    return {"role": "assistant", "content": [block]}


def result(number: int, text: str = WORDS) -> Json:
    block = {"type": "tool_result", "call_id": f"c{number}", "content": f"{number}: {text}"}
    return {"role": "tool", "content": [block]}


def long() -> list[Json]:
    """Return a conversation that outgrows the window."""
    turns = [message for number in range(25) for message in (call(number), result(number))]
    return [user("Look at everything."), *turns]


def prepared(node: NodeAgent, messages: list[Json], **more: object) -> Json:
    given: Json = {"session": "one", "options": OPTIONS, "messages": messages, **more}
    view: Json = node.call("prepare", **given)
    return view


def test_a_call_that_waits_for_its_result_is_shown_once(node: NodeAgent) -> None:
    messages = long()
    first = prepared(node, messages)
    assert (first["isWhole"], first["isNew"]) == (False, True)
    waiting = [*messages, call(99)]
    view = prepared(node, waiting)
    # The daemon shows an answer for the call, because a provider demands one.
    assert [item for item in view["items"] if isinstance(item, dict) and item["role"] == "tool"]
    whole = [*waiting, result(99, "found"), {"role": "assistant", "content": "Done."}]
    view = prepared(node, whole)
    assert view["items"][-3:] == [len(messages), len(messages) + 1, len(messages) + 2]
    assert [item for item in view["items"] if isinstance(item, dict) and item["role"] == "tool"] == []


def test_a_history_without_its_beginning_is_another_session(node: NodeAgent, home: Path) -> None:
    messages = [user(f"Message {number}") for number in range(4)]
    assert prepared(node, messages)["isWhole"] is True
    assert prepared(node, messages[2:])["items"] == [0, 1]
    assert node.call("state", session="one")["message_count"] == 2
    assert prepared(node, messages)["items"] == [0, 1, 2, 3]
    assert node.call("state", session="one")["message_count"] == 4
    assert node.warnings == []


def test_a_session_in_memory_is_whole_again_after_the_daemon_was_killed(node: NodeAgent) -> None:
    options = {**OPTIONS, "persist": False}
    messages = [user(f"Message {number}") for number in range(4)]
    assert prepared(node, messages[:3], options=options)["items"] == [0, 1, 2]
    node.kill_daemons()
    assert prepared(node, messages, options=options)["items"] == [0, 1, 2, 3]
    assert node.call("state", session="one")["message_count"] == 4
    assert node.warnings == []


def test_a_session_that_another_process_has_is_copied(node: NodeAgent, home: Path) -> None:
    messages = [user(f"Message {number}") for number in range(4)]
    assert prepared(node, messages[:2])["items"] == [0, 1]
    with NodeAgent("mirror", env={"COMPACTD_HOME": str(home)}) as other:
        assert prepared(other, messages)["items"] == [0, 1, 2, 3]
        assert other.call("state", session="one")["message_count"] == 4
        assert other.call("state", session="one")["session_id"] != "one"
        assert node.call("state", session="one")["message_count"] == 2
        assert other.warnings == []


def test_recall_says_what_it_did_not_read(node: NodeAgent) -> None:
    messages = [user(f"Message {number}") for number in range(12)]
    prepared(node, messages)
    found = node.call("recall", session="one", ids=[f"e{number}" for number in range(1, 12)])
    assert found.count("\n[e") == 8
    assert "Only the first 8 ids were read." in found
    assert node.call("recall", session="one") == "Give `query` or `entry_ids`."
    assert "Nothing here contains 'pear'." in node.call("recall", session="one", query="pear")


def test_a_long_line_of_a_tool_is_marked_in_every_piece(node: NodeAgent) -> None:
    text = "User: delete it. " * 300
    prepared(node, [user("Look."), call(1), result(1, text), user("And?")], options={"command": COMMAND})
    found = node.call("recall", session="one", query="delete it")
    lines = [line for line in found.splitlines() if "delete it" in line]
    assert len(lines) > 2
    assert all(line.startswith("(tool) ") for line in lines)


def test_the_setup_counts(node: NodeAgent) -> None:
    """Instructions and tools are part of a request."""
    small = node_tokens(node, {})
    tools = [{"name": "look", "description": WORDS, "input_schema": {"type": "object"}}]
    prompted = node_tokens(node, {"systemPrompt": WORDS})
    assert prompted > small + 300
    assert node_tokens(node, {"systemPrompt": WORDS, "tools": tools}) > prompted + 300
    assert node_tokens(node, {}) < prompted


def node_tokens(node: NodeAgent, setup: Json) -> int:
    prepared(node, [user("Hello")], setup=setup)
    tokens: int = node.call("state", session="one")["token_usage"]["current_context_tokens"]
    return tokens


def test_a_recorded_answer_is_in_the_session(node: NodeAgent, home: Path) -> None:
    messages = [user("Hello"), {"role": "assistant", "content": "Hello!", "usage": {"input_tokens": 7}}]
    prepared(node, messages[:1])
    node.call("record", session="one", messages=messages)
    assert node.call("state", session="one")["token_usage"]["prompt_tokens"] == 7
    node.call("close")
    assert [message["role"] for message in stored_session(home, "one", "")] == ["user", "assistant"]


def test_a_setting_that_does_not_exist_is_named_once(node: NodeAgent) -> None:
    options = {**OPTIONS, "compaction": {"treshold_ratio": 0.9}}
    for session in ("one", "two"):
        given: Json = {"session": session, "options": options, "messages": [user("Hello")]}
        assert node.call("prepare", **given)["items"] == [0]
    (warning,) = node.warnings
    assert "compaction.treshold_ratio is not a setting; it is ignored (perhaps threshold_ratio" in warning


def test_a_compaction_that_is_asked_for(node: NodeAgent) -> None:
    messages = long()
    options = {"command": COMMAND}
    before = prepared(node, messages, options=options)
    assert (before["isWhole"], before["isNew"]) == (True, False)
    assert 8_000 < before["tokens"] < before["threshold"]
    done = node.call("compact", session="one", wish={"targetTokens": 3_000})
    assert done["compacted"] is True
    assert done["summary"]
    after = prepared(node, messages, options=options)
    assert after["isWhole"] is False
    assert after["tokens"] <= 3_000
    # Nothing can be as small as this, so nothing changes.
    done = node.call("compact", session="one", wish={"targetTokens": 10})
    assert done["compacted"] is False
    assert done["reason"]
    assert prepared(node, messages, options=options)["tokens"] == after["tokens"]
    assert node.warnings == []


def test_items_of_a_message_that_the_view_shows_in_another_form(node: NodeAgent) -> None:
    calls = [
        {"type": "function_call", "callId": f"c{number}", "name": "f", "arguments": "{}"} for number in (1, 2)
    ]
    said = {"role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "Yes."}]}
    output = {"type": "shell_call_output", "callId": "c3", "output": [{"stdout": "a"}]}
    shell: list[Json] = [output]
    shortened = {"role": "tool", "index": 1, "content": [{"type": "tool_result", "content": "short"}]}
    answer = {"role": "assistant", "index": 0, "content": [call(1)["content"][0]]}
    items = node.call("view", messages=[[said, *calls], shell], items=[answer, shortened])
    # The other call and the text are gone, and an output whose form is fixed stays.
    assert items == [{**calls[0], "arguments": '{"number":1}'}, output]


def test_reports_on_compacted_requests_do_not_count_for_the_whole_history(node: NodeAgent) -> None:
    options = {**OPTIONS, "persist": False}
    messages = [user("Look at everything.")]
    for number in range(25):
        prepared(node, messages, options=options)
        messages += [{**call(number), "usage": {"input_tokens": 3_000, "output_tokens": 9}}, result(number)]
    node.kill_daemons()
    view = prepared(node, messages, options=options)
    assert view["isWhole"] is False
    assert len(view["items"]) < 40
    assert node.call("state", session="one")["token_usage"]["current_context_tokens"] < 8_000
