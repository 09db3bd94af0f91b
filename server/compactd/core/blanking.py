"""A message with a mark in the place of whatever it says; what it is stays."""

from __future__ import annotations

import msgspec
from msgspec import Raw

from compactd.core.scrub import MARK
from compactd.messages import Block, Document, Message, Meta, Text, Thinking, ToolCall, ToolResult

MARK_DOCUMENT = Document(media_type="text/plain", text=MARK)
ARGUMENTS = Raw(b'{"redacted":"%s"}' % MARK.encode())
"""A redacted call's arguments: an object, as providers want it."""

ARGUMENTS_TEXT = Raw(msgspec.json.encode(bytes(ARGUMENTS).decode()))
"""The same as OpenAI's string."""


def blanked(message: Message) -> Message:
    """`message` with a mark in the place of whatever it says; what it is stays.

    Thinking loses its signature with its text. A picture, and a block that only one provider reads, can hold
    no mark: a text stands there, or a document where nobody said anything, so that what was no request is
    none now (law 6). Usage, ids and the flags of `meta` stay.
    """
    meta = message.meta
    is_said = any(isinstance(block, Text) and block.text.strip() for block in message.content)
    mark = Text(text=MARK) if is_said else MARK_DOCUMENT
    return msgspec.structs.replace(
        message,
        content=tuple(blanked_block(block, mark) for block in message.content),
        meta=None
        if meta is None
        else Meta(
            type=meta.type,
            kind=meta.kind,
            author=meta.author,
            synthetic=meta.synthetic,
            pinned=meta.pinned,
            compaction_id=meta.compaction_id,
        ),
    )


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
