"""Conversations as broken as clients send them, for property tests. Each text has a unique number."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from hypothesis import strategies as st
from msgspec import Raw, Struct

from compactd.core.history.entries import Item
from compactd.core.tokens.counting import message_tokens
from compactd.formats.messages.neutral import decode_message
from compactd.formats.messages.neutral_out import encode_message
from compactd.protocol.messages import (
    Block,
    Document,
    Image,
    Message,
    Opaque,
    Role,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolResult,
    Unknown,
)

CALL_IDS = ("a", "b", "c", "a-2", "a b", "ünïcode", "x" * 70, "x" * 69 + "y", "")
NAMES = ("read", "mcp.read", "mcp_read", "n" * 130, "Ünï", "")
ARGUMENTS = (
    b'{"path": "a.py"}',
    b'"{\\"path\\": \\"a.py\\"}"',
    b'"not json"',
    b'""',
    b"null",
    b"[1, 2]",
    b'{"n" : 1.0e5}',
)
SCHEMAS = (
    b"{}",
    b'{"type":"object","properties":{"path":{"type":"string"}}}',
    b'{"properties":{}}',
    b"""{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","additionalProperties":false,
    "required":["path","gone"],"$defs":{"node":{"type":"object","properties":{"next":{"$ref":"#/$defs/node"}}}},
    "properties":{"path":{"type":["string","null"],"format":"uri"},"level":{"enum":[1,2]},"free":{},
    "mode":{"enum":["a",""]},"rows":{"type":"array"},"map":{"type":"object","additionalProperties":true},
    "tree":{"$ref":"#/$defs/node"},"either":{"oneOf":[{"const":"a"},{"type":"integer"},{"type":"null"}]}}}""",
    b'{"anyOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},{"required":["b"]}]}',
)
REASONING = b'{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"}'
OPAQUE = (
    ("gemini", b'{"thoughtSignature":"c2ln"}'),
    ("gemini", b'{"thoughtSignature":"s"}'),
    ("gemini", b'{"text":"hm","thought":true,"thoughtSignature":"c2ln"}'),
    ("gemini", b'{"executableCode":{"language":"PYTHON","code":"1"}}'),
    ("gemini", b'{"functionCall":{"name":"read","args":{}}}'),
    ("other", b'{"thoughtSignature":"c2ln"}'),
    ("other", b"5"),
    ("anthropic", b'{"type":"thinking","thinking":"hm","signature":"s"}'),
    ("anthropic", b'{"type":"image","source":{"type":"file","file_id":"f"}}'),
    ("anthropic", b'{"type":"tool_use","id":"z","name":"read","input":{}}'),
    ("anthropic", b'{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}'),
    ("anthropic", b'{"type":"web_search_tool_result","tool_use_id":"s1","content":[]}'),
    ("openai", REASONING),
    ("openai_responses", b'{"type":"reasoning","id":"rs_3","summary":[],"encrypted_content":"x"}'),
    ("openai_responses", b'{"type":"web_search_call","id":"ws_1"}'),
    ("openai", b'{"type":"reasoning","id":"rs_2","summary":[]}'),
    ("openai", b'{"type":"input_image","file_id":"f"}'),
    ("openai", b'{"type":"function_call","call_id":"z","name":"read","arguments":"{}"}'),
)
MODELS = (
    None,
    "anthropic/claude-sonnet-4-5",
    "claude-opus-4-6",
    "openai/gpt-5",
    "google/gemini-3-pro",
    "m/m2",
)
BLANK = ("", " ", "\n\t")


class Letters(Struct, frozen=True):
    """A counter for tests: a token is a character."""

    name: str = "letters"
    exact: bool = True

    def count(self, text: str) -> int:
        """The characters of `text`."""
        return len(text)


LETTERS = Letters()


def items_of(messages: Sequence[Message], models: Sequence[str | None] = (None,)) -> list[Item]:
    """The messages as a view holds them, each with its own bytes, `models` in turn."""
    return [
        Item(
            entry_id=f"e{number}",
            body=message,
            tokens=message_tokens(message, LETTERS),
            source=Raw(encode_message(message)),
            model=models[number % len(models)],
        )
        for number, message in enumerate(messages, start=1)
    ]


@st.composite
def conversations(draw: st.DrawFn, max_size: int = 14) -> list[Message]:
    """Calls, results, orphans, duplicates, reused ids, system messages and empty texts, anywhere."""
    number = 0
    messages = []
    made: list[str] = []

    def text() -> str:
        nonlocal number
        number += 1
        return f"<{number}>" + draw(st.sampled_from(("", "", " ", "\n")))

    for _ in range(draw(st.integers(0, max_size))):
        role: Role = draw(st.sampled_from(("user", "assistant", "assistant", "tool", "tool", "system")))
        blocks: list[Block] = []
        for _ in range(draw(st.integers(0, 3))):
            blocks.append(_block(draw, role, text, made))
        messages.append(
            Message(role=role, content=tuple(blocks), id=draw(st.sampled_from((None, f"m{number}"))))
        )
    return messages


def _block(draw: st.DrawFn, role: Role, text: Callable[[], str], made: list[str]) -> Block:
    if role == "tool":
        return _result(draw, text, made)
    kinds = ["text", "text", "blank", "image", "unknown", "opaque", "document"]
    if role == "assistant":
        kinds += ["call"] * 7 + ["thinking"] * 2
    if role == "user":
        kinds += ["result"] * 3
    match draw(st.sampled_from(kinds)):
        case "text":
            return Text(text=text())
        case "blank":
            return Text(text=draw(st.sampled_from(BLANK)))
        case "image":
            return draw(
                st.sampled_from(
                    (
                        Image(media_type="image/png", data="QUJD"),
                        Image(media_type="image/svg+xml", data="QUJD"),
                        Image(url="https://example.org/a.png"),
                        Image(url="data:image/gif;base64,QUJD"),
                        Image(),
                    )
                )
            )
        case "document":
            return draw(
                st.sampled_from(
                    (
                        Document(data="QUJD"),
                        Document(text=" "),
                        Document(media_type="text/plain", data="QUJD"),
                        Document(url="https://example.org/a.pdf", title="A"),
                    )
                )
            )
        case "unknown":
            return Unknown(type="future", raw=Raw(msgspec.json.encode({"type": "future", "x": text()})))
        case "opaque":
            provider, raw = draw(st.sampled_from(OPAQUE))
            return Opaque(provider=provider, raw=Raw(raw))
        case "thinking":
            return draw(
                st.sampled_from(
                    (
                        Thinking(text="hm", signature="c2ln"),
                        Thinking(text="hm", signature=REASONING.decode()),
                        Thinking(text="hm"),
                        Thinking(redacted="r"),
                        Thinking(),
                    )
                )
            )
        case "result":
            return _result(draw, text, made)
        case _:
            made.append(draw(st.sampled_from(CALL_IDS)))
            return ToolCall(
                call_id=made[-1],
                name=draw(st.sampled_from(NAMES)),
                arguments=Raw(draw(st.sampled_from(ARGUMENTS))),
            )


def _result(draw: st.DrawFn, text: Callable[[], str], made: list[str]) -> ToolResult:
    content: str | tuple[Block, ...]
    match draw(st.integers(0, 5)):
        case 0:
            content = draw(st.sampled_from(BLANK))
        case 1:
            content = (Text(text=text()), Image(data="QUJD"), Text(text=""), Document(data="QUJD"))
        case 2:
            content = (Unknown(type="future", raw=Raw(msgspec.json.encode({"type": "future", "x": text()}))),)
        case _:
            content = text()
    # Mostly an answer to something, so that pairs, late results and duplicates are common.
    call_ids = made[-3:] if made and draw(st.integers(0, 4)) else CALL_IDS
    return ToolResult(call_id=draw(st.sampled_from(call_ids)), content=content, is_error=draw(st.booleans()))


def tools() -> st.SearchStrategy[list[Tool]]:
    """Tool lists, with names and schemas that providers refuse."""
    tool = st.builds(
        Tool,
        name=st.sampled_from([name for name in NAMES if name]),
        description=st.sampled_from((None, "", "reads")),
        input_schema=st.sampled_from([Raw(schema) for schema in SCHEMAS]),
    )
    return st.lists(tool, max_size=4, unique_by=lambda each: each.name)


def again(messages: Sequence[Message]) -> list[Message]:
    """The messages as they come back from their own bytes."""
    return [decode_message(encode_message(message)) for message in messages]
