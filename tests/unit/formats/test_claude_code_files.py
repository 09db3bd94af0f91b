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


def boundary(uuid: str, timestamp: str = "2026-01-02T03:05:00Z", **metadata: Any) -> dict[str, Any]:
    return {
        "type": "system",
        "subtype": "compact_boundary",
        "uuid": uuid,
        "timestamp": timestamp,
        "compactMetadata": {"trigger": "auto", **metadata},
    }


def kept(*uuids: str, by_ends: bool = False) -> dict[str, Any]:
    if by_ends:
        return {"preservedSegment": {"headUuid": uuids[0], "anchorUuid": "s", "tailUuid": uuids[-1]}}
    return {"preservedMessages": {"anchorUuid": "s", "uuids": uuids, "allUuids": uuids}}


@pytest.mark.parametrize("by_ends", [False, True])
def test_the_messages_that_a_compaction_kept_are_in_the_context(by_ends: bool) -> None:
    result = {"type": "tool_result", "tool_use_id": USE["id"], "content": "done"}
    file = read(
        lines(
            claude("user", "u1", "go"),
            claude("assistant", "u2", [{"type": "text", "text": "I run it."}], message={"id": "m"}),
            claude("assistant", "u3", [USE], message={"id": "m"}),
            claude("user", "u4", [result, {**result, "tool_use_id": "other"}]),
            boundary("b", **kept("u3", "u4", by_ends=by_ends)),
            claude("user", "s", "Summary: it goes on.", isCompactSummary=True),
            claude("assistant", "u5", [{"type": "text", "text": "ok"}], message={"id": "n"}),
        )
    )

    assert [message.id for message in messages(file)] == ["u1", "u2", "u4", "u4-2", "s", "u5"]
    assert file.pinned == ((4, (1, 2, 3)),)


def test_the_compaction_of_a_plugin_is_one_and_what_it_writes_again_is_not_read_twice() -> None:
    late = "2026-01-02T03:06:00Z"
    result = {"type": "tool_result", "tool_use_id": USE["id"], "content": "done"}
    file = read(
        lines(
            claude("user", "u1", "go", version="2.1.330", promptSource="typed"),
            claude("assistant", "u2", [USE], message={"id": "m"}),
            claude("user", "u3", [result]),
            boundary("b"),
            claude("user", "s", "What was done.", version="2.1.330", parentUuid="b", timestamp=late),
            claude("user", "v1", "go", version="2.1.330", promptSource="typed"),
            claude("assistant", "v2", [USE], message={"id": "m"}),
            claude("user", "v3", [result]),
            claude("user", "u4", "go", version="2.1.330", promptSource="typed", timestamp=late),
        )
    )

    summary = messages(file)[3]
    assert [message.id for message in messages(file)] == ["u1", "u2", "u3", "s", "u4"]
    assert (summary.meta and summary.meta.type, file.compactions) == ("compaction_summary", 1)
    assert file.pinned == ((3, (0, 1, 2)),)


def test_what_a_plugin_writes_again_after_claude_codes_summary_is_not_read_twice() -> None:
    late = "2026-01-02T03:06:00Z"
    result = {"type": "tool_result", "tool_use_id": USE["id"], "content": "done"}
    file = read(
        lines(
            claude("user", "u1", "go", version="2.1.330", promptSource="typed"),
            claude("assistant", "u2", [USE], message={"id": "m"}),
            claude("user", "u3", [result]),
            boundary("b"),
            claude("user", "s", "Summary.", isCompactSummary=True, parentUuid="b", timestamp=late),
            claude("assistant", "v2", [USE], message={"id": "m"}),
            claude("user", "v3", [result]),
            claude("user", "u4", "on", version="2.1.330", promptSource="typed", timestamp=late),
        )
    )

    assert [message.id for message in messages(file)] == ["u1", "u2", "u3", "s", "u4"]
    assert file.pinned == ((3, (1, 2)),)
    assert file.compactions == 1


def test_what_a_person_types_first_after_a_boundary_is_no_summary() -> None:
    file = read(
        lines(
            claude("user", "u1", "go", version="2.1.330", promptSource="typed"),
            boundary("b"),
            claude("user", "u2", "on", version="2.1.330", promptSource="typed", parentUuid="b"),
        )
    )

    assert [message.meta for message in messages(file)] == [None, None]
