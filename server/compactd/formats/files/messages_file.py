"""Read files that contain a list of messages in a provider's format or in compactd's neutral format.

The file is a JSON array of messages, an object with such an array (`messages`, `contents`, `input` or
`history`), or has one message per line.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from compactd.core.authors.authors import begins_as_observation, is_named_user
from compactd.formats.files.documents import open_document
from compactd.formats.files.json_lines import Warn, records
from compactd.formats.files.session_file import SessionBuilder, SessionFile, text_field
from compactd.formats.messages.base import READABLE, message_reader
from compactd.formats.messages.json_parts import elements, fields, first_byte
from compactd.formats.messages.lenient_json import is_list
from compactd.formats.messages.shapes import is_responses_item, shape_of_message
from compactd.formats.messages.tools import decode_tools, encode_tool
from compactd.protocol.errors import CompactdError, InvalidParams
from compactd.protocol.messages import NULL, Message, Text


def read(data: bytes, shape: str) -> SessionFile:
    """Return the session in `data`, whose messages are in the message format `shape`, one of `READABLE`.
    O(bytes).

    A message that cannot be read is skipped with a warning. Raise `InvalidParams` if there is no list of
    messages.
    """
    session = SessionBuilder(shape)
    about, raws = _open(data, session.warn)
    session.model = text_field(about, "model")
    session.title = text_field(about, "title")
    session.session_id = text_field(about, "session_id") or text_field(about, "sessionId")
    session.working_dir = text_field(about, "working_dir") or text_field(about, "cwd")
    prompts = (text_field(about, name) for name in ("system", "system_prompt", "instructions"))
    session.system_prompt = next(filter(None, prompts), None)
    session.tools = _tools(session, about)
    read_message = message_reader(shape)
    for index, raw in enumerate(raws):
        with session.skipping("message", index + 1):
            message = read_message(raw, f"$.messages[{index}]")
            own = _without_claim(message)
            source = raw if shape == "neutral" and own is message else None
            _take(session, own, source, joins=shape == "openai_responses")
    return session.finish()


def _tools(session: SessionBuilder, about: dict[str, Raw]) -> tuple[Raw, ...]:
    """Return the tools that were offered to the model, in neutral form."""
    if not is_list(about.get("tools", NULL)):
        return ()
    found: list[Raw] = []
    for index, raw in enumerate(elements(about["tools"], "$.tools")):
        try:
            found += [encode_tool(tool) for tool in decode_tools(raw, f"$.tools[{index}]")]
        except CompactdError as error:
            session.warn(f"tool {index + 1} was left out: {error.message}")
    return tuple(found)


def _without_claim(message: Message) -> Message:
    """Return the message. If its metadata names the user as author of a text that begins like a tool's
    output, remove that author, because files are not trusted to say so. O(blocks).
    """
    if message.role != "user":
        return message
    texts = [block for block in message.content if isinstance(block, Text)]
    claimed = [text for text in texts if is_named_user(message, text) and begins_as_observation(text.text)]
    if not claimed:
        return message
    meta = message.meta and replace(message.meta, author=None)
    content = tuple(Text(text=block.text) if block in claimed else block for block in message.content)
    return replace(message, meta=meta, content=content)


def _take(session: SessionBuilder, message: Message, source: Raw | None, joins: bool) -> None:
    last = session.messages[-1][0] if session.messages else None
    if joins and last is not None and last.role == message.role == "assistant":
        # In OpenAI's Responses format, one answer consists of several items: reasoning, text, calls.
        session.messages.pop()
        message = replace(last, content=(*last.content, *message.content))
    if message.meta is not None and message.meta.type == "compaction_summary":
        session.compactions += 1
    if source is None:
        session.take(message)
    else:
        session.messages.append((message, source))


def shape_of(data: bytes) -> str | None:
    """Return the format of the messages in `data`, one of `READABLE`; None if `data` contains no messages.
    O(bytes).

    Messages that are valid in every format count as `openai`.
    """
    try:
        about, raws = _open(data, lambda _: None)
        messages = [fields(raw, "$", "a message") for raw in raws]
    except CompactdError:
        return None
    named = text_field(about, "format")
    if named in READABLE:
        return named  # Written by compactd's own export
    if any(is_responses_item(message) for message in messages):
        return "openai_responses"
    if "contents" in about or any(is_list(message.get("parts", NULL)) for message in messages):
        return "gemini"
    if not messages or not any("role" in message for message in messages):
        return None
    for message in messages:
        shape = shape_of_message(message)
        if shape is not None:
            return shape
    return "openai"


def _open(data: bytes, warn: Warn) -> tuple[dict[str, Raw], Sequence[Raw]]:
    """Return (the other fields of the document, its messages)."""
    whole = _message_alone(data)
    if whole is not None:
        return {}, [whole]
    try:
        return open_document(data, warn, "messages", "contents", "input", "history")
    except InvalidParams as error:
        lines = [Raw(msgspec.json.encode(record)) for _, record in records(data, warn) if "role" in record]
        if not lines and error.data.get("path") != "$":
            raise  # The file is a complete document without messages.
        return {}, lines


def _message_alone(data: bytes) -> Raw | None:
    """Return the message if the file consists of a single one; otherwise None."""
    text = data.removeprefix(b"\xef\xbb\xbf").strip()
    if b"\n" in text or first_byte(text) != b"{":
        return None
    try:
        return Raw(text) if "role" in fields(text, "$", "a message") else None
    except CompactdError:
        return None
