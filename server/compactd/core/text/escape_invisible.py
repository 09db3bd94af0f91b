r"""Write JSON and file names in which nothing is hidden: invisible characters become JSON escapes
(`\uXXXX`)."""

from __future__ import annotations

from typing import Final

from compactd.core.text import sanitize
from compactd.core.text.lazy_patterns import LazyPattern


def _escape(code: int) -> str:
    """Return the JSON escape of a code point."""
    if code < 0x10000:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


_LINE_SEPARATORS: Final = (0x2028, 0x2029)
"""Characters that JSON allows unescaped, but that a reader takes for line ends."""
_HIDDEN: Final = frozenset((*sanitize.CODES, *_LINE_SEPARATORS))
"""The code points that `file_name` escapes."""
_ESCAPES: Final = {code: _escape(code) for code in _HIDDEN if code >= 0x7F}
"""A table for `str.translate` from code points to JSON escapes. Code points below U+0020 are left out,
because JSON itself escapes them."""

_MISREAD: Final = LazyPattern(
    r"[\s\"'`]|.*[\s\"'`]\Z"  # spaces or quotes at its ends
    r"|#|=+\Z|[-*•] |\[e\d|\(\d+ more\)\Z"  # as a line of a summary begins
    r"|\w+ ?: "  # as a speaker's line begins
)
"""Matches a name that would be taken for something other than a name at the beginning of a line."""


def visible_json(text: str) -> str:
    """Return JSON text with the same value, in which characters that are invisible or control a terminal
    are escaped. O(length)."""
    # JSON itself escapes control characters below U+0020; between its tokens they mean nothing.
    return text.replace("\r", " ").translate(_ESCAPES)


def file_name(name: str) -> str:
    """Return a file name as one line of a list. O(length).

    The name is unchanged unless it contains `<` or invisible characters, or a reader would take it for
    something else: a heading, a speaker, a reference such as `[e12]`. Then it is written as a JSON string.
    """
    # Of the printable characters of ASCII, only one needs an escape.
    is_plain = name.isprintable() and "<" not in name if name.isascii() else all(map(_is_visible, name))
    if is_plain and _MISREAD.match(name) is None:
        return name
    return (
        '"'
        + "".join(sign if _is_visible(sign) and sign not in '"\\' else _quote_sign(sign) for sign in name)
        + '"'
    )


def _is_visible(sign: str) -> bool:
    """Return whether a character may appear in a file name without an escape."""
    return sign.isprintable() and sign != "<" and ord(sign) not in _HIDDEN


def _quote_sign(sign: str) -> str:
    """Return a character as it is written inside a JSON string."""
    return "\\" + sign if sign in '"\\' else _escape(ord(sign))
