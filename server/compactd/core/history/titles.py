"""Derive a session's title from the user's words, without a model."""

from __future__ import annotations

import re

from compactd.core.authors.authors import USER, author_of, spans_of
from compactd.protocol.messages import Message, Text

TITLE_CHARS = 60
"""The maximum length of a title, in code points (protocol.md, "session/history")."""

TITLE_SEARCH_CHARS = 20_000
"""How many code points of a text are searched for a title."""


_WORDS = """
    hi hello hey yo hola hallo moin servus ciao salut bonjour there again claude codex gemini assistant all
    good morning afternoon evening test testing ping ok okay yes no thanks thank you please go on continue
    start begin help exit quit
"""
_SMALL_TALK = frozenset(_WORDS.split())
"""Words of which alone a title would say nothing about the session."""


def says_little(title: str) -> bool:
    """Return whether a title tells nothing about the session: a greeting, a test, or only the name of a slash
    command. A later message may give a better title.
    """
    if re.fullmatch(r"/[\w:.-]+", title):
        return True
    words = re.findall(r"\w+", title.lower())
    return len(words) <= 4 and all(word in _SMALL_TALK for word in words)


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
    begun = ""
    for line in text.splitlines():
        words = " ".join(line.strip().lstrip("#>*-` \t").split())
        if any(char.isalnum() for char in words) and not words.startswith("<"):
            begun = f"{begun} {words}".strip()
            # "Implement the following plan:" says less than what follows.
            if not begun.endswith(":") or len(begun) > TITLE_CHARS // 2:
                break
    if not begun:
        return None
    return begun if len(begun) <= TITLE_CHARS else begun[: TITLE_CHARS - 1].rstrip() + "…"
