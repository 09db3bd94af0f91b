"""ADK's contents as messages of the protocol.

ADK gives an id to each function call that has none, and removes it again before a model sees the call. Such a
call gets an id from its place here. A response without an id belongs to the first call of its name that is
not answered.
"""

from __future__ import annotations

import base64
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from google.genai import types

from compactd.integrations.frameworks.google_adk.responses import is_error, plain, whole_text
from compactd.integrations.frameworks.history import History, NeutralMessage

Block = dict[str, Any]

OTHER_AGENT = "For context: below is a transcript of what another agent did"
"""How ADK begins a user's content in which it quotes another agent."""
_PROVIDER = "gemini"


def history_of(contents: Sequence[types.Content], usage: Mapping[str, Any] | None = None) -> History:
    """Return the history of a list of contents. They are not copied. O(contents and their parts).

    `usage`: the provider's report on the newest answer in it.
    """
    return keyed_history(keys_of(contents), contents, usage)


def keyed_history(
    keys: Sequence[Hashable], contents: Sequence[types.Content], usage: Mapping[str, Any] | None = None
) -> History:
    """Return the same, if the keys are known."""
    newest = next((at for at in range(len(contents) - 1, -1, -1) if contents[at].role == "model"), None)

    def encoded(index: int) -> NeutralMessage:
        neutral = encode(contents, index)
        return {**neutral, "usage": usage} if usage and index == newest else neutral

    return History(keys, encoded)


def keys_of(contents: Sequence[types.Content]) -> list[Hashable]:
    """Return a value for each content that is equal for contents which say the same.

    What most contents are, one call or one response with one text, is read here: without a call for each, and
    without asking a model for a field by its name, it takes half the time.
    """
    keys: list[Hashable] = []
    add = keys.append
    for content in contents:
        parts = content.__dict__["parts"]
        if parts is not None and len(parts) == 1:
            fields = parts[0].__dict__
            if (response := fields.get("function_response")) is not None:
                said = response.__dict__
                values = said.get("response")
                if type(values) is dict and len(values) == 1 and not said.get("parts"):
                    ((name, value),) = values.items()
                    if type(value) is str:
                        role = content.__dict__["role"]
                        add((role, "response", said.get("id"), said.get("name"), name, value))
                        continue
            elif (call := fields.get("function_call")) is not None:
                said = call.__dict__
                values = said.get("args")
                if type(values) is dict and len(values) == 1:
                    ((name, value),) = values.items()
                    if type(value) is str or type(value) is int:
                        role, signature = content.__dict__["role"], fields.get("thought_signature")
                        add((role, "call", said.get("id"), said.get("name"), name, value, signature))
                        continue
        add((content.role, *map(_part_key, parts or ())))
    return keys


def _part_key(part: types.Part) -> Hashable:
    # Asking each field of a model by its name would take twice as long.
    fields = vars(part)
    if (response := fields.get("function_response")) is not None:
        said = vars(response)
        media = repr(said["parts"]) if said.get("parts") else None
        return ("response", said.get("id"), said.get("name"), _frozen(said.get("response")), media)
    signature = fields.get("thought_signature")
    if (call := fields.get("function_call")) is not None:
        said = vars(call)
        return ("call", said.get("id"), said.get("name"), _frozen(said.get("args")), signature)
    if (text := fields.get("text")) is not None:
        return (text, fields.get("thought"), signature)
    if (data := fields.get("inline_data")) is not None:
        return ("data", data.mime_type, data.data, signature)
    return repr(part)


def _frozen(value: object) -> Hashable:
    if type(value) is str or type(value) is int:
        return value
    if isinstance(value, dict):
        if len(value) == 1:  # as most arguments and responses
            ((key, only),) = value.items()
            return (key, only if type(only) is str else _frozen(only))
        return tuple([(key, _frozen(each)) for key, each in value.items()])
    if isinstance(value, bool | float):
        return repr(value)  # True, 1 and 1.0 are equal
    if isinstance(value, list | tuple):
        return tuple([_frozen(each) for each in value])
    return value if isinstance(value, Hashable) else repr(value)


# --- to the protocol ------------------------------------------------------------------------------------


def encode(contents: Sequence[types.Content], index: int) -> NeutralMessage:
    """Return a content in the neutral form. What a tool or another agent said never counts as the user's
    words.
    """
    content = contents[index]
    parts = content.parts or ()
    blocks = [
        block
        for part, call_id in zip(parts, call_ids(contents, index), strict=True)
        for block in blocks_of(part, call_id, content.role)
    ]
    if content.role == "model":
        return {"role": "assistant", "content": blocks}
    if any(block["type"] == "tool_result" for block in blocks):
        if all(block["type"] == "tool_result" for block in blocks):
            return {"role": "tool", "content": blocks}
        # What comes with a function's response belongs to the response.
        return {"role": "user", "content": [_by_tool(block) for block in blocks]}
    neutral: NeutralMessage = {"role": "user", "content": blocks}
    if quotes_another_agent(content):
        neutral["meta"] = {"author": "subagent", "synthetic": True}
    elif content.role not in ("user", None):
        neutral["meta"] = {"author": "unknown", "synthetic": True}
    return neutral


def quotes_another_agent(content: types.Content) -> bool:
    """Return whether ADK wrote a user's content to say what another agent did."""
    first = next(iter(content.parts or ()), None)
    return first is not None and (first.text or "").startswith(OTHER_AGENT)


def call_ids(contents: Sequence[types.Content], index: int) -> list[str]:
    """Return the id of the call for each part of a content; an empty text for parts that are no call and no
    response. O(contents since the calls).
    """
    parts = contents[index].parts or ()
    calls = _calls(contents, index)
    if contents[index].role == "model":
        ids = {at: call_id for at, _, call_id in calls}
        return [ids.get(at, "") for at in range(len(parts))]
    if not any(part.function_response for part in parts):
        return [""] * len(parts)
    start = index - 1
    while start >= 0 and not (calls := _calls(contents, start)):
        start -= 1
    waiting = [(name, call_id) for _, name, call_id in calls]
    answered: list[str] = []
    for place in range(start + 1, index + 1):
        answered = [
            _answered(part.function_response, waiting) or (f"{place}.{at}" if part.function_response else "")
            for at, part in enumerate(contents[place].parts or ())
        ]
    return answered


def _calls(contents: Sequence[types.Content], index: int) -> list[tuple[int, str, str]]:
    """Return the place, the name and the id of each call in a model's content."""
    if contents[index].role != "model":
        return []
    return [
        (at, part.function_call.name or "", part.function_call.id or f"{index}.{at}")
        for at, part in enumerate(contents[index].parts or ())
        if part.function_call is not None
    ]


def _answered(response: types.FunctionResponse | None, waiting: list[tuple[str, str]]) -> str:
    """Return the id of the call that a response answers, and take it from those that wait."""
    if response is None:
        return ""
    for at, (name, call_id) in enumerate(waiting):
        if call_id == response.id or (not response.id and name == response.name):
            return waiting.pop(at)[1]
    return response.id or ""


def blocks_of(part: types.Part, call_id: str, role: str | None) -> list[Block]:
    """Return a part as blocks: none if it is empty, two if it also has a thought signature."""
    if part.thought and part.text is not None:
        signed = {"signature": _base64(part.thought_signature)} if part.thought_signature else {}
        return [{"type": "thinking", "text": part.text, **signed}]
    signature: list[Block] = []
    if part.thought_signature:
        signature = [_opaque({"thoughtSignature": _base64(part.thought_signature)})]
    return [*signature, *_content_blocks(part, call_id, role)]


def _content_blocks(part: types.Part, call_id: str, role: str | None) -> list[Block]:
    # Calls of a user and responses of a model are of no use to a provider, and the protocol has none.
    if (call := part.function_call) is not None and role == "model":
        named = {"call_id": call_id, "name": call.name or ""}
        return [{"type": "tool_call", **named, "arguments": plain(call.args or {})}]
    if (response := part.function_response) is not None and role != "model":
        return [_result(response, call_id)]
    if part.text is not None:
        return [{"type": "text", "text": part.text}] if part.text else []
    if (data := part.inline_data) is not None:
        return [_media(data.mime_type, data.data)]
    if (file := part.file_data) is not None:
        return [_file(file.mime_type, file.file_uri)]
    raw = part.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"thought_signature"})
    return [_opaque(raw)] if raw else []


def _opaque(raw: Mapping[str, Any]) -> Block:
    return {"type": "opaque", "provider": _PROVIDER, "raw": raw}


def _result(response: types.FunctionResponse, call_id: str) -> Block:
    text = whole_text(response.response or {})
    content: str | list[Block] = text
    media = [block for each in response.parts or () for block in _response_media(each)]
    if media:
        content = [{"type": "text", "text": text}, *media]
    result = {"type": "tool_result", "call_id": call_id, "name": response.name or "", "content": content}
    return {**result, "is_error": True} if is_error(response.response) else result


def _response_media(part: types.FunctionResponsePart) -> list[Block]:
    if (data := part.inline_data) is not None:
        return [_media(data.mime_type, data.data)]
    if (file := part.file_data) is not None:
        return [_file(file.mime_type, file.file_uri)]
    return []


def _media(media_type: str | None, data: bytes | None) -> Block:
    kind = media_type or "application/octet-stream"
    if kind.startswith("text/"):
        return {"type": "document", "media_type": kind, "text": (data or b"").decode(errors="replace")}
    is_image = kind.startswith("image/")
    return {"type": "image" if is_image else "document", "media_type": kind, "data": _base64(data or b"")}


def _file(media_type: str | None, uri: str | None) -> Block:
    kind = media_type or "application/octet-stream"
    is_image = kind.startswith("image/")
    return {"type": "image" if is_image else "document", "media_type": kind, "url": uri or ""}


def _by_tool(block: Block) -> Block:
    return {**block, "meta": {"author": "tool"}} if block["type"] in ("text", "document") else block


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
