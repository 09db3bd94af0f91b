"""Collect a turn between an ACP client and an agent, and convert it to messages.

What the user typed is the text of a prompt. Files that an editor embeds or links become documents. What an
agent replays as the user's words is only the agent's claim, so it gets the author `unknown`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec
from msgspec import Raw, Struct

from compactd.client.frames import Json
from compactd.integrations.acp.acp_lines import UNREADABLE, decode_as
from compactd.integrations.acp.updates import Update
from compactd.protocol.messages import NULL

MAX_OUTPUT_CHARS = 200_000
"""The most characters of one tool's output: its beginning and its end are kept."""
MAX_ARGUMENT_BYTES = 1_000_000
"""The most bytes of one call's arguments. If they are longer or cannot be read, only their beginning is kept,
as text.
"""
MAX_TURN_CHARS = 8_000_000
"""The most characters of a turn. What the agent says after that is not stored."""
CALL_CHARS = 200
"""How many characters each tool call counts towards `MAX_TURN_CHARS`, in addition to its texts."""
MAX_ID_CHARS = 200
MAX_DEPTH = 100
"""The deepest nesting of lists and objects in arguments, well below the limit of any JSON reader. Deeper
arguments are kept as text.
"""

_KIND = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
"""A valid kind of tool. The protocol's own kinds are `read`, `edit`, `execute` and similar."""


class _Content(Struct, frozen=True, rename="camel"):
    type: str = ""
    text: str | None = None
    uri: str | None = None
    name: str | None = None
    content: Raw = NULL
    resource: Raw = NULL
    path: str | None = None
    new_text: str | None = None


class _Call(Struct):
    id: str
    name: str = "tool"
    title: str = ""
    arguments: dict[str, Json] = {}
    arguments_bytes: int = 0
    text: str = ""
    output: str = ""
    is_error: bool = False

    @property
    def chars(self) -> int:
        return CALL_CHARS + len(self.title) + self.arguments_bytes + len(self.text) + len(self.output)


class _ReplayedPrompt(Struct):
    texts: list[str]


class _AnswerText(Struct):
    texts: list[str]


class _TurnPrompt(Struct):
    content: list[dict[str, Json]]


def prompt_content(blocks: Sequence[Raw]) -> list[dict[str, Json]]:
    """Convert a prompt's blocks to the content of a user's message.

    Only text blocks become text, because that is what the user typed. Embedded and linked files become
    documents. Images and audio are named in a document.
    """
    content: list[dict[str, Json]] = []
    for raw in blocks:
        block = decode_as(raw, _Content)
        if block is not None and block.type == "text":
            if block.text:
                content.append({"type": "text", "text": block.text})
            continue
        text = _text(raw) or "[a block that could not be read]"
        document: dict[str, Json] = {"type": "document", "media_type": "text/plain", "text": text}
        name = None if block is None else _name(block)
        content.append({**document, "title": name} if name else document)
    return content


def typed_text(blocks: Sequence[Raw]) -> str:
    """Return the text that a prompt starts with; empty if it starts with something else."""
    block = decode_as(blocks[0], _Content) if blocks else None
    return block.text or "" if block is not None and block.type == "text" else ""


class Turn:
    """The prompt and the agent's updates of one turn, or all updates that an agent replayed."""

    def __init__(self, *, is_replay: bool = False) -> None:
        self._is_replay = is_replay
        self._parts: list[_Call | _TurnPrompt | _ReplayedPrompt | _AnswerText] = []
        self._calls: dict[str, _Call] = {}
        self._chars = 0

    def take(self, update: Update) -> None:
        """Add the text or tool call of an update. Only in a replay may the agent repeat the user's words, and
        then their author is `unknown`.
        """
        match update.session_update:
            case "user_message_chunk" if self._is_replay:
                self._add(_ReplayedPrompt, _text(update.content))
            case "agent_message_chunk":
                self._add(_AnswerText, _text(update.content))
            case "tool_call" | "tool_call_update" if update.tool_call_id:
                self._add_call(update)
            case _:
                pass

    def add_prompt(self, content: list[dict[str, Json]]) -> None:
        """Add the user's prompt. `content`: the result of `prompt_content`."""
        if content:
            self._parts.append(_TurnPrompt(content))

    def messages(self, name: str) -> list[Json]:
        """Return the turn as messages in neutral form, oldest first. Each call has a result.

        The ids of calls start with `name`, because agents reuse ids in each turn.
        """
        found: list[Json] = []
        said: list[Json] = []
        results: list[Json] = []

        def flush() -> None:
            if said:
                found.append({"role": "assistant", "content": list(said)})
            if results:
                found.append({"role": "tool", "content": list(results)})
            said.clear()
            results.clear()

        for index, part in enumerate(self._parts):
            match part:
                case _Call():
                    call_id = _id(name, part, index)
                    said.append(_call(part, call_id))
                    results.append(_result(part, call_id))
                case _TurnPrompt(content=content):
                    flush()
                    found.append({"role": "user", "content": list(content)})
                case _ReplayedPrompt(texts=texts):
                    flush()
                    # Only the agent claims that the user typed it.
                    found.append(
                        {"role": "user", "content": [_text_block(texts)], "meta": {"author": "unknown"}}
                    )
                case _AnswerText(texts=texts):
                    if results:
                        flush()
                    said.append(_text_block(texts))
        flush()
        return found

    def _add(self, kind: type[_ReplayedPrompt] | type[_AnswerText], text: str) -> None:
        self._chars += len(text)
        if not text or self._chars > MAX_TURN_CHARS:
            return
        last = self._parts[-1] if self._parts else None
        if isinstance(last, _ReplayedPrompt | _AnswerText) and isinstance(last, kind):
            last.texts.append(text)
        else:
            self._parts.append(kind([text]))

    def _add_call(self, update: Update) -> None:
        call = self._calls.get(update.tool_call_id)
        if call is None:
            if self._chars > MAX_TURN_CHARS:
                return
            call = self._calls[update.tool_call_id] = _Call(update.tool_call_id)
            self._parts.append(call)
            self._chars += call.chars
        self._chars -= call.chars
        if update.kind is not None and _KIND.fullmatch(update.kind):
            call.name = update.kind
        call.title = _clip(update.title or call.title)
        if bytes(update.raw_input) != b"null":
            call.arguments = _arguments(update.raw_input)
            call.arguments_bytes = min(len(bytes(update.raw_input)), MAX_ARGUMENT_BYTES)
        if text := _texts(update.content):
            call.text = _clip(text)
        if output := _output(update.raw_output):
            call.output = _clip(output)
        if update.status is not None:
            call.is_error = update.status == "failed"
        self._chars += call.chars


def _id(name: str, call: _Call, index: int) -> str:
    return f"{name}-{call.id if len(call.id) <= MAX_ID_CHARS else f'#{index}'}"


def _text_block(texts: Sequence[str]) -> Json:
    return {"type": "text", "text": "".join(texts)}


def _call(call: _Call, call_id: str) -> Json:
    arguments = call.arguments or ({"title": call.title} if call.title else {})
    return {"type": "tool_call", "call_id": call_id, "name": call.name, "arguments": arguments}


def _result(call: _Call, call_id: str) -> Json:
    result: dict[str, Json] = {
        "type": "tool_result",
        "call_id": call_id,
        "content": call.text or call.output,
    }
    return {**result, "is_error": True} if call.is_error else result


def _clip(text: str) -> str:
    """Return the text, or its beginning and end if it is longer than `MAX_OUTPUT_CHARS`."""
    if len(text) <= MAX_OUTPUT_CHARS:
        return text
    half = MAX_OUTPUT_CHARS // 2
    return f"{text[:half]}\n… {len(text) - 2 * half:,} characters …\n{text[-half:]}"


def _arguments(raw: Raw) -> dict[str, Json]:
    """Return a call's arguments as an object that every JSON reader accepts: unchanged, or the beginning of
    their JSON as text in a field `raw`.

    JSON that is too long, invalid or deeply nested, or has an integer of more than 4,300 digits, is kept as
    text. The result is empty if the JSON is not an object.
    """
    data = bytes(raw)
    if len(data) <= MAX_ARGUMENT_BYTES:
        try:
            value: Json = msgspec.json.decode(data)
        except UNREADABLE:
            pass
        else:
            if not isinstance(value, dict):
                return {}
            if not _is_deep(value):
                return value
    return {"raw": _clip(data[:MAX_ARGUMENT_BYTES].decode("utf-8", "replace"))}


def _is_deep(value: Json) -> bool:
    level: list[Json] = [value]
    for _ in range(MAX_DEPTH):
        inner = [one for one in level if isinstance(one, dict | list) and one]
        if not inner:
            return False
        level = [each for one in inner for each in (one.values() if isinstance(one, dict) else one)]
    return True


def _name(block: _Content) -> str | None:
    """Return the name of the file in a block of a prompt; None if it has none."""
    if block.type == "resource":
        inner = decode_as(block.resource, _Content)
        return None if inner is None else inner.uri
    return block.name or block.uri


def _text(raw: Raw) -> str:
    """Return the text of one content block; for other content, a text in brackets that names it."""
    block = decode_as(raw, _Content)
    if block is None:
        return ""
    match block.type:
        case "text":
            return block.text or ""
        case "resource_link":
            return f"[{block.name or 'file'}: {block.uri or ''}]"
        case "resource":
            inner = decode_as(block.resource, _Content)
            return "" if inner is None else f"[{inner.uri or 'resource'}]\n{inner.text or ''}"
        case kind:
            return f"[{kind}]"


def _texts(raw: Raw) -> str:
    """Return the text of a tool call's content."""
    texts = []
    for part in decode_as(raw, list[Raw]) or ():
        block = decode_as(part, _Content)
        if block is not None and block.type == "content":
            texts.append(_text(block.content))
        elif block is not None and block.type == "diff":
            texts.append(f"{block.path or ''}\n{block.new_text or ''}")
    return "\n".join(text for text in texts if text)


def _output(raw: Raw) -> str:
    if raw == NULL:
        return ""
    text = decode_as(raw, str)
    return bytes(raw).decode("utf-8", "replace") if text is None else text
