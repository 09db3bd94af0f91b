"""Session files that hold a list of messages in a provider's shape or in ours, and little else.

A JSON array, an object with `messages` (Gemini: `contents`), or one message a line.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Raw

from compactd.errors import CompactdError, InvalidParams
from compactd.formats import anthropic, gemini, neutral, openai
from compactd.formats.lines import Warn, mend_surrogates, records, utf8
from compactd.formats.parts import NULL, elements, fields, first_byte
from compactd.formats.session_file import Collected, SessionFile, text_field
from compactd.messages import Message

_READ = {
    "openai": openai.read_message,
    "anthropic": anthropic.read_message,
    "gemini": gemini.read_message,
    "neutral": neutral.decode_message,
}

SHAPES = tuple(_READ)

_OPENAI_KEYS = ("tool_calls", "tool_call_id", "function_call", "refusal")
_ANTHROPIC_BLOCKS = frozenset(("tool_use", "redacted_thinking"))
_NEUTRAL_BLOCKS = frozenset(("tool_call", "opaque"))


def read(data: bytes, shape: str) -> SessionFile:
    """The session in `data`, its messages in `shape`, one of `SHAPES`.

    A message that cannot be read is left out with a warning. Raises `InvalidParams` where there is no list of
    messages. Cost: O(bytes).
    """
    session = Collected(shape)
    about, raws = _opened(data, session.warn)
    session.model = text_field(about, "model")
    session.title = text_field(about, "title")
    session.session_id = text_field(about, "session_id") or text_field(about, "sessionId")
    session.working_dir = text_field(about, "working_dir") or text_field(about, "cwd")
    session.system_prompt = text_field(about, "system") or text_field(about, "system_prompt")
    for index, raw in enumerate(raws):
        try:
            message = _READ[shape](raw, f"$.messages[{index}]")
        except CompactdError as error:
            session.warn(f"message {index + 1} was left out: {error.message}")
        else:
            _take(session, message, raw if shape == "neutral" else None)
    return session.finished()


def _take(session: Collected, message: Message, source: Raw | None) -> None:
    if message.meta is not None and message.meta.type == "compaction_summary":
        session.compactions += 1
    if source is None:
        session.take(message)
    else:
        session.messages.append((message, source))


def shape_of(data: bytes) -> str | None:
    """Which of `SHAPES` the messages in `data` have; none where it holds no messages.

    Messages that look the same in all of them are `openai`'s. Cost: O(bytes).
    """
    try:
        about, raws = _opened(data, lambda _: None)
        messages = [fields(raw, "$", "a message") for raw in raws]
    except CompactdError:
        return None
    named = text_field(about, "format")
    if named in SHAPES:
        return named  # as our own exports say it
    if "contents" in about or any("parts" in message for message in messages):
        return "gemini"
    if not messages or not any("role" in message for message in messages):
        return None
    for message in messages:
        shape = _shape_of_message(message)
        if shape is not None:
            return shape
    return "openai"


def _shape_of_message(message: dict[str, Raw]) -> str | None:
    if any(key in message for key in _OPENAI_KEYS) or text_field(message, "role") == "developer":
        return "openai"
    if "entry_id" in message:
        return "neutral"
    content = message.get("content", NULL)
    if first_byte(content) != b"[":
        return None
    for raw in elements(content, "$.content"):
        if first_byte(raw) != b"{":
            continue
        block = fields(raw, "$.content", "a block")
        tag = text_field(block, "type")
        if tag in _ANTHROPIC_BLOCKS or "tool_use_id" in block or "thinking" in block or "source" in block:
            return "anthropic"
        if tag in _NEUTRAL_BLOCKS or "call_id" in block or "media_type" in block:
            return "neutral"
        if tag == "thinking":
            return "neutral"
        if tag == "image_url":
            return "openai"
    return None


def _opened(data: bytes, warn: Warn) -> tuple[dict[str, Raw], Sequence[Raw]]:
    """(what the file says beside its messages, the messages)."""
    text = utf8(data.removeprefix(b"\xef\xbb\xbf").strip(), "the file", warn)
    for attempt in (text, mend_surrogates(text)):
        match first_byte(attempt):
            case b"[":
                return {}, elements(attempt, "$")
            case b"{":
                try:
                    about = msgspec.json.decode(attempt, type=dict[str, Raw])
                except (msgspec.DecodeError, RecursionError):
                    continue
                for name in ("messages", "contents"):
                    if first_byte(about.get(name, NULL)) == b"[":
                        return about, elements(about[name], f"$.{name}")
                if "role" in about:
                    return {}, [Raw(attempt)]
                raise InvalidParams("the file holds no list of messages", "$.messages")
            case _:
                break
    return {}, [Raw(msgspec.json.encode(record)) for _, record in records(data, warn) if "role" in record]
