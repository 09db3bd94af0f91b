"""Quote text that others wrote (a user, a model, a tool, a file) so that it cannot pass for anything else.
Every text that compactd composes for a model or a person uses these functions.

Each line that neither the user nor the assistant wrote starts with a mark. In every quoted line, no matter
who wrote it, a visible sign breaks anything that could pass for structure: a heading, a speaker, a reference
such as `[e12]`, a tag, a code fence. Invisible characters are replaced. The original is not changed;
`session/expand` returns it byte for byte.
"""

from __future__ import annotations

import re
from typing import Final

from compactd.core.text.lazy_patterns import LazyPattern
from compactd.core.text.sanitize import mark_invisible
from compactd.protocol.messages import Author

TOOL_MARK: Final = "(tool) "
"""The mark at the beginning of each line that a tool, a file or a program wrote."""

SIGN: Final = "·"
"""The sign that is inserted into quoted text so that it cannot pass for a heading, a speaker or a reference.
In a tag, `TAG_SIGN` does the same."""
TAG_SIGN: Final = "‹"
"""The sign that replaces the `<` of a tag."""

UNMARKED_AUTHORS: Final[frozenset[Author]] = frozenset(("user", "assistant"))
"""The authors whose lines carry no mark: the user and the assistant."""

_LINE_ENDS: Final = LazyPattern(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
"""Matches everything that a reader may take for a line end."""

_SPEAKERS: Final = r"user|human|assistant(?: tool calls)?|system|developer|tool(?:[ _]results?)?"
_SPEAKS: Final = rf"[\[*_]{{0,4}}(?:{_SPEAKERS})(?:\s{{0,8}}\([^()]{{0,200}}\))?[\]*_]{{0,4}}\s*+[:：]"
"""Matches the name of a speaker and its colon: `User:`, `[System]:`, `**assistant (admin)**:`."""
_BLANK: Final = r"(?P<blank>[\s\ufffd]*+(?:>[\s\ufffd]*+|[*+•-][\s\ufffd>]++){0,16}+)"
"""Matches what may precede the words of a line: white space, quotation marks and list markers. The
quantifiers are possessive, so that no line is slow to match."""
_HEADINGS: Final = (
    r"goals?|constraints(?: (?:&|and) preferences)?|preferences|progress|done|in progress|blocked|plan"
    r"|(?:key )?decisions|next steps?|critical context|system(?: prompt)?|instructions?|user request"
    r"|current state|file context|code changes|errors (?:&|and) solutions"
)
"""Words that are a heading if nothing else is on the line."""
_SECTIONS: Final = (
    r"constraints|preferences|goals?|key decisions|next steps|critical context|system prompt|user request"
    r"|current state|file context|code changes|open errors"
)
"""Words that are a heading even if more words follow them, as in `# Goal of the task`. Comments in code do
not begin with these words."""
_LEADING: Final = LazyPattern(
    rf"{_BLANK}(?="
    r"\#{2,6}(?:\s|$)"
    rf"|(?:\#\s*+[*_]{{0,3}}|[*_]{{2,3}})(?:{_HEADINGS})\s*+:?\s*+[*_]{{0,3}}\s*+:?\s*+$"
    rf"|(?:\#\s*+[*_]{{0,3}}|[*_]{{2,3}})(?:{_SECTIONS})\b"
    rf"|(?:{_HEADINGS})\s*+[:：]\s*+$"
    rf"|{_SPEAKS}"
    r"|={2,}+\s*+$|-{2,}+\s*+$|```|~~~"
    r")",
    re.IGNORECASE,
)
"""Matches the beginning of a line up to structure: a heading, a speaker, a rule or a code fence."""
_SPEAKER: Final = LazyPattern(rf"{_BLANK}(?={_SPEAKS})", re.IGNORECASE)
"""Matches the beginning of a line up to the name of a speaker."""
_OUR_FRAMES: Final = (
    r"back-\d|summary-\d|compactd\b|compacted \d|conversation summary|end summary|previous conversation"
    rf"|/?(?:{_SPEAKERS})\s*+\]"
)
"""Words that follow the opening bracket of the lines that compactd writes around summaries and messages."""
_BRACKET: Final = LazyPattern(rf"\[(?=[\s\ufffd]{{0,8}}(?:e\d|{_OUR_FRAMES}))", re.IGNORECASE)
"""Matches the opening bracket of a reference (`[e12]`) or of a line that compactd writes around summaries and
messages."""
_FRAME: Final = LazyPattern(rf"\[(?=[\s\ufffd]{{0,8}}(?:{_OUR_FRAMES}))", re.IGNORECASE)
"""Matches the opening bracket of a line that compactd writes around summaries and messages."""
_OMISSION: Final = LazyPattern(r"([\[［【])(?=[\s\ufffd]{0,8}(?:[…⋯‥]|\.{2})[\s\ufffd.…⋯‥]{0,8}\d)")
"""Matches the opening bracket of what a reader may take for the mark of a reduced tool output, such as `[… 40
lines left out, expand e12]`."""
_TAG: Final = LazyPattern(
    r"[<＜﹤](?=[\s\ufffd]{0,8}[/!?]|\ufffd{0,8}[A-Za-z]|[\s\ufffd]{1,8}[A-Za-z][\w:.-]{0,60}[\s\ufffd]{0,8}>)"
    r"|^(\s*)[<＜﹤](?=\s+[A-Za-z])"
)
"""Matches the first character of a tag."""
_SUSPECT: Final = LazyPattern(r"[<＜﹤\[［【]")
"""Matches a character with which a tag, a reference, a mark or a line of `_FRAME` begins."""


def quote(text: str, author: Author) -> str:
    """Return `text` as a model may read it. Each line is made harmless (`neutralise`). Each line that is not
    blank starts with `TOOL_MARK`, unless `author` is the user or the assistant. The result has as many
    lines as a reader sees in `text`. O(characters)."""
    mark = "" if author in UNMARKED_AUTHORS else TOOL_MARK
    return "\n".join(
        mark + neutralise(line) if line and not line.isspace() else "" for line in _LINE_ENDS.split(text)
    )


def quote_line(text: str, author: Author) -> str:
    """Return `text` quoted like `quote` does, but on one line: line ends become spaces."""
    line = neutralise(" ".join(_LINE_ENDS.split(text)))
    return line if author in UNMARKED_AUTHORS else TOOL_MARK + line


def visible_lines(text: str) -> str:
    """Return `text` with `sanitize.INVISIBLE_MARK` in place of invisible characters, and with a line feed in
    place of every kind of line end. O(characters)."""
    if text.isascii() and text.isprintable():
        return text
    return mark_invisible(_LINE_ENDS.sub("\n", text))


def line_starts(text: str) -> list[int]:
    """Return where each line of `text` begins. The lines are those of `visible_lines`. O(characters)."""
    return [0, *(end.end() for end in _LINE_ENDS.finditer(text))]


def neutralise(line: str) -> str:
    """Return `line` changed so that nothing in it can pass for a heading, a code fence, another speaker, a
    reference, a tag, the mark of a reduced output or a line that compactd writes around summaries. `SIGN` is
    inserted; the `<` of a tag becomes `TAG_SIGN`; invisible characters become `sanitize.INVISIBLE_MARK`.
    Idempotent. O(characters)."""
    if not line.isascii() or not line.isprintable():
        line = mark_invisible(line)
    if _SUSPECT.search(line) is not None:
        line = _TAG.sub(lambda found: f"{found[1] or ''}{TAG_SIGN}", line)
        line = _BRACKET.sub(f"[{SIGN}", line)
        line = _OMISSION.sub(rf"\1{SIGN}", line)
    found = _LEADING.match(line)
    return line if found is None else f"{found['blank']}{SIGN}{line[found.end() :]}"


def without_frames(line: str) -> str:
    """Return `line`, from a text that may keep its headings and references, such as a model's summary. Tags,
    speakers, invisible characters and lines that compactd writes around summaries are changed as in
    `neutralise`. O(characters)."""
    if not line.isascii() or not line.isprintable():
        line = mark_invisible(line)
    line = _TAG.sub(lambda found: f"{found[1] or ''}{TAG_SIGN}", line)
    line = _FRAME.sub(f"[{SIGN}", line)
    found = _SPEAKER.match(line)
    return line if found is None else f"{found['blank']}{SIGN}{line[found.end() :]}"
