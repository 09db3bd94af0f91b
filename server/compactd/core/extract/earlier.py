"""Read a summary that another agent or a model wrote into the sections of compactd's own summary.

Headings are mapped to sections by their words. Under a heading, a list item with everything indented below it
is one item, and so is a paragraph with the list that it introduces: "not done yet:" and the list under it say
something false if they are separated.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Final

from msgspec import Struct

from compactd.core.authors.authors import SUMMARY, stretches_of
from compactd.core.history.entries import Item, is_summary
from compactd.core.text.lazy_patterns import LazyPattern
from compactd.core.text.message_text import join_text_blocks
from compactd.core.text.summary_format import (
    BLOCKED,
    CONSTRAINTS,
    CONTEXT,
    DECISIONS,
    DONE,
    FAILURES,
    GOAL,
    IN_PROGRESS,
    NEXT,
)
from compactd.core.work.text_outline import clean_lines
from compactd.protocol.messages import Message

MAX_CHARS: Final = 200_000
"""Only this many characters of a summary are read."""
MAX_LINE_CHARS: Final = 4_000
MAX_ITEMS: Final = 200
"""The first items of each section are kept."""
MIN_SECTIONS: Final = 2
"""A summary that follows notes has at least so many sections."""
MAX_HEADING_CHARS: Final = 80
"""A longer line is no heading."""
MAX_CODE_LINES: Final = 3
MAX_CODE_CHARS: Final = 200
"""A longer block of code is left out."""

_SECTIONS: Final = (
    ("user messages", CONTEXT),
    ("decision|decided", DECISIONS),
    ("block", BLOCKED),
    ("next|pending|todo|to do|remaining|outstanding|plan|task tracking", NEXT),
    ("in progress|current|ongoing|under way", IN_PROGRESS),
    ("constraint|preference|rule|instruction|requirement|guideline|convention", CONSTRAINTS),
    ("problem solving", DONE),
    ("error|problem|fail|fix|bug|issue", FAILURES),
    ("done|progress|complete|accomplish|change|recent action|achieve|work", DONE),
    ("goal|objective|request|intent|mission|task|purpose|user context", GOAL),
    (
        "file|code|director|reference|context|environment|command|concept|knowledge|discover|finding|key",
        CONTEXT,
    ),
)
"""Words that begin in a heading, and its section. The first match counts; other headings belong to Critical
Context."""
_MAPPED: Final = tuple((LazyPattern(rf"\b(?:{words})"), section) for words, section in _SECTIONS)
_EXACT: Final = LazyPattern(
    r"(?:done|completed|in progress|current work|blocked|what failed|pending|next steps?"
    r"|(?:key )?decisions)\Z"
)
"""Matches the words of a heading that begins a section of its own, also below another heading."""

_TITLED: Final = LazyPattern(r" {0,3}(#{1,6})\s+(\S[^\n]*)\Z")
_NUMBERED: Final = LazyPattern(r" ?\d{1,2}[.)] +(\S[^\n]*)\Z")
_TAG: Final = LazyPattern(r"\s{0,8}<(/?)([A-Za-z][\w-]{1,40})>(?:([^\n<]*)</\2>)?\s*\Z")
_SHOUTED: Final = LazyPattern(r"([A-Z][A-Z_]{3,30}):(?:\s+(\S[^\n]*))?\Z")
"""Matches a key and its text, as in `PENDING: write the docs` (OpenHands, seen 2026-11)."""
_BULLET: Final = LazyPattern(r"\A(\s*)(?:[-*•+]|\d{1,3}[.)])\s+(?:\[[xX✓]\]\s+)?")
_BEGIN: Final = LazyPattern(r"\s{0,3}(?:<summary>|[*#\s]{0,6}Summary:?[*\s]{0,4})\s*\Z")
"""Matches the line before the sections, after notes that the summary repeats (Claude Code, seen 2026-11)."""
_FRAMES: Final = LazyPattern(
    r"\s*(?:This session is being continued from a previous conversation"
    r"|Another language model started to solve this problem"
    r"|The conversation history before this point was compacted"
    r"|If you need specific details from before compaction"
    r"|Please continue the conversation from where|Continue the conversation from where"
    r"|Recent messages are preserved|Record of the conversation before this point"
    r"|Lines from the messages, oldest first"
    r"|\[[^\]\n]*\]\s*\Z)"
)
"""Matches a line that a program wrote around a summary: an introduction, an instruction or an end mark."""
_FILE_TAGS: Final = ("read-files", "modified-files", "analysis")
"""Tags around texts that are not read: lists of files, which are read elsewhere, and notes that the summary
repeats."""
_REFERENCE: Final = LazyPattern(r"[ \t]?\[e\d{1,9}\]")
"""Matches a reference to a message of the conversation that was summarised."""
_NOTHING: Final = LazyPattern(r"\(?(?:none|n/a|nothing)[^\w\n]{0,3}\)?\.?\Z", re.IGNORECASE)
_NOTHING_OPEN: Final = LazyPattern(
    r"\W{0,3}(?:none|nothing|no (?:pending|open|remaining|outstanding|blockers?|further))\b", re.IGNORECASE
)
"""Matches an item that says that nothing is open."""
_OWN_MARK: Final = LazyPattern(r"\A\s{0,8}\(summary\) (?:(?:Open at|At) that time: )?")
"""Matches what compactd wrote before an item of a summary that was earlier still (`earlier_items.py`)."""
_MARKS: Final = "*_#:： \t"


class Earlier(Struct, frozen=True):
    """What an earlier summary says."""

    sections: Mapping[str, Sequence[Sequence[str]]]
    """For each section, its items in order. An item is its lines, without list markers and emphasis."""


def earlier_summaries(items: Sequence[Item]) -> list[Item]:
    """Return the summaries with which a conversation begins. The messages that they summarise are not in the
    conversation. O(summaries)."""
    spoken = (item for item in items if item.message.role != "system")
    return list(takewhile(lambda item: _is_a_summary(item.message), spoken))


def _is_a_summary(message: Message) -> bool:
    if is_summary(message):
        return True
    if message.role != "user":
        return False
    authors = {
        stretch.author
        for block in message.content
        for stretch in stretches_of(message, block)
        if stretch.text.strip()
    }
    return authors == {SUMMARY}


def read_earlier(item: Item) -> Earlier:
    """Return what the summary in this message says, by section. O(length)."""
    return read_sections(join_text_blocks(item.message.content, "\n\n"))


def read_sections(text: str) -> Earlier:
    """Return what the text of a summary says, by section. O(length)."""
    lines = _lines(text[:MAX_CHARS])
    begin = next((at for at, line in enumerate(lines) if _BEGIN.match(line)), -1)
    found = _read(lines[begin + 1 :])
    # Without sections after it, the line was a heading like others.
    return Earlier(_read(lines) if begin >= 0 and len(found) < MIN_SECTIONS else found)


def _read(lines: Sequence[str]) -> Mapping[str, Sequence[Sequence[str]]]:
    reader = _Reader(has_title=_has_title(lines))
    for line in lines:
        reader.add(line)
    return reader.end()


def _has_title(lines: Sequence[str]) -> bool:
    """Return whether the only heading of the first level stands above the others, as the text's title."""
    levels = [len(found[1]) for line in lines if (found := _TITLED.match(line)) is not None]
    return levels.count(1) == 1 and len(levels) > 1


def _lines(text: str) -> list[str]:
    """Return the lines that the summary's author wrote. A short block of code is one line of the text before
    it; a long one is left out."""
    found: list[str] = []
    skipped = fence = ""
    code: list[str] = []
    for raw in text.splitlines():
        line = raw[:MAX_LINE_CHARS].rstrip().replace("\t", "    ")
        bare = line.strip()
        if fence:
            if bare.startswith(fence):
                fence = ""
                inner = "; ".join(one.strip() for one in code)
                if code and len(code) <= MAX_CODE_LINES and len(inner) <= MAX_CODE_CHARS and "`" not in inner:
                    found.append(f"        `{inner}`")
                elif found and found[-1].startswith((" ", "-", "*")):
                    found[-1] = f"{found[-1].rstrip(' :：')}."
            elif len(code) <= MAX_CODE_LINES and bare:
                code.append(line)
            continue
        if bare.startswith(("```", "~~~")):
            fence, code = bare[:3], []
            continue
        if skipped:
            skipped = "" if bare == f"</{skipped}>" else skipped
            continue
        skipped = next((tag for tag in _FILE_TAGS if bare == f"<{tag}>"), "")
        if not skipped and not _FRAMES.match(line):
            found.append(_REFERENCE.sub("", line))
    return found


class _Heading(Struct, frozen=True):
    level: int
    """The smaller, the higher."""
    words: str
    rest: str = ""
    """The text on the same line."""


class _Reader:
    """Collects the items of a summary line by line."""

    def __init__(self, *, has_title: bool) -> None:
        self._has_title = has_title
        self._sections: dict[str, list[list[str]]] = {}
        self._section = CONTEXT
        self._level = 0
        """The level of the heading of the current section; 0 before the first."""
        self._item: list[str] = []
        self._indent = 0
        """How far the list marker of the current item is indented."""
        self._is_lead = False
        """Whether the current item began with a line that introduces a list."""
        self._is_after_blank = True

    def add(self, line: str) -> None:
        """Read the next line."""
        if not line.strip():
            self._is_after_blank = True
            return
        tag = _TAG.match(line)
        heading = None if tag is not None and tag[1] else _heading_of(line, tag, self._level)
        if heading is not None:
            self._begin(heading)
        elif tag is None:
            self._read(line)
        self._is_after_blank = False

    def end(self) -> Mapping[str, Sequence[Sequence[str]]]:
        """Return the items by section."""
        self._close()
        return self._sections

    def _begin(self, heading: _Heading) -> None:
        words = heading.words.lower()
        if self._has_title and heading.level == 1:
            self._close()
            self._section, self._level = CONTEXT, 0
            return
        is_below = 0 < self._level < heading.level
        self._close()
        if is_below and not _EXACT.match(words):
            # A heading inside a section introduces what follows it.
            self._open(f"{heading.words}:", indent=-1, is_lead=True)
            return
        section = _section_of(words)
        self._section = CONTEXT if section is None else section
        if not is_below:
            self._level = heading.level
        if section is None:
            self._open(f"{heading.words}:", indent=-1, is_lead=True)
        elif "user messages" in words:
            self._open("The user's messages, in the summary's words:", indent=-1, is_lead=True)
        if heading.rest:
            self._read(heading.rest)

    def _read(self, line: str) -> None:
        """Read a line that is no heading."""
        found = _BULLET.match(line)
        indent = len(line) - len(line.lstrip())
        if found is not None:
            if not self._item or (indent <= self._indent and not self._is_lead):
                self._close()
                self._open(line[found.end() :], indent=indent, is_lead=False)
                return
        elif not self._item or (self._is_after_blank and indent <= max(0, self._indent)):
            if not self._is_lead or self._indent >= 0:
                self._close()
                self._open(line.strip(), indent=indent, is_lead=line.endswith((":", "：")))
                return
        elif line.endswith((":", "：")) and indent <= self._indent and not self._is_lead:
            self._close()
            self._open(line.strip(), indent=indent, is_lead=True)
            return
        self._item.append(line.strip())

    def _open(self, line: str, *, indent: int, is_lead: bool) -> None:
        self._item = [_OWN_MARK.sub("", line, count=1)]
        self._indent, self._is_lead = indent, is_lead

    def _close(self) -> None:
        lines = [_BULLET.sub("", line, count=1).strip() for line in clean_lines("\n".join(self._item))]
        is_empty = len(lines) == 1 and lines[0].endswith((":", "：")) and self._is_lead
        is_open = self._section in (NEXT, IN_PROGRESS, BLOCKED)
        nothing = _NOTHING_OPEN if is_open else _NOTHING
        if lines and not is_empty and not nothing.match(lines[0]):
            items = self._sections.setdefault(self._section, [])
            if len(items) < MAX_ITEMS:
                items.append(lines)
        self._item, self._is_lead = [], False


def _heading_of(line: str, tag: re.Match[str] | None, level: int) -> _Heading | None:
    """Return the heading that a line is; None if it is none. `level` is that of the current section's
    heading."""
    if tag is not None:
        words = tag[2].replace("_", " ").replace("-", " ")
        return _Heading(1, words, tag[3] or "") if _section_of(words.lower()) is not None else None
    if (found := _TITLED.match(line)) is not None:
        return _Heading(len(found[1]), _plain(found[2]))
    if (found := _SHOUTED.match(line)) is not None:
        return _Heading(1, found[1].replace("_", " ").lower(), found[2] or "")
    if len(line) > MAX_HEADING_CHARS:
        return None
    found = _NUMBERED.match(line)
    bare = line.strip() if found is None else found[1].strip()
    is_bold = bare.startswith("**") and bare.rstrip(":： ").endswith("**")
    if line.startswith(("  ", "- ", "* ")) or not (is_bold or bare.endswith((":", "："))):
        return None
    words = _plain(bare)
    if found is not None:
        return _Heading(2, words) if _section_of(words.lower()) is not None else None
    # A line such as "Done:" is a heading only if its words are one.
    if is_bold or _EXACT.match(words.lower()) or (level in (0, 7) and _section_of(words.lower()) is not None):
        return _Heading(7, words)
    return None


def _section_of(words: str) -> str | None:
    """Return the section of a heading with these words, in lower case; None if they name none."""
    return next((section for pattern, section in _MAPPED if pattern.search(words)), None)


def _plain(heading: str) -> str:
    """Return the words of a heading without its number and signs."""
    found = _NUMBERED.match(heading)
    return (heading if found is None else found[1]).strip(_MARKS)
