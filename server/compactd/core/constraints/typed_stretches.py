"""Split a user's text into what the user typed and what is between it: pasted lines, code, quotations, logs,
and text that programs put into the message."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from msgspec import Struct

from compactd.core.authors.authors import TYPED_TAGS, USER, author_of, spans_of
from compactd.core.authors.typed_parts import typed_parts
from compactd.core.constraints.user_text import BLANKS, are_typed
from compactd.core.text.lazy_patterns import LazyPattern
from compactd.core.text.quoting import line_starts
from compactd.protocol.messages import Message, Text

_TYPED_TAG: Final = LazyPattern(rf"\s*</?(?:{'|'.join(sorted(TYPED_TAGS))})>\s*\Z")
"""A line that has only a tag around words that a person typed."""


class TypedStretch(Struct, frozen=True):
    """A stretch of a text block, by position."""

    start: int
    """Where the stretch begins (inclusive), in code points of the text."""
    end: int
    """Where the stretch ends (exclusive)."""
    kind: Literal["typed", "named", "framed", "bare"]
    """`typed`: lines that the user typed. The others are not typed. `named`: the message names another
    author. `framed`: the stretch itself shows that it was not typed, for example by tags or a code fence.
    `bare`: only the text around the stretch, or its length, shows that it was pasted."""


def typed_stretches(message: Message, block: Text) -> Iterator[TypedStretch]:
    """Yield the stretches of `block`, a text of `message`, in order and without gaps. The typed ones are
    whole lines: those of the sentences that `user_text.typed_sentences` finds. A line is split only if not
    all of it counts as typed because the text is long. O(characters)."""
    text = block.text
    if author_of(message, block) != USER:
        is_named = author_of(message) != USER or (block.meta is not None and block.meta.author is not None)
        yield TypedStretch(0, len(text), "named" if is_named else "bare")
        return
    spans = spans_of(message, block)
    framed = frozenset(span.start for span in spans if span.author != USER)
    at = 0
    for start, end, is_own in typed_parts(text, spans):
        if start > at:
            # `typed_parts` leaves reminders out.
            yield TypedStretch(at, start, "framed")
        if is_own:
            yield from _typed_lines(text, start, end)
        else:
            yield TypedStretch(start, end, "framed" if start in framed else "bare")
        at = end
    if at < len(text):
        yield TypedStretch(at, len(text), "framed")


def _typed_lines(text: str, start: int, end: int) -> Iterator[TypedStretch]:
    """Yield the stretches of a part of a user's text: runs of lines that are typed or not. Up to `BLANKS`
    blank lines in a row belong to the line before them."""
    part = text[start:end]
    starts = [*line_starts(part), len(part)]
    first, was_typed, blanks = 0, True, 0
    for at, is_typed in enumerate(are_typed(part)):
        line = part[starts[at] : starts[at + 1]]
        if line.strip():
            blanks = 0
            belongs = is_typed or _TYPED_TAG.match(line) is not None
        else:
            blanks += 1
            belongs = was_typed and blanks <= BLANKS
        if belongs != was_typed:
            if starts[at] > first:
                yield TypedStretch(start + first, start + starts[at], "typed" if was_typed else "bare")
            first, was_typed = starts[at], belongs
    if first < len(part):
        yield TypedStretch(start + first, end, "typed" if was_typed else "bare")
