"""Blank a message: replace everything it says by a mark and keep its structure."""

from __future__ import annotations

import msgspec
from msgspec import Raw

from compactd.core.authors.authors import AUTHORS, BY_PROGRAM, UNKNOWN
from compactd.core.redaction.scrub import MARK
from compactd.core.text.lazy_patterns import LazyPattern
from compactd.protocol.messages import Block, Document, Message, Meta, Text, Thinking, ToolCall, ToolResult

MARK_DOCUMENT = Document(media_type="text/plain", text=MARK)
ARGUMENTS = Raw(b'{"redacted":"%s"}' % MARK.encode())
"""The arguments of a redacted tool call. They are an object, because providers require one."""

ARGUMENTS_TEXT = Raw(msgspec.json.encode(bytes(ARGUMENTS).decode()))
"""`ARGUMENTS` as a JSON string, as OpenAI writes arguments."""

_STOP_WORDS = """
stop end_turn stop_sequence length max_tokens incomplete:max_output_tokens tool_use tooluse tool_calls
function_call content_filter safety refusal pause pause_turn aborted error unknown
model_context_window_exceeded
"""
_STOPS = frozenset(_STOP_WORDS.split())
"""Stop reasons of providers and agents (documentation of Anthropic, OpenAI, Gemini and pi, read 2026-11)."""
_NAME = LazyPattern(r"[A-Za-z_]{1,48}")


def blank(message: Message) -> Message:
    """Return `message` with everything it says replaced by a mark. Its structure stays.

    Thinking loses its signature together with its text. An image, or a block that only one provider reads,
    cannot contain a mark. It is replaced by a text, or by a document if the message has no text, so that the
    message does not become a request (law 6). Ids and the flags of `meta` stay, and so do the numbers of
    `usage` and a known stop reason. Any other field could contain words, so it is dropped.
    """
    meta = message.meta
    is_said = any(isinstance(block, Text) and block.text.strip() for block in message.content)
    mark = Text(text=MARK) if is_said else MARK_DOCUMENT
    return msgspec.structs.replace(
        message,
        content=tuple(blanked_block(block, mark) for block in message.content),
        usage=_numbers_of(message.usage),
        stop_reason=message.stop_reason if (message.stop_reason or "").lower() in _STOPS else None,
        meta=None
        if meta is None
        else Meta(
            type=meta.type if meta.type in BY_PROGRAM else None,
            kind=meta.kind if meta.kind in BY_PROGRAM else None,
            author=meta.author if meta.author is None or meta.author in AUTHORS else UNKNOWN,
            synthetic=meta.synthetic,
            pinned=meta.pinned,
            compaction_id=meta.compaction_id,
        ),
    )


def _numbers_of(usage: Raw | None) -> Raw | None:
    """Return a usage report with only its numbers, and the numbers in its objects, if their names are plain
    words. None if it is not a JSON object."""
    if usage is None:
        return None
    try:
        report = msgspec.json.decode(usage)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return Raw(msgspec.json.encode(_numbers_in(report))) if isinstance(report, dict) else None


def _numbers_in(report: dict[str, object]) -> dict[str, object]:
    kept: dict[str, object] = {}
    for name, value in report.items():
        if not _NAME.fullmatch(name):
            continue
        if isinstance(value, dict):
            kept[name] = _numbers_in(value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            kept[name] = value
    return kept


def blanked_block(block: Block, mark: Block) -> Block:
    """Return `block` with its text and arguments replaced by `[redacted]`. A block that has neither, such as
    an image, is replaced by `mark`."""
    match block:
        case Text(text=text) if not text.strip():
            return Text(text="")
        case Text():
            return Text(text=MARK)
        case Thinking():
            return Thinking(text=MARK)
        case ToolCall(call_id=call_id, name=name, arguments=arguments):
            is_text = bytes(arguments).lstrip()[:1] == b'"'
            return ToolCall(call_id=call_id, name=name, arguments=ARGUMENTS_TEXT if is_text else ARGUMENTS)
        case ToolResult():
            return msgspec.structs.replace(block, content=MARK)
        case Document():
            return MARK_DOCUMENT
        case _:
            return mark


def message_words(message: Message) -> bytes:
    """Return what a message says, without its ids, times and flags, as bytes. The bytes are the same after
    the message is encoded and decoded again."""
    return msgspec.json.encode((message.role, message.content))
