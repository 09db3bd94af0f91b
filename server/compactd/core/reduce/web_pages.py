"""HTML as text: what a reader sees of a page, without its tags, scripts and styles."""

from __future__ import annotations

import html
import re
from typing import Final

from compactd.core.text.lazy_patterns import LazyPattern

RULE: Final = "html"
MAX_AFTER_CHARS: Final = 200
"""If more text follows the end of the page, another program printed it."""

_BEGINS: Final = LazyPattern(
    r"\s*+(?:HTTP/[\d.]+ [^\n]*\n(?:[\w-]+:[^\n]*\n){0,100}\s*+)?(?:<\?xml[^<>]{0,200}>\s*+)?"
    r"<(?:!doctype\s+html|html|head|body)[\s>]",
    re.IGNORECASE,
)
"""Matches the beginning of a page, after the headers that `curl -i` prints."""
_UNSEEN: Final = ("script", "style", "svg", "noscript", "template", "head")
"""Elements that a reader does not see."""
_UNSEEN_TAG: Final = LazyPattern(
    rf"<(?P<name>{'|'.join(_UNSEEN)})(?=[\s>/])|<!--(?P<comment>)", re.IGNORECASE
)
_BLOCK_TAG: Final = LazyPattern(
    r"</?(?:p|div|br|li|ul|ol|h[1-6]|tr|table|section|article|header|footer|main|nav|aside|pre|blockquote|dd|dt"
    r"|option|form|title|hr)\b[^<>]{0,4096}>",
    re.IGNORECASE,
)
_TAG: Final = LazyPattern(r"</?[a-zA-Z!?][^<>]{0,8192}>")
_BLANK: Final = LazyPattern(r"[ \t\r\f\v\u00a0]+")
_BLANK_LINES: Final = LazyPattern(r"\n\s*\n+")


def is_page(text: str) -> bool:
    """Return whether a text is an HTML page and nothing else. O(characters)."""
    if _BEGINS.match(text) is None:
        return False
    end = text.lower().rfind("</html>")
    return end < 0 or len(text) - end <= MAX_AFTER_CHARS


def text_of_page(text: str) -> str:
    """Return what a reader sees of a page, with a line for each block. O(characters)."""
    text = _TAG.sub("", _BLOCK_TAG.sub("\n", _without_unseen(text)))
    text = _BLANK.sub(" ", html.unescape(text))
    return _BLANK_LINES.sub("\n", "\n".join(line.strip() for line in text.split("\n"))).strip()


def _without_unseen(text: str) -> str:
    """Return a page without its scripts, styles, pictures and comments."""
    lower, parts, at = text.lower(), [], 0
    while (found := _UNSEEN_TAG.search(text, at)) is not None:
        end = "-->" if found["comment"] is not None else f"</{found['name'].lower()}"
        stop = lower.find(end, found.end())
        parts.append(text[at : found.start()])
        if stop < 0:
            # It is never closed, so only its tag goes: what follows may be text.
            at = found.end()
            if found["comment"] is None:
                close = text.find(">", at)
                at = len(text) if close < 0 else close + 1
            parts.append(_TAG.sub("", text[at:]))
            return "".join(parts)
        if found["comment"] is not None:
            at = stop + 3
        else:
            close = text.find(">", stop)
            at = len(text) if close < 0 else close + 1
    parts.append(text[at:])
    return "".join(parts)
