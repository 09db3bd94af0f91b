"""A turn as it passes between an ACP client and an agent, put together as messages of ours."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Raw, Struct

from compactd.client.frames import Json

MOST_OUTPUT = 200_000
"""Characters of one tool's output that are kept: its beginning and its end."""
MOST_TURN = 8_000_000
"""Characters of a turn; what the agent says after that is not mirrored."""


class Update(Struct, frozen=True, kw_only=True, rename="camel"):
    """A `session/update`, as far as it is looked at."""

    session_update: str = ""
    content: Raw = Raw(b"null")
    tool_call_id: str = ""
    title: str | None = None
    kind: str | None = None
    status: str | None = None
    raw_input: Raw = Raw(b"null")
    raw_output: Raw = Raw(b"null")
    used: int | None = None
    size: int | None = None


class _Content(Struct, frozen=True, rename="camel"):
    type: str = ""
    text: str | None = None
    uri: str | None = None
    name: str | None = None
    content: Raw = Raw(b"null")
    resource: Raw = Raw(b"null")
    path: str | None = None
    old_text: str | None = None
    new_text: str | None = None


class _Call(Struct):
    id: str
    name: str = "tool"
    title: str = ""
    arguments: Raw = Raw(b"null")
    text: str = ""
    output: str = ""
    is_error: bool = False


def prompt_text(blocks: Json) -> str:
    """A prompt's blocks as text; pictures and sounds are named."""
    parts = blocks if isinstance(blocks, list) else []
    texts = (_text(Raw(msgspec.json.encode(part))) for part in parts)
    return "\n".join(text for text in texts if text)


class Turn:
    """What was said since the last answer to a prompt."""

    def __init__(self, name: str) -> None:
        """`name` parts its calls from those of other turns: agents begin to count anew."""
        self._name = name
        self._parts: list[_Call | tuple[str, list[str]]] = []
        self._calls: dict[str, _Call] = {}
        self._chars = 0

    def take(self, update: Update) -> None:
        """Adds what an update tells."""
        match update.session_update:
            case "user_message_chunk":
                self._add("user", _text(update.content))
            case "agent_message_chunk":
                self._add("assistant", _text(update.content))
            case "tool_call" | "tool_call_update" if update.tool_call_id:
                self._called(update)
            case _:
                pass

    def asked(self, text: str) -> None:
        """The person's prompt."""
        self._add("user", text)

    def messages(self) -> list[Json]:
        """In neutral shape, oldest first; each call has its answer."""
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

        for part in self._parts:
            if isinstance(part, _Call):
                said.append(self._call(part))
                results.append(self._result(part))
                continue
            role, texts = part
            if results or role == "user":
                flush()
            block: Json = {"type": "text", "text": "".join(texts)}
            if role == "user":
                found.append({"role": "user", "content": [block]})
            else:
                said.append(block)
        flush()
        return found

    def _add(self, role: str, text: str) -> None:
        self._chars += len(text)
        if not text or self._chars > MOST_TURN:
            return
        last = self._parts[-1] if self._parts else None
        if isinstance(last, tuple) and last[0] == role:
            last[1].append(text)
        else:
            self._parts.append((role, [text]))

    def _called(self, update: Update) -> None:
        call = self._calls.get(update.tool_call_id)
        if call is None:
            if self._chars > MOST_TURN:
                return
            call = self._calls[update.tool_call_id] = _Call(update.tool_call_id)
            self._parts.append(call)
        call.name = update.kind or call.name
        call.title = update.title or call.title
        if bytes(update.raw_input) != b"null":
            call.arguments = update.raw_input
        if text := _texts(update.content):
            self._chars += len(text) - len(call.text)
            call.text = text
        if output := _output(update.raw_output):
            call.output = output
        if update.status is not None:
            call.is_error = update.status == "failed"

    def _call(self, call: _Call) -> Json:
        given: Json = msgspec.json.decode(call.arguments)
        arguments: dict[str, Json] = given if isinstance(given, dict) else {}
        if not arguments and call.title:
            arguments = {"title": call.title}
        return {"type": "tool_call", "call_id": self._id(call), "name": call.name, "arguments": arguments}

    def _result(self, call: _Call) -> Json:
        text = call.text or call.output
        if len(text) > MOST_OUTPUT:
            half = MOST_OUTPUT // 2
            text = f"{text[:half]}\n… {len(text) - 2 * half:,} characters …\n{text[-half:]}"
        result: dict[str, Json] = {"type": "tool_result", "call_id": self._id(call), "content": text}
        return {**result, "is_error": True} if call.is_error else result

    def _id(self, call: _Call) -> str:
        return f"{self._name}-{call.id}"


def _content(raw: Raw) -> _Content | None:
    try:
        return msgspec.json.decode(raw, type=_Content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _text(raw: Raw) -> str:
    """Of one content block."""
    block = _content(raw)
    if block is None:
        return ""
    match block.type:
        case "text":
            return block.text or ""
        case "resource_link":
            return f"[{block.name or 'file'}: {block.uri or ''}]"
        case "resource":
            inner = _content(block.resource)
            return "" if inner is None else f"[{inner.uri or 'resource'}]\n{inner.text or ''}"
        case kind:
            return f"[{kind}]"


def _texts(raw: Raw) -> str:
    """Of a tool call's content."""
    try:
        parts: Sequence[Raw] = msgspec.json.decode(raw, type=list[Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    texts = []
    for part in parts:
        block = _content(part)
        if block is not None and block.type == "content":
            texts.append(_text(block.content))
        elif block is not None and block.type == "diff":
            texts.append(f"{block.path or ''}\n{block.new_text or ''}")
    return "\n".join(text for text in texts if text)


def _output(raw: Raw) -> str:
    data = bytes(raw)
    if data == b"null":
        return ""
    if data[:1] == b'"':
        text: str = msgspec.json.decode(data, type=str)
        return text
    return data.decode("utf-8", "replace")
