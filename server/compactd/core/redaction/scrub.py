"""Taking words out of texts that were made from them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

MARK = "[redacted]"
"""Stands where something was taken out."""

WORD_CHARS = 6
"""Words of so many code points go wherever they stand, also inside others. Shorter ones, as a PIN is, go
where they stand by themselves."""

LETTERS_CHARS = 3
"""Shorter words go only where they hold more than letters: of `my` and `is` every text is made."""

PIECE_CHARS = 32 * 1024
PIECE_MOST = 256 * 1024
"""Code points of a text that are looked at in one go: 1 to 5 ms."""

FEW = 100
"""Words up to which it is quicker to look for each in a text than to take the text apart."""

_CHUNK = re.compile(r"[^\s\"'`<>(){}\[\],;|]+")
_GAP = re.compile(r"[\s\"'`<>(){}\[\],;|]")
_EDGES = ".:!?=-*_/\\#&…"
_QUOTES = "\"'`<>(){}[],;|"
_MOST_AROUND = 2 * WORD_CHARS
"""A longer run without a blank is no short word with signs around it."""
_WORD = re.compile(r"\w+")
_BLANK = re.compile(r"\s+")
_PLAIN = re.compile(r"[^\W_]+")

_BEFORE = re.compile(r"\s*(?:[-*•] |\d+[.)] )?(?:\[[x ]\] )?")
_AROUND = re.compile(r"(?:\s+|[-*•] |\d+[.)] |\[e\d+\] |\(tool\) |\[[x ]\] )+")
"""What a record puts before what a line says."""

_SOURCE_FIRST = re.compile(r"(?:\[(e\d+)[ \]]|- (?:\[[x ]\] )?(e\d+) )")
_SOURCE_LAST = re.compile(r"\[(e\d+)\]$")
_SOURCE_CHARS = 24
"""How far from the end of a line its source can begin."""


class Scrubber(Struct, frozen=True):
    """Takes words, and lines, of redacted messages out of texts."""

    words: tuple[str, ...] = ()
    """Longest first."""
    short: re.Pattern[str] | None = None
    """Words below `WORD_CHARS`, where they stand by themselves."""
    lines: frozenset[str] = frozenset()
    entry_ids: frozenset[str] = frozenset()
    """Lines that name one of these as their source go whole."""

    def text(self, text: str) -> str:
        """`text` with the mark in their place. O(text × words)."""
        if self.lines or self.entry_ids:
            text = "\n".join(self._line(line) for line in text.split("\n"))
        for word in self.words:
            if word in text:
                text = text.replace(word, MARK)
        if self.short is not None:
            text = self.short.sub(MARK, text)
        return text

    def paths(self, paths: Sequence[str]) -> tuple[str, ...]:
        """The same for a list without repetitions."""
        return tuple(dict.fromkeys(self.text(path) for path in paths))

    def _line(self, line: str) -> str:
        source = _source(line)
        if source in self.entry_ids:
            before = _BEFORE.match(line)
            return f"{before[0] if before else ''}{MARK} [{source}]"
        said = _said(line)
        return line.replace(said, MARK) if said in self.lines else line


def scrubber(
    redacted: Sequence[str], others: Iterable[str], copies: Iterable[str], entry_ids: frozenset[str]
) -> Scrubber:
    """What takes `redacted` texts out of `copies`: words and lines that are in none of the `others`.

    A word of a copy that is a part of a redacted text counts as its word: copies are cut. Cost: O(bytes), in
    pieces that hold the interpreter for milliseconds; without copies nothing is looked for.
    """
    copied = [text for text in copies if text and text != MARK]
    if not copied:
        return Scrubber()
    whole, copy = "\n".join(redacted), "\n".join(copied)
    words = _found({word for text in redacted for word in words_of(text)}, copy)
    words |= _found({word for text in copied for word in words_of(text)}, whole)
    short = _short_in(redacted, copied)
    said = (_said(line) for text in copied for line in text.split("\n"))
    lines = _found({line for line in said if len(line) >= WORD_CHARS}, whole)
    for text in others:
        if not (words or lines or short):
            break
        lines = {line for line in lines if line not in text}
        for piece in _pieces(text):
            if len(words) > FEW or any(word in piece for word in words):
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
    """The words of `text` below `WORD_CHARS` code points that can tell something: with a digit, a sign or a
    letter beyond ASCII from two, of letters alone from `LETTERS_CHARS` code points. Some more than once."""
    for part in dict.fromkeys(_WORD.findall(text)):
        is_common = len(part) < LETTERS_CHARS and part.isascii() and part.isalpha()
        if 1 < len(part) < WORD_CHARS and not is_common:
            yield part
    for chunk in dict.fromkeys(_BLANK.split(text)):
        if len(chunk) > _MOST_AROUND or chunk.isalnum() or not any(map(str.isalnum, chunk)):
            continue
        for word in dict.fromkeys((chunk, chunk.strip(_QUOTES), chunk.strip(_QUOTES + _EDGES))):
            if 1 < len(word) < WORD_CHARS and not word.isalnum():
                yield word


def _short_in(redacted: Sequence[str], copied: Sequence[str]) -> set[str]:
    """Short words that both hold; of scripts without blanks also those that are a part of a longer one."""
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


def words_of(text: str) -> Iterator[str]:
    """The words of `text` with `WORD_CHARS` code points or more: what stands between blanks, quotes and
    brackets, and its parts of letters, digits and underscores; some more than once. O(text), in pieces."""
    for piece in _pieces(text):
        yield from _words_in(piece)


def _words_in(piece: str) -> Iterator[str]:
    # Each once: of the chunks of a log or of code most are repeated.
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
    """`text` in pieces that end between words; a run without an end is cut at `PIECE_MOST` code points."""
    start, size = 0, len(text)
    while size - start > PIECE_CHARS:
        gap = _GAP.search(text, start + PIECE_CHARS, start + PIECE_MOST)
        end = min(size, start + PIECE_MOST) if gap is None else gap.start()
        yield text[start:end]
        start = end
    yield text[start:]


def _found(wanted: set[str], text: str) -> set[str]:
    """Those of `wanted`, each of at least `WORD_CHARS` code points, that are in `text`. O(text + wanted), and
    a search for those whose beginning, middle and end are somewhere in it."""
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
    """The entry that a line of a record is from, where it names one: at its end, or before what it says."""
    said = line.strip()
    last = _SOURCE_LAST.search(said[-_SOURCE_CHARS:])
    if last is not None:
        return last[1]
    first = _SOURCE_FIRST.match(said)
    return None if first is None else first[1] or first[2]


def _said(line: str) -> str:
    """What a line of a record says, without what the record put around it."""
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
