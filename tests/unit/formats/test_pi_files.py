from __future__ import annotations

import json

from compactd.formats.files.detect import read
from compactd.protocol.messages import Image, Meta, Text, Thinking, ToolResult
from tests.unit.formats.written import AT, HEADER, lines, messages, pi


def test_pis_entries_are_read_as_messages() -> None:
    usage = {"input": 1, "output": 2, "cacheRead": 3, "cacheWrite": 4, "totalTokens": 10, "cost": {}}
    content = [
        {"type": "thinking", "thinking": "hm", "thinkingSignature": "s"},
        {"type": "text", "text": "ok"},
        {"type": "toolCall", "id": "a", "name": "read", "arguments": {"p": 1}},
    ]
    shot = [{"type": "text", "text": "x"}, {"type": "image", "data": "QUJD", "mimeType": "image/gif"}]
    file = read(
        lines(
            HEADER,
            {"type": "model_change", "timestamp": "t", "provider": "openai", "modelId": "gpt"},
            pi({"role": "user", "content": "go"}),
            pi(
                {
                    "role": "assistant",
                    "api": "anthropic-messages",
                    "content": content,
                    "usage": usage,
                    "stopReason": "toolUse",
                }
            ),
            pi(
                {
                    "role": "toolResult",
                    "toolCallId": "a",
                    "toolName": "read",
                    "content": shot,
                    "isError": True,
                }
            ),
            pi({"role": "bashExecution", "command": "ls", "output": "a.py", "exitCode": 0}),
            pi(
                {"role": "assistant", "api": "openai-responses", "content": content[:1], "stopReason": "stop"}
            ),
            pi({"role": "assistant", "content": [], "stopReason": "aborted", "usage": usage}),
            pi({"role": "assistant", "content": "Half", "stopReason": "error", "usage": usage}),
            {"type": "compaction", "timestamp": "t", "summary": "So far", "firstKeptEntryIndex": 1},
        )
    )

    read_messages = messages(file)
    answer = read_messages[1]
    assert [message.role for message in read_messages] == [
        "user",
        "assistant",
        "tool",
        "user",
        "assistant",
        "assistant",
        "user",
    ]
    assert answer.content[:2] == (Thinking(text="hm", signature="s"), Text(text="ok"))
    assert json.loads(bytes(answer.usage or b"")) == {
        "input_tokens": 1,
        "output_tokens": 2,
        "cache_read_tokens": 3,
        "cache_write_tokens": 4,
    }
    assert (answer.created_at, answer.stop_reason) == (AT, "toolUse")
    assert read_messages[2].content == (
        ToolResult(
            call_id="a",
            name="read",
            content=(Text(text="x"), Image(media_type="image/gif", data="QUJD")),
            is_error=True,
        ),
    )
    assert read_messages[3].content == (Text(text="$ ls\na.py"),)
    assert read_messages[3].meta == Meta(kind="bash_execution")
    assert read_messages[4].content == (Thinking(text="hm"),)
    assert (read_messages[5].content, read_messages[5].usage) == ((Text(text="Half"),), None)
    assert read_messages[6].meta == Meta(type="compaction_summary")
    assert (file.format, file.session_id, file.working_dir) == ("pi", "s1", "/repo")
    assert (file.model, file.compactions) == ("openai/gpt", 1)


def test_of_pis_linked_entries_the_path_to_the_last_is_read() -> None:
    file = read(
        lines(
            HEADER,
            pi({"role": "user", "content": "root"}, id="1", parentId=None),
            pi({"role": "user", "content": "left"}, id="2", parentId="1"),
            pi({"role": "user", "content": "right"}, id="3", parentId="1"),
            {"type": "session_info", "id": "4", "parentId": "3", "timestamp": "t", "name": "Loader"},
        )
    )

    assert [message.content for message in messages(file)] == [(Text(text="root"),), (Text(text="right"),)]
    assert [message.id for message in messages(file)] == ["1", "3"]
    assert file.title == "Loader"


def test_a_place_of_thousands_of_digits_names_no_message() -> None:
    begins = {"type": "compaction", "timestamp": "t", "summary": "So far", "firstKeptEntryIndex": 0}
    line = json.dumps(begins).replace(": 0}", ": " + "9" * 5_000 + "}")

    file = read(lines(HEADER, pi({"role": "user", "content": "go"})) + line.encode())

    assert file.first_kept == ()
