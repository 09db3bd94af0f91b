"""Derive a session's title from the user's words, without a model."""

from __future__ import annotations

from compactd.core.authors.authors import USER, author_of, spans_of
from compactd.protocol.messages import Message, Text

TITLE_CHARS = 60
"""The maximum length of a title, in code points (protocol.md, "session/history")."""

TITLE_SEARCH_CHARS = 20_000
"""How many code points of a text are searched for a title."""


def title_of(message: Message) -> str | None:
    """Return the first meaningful line of a user's message, shortened to `TITLE_CHARS` code points; None if
    no person wrote the message."""
    if message.role != "user":
        return None
    for block in message.content:
        if isinstance(block, Text) and author_of(message, block) == USER:
            text = block.text
            title = next(
                (
                    title
                    for span in spans_of(message, block)
                    if span.author == USER
                    # The limit is enough for any title and keeps a pasted megabyte cheap.
                    if (title := _first_line(text[span.start : span.end][:TITLE_SEARCH_CHARS])) is not None
                ),
                None,
            )
            if title is not None:
                return title
    return None


def _first_line(text: str) -> str | None:
    for line in text.splitlines():
        words = " ".join(line.strip().lstrip("#>*-` \t").split())
        if any(char.isalnum() for char in words) and not words.startswith("<"):
            return words if len(words) <= TITLE_CHARS else words[: TITLE_CHARS - 1].rstrip() + "…"
    return None
