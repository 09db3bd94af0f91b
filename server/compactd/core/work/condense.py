"""Shorten a text that the agent wrote to the lines that tell the most."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from compactd.core.text.atoms import sentences
from compactd.core.work import prose

MAX_LINE_CHARS: Final = 400
"""A longer line is split into sentences."""

HEADING_CHARS: Final = 60
"""A longer line is no heading."""
SHORT_LINE_CHARS: Final = 240
"""If there is no room for all lines, no line has more characters than this."""
SENTENCE_WORDS: Final = 6
"""A line with more words than this is a sentence."""

VALUE_SHARE: Final = 4.0
"""What the names and words of the most valuable line add to its worth."""

_TABLE: Final = re.compile(r"\A\s*\|.*\|\s*\Z")
_RULE: Final = re.compile(r"\A[\s|:=*_-]+\Z")
_HEADING: Final = re.compile(r"\A\s{0,3}#{1,6}\s+")
_BOLD: Final = re.compile(r"\*\*(?=\S)([^*\n]{1,300}?)(?<=\S)\*\*")
_BULLET: Final = re.compile(r"\A(\s*)(?:[-*•+]|(\d{1,3})[.)])\s+")
_OUTCOME: Final = re.compile(
    r"\b(?:passed|passes|passing|failed|fails|failing|fixed|committed|pushed|merged|reverted|removed|added"
    r"|changed|replaced|done|complete[d]?|verified|pending|remaining|open|blocked|broken|skipped|missing"
    r"|works|unchanged|not yet|still|todo|next)\b",
    re.IGNORECASE,
)
"""Words in a line about what was done, and how it ended."""
_NAMES: Final = re.compile(r"`[^`\n]+`|\d|[/_.]\w")
"""Matches a part of a line that names something exactly."""


def clean_lines(text: str) -> list[str]:
    """Return the lines of prose and lists in `text`, without quotations, code blocks, rulers and emphasis. A
    heading ends with a colon; the cells of a table's row are joined. O(length)."""
    found: list[str] = []
    fence = ""
    for raw in text.split("\n"):
        bare = raw.strip()
        if fence or bare.startswith(("```", "~~~")):
            if not fence:
                fence = bare[:3]
            elif bare.startswith(fence):
                fence = ""
            continue
        if not bare or bare.startswith((">", "＞")) or _RULE.match(bare):
            continue
        if (heading := _HEADING.match(raw)) is not None:
            line = f"{raw[heading.end() :].rstrip(' #:')}:"
        elif _TABLE.match(raw):
            line = " · ".join(cell for part in bare.strip("|").split("|") if (cell := part.strip()))
        else:
            line = raw.rstrip()
        line = _BOLD.sub(r"\1", line)
        if len(line) > MAX_LINE_CHARS:
            found.extend(part for part in sentences(line) if part.strip())
        else:
            found.append(line)
    # A heading without lines under it says nothing.
    return [
        line
        for n, (line, after) in enumerate(zip(found, [*found[1:], ""], strict=False))
        if not n
        or len(line) > HEADING_CHARS
        or not (line.endswith(":") and (not after or (after.endswith(":") and not _BULLET.match(after))))
    ]


def condense(text: str, most_chars: int, value: Callable[[str], float] = lambda _: 0.0) -> list[str]:
    """Return lines of `text` in their order, of at most about `most_chars` characters together. `…` stands
    where lines are left out. `value` says what the names and words in a line are worth, on any scale; the
    other half of a line's worth is what it says of the work. O(length)."""
    lines = clean_lines(text)
    if not lines:
        return []
    if sum(len(line) + 1 for line in lines) <= most_chars:
        return [_plain(line) for line in lines]
    lines = [_shorten(line) for line in lines]
    values = [value(line) for line in lines]
    most_valuable = max(values) or 1.0
    worth = [
        (_worth(lines, n) + VALUE_SHARE * values[n] / most_valuable) / (len(lines[n]) + 40) ** 0.5
        for n in range(len(lines))
    ]
    chosen = {0}
    room = most_chars - len(lines[0])
    for n in sorted(range(len(lines)), key=lambda n: (-worth[n], n)):
        if n and len(lines[n]) + 3 <= room:
            chosen.add(n)
            room -= len(lines[n]) + 3
    shown: list[str] = []
    before = -1
    for n in sorted(chosen):
        if shown and n != before + 1 and not shown[-1].endswith("…"):
            shown[-1] += " …"
        shown.append(_plain(lines[n]))
        before = n
    if shown and before != len(lines) - 1 and not shown[-1].endswith("…"):
        shown[-1] += " …"
    return shown


def names_something(line: str) -> bool:
    """Return whether a line names something exactly: in backticks, by a number or by a path."""
    return _NAMES.search(line) is not None


def _shorten(line: str) -> str:
    """Return a line without the sentences that exceed `SHORT_LINE_CHARS`; a longer sentence is cut at white
    space."""
    if len(line) <= SHORT_LINE_CHARS:
        return line
    kept = ""
    for sentence in sentences(line):
        if len(kept) + len(sentence) > SHORT_LINE_CHARS:
            break
        kept = f"{kept} {sentence}" if kept else sentence
    if not kept:
        at = line.rfind(" ", 0, SHORT_LINE_CHARS)
        kept = line[:at] if at > 0 else ""
    return f"{kept} …"


def _worth(lines: Sequence[str], n: int) -> float:
    """Return how much a line says about the work, by its words and by its place."""
    line = lines[n]
    worth = 2.0 * (n == 0) + 1.5 * (n == len(lines) - 1)
    worth += 1.5 * prose.decides(line) + 2.5 * prose.reports_failure(line)
    worth += 1.0 * (_OUTCOME.search(line) is not None) + 0.5 * min(2, len(_NAMES.findall(line)))
    worth += 0.5 * (_BULLET.match(line) is not None) + 1.0 * (line.count(" ") >= SENTENCE_WORDS)
    if line.endswith(":") and n:
        worth -= 1.5
    return worth


def _plain(line: str) -> str:
    """Return a line with one form of list marker and at most one level of indentation."""
    found = _BULLET.match(line)
    if found is None:
        return line.strip()
    marker = f"{found[2]}." if found[2] else "-"
    return f"{marker} {line[found.end() :].strip()}"
