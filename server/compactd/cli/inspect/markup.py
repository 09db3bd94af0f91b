"""Escape text from sessions for XML and HTML."""

from __future__ import annotations

import html

from compactd.cli.framework.page import make_encodable, one_line

# Characters that XML 1.0 (section 2.2) forbids and that `one_line` does not remove.
_NOT_XML = {0xFFFE: None, 0xFFFF: None}


def escape(text: str) -> str:
    """Return `text` in one line, escaped for an element's content or a quoted attribute. O(characters)."""
    return html.escape(make_encodable(one_line(text)).translate(_NOT_XML), quote=True)


def clip_to(text: str, most: int) -> str:
    """Return the beginning of `text`, at most `most` characters."""
    line = one_line(text)
    return line if len(line) <= most else f"{line[: max(0, most - 1)].rstrip()}…"


def short(tokens: int) -> str:
    """Return a short number: `950`, `82k`, `1.2M`."""
    if tokens < 1_000:
        return f"{tokens}"
    if tokens < 999_500:
        return f"{tokens / 1_000:.1f}k" if tokens < 9_950 else f"{tokens / 1_000:.0f}k"
    return f"{tokens / 1_000_000:.1f}M"
