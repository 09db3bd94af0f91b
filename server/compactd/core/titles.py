"""Titles of what a user said, by code."""

from __future__ import annotations

from compactd.messages import Message, Text

TITLE_CHARS = 60
"""Code points of a title at most (contract.md, session/history)."""


def title_of(message: Message) -> str | None:
    """The first meaningful line of a user's message, `TITLE_CHARS` at most; none where no person wrote it."""
    if message.role != "user" or (message.meta is not None and (message.meta.synthetic or message.meta.type)):
        return None
    for block in message.content:
        if isinstance(block, Text):
            title = _first_line(block.text)
            if title is not None:
                return title
    return None


def _first_line(text: str) -> str | None:
    # Enough for any title, and it keeps a pasted megabyte cheap.
    for line in text[:20_000].splitlines():
        words = " ".join(line.strip().lstrip("#>*-` \t").split())
        if any(char.isalnum() for char in words) and not words.startswith("<"):
            return words if len(words) <= TITLE_CHARS else words[: TITLE_CHARS - 1].rstrip() + "…"
    return None
