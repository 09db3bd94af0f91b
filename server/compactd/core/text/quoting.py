"""Quotes foreign text for a reader that acts on what it reads: one function for every text we compose.

Each line that neither the user nor the assistant wrote begins with a mark. In every quoted line, whoever
wrote it, what could pass for structure is broken by a visible sign: a heading, who speaks, a reference such
as `[e12]`, a tag, a fence. Characters that nobody sees are replaced. The original is not touched: `expand`
gives it back to the byte.
"""

from __future__ import annotations

import re
from typing import Final

from compactd.core.text.sanitize import visible
from compactd.protocol.messages import Author

TOOL_MARK: Final = "(tool) "
"""Begins each line that a tool, a file or a program wrote."""

SIGN: Final = "·"
"""Stands before what was broken; a tag's `<` becomes `TAG_SIGN`."""
TAG_SIGN: Final = "‹"

OWN: Final[frozenset[Author]] = frozenset(("user", "assistant"))
"""Whose lines carry no mark: the two who talk."""

_LINE_ENDS: Final = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
"""All that a reader may take for the end of a line."""

_SPEAKERS: Final = r"user|human|assistant(?: tool calls)?|system|developer|tool(?:[ _]results?)?"
_SPEAKS: Final = rf"[\[*_]{{0,4}}(?:{_SPEAKERS})(?:\s{{0,8}}\([^()]{{0,200}}\))?[\]*_]{{0,4}}\s*+[:：]"
"""`User:`, `[System]:`, `**assistant (admin)**:`."""
_BLANK: Final = r"(?P<blank>[\s\ufffd]*+(?:>[\s\ufffd]*+|[*+•-][\s\ufffd>]++){0,16}+)"
"""Before a line's words: white space, quotation and list signs. Possessive: no line is slow to read."""
_HEADINGS: Final = (
    r"goals?|constraints(?: (?:&|and) preferences)?|preferences|progress|done|in progress|blocked|plan"
    r"|(?:key )?decisions|next steps?|critical context|system(?: prompt)?|instructions?|user request"
    r"|current state|file context|code changes|errors (?:&|and) solutions"
)
_SECTIONS: Final = (
    r"constraints|preferences|goals?|key decisions|next steps|critical context|system prompt|user request"
    r"|current state|file context|code changes|open errors"
)
"""Of the headings, those that are one with more words after them too: no comment in code begins so."""
_LEADING: Final = re.compile(
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
_SPEAKER: Final = re.compile(rf"{_BLANK}(?={_SPEAKS})", re.IGNORECASE)
_OUR_FRAMES: Final = (
    r"back-\d|summary-\d|compactd\b|compacted \d|conversation summary|end summary|previous conversation"
    rf"|/?(?:{_SPEAKERS})\s*+\]"
)
_BRACKET: Final = re.compile(rf"\[(?=[\s\ufffd]{{0,8}}(?:e\d|{_OUR_FRAMES}))", re.IGNORECASE)
_FRAME: Final = re.compile(rf"\[(?=[\s\ufffd]{{0,8}}(?:{_OUR_FRAMES}))", re.IGNORECASE)
_TAG: Final = re.compile(
    r"[<＜﹤](?=[\s\ufffd]{0,8}[/!?]|\ufffd{0,8}[A-Za-z]|[\s\ufffd]{1,8}[A-Za-z][\w:.-]{0,60}[\s\ufffd]{0,8}>)"
    r"|^(\s*)[<＜﹤](?=\s+[A-Za-z])"
)
_SUSPECT: Final = re.compile(r"[<＜﹤\[]")


def quote(text: str, author: Author) -> str:
    """`text` as a model may read it: its lines neutralised (`neutral`), each that is not blank behind
    `TOOL_MARK` unless the user or the assistant wrote it. As many lines as a reader sees in `text`.
    O(characters)."""
    mark = "" if author in OWN else TOOL_MARK
    return "\n".join(
        mark + neutral(line) if line and not line.isspace() else "" for line in _LINE_ENDS.split(text)
    )


def quoted_line(text: str, author: Author) -> str:
    """The same on one line: where `text` has several, they follow each other with a blank between."""
    line = neutral(" ".join(_LINE_ENDS.split(text)))
    return line if author in OWN else TOOL_MARK + line


def visible_lines(text: str) -> str:
    """`text` with `unseen.SHOWN` for what nobody sees, and each end of a line as a line feed.
    O(characters)."""
    if text.isascii() and text.isprintable():
        return text
    return visible(_LINE_ENDS.sub("\n", text))


def neutral(line: str) -> str:
    """One line without what could pass for structure, for another speaker or for a frame; what was broken
    shows `SIGN`, a tag `TAG_SIGN`, an unseen character `unseen.SHOWN`. Applied again, it changes nothing.
    O(characters)."""
    if not line.isascii() or not line.isprintable():
        line = visible(line)
    if _SUSPECT.search(line) is not None:
        line = _TAG.sub(lambda found: f"{found[1] or ''}{TAG_SIGN}", line)
        line = _BRACKET.sub(f"[{SIGN}", line)
    found = _LEADING.match(line)
    return line if found is None else f"{found['blank']}{SIGN}{line[found.end() :]}"


def without_frames(line: str) -> str:
    """One line of a text that keeps its headings and references, such as a model's summary: no tag, no other
    speaker, no frame of ours, no character that nobody sees. O(characters)."""
    if not line.isascii() or not line.isprintable():
        line = visible(line)
    line = _TAG.sub(lambda found: f"{found[1] or ''}{TAG_SIGN}", line)
    line = _FRAME.sub(f"[{SIGN}", line)
    found = _SPEAKER.match(line)
    return line if found is None else f"{found['blank']}{SIGN}{line[found.end() :]}"
