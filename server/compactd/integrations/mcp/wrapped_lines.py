"""Read and change single messages of MCP: JSON-RPC, one object per line. All other bytes stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from compactd.protocol.messages import NULL

Read = TypeVar("Read")


class Envelope(Struct, frozen=True):
    """The fields of a message that say what it is."""

    id: Raw | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: Raw = Raw(b"{}")
    result: Raw | UnsetType = UNSET


class ToolCallParams(Struct, frozen=True):
    """Params of `tools/call`."""

    name: str = ""
    arguments: Raw = Raw(b"{}")


class ListParams(Struct, frozen=True):
    """Params of `tools/list`."""

    cursor: str | None = None


class _ToolName(Struct, frozen=True):
    name: str = ""


class _Listed(Struct, frozen=True):
    tools: tuple[_ToolName, ...] = ()


class _ResultKind(Struct, frozen=True, rename="camel"):
    is_error: bool | None = None
    structured_content: Raw = NULL


class _Block(Struct, frozen=True):
    type: str = ""
    text: str = ""


def read_envelope(line: bytes) -> Envelope | None:
    """Return what a line is; None if it is no message, or several."""
    return decode(line, Envelope)


def decode(data: bytes, kind: type[Read]) -> Read | None:
    """Return `data` as the type `kind`; None if it is something else."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def names_of_tools(result: Raw) -> tuple[str, ...]:
    """Return the names of the tools in a result of `tools/list`."""
    listed = decode(bytes(result), _Listed)
    return () if listed is None else tuple(tool.name for tool in listed.tools)


def with_tool(line: bytes, tool: Mapping[str, object]) -> bytes:
    """Return a response to `tools/list` with one more tool."""

    def add(result: dict[str, Raw]) -> bool:
        tools = decode(bytes(result.get("tools", Raw(b""))), list[Raw])
        if tools is None:
            return False
        result["tools"] = _raw([*tools, _raw(tool)])
        return True

    return _with_result(line, add)


def with_texts(line: bytes, shorten: Callable[[str, bool], str], defuse: Callable[[str], str]) -> bytes:
    """Return a response to `tools/call` with other texts.

    `shorten` gets each text and whether the call failed. A result that also has `structuredContent` is for a
    program: its texts only pass through `defuse`. Blocks that are no text stay.
    """

    def change(result: dict[str, Raw]) -> bool:
        kind = decode(bytes(_raw(result)), _ResultKind)
        blocks = decode(bytes(result.get("content", Raw(b""))), list[Raw])
        if kind is None or blocks is None:
            return False
        is_error = bool(kind.is_error)
        is_structured = kind.structured_content != NULL
        made = [
            _with_text(block, defuse if is_structured else lambda text: shorten(text, is_error))
            for block in blocks
        ]
        result["content"] = _raw(made)
        return any(new is not old for new, old in zip(made, blocks, strict=True))

    return _with_result(line, change)


def tool_response(request_id: Raw, texts: Sequence[str], *, is_error: bool) -> bytes:
    """Return the response to a call of the tool that was added."""
    content = [{"type": "text", "text": text} for text in texts]
    result = {"content": content, "isError": is_error}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "result": result}) + b"\n"


def _with_result(line: bytes, change: Callable[[dict[str, Raw]], bool]) -> bytes:
    """Return a response with its result changed; the line itself if `change` returns False."""
    message = decode(line, dict[str, Raw])
    result = None if message is None else decode(bytes(message.get("result", Raw(b""))), dict[str, Raw])
    if message is None or result is None or not change(result):
        return line
    return msgspec.json.encode({**message, "result": _raw(result)}) + b"\n"


def _with_text(block: Raw, change: Callable[[str], str]) -> Raw:
    """Return a block of a result with its text changed; the block itself if it is no text or stays."""
    read = decode(bytes(block), _Block)
    if read is None or read.type != "text":
        return block
    text = change(read.text)
    if text == read.text:
        return block
    fields = decode(bytes(block), dict[str, Raw]) or {}
    return _raw({**fields, "text": text})


def _raw(value: object) -> Raw:
    return Raw(msgspec.json.encode(value))
