"""Taking words out of texts that were made from them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

MARK = "[redacted]"
"""Stands where something was taken out."""

WORD_CHARS = 6
"""Shorter words are left: they say little, and half of every text is made of them (code points)."""

_CHUNK = re.compile(r"[^\s\"'`<>(){}\[\],;|]+")
_EDGES = ".:!?=-*_/\\#&…"
_WORD = re.compile(r"\w+")
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

    A word of a copy that is a part of a redacted text counts as its word: copies are cut. Cost: O(bytes);
    without copies nothing is looked for.
    """
    copied = [text for text in copies if text and text != MARK]
    if not copied:
        return Scrubber()
    whole = "\n".join(redacted)
    words = {word for text in redacted for word in words_of(text)}
    cut = {word for text in copied for word in words_of(text)}
    lines = {said for text in copied for line in text.split("\n") if len(said := _said(line)) >= WORD_CHARS}
    lines = {line for line in lines if line in whole}
    for text in others:
        if not (words or cut or lines):
            break
        there = set(words_of(text))
        words -= there
        cut -= there
        lines = {line for line in lines if line not in text}
    words |= {word for word in cut if word in whole}
    return Scrubber(
        words=tuple(
            sorted((word for word in words if word not in MARK), key=lambda word: (-len(word), word))
        ),
        lines=frozenset(line for line in lines if line not in MARK),
        entry_ids=entry_ids,
    )


def words_of(text: str) -> Iterator[str]:
    """The words of `text` with `WORD_CHARS` code points or more: what stands between blanks, quotes and
    brackets, and its parts of letters, digits and underscores. O(text)."""
    for found in _CHUNK.finditer(text):
        chunk = found[0].strip(_EDGES)
        if len(chunk) < WORD_CHARS:
            continue
        yield chunk
        if chunk.isalnum():
            continue
        for pattern in (_WORD, _PLAIN):
            for part in pattern.finditer(chunk):
                if len(part[0]) >= WORD_CHARS:
                    yield part[0]


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
