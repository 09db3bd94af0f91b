"""Render a request in OpenAI's chat format (`/v1/chat/completions`), which many servers use.

The rules come from OpenAI's API reference ("Create chat completion") and its error messages:

- The system prompt is the first message.
- An assistant message with `tool_calls` is directly followed by one tool message per call.
- System, assistant and tool messages contain only text.
- A function's name matches `^[a-zA-Z0-9_-]{1,64}$`.
- A call's id has at most 40 characters ("Invalid 'messages[1].tool_calls[0].id': string too long").
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Raw

from compactd.core.history.projection import Projection
from compactd.core.history.tool_pairs import is_blank
from compactd.formats.messages.provenance import is_same_model
from compactd.formats.messages.rendering import (
    ERROR_WITHOUT_OUTPUT,
    Rendered,
    SafeNames,
    arguments_text,
    block_text,
    encode,
    from_result,
    object_schema,
    picture,
    provider_block,
    web_url,
)
from compactd.protocol.messages import (
    Block,
    Document,
    Image,
    Message,
    Opaque,
    Role,
    Thinking,
    Tool,
    ToolCall,
    ToolResult,
    Unknown,
)

_USER_PARTS = {"input_audio": ("input_audio",), "file": ("file",)}
"""The types of parts of a user message that are kept unchanged, and the required fields of each."""

_MAX_ID_CHARS = 40
_MAX_NAME_CHARS = 64


def render(
    system: str | None,
    tools: Sequence[Tool],
    projection: Projection,
    model: str | None = None,
    *,
    with_reasoning: bool = False,
) -> Rendered:
    """Return the request in OpenAI's chat format, for `model` if it is known. O(bytes).

    Thinking is left out. Only with `with_reasoning`, for endpoints that want thinking back, the thinking of
    the same model is sent with its answers.
    """
    names = SafeNames(_MAX_NAME_CHARS, (tool.name for tool in tools))
    written = _RequestBuilder(names)
    if system and not system.isspace():
        written.put({"role": "system", "content": system})
    for projected in projection.messages:
        reasoning = None
        if with_reasoning and projected.message.role == "assistant":
            reasoning = _reasoning(projected.message) if is_same_model(projected.model, model) else ""
        written.add(projected.message, reasoning)
    written.flush()
    return Rendered(
        system=None,
        messages=written.messages,
        tools=[_tool(tool, names) for tool in tools] or None,
        names=names.made_names(),
    )


def _tool(tool: Tool, names: SafeNames) -> Raw:
    function: dict[str, object] = {"name": names.of(tool.name)}
    if tool.description is not None:
        function["description"] = tool.description
    function["parameters"] = object_schema(tool.input_schema)
    return Raw(encode({"type": "function", "function": function}))


class _RequestBuilder:
    """A request under construction: the messages so far, and the images and files that wait for a user
    message."""

    def __init__(self, names: SafeNames) -> None:
        self.messages: list[Raw] = []
        self._names = names
        self._ids = SafeNames(_MAX_ID_CHARS, any_character=True)
        self._waiting: list[object] = []

    def put(self, message: dict[str, object]) -> None:
        self.messages.append(Raw(encode(message)))

    def add(self, message: Message, reasoning: str | None) -> None:
        """Add a message. `reasoning` is the thinking to send with an assistant message; None if the endpoint
        does not want thinking.
        """
        for block in message.content:
            if isinstance(block, ToolResult):
                self._result(block)
        # A blank text next to a result is dropped. As a message, it could separate calls from their results.
        rest = [each for each in message.content if not (isinstance(each, ToolResult) or is_blank(each))]
        if not rest:
            return
        self.flush()
        if message.role == "assistant":
            self._assistant(rest, reasoning)
        else:
            self._user(message.role, rest)

    def flush(self) -> None:
        """Write the waiting images as a user message. Do not call this between calls and their results,
        because no user message may be there.
        """
        if self._waiting:
            parts, self._waiting = self._waiting, []
            self.put({"role": "user", "content": parts})

    def _result(self, result: ToolResult) -> None:
        call_id = self._ids.of(result.call_id)
        if isinstance(result.content, str):
            text = result.content
        else:
            text = _text(block for block in result.content if not _is_picture(block))
            pictures = _parts(block for block in result.content if _is_picture(block))
            if pictures:
                self._waiting.append({"type": "text", "text": from_result(call_id)})
                self._waiting.extend(pictures)
        if result.is_error and not text:
            text = ERROR_WITHOUT_OUTPUT
        self.put({"role": "tool", "tool_call_id": call_id, "content": text})

    def _assistant(self, content: Sequence[Block], reasoning: str | None) -> None:
        calls = [self._call(block) for block in content if isinstance(block, ToolCall)]
        text = _text(block for block in content if not _is_picture(block))
        if text or calls:
            message: dict[str, object] = {"role": "assistant", "content": text or None}
            if calls:
                message["tool_calls"] = calls
            if reasoning or (calls and reasoning is not None):
                # An answer with calls needs the field even if it is empty: "Missing `reasoning_content`
                # field in the assistant message at message index 46" (400, DeepSeek,
                # github.com/continuedev/continue/issues/11285).
                message["reasoning_content"] = reasoning
            self.put(message)
        self._waiting.extend(_parts(block for block in content if _is_picture(block)))

    def _call(self, call: ToolCall) -> dict[str, object]:
        function = {"name": self._names.of(call.name), "arguments": arguments_text(call.arguments)}
        return {"id": self._ids.of(call.call_id), "type": "function", "function": function}

    def _user(self, role: Role, content: Sequence[Block]) -> None:
        if any(_part(block) is not None for block in content):
            # A system message contains only text; a user message may contain the rest.
            self.put({"role": "user", "content": _parts(content)})
        elif text := _text(content):
            self.put({"role": "system" if role == "system" else "user", "content": text})


def _reasoning(message: Message) -> str:
    return "\n".join(block.text for block in message.content if isinstance(block, Thinking) and block.text)


def _is_picture(block: Block) -> bool:
    return isinstance(block, Image | Document) and _part(block) is not None


def _text(blocks: Iterable[Block]) -> str:
    return "\n".join(text for text in map(block_text, blocks) if text)


def _parts(blocks: Iterable[Block]) -> list[object]:
    """Return the blocks as parts of a user message. Empty blocks are left out."""
    parts: list[object] = []
    for block in blocks:
        part = _part(block)
        if part is not None:
            parts.append(part)
        elif text := block_text(block):
            parts.append({"type": "text", "text": text})
    return parts


def _part(block: Block) -> object | None:
    """Return `block` as a part of its own type; None if only text can represent it."""
    match block:
        case Image():
            inline = picture(block)
            if inline is not None:
                return {"type": "image_url", "image_url": {"url": f"data:{inline[0]};base64,{inline[1]}"}}
            url = web_url(block.url)
            return {"type": "image_url", "image_url": {"url": url}} if url else None
        # "Expected a base64-encoded data URL with an application/pdf MIME type" (400, seen 2026-05)
        case Document(data=str(data), media_type="application/pdf") if data and not block.text:
            file = {
                "filename": block.title or "document",
                "file_data": f"data:{block.media_type};base64,{data}",
            }
            return {"type": "file", "file": file}
        case Opaque() | Unknown():
            return provider_block(block, "openai", _USER_PARTS)
        case _:
            return None
