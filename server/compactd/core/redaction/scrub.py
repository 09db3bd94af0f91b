"""Scrub redacted words out of texts that were derived from messages, such as summaries."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from compactd.core.text.lazy_patterns import LazyPattern

MARK = "[redacted]"
"""The text that replaces what was removed."""

WORD_CHARS = 6
"""Words with at least this many code points are removed anywhere, also inside other words. Shorter ones, such
as a PIN, are removed only as separate words."""

LETTERS_CHARS = 3
"""Words with fewer code points than this are removed only if they contain more than letters, because every
text contains words such as `my` and `is`."""

PIECE_CHARS = 32 * 1024
MAX_PIECE_CHARS = 256 * 1024
"""A text is examined in pieces of at least `PIECE_CHARS` code points, up to the next gap between words, but
at most `MAX_PIECE_CHARS`. Each piece takes 1 to 5 ms."""

MAX_SEARCHED_WORDS = 100
"""With up to this many words, searching the text for each is faster than splitting the text into words."""

_CHUNK = LazyPattern(r"[^\s\"'`<>(){}\[\],;|]+")
_GAP = LazyPattern(r"[\s\"'`<>(){}\[\],;|]")
_EDGES = ".:!?=-*_/\\#&…"
_QUOTES = "\"'`<>(){}[],;|"
_MAX_AROUND = 2 * WORD_CHARS
"""A run without white space that is longer than this is not a short word with signs around it."""
_WORD = LazyPattern(r"\w+")
_BLANK = LazyPattern(r"\s+")
_PLAIN = LazyPattern(r"[^\W_]+")

_BEFORE = LazyPattern(r"\s*(?:[-*•] |\d+[.)] )?(?:\[[x ]\] )?")
_AROUND = LazyPattern(r"(?:\s+|[-*•] |\d+[.)] |\[e\d+\] |\(tool\) |\[[x ]\] )+")
"""What a summary writes before the content of a line: white space, list markers, checkboxes, the source, a
tool mark."""

_SOURCE_FIRST = LazyPattern(r"(?:\[(e\d+)[ \]]|- (?:\[[x ]\] )?(e\d+) )")
_SOURCE_LAST = LazyPattern(r"\[(e\d+)\]$")
_SOURCE_CHARS = 24
"""At the end of a line, the source (`[e12]`) has at most this many characters."""


class Scrubber(Struct, frozen=True):
    """The words and lines of redacted messages, and how to remove them from texts."""

    words: tuple[str, ...] = ()
    """Long words to remove, the longest first."""
    short: re.Pattern[str] | None = None
    """A pattern for the words to remove that are shorter than `WORD_CHARS`. It matches them only as separate
    words. None if there are none."""
    lines: frozenset[str] = frozenset()
    entry_ids: frozenset[str] = frozenset()
    """Lines that name one of these entries as their source are removed completely."""

    def text(self, text: str) -> str:
        """Return `text` with the mark in place of the words and lines. O(text × words)."""
        if self.lines or self.entry_ids:
            text = "\n".join(self._line(line) for line in text.split("\n"))
        for word in self.words:
            if word in text:
                text = text.replace(word, MARK)
        if self.short is not None:
            text = self.short.sub(MARK, text)
        return text

    def paths(self, paths: Sequence[str]) -> tuple[str, ...]:
        """Scrub each of `paths`, and drop duplicates."""
        return tuple(dict.fromkeys(self.text(path) for path in paths))

    def _line(self, line: str) -> str:
        source = _source(line)
        if source in self.entry_ids:
            before = _BEFORE.match(line)
            return f"{before[0] if before else ''}{MARK} [{source}]"
        said = _line_text(line)
        return line.replace(said, MARK) if said in self.lines else line


def scrubber(
    redacted: Sequence[str], others: Iterable[str], copies: Iterable[str], entry_ids: frozenset[str]
) -> Scrubber:
    """Build the scrubber that removes the words and lines of the `redacted` texts from `copies`. Words and
    lines that also occur in `others` stay.

    A word of a copy that is only a part of a redacted text counts too, because copies may be cut off.
    O(bytes), in pieces that hold the interpreter lock for milliseconds. Without copies, nothing is searched.
    """
    copied = [text for text in copies if text and text != MARK]
    if not copied:
        return Scrubber()
    whole, copy = "\n".join(redacted), "\n".join(copied)
    words = _find_words({word for text in redacted for word in distinct_words(text)}, copy)
    words |= _find_words({word for text in copied for word in distinct_words(text)}, whole)
    short = _short_in(redacted, copied)
    said = (_line_text(line) for text in copied for line in text.split("\n"))
    lines = _find_words({line for line in said if len(line) >= WORD_CHARS}, whole)
    for text in others:
        if not (words or lines or short):
            break
        lines = {line for line in lines if line not in text}
        for piece in _pieces(text):
            if len(words) > MAX_SEARCHED_WORDS or any(word in piece for word in words):
                words -= set(_words_in(piece))
            if short:
                short -= set(short_words_in(piece))
    return Scrubber(
        words=tuple(
            sorted((word for word in words if word not in MARK), key=lambda word: (-len(word), word))
        ),
        short=_pattern(short),
        lines=frozenset(line for line in lines if line not in MARK),
        entry_ids=entry_ids,
    )


def short_words_in(text: str) -> Iterator[str]:
    """Yield the words of `text` with fewer than `WORD_CHARS` code points that can reveal something. These are
    words of at least two code points with a digit, a sign or a non-ASCII letter, and words of at least
    `LETTERS_CHARS` letters. There may be duplicates."""
    for part in dict.fromkeys(_WORD.findall(text)):
        is_common = len(part) < LETTERS_CHARS and part.isascii() and part.isalpha()
        if 1 < len(part) < WORD_CHARS and not is_common:
            yield part
    for chunk in dict.fromkeys(_BLANK.split(text)):
        if len(chunk) > _MAX_AROUND or chunk.isalnum() or not any(map(str.isalnum, chunk)):
            continue
        for word in dict.fromkeys((chunk, chunk.strip(_QUOTES), chunk.strip(_QUOTES + _EDGES))):
            if 1 < len(word) < WORD_CHARS and not word.isalnum():
                yield word


def _short_in(redacted: Sequence[str], copied: Sequence[str]) -> set[str]:
    """Return the short words that occur both in `redacted` and in `copied`. A word with non-ASCII letters in
    `copied` also counts if it is only a part of a redacted text, because some scripts have no spaces."""
    there = {word for text in copied for word in short_words_in(text)}
    said = {word for text in redacted for word in short_words_in(text)}
    beyond = {word for word in there - said if not word.isascii()}
    return (there & said) | {word for word in beyond if any(word in text for text in redacted)}


def _pattern(short: set[str]) -> re.Pattern[str] | None:
    if not short:
        return None
    words = sorted(short, key=lambda word: (-len(word), word))
    before = (r"(?<!\w)" if _is_part(word[0]) else "" for word in words)
    after = (r"(?!\w)" if _is_part(word[-1]) else "" for word in words)
    alone = (f"{b}{re.escape(word)}{a}" for b, word, a in zip(before, words, after, strict=True))
    return re.compile("|".join(alone))


def _is_part(char: str) -> bool:
    return _WORD.match(char) is not None


def distinct_words(text: str) -> Iterator[str]:
    """Yield the words of `text` with at least `WORD_CHARS` code points: runs without white space, quotes and
    brackets, and the alphanumeric parts of these runs. There may be duplicates. O(text), in pieces."""
    for piece in _pieces(text):
        yield from _words_in(piece)


def _words_in(piece: str) -> Iterator[str]:
    # Examine each chunk only once, because most chunks of a log or of code are repeated.
    for chunk in dict.fromkeys([found.strip(_EDGES) for found in dict.fromkeys(_CHUNK.findall(piece))]):
        if len(chunk) < WORD_CHARS:
            continue
        yield chunk
        if chunk.isalnum():
            continue
        for pattern in (_WORD, _PLAIN):
            for part in pattern.findall(chunk):
                if len(part) >= WORD_CHARS:
                    yield part


def _pieces(text: str) -> Iterator[str]:
    """Yield `text` in pieces that end between words. A run without a gap is cut at `MAX_PIECE_CHARS` code
    points."""
    start, size = 0, len(text)
    while size - start > PIECE_CHARS:
        gap = _GAP.search(text, start + PIECE_CHARS, start + MAX_PIECE_CHARS)
        end = min(size, start + MAX_PIECE_CHARS) if gap is None else gap.start()
        yield text[start:end]
        start = end
    yield text[start:]


def _find_words(wanted: set[str], text: str) -> set[str]:
    """Return which of `wanted` occur in `text`. Each must have at least `WORD_CHARS` code points. O(text +
    wanted), plus a search for each word whose beginning, middle and end all occur."""
    parts = {part for word in wanted for part in _parts(word)}
    there: set[str] = set()
    last = len(text) - WORD_CHARS + 1
    for start in range(0, last, PIECE_CHARS):
        places = range(start, min(start + PIECE_CHARS, last))
        there |= {part for at in places if (part := text[at : at + WORD_CHARS]) in parts}
    return {word for word in wanted if there.issuperset(_parts(word)) and word in text}


def _parts(word: str) -> tuple[str, str, str]:
    middle = (len(word) - WORD_CHARS) // 2
    return word[:WORD_CHARS], word[middle : middle + WORD_CHARS], word[-WORD_CHARS:]


def _source(line: str) -> str | None:
    """Return the entry that a line of a summary names as its source, at its end or before its content; None
    if it names none."""
    said = line.strip()
    last = _SOURCE_LAST.search(said[-_SOURCE_CHARS:])
    if last is not None:
        return last[1]
    first = _SOURCE_FIRST.match(said)
    return None if first is None else first[1] or first[2]


def _line_text(line: str) -> str:
    """Return the content of a line of a summary, without list marker, source and similar additions."""
    before = _AROUND.match(line)
    said = line[before.end() :] if before is not None else line
    while True:
        shorter = said.rstrip().removesuffix("…")
        source = _SOURCE_LAST.search(shorter[-_SOURCE_CHARS:])
        if source is not None:
            shorter = shorter[: len(shorter) - len(source[0])]
        if shorter == said:
            return said
        said = shorter
