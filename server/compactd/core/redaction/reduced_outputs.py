"""Redact tool outputs that were reduced: the originals, and the shorter texts that messages show instead.

A shorter text is a copy of its original, and may also show lines of an earlier output. So it is cleaned like
a summary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw

from compactd.core.history.entries import Appended, Entry, EntryId, OutputLink, Reduced
from compactd.core.history.outputs import replace_texts
from compactd.core.history.state import replay
from compactd.core.redaction.blank_message import ARGUMENTS, blank
from compactd.core.redaction.scrub import MARK, Scrubber
from compactd.core.reduce.marks import find_marks, left_out, shown_in
from compactd.protocol.messages import Message, Text, ToolResult

if TYPE_CHECKING:
    from compactd.core.redaction.redaction import Codec


def with_links(entries: Sequence[Entry], decode: Callable[[Raw], Message]) -> Sequence[Entry]:
    """Return `entries` in which each message names the reduced outputs that it shows. A hook writes messages
    without them. O(entries) if there are reduced outputs."""
    if not any(isinstance(entry, Reduced) for entry in entries):
        return entries
    state = replay(entries, decode)
    links = state.outputs.links
    linked = [
        msgspec.structs.replace(entry, outputs=links[entry.id])
        if isinstance(entry, Appended) and links.get(entry.id, ()) != entry.outputs and entry.id in links
        else entry
        for entry in entries
    ]
    state.release()
    return linked


def with_linked(entries: Sequence[Entry], entry_ids: frozenset[EntryId]) -> frozenset[EntryId]:
    """Return `entry_ids` with the originals of the reduced outputs that these messages show, and the messages
    that show these originals. O(entries)."""
    links = [
        (entry.id, link.output) for entry in entries if isinstance(entry, Appended) for link in entry.outputs
    ]
    known = set(entry_ids)
    while True:
        more = {one for pair in links if not known.isdisjoint(pair) for one in pair} - known
        if not more:
            return frozenset(known)
        known |= more


def blanked_output(entry: Reduced, codec: Codec) -> Reduced:
    """Return a reduced output with everything it says replaced by a mark."""
    message = blank(codec.decode(entry.message))
    tokens = codec.count(message)
    return msgspec.structs.replace(
        entry,
        message=Raw(codec.encode(message)),
        arguments=ARGUMENTS,
        shown=MARK,
        tokens=(tokens, codec.estimator),
        tokens_shown=tokens,
        refers=(),
    )


def shown_texts(
    message: Message, links: Sequence[OutputLink]
) -> Iterator[tuple[tuple[int, int | None], str]]:
    """Yield (place, text) of the reduced texts that a message shows exactly as the reduction gave them."""
    for link in links:
        if not link.is_exact or link.block >= len(message.content):
            continue
        block = message.content[link.block]
        if not isinstance(block, ToolResult):
            continue
        match block.content:
            case str() as text:
                yield (link.block, link.part), text
            case tuple() as inner:
                one = inner[link.part or 0] if len(inner) > (link.part or 0) else None
                if isinstance(one, Text):
                    yield (link.block, link.part or 0), one.text
            case _:
                pass


def own_message(entry: Appended, codec: Codec) -> Raw:
    """Return the message of an entry without the reduced texts in it."""
    if not entry.outputs:
        return entry.message
    message = codec.decode(entry.message)
    texts = dict.fromkeys((place for place, _ in shown_texts(message, entry.outputs)), "")
    return Raw(codec.encode(replace_texts(message, texts))) if texts else entry.message


def copied_texts(entry: Appended | Reduced, codec: Codec) -> Iterator[str]:
    """Yield the reduced texts in an entry."""
    if isinstance(entry, Reduced):
        yield entry.shown
    elif entry.outputs:
        yield from (text for _, text in shown_texts(codec.decode(entry.message), entry.outputs))


def _scrubbed(text: str, scrub: Scrubber) -> str:
    """Return a reduced text without the redacted words. Its marks stay marks: their numbers and ids are
    compactd's own, and if their words repeat redacted ones, such as the name of a file, the usual words take
    their place."""
    parts: list[str] = []
    at = 0
    for mark in find_marks(text):
        said = text[mark.start : mark.stop]
        words = said.replace(mark.entry_id, "").replace(f"{mark.count:,}", "")
        if scrub.text(words) != words:
            usual = shown_in if mark.is_elsewhere else left_out
            said = usual(mark.count, "lines" if mark.is_elsewhere else "lines left out", mark.entry_id)
        parts += (scrub.text(text[at : mark.start]), said)
        at = mark.stop
    return "".join((*parts, scrub.text(text[at:])))


def clean_output(entry: Reduced, scrub: Scrubber, count: Callable[[Message], int]) -> Reduced:
    """Return a reduced output whose shorter text is without the redacted words."""
    shown = _scrubbed(entry.shown, scrub)
    if shown == entry.shown:
        return entry
    message = Message(role="tool", content=(ToolResult(call_id="", content=shown),))
    return msgspec.structs.replace(entry, shown=shown, tokens_shown=count(message))


def clean_shown(entry: Appended, scrub: Scrubber, codec: Codec) -> Appended:
    """Return a message whose reduced texts are without the redacted words."""
    if not entry.outputs:
        return entry
    message = codec.decode(entry.message)
    texts = {
        place: cleaned
        for place, text in shown_texts(message, entry.outputs)
        if (cleaned := _scrubbed(text, scrub)) != text
    }
    if not texts:
        return entry
    message = replace_texts(message, texts)
    tokens = (codec.count(message), codec.estimator)
    return msgspec.structs.replace(entry, message=Raw(codec.encode(message)), tokens=tokens)
