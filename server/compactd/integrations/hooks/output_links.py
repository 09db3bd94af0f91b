"""Link the messages of a transcript to the originals of the reduced tool outputs in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from compactd.core.history.entries import OutputLink
from compactd.core.reduce.marks import find_marks
from compactd.integrations.hooks.reduced_notes import OutputNote, keys_of
from compactd.protocol.messages import Block, Message, Text, ToolResult


class LinkedOutputs(Struct, frozen=True):
    """The reduced outputs in one message."""

    links: tuple[OutputLink, ...] = ()
    is_redacted: bool = False
    """Whether an original was redacted, so that the message must not repeat parts of it."""
    reduced: int = 0
    """How many results show the reduced text."""
    ignored: int = 0
    """How many results show the original, as if the agent had ignored the hook's answer."""


_NUMBER_BEFORE: Final = re.compile(r"(?<![^\n])\d{1,9}\t\Z")
_NUMBER_AFTER: Final = re.compile(r"\A \(line \d{1,9} follows\)")
NOTHING: Final = LinkedOutputs()


def find_outputs(message: Message, notes: Mapping[str, Sequence[OutputNote]]) -> LinkedOutputs:
    """Return the reduced outputs in `message`. `notes`: what is known of them, by call id. O(message)."""
    links: list[OutputLink] = []
    is_redacted, reduced, ignored = False, 0, 0
    for at, block in enumerate(message.content):
        if not isinstance(block, ToolResult) or block.call_id not in notes:
            continue
        keys = [(part, set(keys_of(text))) for part, text in _texts(block)]
        for note in notes[block.call_id]:
            is_redacted |= note.is_redacted
            part, is_exact = next(((part, True) for part, said in keys if note.shown in said), (None, False))
            links.append(OutputLink(at, part, note.entry_id, is_exact))
            if note.shown != note.original:
                reduced += is_exact
                ignored += any(note.original in said for _, said in keys)
    return LinkedOutputs(tuple(links), is_redacted, reduced, ignored) if links else NOTHING


def without_marks(message: Message) -> Message:
    """Return `message` without the marks of omissions in its tool results, which are no facts. O(message)."""
    return _with_texts(message, _without_marks)


def _without_marks(text: str) -> str:
    for mark in reversed(find_marks(text)):
        # Next to a mark in a file are the number that Claude Code gave it, and that of the line that follows.
        before = _NUMBER_BEFORE.sub("", text[: mark.start])
        text = before + _NUMBER_AFTER.sub("", text[mark.stop :], count=1)
    return text


def _texts(result: ToolResult) -> Iterator[tuple[int | None, str]]:
    if isinstance(result.content, str):
        yield None, result.content
        return
    for part, block in enumerate(result.content):
        if isinstance(block, Text):
            yield part, block.text


def _with_texts(message: Message, change: Callable[[str], str]) -> Message:
    content: list[Block] = []
    for block in message.content:
        if isinstance(block, ToolResult):
            inner: str | tuple[Block, ...]
            if isinstance(block.content, str):
                inner = change(block.content)
            else:
                inner = tuple(
                    msgspec.structs.replace(one, text=change(one.text)) if isinstance(one, Text) else one
                    for one in block.content
                )
            block = msgspec.structs.replace(block, content=inner)
        content.append(block)
    return msgspec.structs.replace(message, content=tuple(content))
