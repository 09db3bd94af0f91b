"""The words of a text and of a query, for the search indexes."""

from __future__ import annotations

import re

# Characters of scripts without spaces between words. Each is indexed as a word, and a word is searched as a
# phrase.
_UNSPACED = re.compile("([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff])")
_SPACED = re.compile(f"(?<={_UNSPACED.pattern}) (?={_UNSPACED.pattern})")
_WORD = re.compile(r"\w+")


def index_text(text: str) -> str:
    """Return `text` as it is stored in the index: with spaces around each character of a script without
    spaces.
    """
    return text if text.isascii() else _UNSPACED.sub(r" \1 ", text)


def readable(text: str) -> str:
    """Return a part of an `index_text` without the spaces that `index_text` added."""
    return _SPACED.sub("", text)


def words_of(text: str) -> list[str]:
    """Return the words of an `index_text`, in order. O(text)."""
    return _WORD.findall(text)


def phrases_of(query: str) -> list[list[str]]:
    """Return the query as a list of phrases. Words without a space between them (`a-b`) are one phrase."""
    chunks = (words_of(_UNSPACED.sub(r" \1 ", chunk)) for chunk in query.split())
    return [words for words in chunks if words]
