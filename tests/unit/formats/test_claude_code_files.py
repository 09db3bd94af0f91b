from __future__ import annotations

import json
from typing import Any

import pytest

from compactd.core.authors.authors import stretches
from compactd.formats.files.detect import read
from compactd.protocol.messages import Message, Meta, Text, Thinking, ToolCall, ToolResult
from tests.unit.formats.written import AT, USE, claude, lines, messages


def test_claude_codes_chunks_of_one_answer_are_one_message() -> None:
    usage = {"input_tokens": 1, "output_tokens": 2}
    file = read(
        lines(
            {"type": "file-history-snapshot", "snapshot": {}},
            claude("user", "u1", "go"),
            claude(
                "assistant",
                "u2",
                [{"type": "thinking", "thinking": "hm", "signature": "s"}],
                message={"id": "m"},
            ),
            claude(
                "assistant", "u3", [{"type": "text", "text": "ok"}], message={"id": "m", "stop_reason": None}
            ),
            {"type": "progress", "uuid": "u4"},
            claude(
                "assistant",
                "u5",
                [USE],
                message={"id": "m", "usage": usage, "stop_reason": "tool_use", "model": "opus"},
            ),
            claude("assistant", "u6", [{"type": "text", "text": "next"}], message={"id": "n"}),
        )
    )

    user, first, second = messages(file)
    assert user == Message(role="user", content=(Text(text="go"),), id="u1", created_at=AT)
    assert first.content[:2] == (Thinking(text="hm", signature="s"), Text(text="ok"))
    assert isinstance(first.content[2], ToolCall)
    assert (first.id, first.stop_reason) == ("u2", "tool_use")
    assert json.loads(bytes(first.usage or b"")) == usage
    assert second.content == (Text(text="next"),)
    assert (file.format, file.session_id, file.working_dir, file.model) == (
        "claude-code",
        "s1",
        "/repo",
        "opus",
    )


def test_an_answer_whose_calls_results_stand_between_its_blocks_is_billed_once() -> None:
    usage = {"input_tokens": 1, "output_tokens": 2}
    other = {**USE, "id": "b"}
    file = read(
        lines(
            claude("user", "u1", "go"),
            claude("assistant", "u2", [USE], message={"id": "m", "usage": usage}),
            claude("user", "u3", [{"type": "tool_result", "tool_use_id": USE["id"], "content": "x"}]),
            claude("assistant", "u4", [other], message={"id": "m", "usage": usage}),
            claude("user", "u5", [{"type": "tool_result", "tool_use_id": "b", "content": "y"}]),
        )
    )

    assert [message.usage is not None for message in messages(file)] == [False, True, False, False, False]


def test_claude_codes_results_are_tool_messages_and_the_text_beside_them_a_users() -> None:
    content = [
        {
            "type": "tool_result",
            "tool_use_id": "a",
            "content": [{"type": "text", "text": "x"}],
            "is_error": True,
        },
        {"type": "tool_result", "tool_use_id": "z", "content": "y"},
        {"type": "text", "text": "and"},
    ]

    file = read(lines(claude("assistant", "u1", [USE]), claude("user", "u2", content)))

    assert messages(file)[1:] == [
        Message(
            role="tool",
            content=(ToolResult(call_id="a", name="Read", content=(Text(text="x"),), is_error=True),),
            id="u2",
            created_at=AT,
        ),
        Message(role="tool", content=(ToolResult(call_id="z", content="y"),), id="u2-2", created_at=AT),
        Message(role="user", content=(Text(text="and"),), id="u2-3", created_at=AT),
    ]


def test_claude_codes_own_words_are_synthetic_and_its_summaries_are_summaries() -> None:
    file = read(
        lines(
            {"type": "summary", "summary": "Fix the loader"},
            claude("user", "u1", "meta", isMeta=True),
            claude("user", "u2", "<command-name>/clear</command-name>"),
            claude("user", "u3", "So far: …", isCompactSummary=True),
            claude("user", "u4", "typed"),
        )
    )

    assert [message.meta for message in messages(file)] == [
        Meta(author="unknown", synthetic=True),
        Meta(author="tool", synthetic=True),
        Meta(type="compaction_summary"),
        None,
    ]
    assert (file.title, file.compactions) == ("Fix the loader", 1)


def test_claude_codes_side_chains_duplicates_and_failed_requests_are_no_messages() -> None:
    file = read(
        lines(
            claude("user", "u1", "go"),
            claude("user", "u1", "go"),
            claude("user", "u2", "sub-agent", isSidechain=True),
            claude("assistant", "u3", "API error", message={"model": "<synthetic>"}),
            claude("assistant", "u4", []),
            claude("user", "u5", ""),
        )
    )

    assert [message.id for message in messages(file)] == ["u1"]
    assert file.warnings == ("1 × message of a sub-agent: left out",)


@pytest.mark.parametrize(
    ("more", "author"),
    [
        ({}, None),
        ({"version": "2.1.196"}, None),
        ({"version": "2.1.197"}, "unknown"),
        ({"version": "2.1.330", "promptSource": "typed"}, None),
        ({"version": "2.1.330", "promptSource": "queued"}, None),
        ({"version": "2.1.330", "promptSource": "sdk"}, None),
        ({"version": "2.1.330", "promptSource": "system"}, "unknown"),
        ({"version": "2.1.330", "origin": {"kind": "human"}}, None),
        ({"promptSource": "sdk", "origin": {"kind": "task-notification"}}, "notification"),
        ({"promptSource": "typed", "origin": {"kind": "peer"}}, "subagent"),
        ({"promptSource": "typed", "origin": "human"}, "unknown"),
        ({"sourceToolUseID": "a"}, "skill"),
        ({"scheduledTaskId": "7", "promptSource": "typed"}, "notification"),
    ],
)
def test_a_user_row_of_claude_code_is_typed_only_where_it_says_so(
    more: dict[str, Any], author: str | None
) -> None:
    file = read(lines(claude("user", "u1", "go", **more)))

    assert messages(file)[0].meta == (None if author is None else Meta(author=author, synthetic=True))


def test_the_arguments_of_a_slash_command_are_typed_unless_a_tool_ran_it() -> None:
    command = "<command-name>/review</command-name>\n<command-args>Never push.</command-args>"
    result = {"type": "tool_result", "tool_use_id": "a", "content": "Launching skill"}

    file = read(
        lines(
            claude("user", "u1", command),
            claude("assistant", "u2", [USE]),
            claude("user", "u3", [result]),
            claude("user", "u4", command),
        )
    )

    by_person, _, _, by_tool = messages(file)
    assert [one.text for one in stretches(by_person) if one.author == "user"] == ["Never push."]
    assert by_tool.meta == Meta(author="tool", synthetic=True)
