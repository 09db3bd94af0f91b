"""The sentences that a user typed: not code, quoted lines, logs, or what programs put into the message.

`authors.py` says which stretches are the person's; this module leaves out the lines in them that were copied
from a log, a file or a terminal. A rule in quoted or pasted text is not the user's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from compactd.core.atoms import sentences
from compactd.core.authors import USER, author_of
from compactd.core.entries import Item
from compactd.core.lines import typed_parts
from compactd.messages import Text

WRAPPED_CHARS: Final = 50
"""A line from this length on that ends in the middle of a sentence goes on in the next one."""

LOG_LINES: Final = 4
LOG_SHARE: Final = 0.5
"""A block of so many lines, of which such a share are a program's, is a program's as a whole."""

_BULLET = re.compile(r"\A\s*(?:[-*+•‣–]|\(?\d{1,3}[.)]|[a-z][.)])\s+")
_LOG = re.compile(
    r"\s*(?:"
    r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d"  # a date and time
    r"|\[?\d\d:\d\d:\d\d"
    r"|\[?(?:INFO|DEBUG|TRACE|WARN(?:ING)?|ERROR|FATAL|CRITICAL|NOTICE|FAIL(?:ED)?|PASS(?:ED)?|OK)\b[\]: ]"
    r"|(?:npm|yarn|pip|cargo|go|make(?:\[\d+\])?|gcc|ld|fatal|error|warning|note|hint|remote)"
    r"(?: ERR!| WARN|:|\[\w+\]:)"
    r"|at \S+ ?\(|at \S+:\d+|File \"[^\"]+\", line \d+|Traceback \(|Caused by:|goroutine \d+"
    r"|[\w./\\-]+:\d+(?::\d+)?:"  # a place in a file
    r"|\d{1,6}(?:→|\||\t)"  # a numbered line of a file
    r"|(?:\+\+\+|---|@@) |diff --git |[+-](?=\S*[;{}()=])"
    r"|[$%❯➜] ?\S+ |>>> |\.\.\. |E   +|\(tool\) |\[e\d+ "
    r"|[{}\[\]]+,?\s*$|\"[^\"]*\":|</?\w+[^<>]*>\s*$"
    r"|[A-Za-z_]\w*(?:Error|Exception)\b:"
    r")"
)
_WITHOUT_CODE_SIGNS = str.maketrans("", "", "{}()[];=<>|\\$&*#@~^+_")
_ABBREVIATED = re.compile(
    r"\b(?:(?i:e\.g|i\.e|etc|vs|cf|resp|approx|incl|nr|dr|mr|mrs|fig|bzw|ca|z\.\s?B|p\.\s?ex)|[A-Z])\.$"
)


def typed_sentences(item: Item) -> Iterator[str]:
    """The sentences that the user typed in this message, as they were typed, in order; a sentence over
    several lines on one. Nothing where no person wrote the message.

    Of a message above `lines.OWN_WORDS_CHARS` the first and the last quarter of that count as typed.
    O(characters).
    """
    message = item.message
    if message.role != "user":
        return
    for block in message.content:
        if isinstance(block, Text) and author_of(message, block) == USER:
            for start, end, is_own in typed_parts(block.text):
                if is_own:
                    yield from sentences_in(block.text[start:end])


def sentences_in(text: str) -> Iterator[str]:
    """The sentences of a text, without the lines in it that were copied from somewhere. O(characters)."""
    for paragraph in _paragraphs(text):
        yield from _whole(sentences(paragraph))


def without_bullet(line: str) -> str:
    """`line` without the sign of a list in front."""
    return _BULLET.sub("", line, count=1).strip()


def _paragraphs(text: str) -> Iterator[str]:
    """Runs of typed lines that belong together, each as one line."""
    block: list[str] = []
    for line in (*text.split("\n"), ""):
        if line.strip():
            block.append(line)
            continue
        if block and not _is_log(block):
            yield from _joined([part for part in block if not _is_foreign(part)])
        block = []


def _is_log(block: list[str]) -> bool:
    foreign = sum(_is_foreign(line) for line in block)
    return len(block) >= LOG_LINES and foreign >= LOG_SHARE * len(block)


def _is_foreign(line: str) -> bool:
    """True for a line that was quoted or copied: from a log, a file, a terminal, another's message."""
    if line.lstrip().startswith((">", "|")):
        return True
    if line.startswith(("    ", "\t")) and _BULLET.match(line) is None:
        return True
    bare = line.strip()
    if _BULLET.match(bare) is None and _LOG.match(bare) is not None:
        return True
    signs = len(bare) - len(bare.translate(_WITHOUT_CODE_SIGNS))
    return (signs >= 4 and signs * 8 > len(bare)) or '":' in bare or '"}' in bare or r"\n\n" in bare


def _joined(lines: list[str]) -> Iterator[str]:
    """`lines` with what was wrapped put on one line again."""
    waiting = ""
    for line in lines:
        bare = line.strip()
        goes_on = (
            waiting
            and len(waiting) >= WRAPPED_CHARS
            and not waiting.endswith((".", "!", "?", ":", "。", "！", "？"))
            and bare[:1].islower()
            and _BULLET.match(line) is None
        )
        if goes_on:
            waiting = f"{waiting} {bare}"
            continue
        if waiting:
            yield waiting
        waiting = _BULLET.sub("", line, count=1).strip()
    if waiting:
        yield waiting


def _whole(parts: list[str]) -> Iterator[str]:
    """Sentences, those that were parted after an abbreviation put together again."""
    waiting = ""
    for part in parts:
        waiting = f"{waiting} {part.strip()}" if waiting else part.strip()
        if _ABBREVIATED.search(waiting[-12:]) is None:
            yield waiting
            waiting = ""
    if waiting:
        yield waiting
