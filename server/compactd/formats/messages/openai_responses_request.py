"""Render a request in the format of OpenAI's Responses API (`/v1/responses`): `instructions` and `input`
items.

The rules come from OpenAI's API reference ("Create a model response"), its guides to reasoning and function
calling, and its error messages:

- A user's parts are `input_text`, `input_image` and `input_file`; an assistant's are `output_text`.
- Each `function_call` has its `function_call_output`, whose output is a string or input parts, including
  images.
- A `call_id` has at most 64 characters ("Invalid 'input[95].call_id': string too long", seen 2026-06); a name
  matches `^[a-zA-Z0-9_-]{1,64}$`.
- Reasoning is sent back unchanged or not at all. It must have its id, summary and encrypted content
  (otherwise "Item with id 'rs_…' not found. Items are not persisted when `store` is set to false"), and no
  plain `content` ("Invalid 'input[1].content': array too long", seen 2026-08). It comes only once ("Duplicate
  item found with id"), and before the item that it led to ("Item 'rs_…' of type 'reasoning' was provided
  without its required following item").
- Messages and calls are sent without their ids. With an id, OpenAI may answer "Item 'msg_…' was provided
  without its required 'reasoning' item" (seen 2026-04).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Raw

from compactd.core.history.projection import Projected, Projection
from compactd.core.history.tool_pairs import is_blank
from compactd.formats.messages.json_parts import elements, fields, first_byte
from compactd.formats.messages.provenance import OPENAI, RESPONSES, may_send_back
from compactd.formats.messages.rendering import (
    ERROR_WITHOUT_OUTPUT,
    Json,
    Rendered,
    SafeNames,
    arguments_text,
    block_text,
    encode,
    object_schema,
    picture,
    provider_block,
    string_field,
    web_url,
)
from compactd.protocol.messages import (
    Block,
    Document,
    Image,
    Opaque,
    Role,
    Thinking,
    Tool,
    ToolCall,
    ToolResult,
    Unknown,
)

_OPENAI_PROVIDERS = (RESPONSES, OPENAI)
_PARTS = {"input_image": ("file_id",), "input_file": ("file_id",)}
"""The types of parts of a user's message that are kept unchanged, and the required fields of each."""
_ITEMS = {"compaction": ("encrypted_content",)}
"""The types of items that are kept unchanged, and the required fields of each. `compaction` is OpenAI's own
summary of a conversation."""

_OFFICE = "application/vnd.openxmlformats-officedocument."
# From OpenAI's guide to file inputs (seen 2026-11). Text files are sent as text.
_FILES = {
    "application/pdf": "pdf",
    f"{_OFFICE}wordprocessingml.document": "docx",
    f"{_OFFICE}presentationml.presentation": "pptx",
    f"{_OFFICE}spreadsheetml.sheet": "xlsx",
}

_MAX_ID_CHARS = 64
_MAX_NAME_CHARS = 64


def render(
    system: str | None, tools: Sequence[Tool], projection: Projection, model: str | None = None
) -> Rendered:
    """Return the request in the format of the Responses API, for `model` if it is known. `system` becomes its
    `instructions`. O(bytes).
    """
    names = SafeNames(_MAX_NAME_CHARS, (tool.name for tool in tools))
    written = _RequestBuilder(names, model)
    for projected in projection.messages:
        written.add(projected)
    written.flush()
    return Rendered(
        system=system if system and not system.isspace() else None,
        messages=written.items,
        tools=[_tool(tool, names) for tool in tools] or None,
        names=names.made_names(),
    )


def _tool(tool: Tool, names: SafeNames) -> Raw:
    given: Json = {"type": "function", "name": names.of(tool.name)}
    if tool.description is not None:
        given["description"] = tool.description
    # The default of `strict` is true, and most schemas do not meet its conditions.
    return Raw(encode({**given, "parameters": object_schema(tool.input_schema), "strict": False}))


class _RequestBuilder:
    """A request under construction: the items so far, reasoning that waits for the item that it led to, and
    images and files that wait for a user's message.
    """

    def __init__(self, names: SafeNames, model: str | None) -> None:
        self.items: list[Raw] = []
        self._names = names
        self._model = model
        self._ids = SafeNames(_MAX_ID_CHARS, any_character=True)
        self._reasoning: list[Raw] = []
        self._reasoned: set[str] = set()
        self._said: list[Json] = []
        self._pictures: list[Json | Raw] = []

    def add(self, projected: Projected) -> None:
        """Add the items of one message, results first."""
        if projected.instead is not None:
            self.flush()
            self.items.extend(elements(projected.instead, "$"))
            return
        message = projected.message
        for block in message.content:
            if isinstance(block, ToolResult):
                self._result(block)
        # A blank text next to a result is dropped. As a message, it could separate calls from their results.
        rest = [each for each in message.content if not (isinstance(each, ToolResult) or is_blank(each))]
        if not rest:
            return
        self.flush()
        if message.role == "assistant":
            is_own = may_send_back(OPENAI, projected.model, self._model)
            for block in rest:
                self._assistant(block, is_own)
            self._flush_text()
        else:
            self._user(message.role, rest)

    def flush(self) -> None:
        """Write the waiting images as a user's message, because an assistant's message may contain none."""
        if self._pictures:
            parts, self._pictures = self._pictures, []
            self._put({"type": "message", "role": "user", "content": parts})

    def _put(self, item: Json, by_model: bool = False) -> None:
        if by_model:
            self.items.extend(self._reasoning)
        self._reasoning = []
        self.items.append(Raw(encode(item)))

    def _flush_text(self) -> None:
        """Write the assistant's texts that were collected so far as one message."""
        if self._said:
            parts, self._said = self._said, []
            self._put({"type": "message", "role": "assistant", "content": parts}, by_model=True)

    def _assistant(self, block: Block, is_own: bool) -> None:
        match block:
            case ToolCall():
                self._flush_text()
                self._put(
                    {
                        "type": "function_call",
                        "call_id": self._ids.of(block.call_id),
                        "name": self._names.of(block.name),
                        "arguments": arguments_text(block.arguments),
                    },
                    by_model=True,
                )
            case Thinking(signature=str(signature)) if is_own and signature[:1] == "{":
                # pi stores the complete item as the signature.
                self._reason(Raw(signature.encode()))
            case Opaque() if block.provider in _OPENAI_PROVIDERS:
                own = provider_block(block, block.provider, _ITEMS)
                if own is None:
                    self._reason(block.raw)
                else:
                    self._flush_text()
                    self._reasoning = []
                    self.items.append(own)
            case Image() | Document() if (part := _part(block)) is not None:
                self._pictures.append(part)
            case _:
                if text := block_text(block):
                    self._said.append({"type": "output_text", "text": text})

    def _reason(self, raw: Raw) -> None:
        item = reasoning_item(raw)
        if item is not None and item[0] not in self._reasoned:
            self._flush_text()
            self._reasoned.add(item[0])
            self._reasoning.append(item[1])

    def _user(self, role: Role, content: Sequence[Block]) -> None:
        parts = _parts(content)
        if parts:
            # A system message contains only text.
            is_text = all(isinstance(part, dict) and part["type"] == "input_text" for part in parts)
            name = "system" if role == "system" and is_text else "user"
            self._put({"type": "message", "role": name, "content": parts})

    def _result(self, result: ToolResult) -> None:
        output: str | list[Json | Raw]
        if isinstance(result.content, str):
            output = result.content
        else:
            parts = _parts(result.content)
            if all(isinstance(part, dict) and part["type"] == "input_text" for part in parts):
                output = "\n".join(str(part["text"]) for part in parts if isinstance(part, dict))
            else:
                output = parts
        if result.is_error and not output:
            output = ERROR_WITHOUT_OUTPUT
        call_id = self._ids.of(result.call_id)
        self._put({"type": "function_call_output", "call_id": call_id, "output": output})


def reasoning_item(raw: Raw) -> tuple[str, Raw] | None:
    """Return (the item's id, the item) if `raw` is a reasoning item that OpenAI takes back;
    otherwise None.
    """
    if first_byte(raw) != b"{":
        return None
    given = fields(raw, "$", "an item")
    item_id = string_field(given, "id")
    is_whole = (
        string_field(given, "type") == "reasoning"
        and item_id != ""
        and string_field(given, "encrypted_content") != ""
        and first_byte(given.get("summary", Raw(b"0"))) == b"["
        and ("content" not in given or _is_empty_list(given["content"]))
    )
    return (item_id, raw) if is_whole else None


def _is_empty_list(raw: Raw) -> bool:
    return first_byte(raw) == b"[" and not elements(raw, "$")


def _parts(blocks: Iterable[Block]) -> list[Json | Raw]:
    """Return the blocks as parts of a user message or of a tool result. Empty blocks are left out."""
    parts: list[Json | Raw] = []
    for block in blocks:
        part = _part(block)
        if part is not None:
            parts.append(part)
        elif text := block_text(block):
            parts.append({"type": "input_text", "text": text})
    return parts


def _part(block: Block) -> Json | Raw | None:
    """Return `block` as a part of its own type; None if only text can represent it."""
    match block:
        case Image():
            inline = picture(block)
            url = f"data:{inline[0]};base64,{inline[1]}" if inline is not None else web_url(block.url)
            return {"type": "input_image", "image_url": url, "detail": "auto"} if url else None
        case Document():
            return _file(block)
        case Opaque() | Unknown():
            own = (
                block.provider
                if isinstance(block, Opaque) and block.provider in _OPENAI_PROVIDERS
                else RESPONSES
            )
            return provider_block(block, own, _PARTS)
        case _:
            return None


def _file(document: Document) -> Json | None:
    if document.text:
        return None
    if document.data:
        ending = _FILES.get(document.media_type)
        if ending is None:
            return None
        data = f"data:{document.media_type};base64,{document.data}"
        return {"type": "input_file", "filename": document.title or f"document.{ending}", "file_data": data}
    url = web_url(document.url)
    return {"type": "input_file", "file_url": url} if url else None
