"""A message with a mark in the place of whatever it says; what it is stays."""

from __future__ import annotations

import re

import msgspec
from msgspec import Raw

from compactd.core.authors.authors import AUTHORS, BY_PROGRAM, UNKNOWN
from compactd.core.redaction.scrub import MARK
from compactd.protocol.messages import Block, Document, Message, Meta, Text, Thinking, ToolCall, ToolResult

MARK_DOCUMENT = Document(media_type="text/plain", text=MARK)
ARGUMENTS = Raw(b'{"redacted":"%s"}' % MARK.encode())
"""A redacted call's arguments: an object, as providers want it."""

ARGUMENTS_TEXT = Raw(msgspec.json.encode(bytes(ARGUMENTS).decode()))
"""The same as OpenAI's string."""

_STOP_WORDS = """
stop end_turn stop_sequence length max_tokens incomplete:max_output_tokens tool_use tooluse tool_calls
function_call content_filter safety refusal pause pause_turn aborted error unknown
model_context_window_exceeded
"""
_STOPS = frozenset(_STOP_WORDS.split())
"""Reasons to stop that providers and agents give (docs of Anthropic, OpenAI, Gemini and pi, read 2026-11)."""
_NAME = re.compile(r"[A-Za-z_]{1,48}")


def blanked(message: Message) -> Message:
    """`message` with a mark in the place of whatever it says; what it is stays.

    Thinking loses its signature with its text. A picture, and a block that only one provider reads, can hold
    no mark: a text stands there, or a document where nobody said anything, so that what was no request is
    none now (law 6). Ids and the flags of `meta` stay, the numbers of `usage`, and a reason to stop that a
    provider is known to give: any other field can hold words.
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
    """The numbers of a usage report and of the objects in it, if their names are plain words."""
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
    """`block` without what it says; `mark` stands for one that can hold no text."""
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


def content_of(message: Message) -> bytes:
    """What a message says, without its ids, times and flags: the same for one that is read again."""
    return msgspec.json.encode((message.role, message.content))
