"""A session file that is read while it grows gives the same result as one that is read whole."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactd.formats.agents.pi import BranchChanged
from compactd.formats.files.detect import read
from compactd.formats.files.incremental import incremental_reader
from tests.support.examples import examples


def claude_code() -> bytes:
    """Answers block by block, results between the blocks, a sub-agent, a compaction."""
    records = [
        ("user", "u1", "Check the ledger.", {}),
        ("assistant", "a1", [{"type": "text", "text": "I look."}], {"id": "m1", "output": 1}),
        ("assistant", "a2", [{"type": "tool_use", "id": "t1", "name": "Read", "input": {}}], {"id": "m1"}),
        ("user", "u2", [{"type": "tool_result", "tool_use_id": "t1", "content": "x = 1"}], {}),
        ("assistant", "a3", [{"type": "tool_use", "id": "t2", "name": "Read", "input": {}}], {"id": "m1"}),
        ("user", "u3", "This session is being continued.", {"isCompactSummary": True}),
        ("assistant", "a4", [{"type": "text", "text": "Done."}], {"id": "m2", "output": 7}),
    ]
    return b"".join(line(*record) for record in records)


def line(kind, uuid, content, about) -> bytes:
    message = {"role": kind, "content": content}
    if kind == "assistant":
        usage = {"input_tokens": 100, "output_tokens": about.get("output", 1)}
        message |= {"id": about["id"], "model": "claude-opus-4-5", "usage": usage}
    record = {"type": kind, "uuid": uuid, "sessionId": "s", "message": message}
    return (
        json.dumps(record | ({"isCompactSummary": True} if "isCompactSummary" in about else {})).encode()
        + b"\n"
    )


def codex() -> bytes:
    def item(payload):
        return ("response_item", payload)

    def said(role, kind, text):
        return item({"type": "message", "role": role, "content": [{"type": kind, "text": text}]})

    usage = {"input_tokens": 100, "cached_input_tokens": 20, "output_tokens": 5}
    records = [
        ("session_meta", {"id": "s", "cwd": "/x", "model_provider": "openai", "instructions": "Be exact."}),
        ("turn_context", {"model": "gpt-5", "cwd": "/x"}),
        said("user", "input_text", "Go."),
        item({"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]}),
        item({"type": "function_call", "call_id": "c1", "name": "shell", "arguments": "{}"}),
        item({"type": "function_call_output", "call_id": "c1", "output": "fine"}),
        ("event_msg", {"type": "token_count", "info": {"last_token_usage": usage}}),
        said("assistant", "output_text", "Done."),
        ("compacted", {"message": "They went.", "replacement_history": []}),
        said("user", "input_text", "And now?"),
    ]
    return b"".join(
        json.dumps({"type": kind, "payload": payload}).encode() + b"\n" for kind, payload in records
    )


def pi() -> bytes:
    entries = [
        {"type": "session", "id": "s", "cwd": "/x", "provider": "anthropic", "modelId": "claude-opus-4-5"}
    ]
    parent = None
    for number in range(6):
        role = "assistant" if number % 2 else "user"
        message = {"role": role, "content": [{"type": "text", "text": f"Step {number}."}]}
        if role == "assistant":
            message["usage"] = {"input": 10 * number, "output": 1}
        entries.append({"type": "message", "id": f"e{number}", "parentId": parent, "message": message})
        parent = f"e{number}"
    entries.append(
        {"type": "compaction", "id": "c", "parentId": parent, "summary": "S", "firstKeptEntryId": "e4"}
    )
    return b"".join(json.dumps(entry).encode() + b"\n" for entry in entries)


FILES = {"claude-code": claude_code(), "codex": codex(), "pi": pi()}


@pytest.mark.parametrize("format", FILES)
@given(data=st.data())
@settings(max_examples=examples(40), deadline=None)
def test_a_file_read_in_any_pieces_of_lines_holds_the_same_as_read_whole(format, data) -> None:
    lines = FILES[format].splitlines(keepends=True)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(lines)))) | {0, len(lines)})
    session = incremental_reader(format)

    for start, end in pairwise(cuts):
        session.feed(b"".join(lines[start:end]))

    whole = read(FILES[format], format)
    messages = [message for message, _ in session.session.messages]
    begun = [session.begun] if session.begun else []
    assert len(messages) + len(begun) == len(whole.messages)
    assert messages == [message for message, _ in whole.messages][: len(messages)]
    assert [one.content for one in begun] == [one.content for one, _ in whole.messages[len(messages) :]]
    assert session.session.compactions == whole.compactions == 1
    assert tuple(session.session.first_kept.items()) == whole.first_kept
    assert session.session.model == whole.model


def test_an_entry_of_pi_that_follows_an_older_one_is_a_branch() -> None:
    session = incremental_reader("pi")
    session.feed(pi())
    other = {"type": "message", "id": "x", "parentId": "e1", "message": {"role": "user", "content": "Else."}}

    with pytest.raises(BranchChanged):
        session.feed(json.dumps(other).encode() + b"\n")


def test_what_is_one_document_or_replaces_its_records_is_not_read_line_by_line() -> None:
    assert [incremental_reader(name) for name in ("gemini-cli", "cline", "aider", "openai", "compactd")] == [
        None
    ] * 5
