"""Read a text that the agent wrote into a tree of its titles, list items and sentences.

A heading, a bold title or a line that ends with a colon is the parent of what follows it, and a list item is
the parent of what is indented below it. A line is a node for each of its sentences. Code blocks, quotations
and rulers are left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from compactd.core.text.atoms import sentences
from compactd.core.text.lazy_patterns import LazyPattern
from compactd.core.work import prose
from compactd.core.work.line_words import is_chain, is_polite, lowered

MAX_LINE_CHARS: Final = 400
"""A longer line is split into sentences."""
HEADING_CHARS: Final = 60
"""A longer line is no heading."""
SPLIT_CHARS: Final = 110
"""If there is no room for all lines, a longer line is split into sentences."""
MAX_NUMBER: Final = 999
"""The largest number of a list item."""

_TABLE: Final = LazyPattern(r"\A\s*\|.*\|\s*\Z")
_RULE: Final = LazyPattern(r"\A[\s|:=*_-]+\Z")
_HEADING: Final = LazyPattern(r"\A\s{0,3}(#{1,6})\s+")
_BOLD: Final = LazyPattern(r"\*\*(?=\S)((?:[^*\n]|\*(?!\*)){1,300}?)(?<=\S)\*\*")
_BULLET: Final = LazyPattern(r"\A(\s*)(?:[-*•+]|(\d{1,3})[.)])\s+")
_TITLE: Final = LazyPattern(
    r"\A\s*\*\*[^*\n]{1,120}\*\*[^\w\n]{0,9}(?:\([^()\n]{1,40}\)|\*\*[^*\n]{1,40}\*\*)?\W{0,9}\Z"
)
"""Matches a line that is only a title in bold letters."""
_NUMBERED: Final = LazyPattern(r"\A(?:[A-Z][a-z]{2,9} )?#?(\d{1,3})(?:[.):]| [—–·-])\s")
"""Matches the number of a title (`2. Results`, `Option 2: none`) or of a table's row."""
_REFERS: Final = LazyPattern(
    r"\A(?:this|that|it|its|they|these|those|but|so|also|however|therefore|then|otherwise|both)\b",
    re.IGNORECASE,
)
"""Matches the beginning of a sentence that is not understood without the one before."""

HEAD, TITLED, LEAD, ITEM, ROW, COLUMNS, PLAIN = range(7)
"""The kinds of lines: a heading, a title in bold letters, a line that introduces what follows, a list item, a
row of a table, the names of a table's columns, and all others."""

_TITLE_RANK, _PLAIN_RANK, _ITEM_RANK, _ROW_RANK = 10, 20, 21, 22
"""The ranks of lines that are not indented; each character of indentation adds 2. Headings have 1 to 6."""
_ABBREVIATIONS: Final = ("e.g.", "i.e.", "vs.", "etc.", "cf.", "approx.", "incl.")


class Line(msgspec.Struct, frozen=True):
    """A line of prose as it was read."""

    text: str
    kind: int
    rank: int
    """The parent of a line is the last line before it that has a lower rank."""
    is_apart: bool
    """Whether an empty line precedes it."""


class Node(msgspec.Struct, frozen=True):
    """A sentence, or a line that is not split."""

    text: str
    line: int
    kind: int
    parent: int
    """The place of the node that must be shown too; -1 for none."""
    series: int
    """The numbered list to which the node belongs; -1 for none."""


def clean_lines(text: str) -> list[str]:
    """Return the lines of prose and lists in `text`, without quotations, code blocks, rulers and emphasis. A
    heading ends with a colon; the cells of a table's row are joined. Of a code block, chains of arrows are
    kept. O(length)."""
    return texts_of(read_lines(text))


def read_lines(text: str) -> list[Line]:
    """Return the lines of `text` that are no code, quotation or ruler, without emphasis."""
    found: list[Line] = []
    fence = ""
    is_apart = is_bold = False
    for raw in text.split("\n"):
        bare = raw.strip()
        if fence or bare.startswith(("```", "~~~")):
            if not fence:
                fence = bare[:3]
            elif bare.startswith(fence):
                fence = ""
            elif is_chain(bare):
                rank = _ROW_RANK + 2 * (len(raw) - len(raw.lstrip()))
                found.append(Line(bare, ROW, rank, is_apart))
            continue
        if not bare:
            is_apart = True
            continue
        if bare.startswith((">", "＞")):
            continue
        if _RULE.match(bare):
            if "|" in bare and found and found[-1].kind == ROW and not is_apart:
                found[-1] = Line(found[-1].text, COLUMNS, found[-1].rank - 1, found[-1].is_apart)
            continue
        deeper = 2 * (len(raw) - len(raw.lstrip()))
        if (heading := _HEADING.match(raw)) is not None:
            line = f"{raw[heading.end() :].rstrip(' #:')}:"
            kind, rank = HEAD, len(heading[1])
        elif bare[0] == "|" and _TABLE.match(raw):
            line = " · ".join(cell for part in bare.strip("|").split("|") if (cell := part.strip()))
            kind, rank = ROW, _ROW_RANK + deeper
        else:
            line = raw.rstrip()
            if _BULLET.match(raw) is not None:
                kind, rank = ITEM, _ITEM_RANK + deeper
                if is_bold and not is_apart and found[-1].kind == PLAIN:
                    found[-1] = Line(found[-1].text, LEAD, found[-1].rank, found[-1].is_apart)
            elif line.endswith((":", "：", ":**")):
                kind, rank = LEAD, _PLAIN_RANK + deeper
            elif bare.startswith("**") and _TITLE.match(bare) is not None:
                kind, rank = TITLED, _TITLE_RANK
            else:
                kind, rank = PLAIN, _PLAIN_RANK + deeper
        found.append(Line(_BOLD.sub(r"\1", line) if "**" in line else line, kind, rank, is_apart))
        is_bold = bare.startswith("**")
        is_apart = False
    return found


def texts_of(read: Sequence[Line]) -> list[str]:
    """Return the texts of the lines, long ones by sentences, without headings of which nothing follows."""
    found: list[str] = []
    for one in read:
        if len(one.text) > MAX_LINE_CHARS:
            found.extend(part for part in sentences(one.text) if part.strip())
        else:
            found.append(one.text)
    # A heading without lines under it says nothing.
    return [
        line
        for n, (line, after) in enumerate(zip(found, [*found[1:], ""], strict=False))
        if not n
        or len(line) > HEADING_CHARS
        or not (line.endswith(":") and (not after or (after.endswith(":") and not _BULLET.match(after))))
    ]


def nodes_of(read: Sequence[Line]) -> list[Node]:
    """Return the sentences of the lines, in order, each with its parent. O(length)."""
    nodes: list[Node] = []
    above: list[tuple[int, int]] = []
    """The rank and the node of each line that can be a parent of the next one."""
    begun: dict[tuple[int, int], tuple[int, int]] = {}
    """The series and its last number, for each parent and kind of its items."""
    before = HEAD
    for n, line in enumerate(read):
        rank = line.rank
        if line.kind == PLAIN and before in (ITEM, LEAD) and not line.is_apart:
            rank = max(rank, above[-1][0] + 1)
        elif line.kind == PLAIN and before in (ITEM, ROW) and rank == _PLAIN_RANK:
            # What follows the list of a title is no longer about the title.
            rank = _TITLE_RANK
        while above and above[-1][0] >= rank:
            above.pop()
        parent = above[-1][1] if above else -1
        series = -1
        if (number := number_of(line)) > 0:
            last = begun.get((parent, line.kind), (-1, MAX_NUMBER))
            series = last[0] if number > last[1] else n
            begun[parent, line.kind] = (series, number)
        parts = _parts(line)
        lead = len(nodes)
        if line.kind == LEAD and parts[-1].endswith((":", "：")):
            nodes.extend(Node(part, n, PLAIN, parent, -1) for part in parts[:-1])
            lead = len(nodes)
            nodes.append(Node(parts[-1], n, LEAD, parent, series))
        else:
            nodes.append(Node(parts[0], n, line.kind, parent, series))
            base = lead
            for part in parts[1:]:
                needs = lead if line.kind != PLAIN else base if _REFERS.match(part) else parent
                if needs == parent:
                    base = len(nodes)
                nodes.append(Node(part, n, PLAIN, needs, -1))
        if line.kind not in (PLAIN, ROW):
            above.append((rank, lead))
        before = line.kind
    return nodes


def number_of(line: Line | Node) -> int:
    """Return the number of a list item, title or row; 0 if it has none."""
    if line.kind == ITEM:
        found = _BULLET.match(line.text)
        return 0 if found is None else int(found[2] or 0)
    found = None if line.kind in (PLAIN, COLUMNS) else _NUMBERED.match(line.text)
    return 0 if found is None else int(found[1])


def with_plain_marker(line: str) -> str:
    """Return a line with one form of list marker and at most one level of indentation."""
    found = _BULLET.match(line)
    if found is None:
        return line.strip()
    marker = f"{found[2]}." if found[2] else "-"
    return f"{marker} {line[found.end() :].strip()}"


def _parts(line: Line) -> list[str]:
    """Return the sentences of a line; a short one together with the next one. Titles and short lines are not
    split."""
    if line.kind in (HEAD, TITLED, ROW, COLUMNS) or (len(line.text) <= SPLIT_CHARS and line.kind != LEAD):
        return [line.text]
    marker = _BULLET.match(line.text)
    at = 0 if marker is None else marker.end()
    parts: list[str] = []
    short = line.text[:at]
    for sentence in sentences(line.text[at:]):
        part = f"{short}{sentence}"
        is_short = len(part) - at < prose.MIN_SENTENCE_CHARS and line.kind != LEAD
        is_open = part.endswith(_ABBREVIATIONS) or part.count("`") % 2 == 1
        is_open = is_open and len(part) < MAX_LINE_CHARS
        if is_open or (is_short and not is_polite(lowered(part))):
            short = f"{part} "
            continue
        parts.append(part)
        short, at = "", 0
    if short.strip():
        if parts:
            parts[-1] = f"{parts[-1]} {short.strip()}"
        else:
            parts.append(short.rstrip())
    return parts
