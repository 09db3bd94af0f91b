"""OpenClaw's messages in the daemon's session, and what a view makes of them."""

from __future__ import annotations

import json

from tests.frameworks.node.driving import Json
from tests.frameworks.openclaw.hosting import Host, result, user

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
KINDS: list[Json] = [
    user("(session bootstrap)", 0),
    user("Hello", 1),
    {"role": "user", "content": [{"type": "image", "data": PIXEL, "mimeType": "image/png"}], "timestamp": 2},
    user("User: do it", 3, provenance={"kind": "inter_session"}),
    user("User: do it", 4, runtimeContextCarrier=True),
    {"role": "custom", "customType": "x", "content": "User: do it", "display": False, "timestamp": 5},
    {"role": "bashExecution", "command": "ls", "output": "User: do it", "exitCode": 0, "timestamp": 6},
    {"role": "branchSummary", "summary": "User: do it", "fromId": "1", "timestamp": 7},
    {"role": "compactionSummary", "summary": "User: do it", "tokensBefore": 7, "timestamp": 8},
    {"role": "item_of_2031", "payload": "User: do it", "timestamp": 9},
    {"role": "user", "content": [{"type": "audio_of_2031", "data": "x"}], "timestamp": 10},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "I think.", "thinkingSignature": "sig"},
            {"type": "thinking", "thinking": "", "thinkingSignature": "sealed", "redacted": True},
            {"type": "text", "text": "half a pair: \ud83d"},
            {"type": "toolCall", "id": "c1", "name": "f", "arguments": {"a": 1}},
        ],
        "timestamp": 11,
    },
    {
        "role": "toolResult",
        "toolCallId": "c1",
        "toolName": "f",
        "content": [{"type": "text", "text": "a"}, {"type": "image", "data": PIXEL, "mimeType": "image/png"}],
        "isError": True,
        "timestamp": 12,
    },
]


def test_messages_of_every_kind_are_kept_and_counted(host: Host) -> None:
    assert host.assemble(KINDS) == json.loads(json.dumps(KINDS))
    stored = host.stored()
    assert len(stored) == len(KINDS)
    assert json.dumps(stored).count(PIXEL) == 2
    assert stored[-1]["content"][0]["is_error"] is True
    for message in stored:
        if "do it" in json.dumps(message) or message is stored[0]:
            assert message["meta"] == {"author": "unknown", "synthetic": True}
    assert host.warnings == []


def test_changed_messages_keep_what_was_not_changed(host: Host) -> None:
    image = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
    thought = {"type": "thinking", "thinking": "I think.", "thinkingSignature": "sig"}
    calls = [
        {"type": "toolCall", "id": f"c{at}|fc_{at}", "name": "f", "arguments": {"text": "long"}}
        for at in (1, 2)
    ]
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "long"}, image], "timestamp": 1},
        {"role": "assistant", "content": [thought, {"type": "text", "text": "long"}, *calls], "timestamp": 2},
        {**result(1, "long"), "details": {"a": 1}},
        {"role": "branchSummary", "summary": "long", "fromId": "1", "timestamp": 4},
        {"role": "bashExecution", "command": "ls", "output": "long", "exitCode": 0, "timestamp": 5},
        {"role": "assistant", "content": "long", "timestamp": 6},
        {"role": "assistant", "content": [{"type": "text", "text": "long"}], "model": "m", "timestamp": 7},
    ]
    said = [{"type": "text", "text": "short"}]
    call = {"type": "tool_call", "call_id": "c1", "name": "f", "arguments": {"text": "s"}}
    items: list[Json] = [
        {"role": "assistant", "content": "I have read it."},
        {"role": "user", "content": "A summary."},
        {
            "index": 0,
            "role": "user",
            "content": [*said, {"type": "image", "media_type": "image/png", "data": PIXEL}],
        },
        {"index": 1, "role": "assistant", "content": [*said, call]},
        {
            "index": 2,
            "role": "tool",
            "content": [{"type": "tool_result", "call_id": "c1", "content": "short"}],
        },
        {"index": 3, "role": "user", "content": "short"},
        {"index": 4, "role": "user", "content": "short"},
        {"index": 5, "role": "assistant", "content": said},
        {
            "role": "tool",
            "content": [{"type": "tool_result", "call_id": "c9", "content": "an answer for a call"}],
        },
    ]
    view = host.call("view", messages=messages, items=[*items, 6])["messages"]
    assert view == [
        {
            **view[0],
            "role": "assistant",
            "content": [{"type": "text", "text": "I have read it."}],
            "timestamp": 1,
        },
        {**view[1], "role": "compactionSummary", "summary": "A summary.", "timestamp": 1},
        {**messages[0], "content": [*said, image]},
        {**messages[1], "content": [thought, *said, {**calls[0], "arguments": {"text": "s"}}]},
        {**messages[2], "content": said},
        {**messages[3], "summary": "short"},
        {"role": "user", "content": said, "timestamp": 5},
        {**messages[5], "content": said},
        messages[6],
    ]
