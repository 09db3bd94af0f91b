"""Text in which nothing hides: characters that cannot be seen are written as JSON's `\\uXXXX`."""

from __future__ import annotations

import re
from typing import Final

from compactd.core.text import sanitize


def _escape(code: int) -> str:
    """A character as JSON escapes it."""
    if code < 0x10000:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


_LINE_SEPARATORS: Final = (0x2028, 0x2029)
"""JSON lets them stand as they are; a reader takes them for the end of a line."""
_HIDDEN: Final = frozenset((*sanitize.CODES, *_LINE_SEPARATORS))
_ESCAPES: Final = {code: _escape(code) for code in _HIDDEN if code >= 0x7F}

_MISREAD: Final = re.compile(
    r"[\s\"'`]|.*[\s\"'`]\Z"  # blanks or quotes at its ends
    r"|#|=+\Z|[-*•] |\[e\d|\(\d+ more\)\Z"  # as a line of a summary begins
    r"|\w+ ?: "  # as a line begins that somebody says
)
"""Names that would be taken for something else at the beginning of a line."""


def visible_json(text: str) -> str:
    """The same JSON value without characters that command a terminal or hide in a line. O(length)."""
    # JSON escapes control characters below U+0020 itself; between its tokens they mean nothing.
    return text.replace("\r", " ").translate(_ESCAPES)


def file_name(name: str) -> str:
    """A file's name as one line of a list. O(length).

    As it is, or as a JSON string if it holds `<` or what cannot be seen, or if a reader would take it for
    something else: a heading, a speaker, the number of a message.
    """
    if all(map(_is_visible, name)) and _MISREAD.match(name) is None:
        return name
    return (
        '"'
        + "".join(sign if _is_visible(sign) and sign not in '"\\' else _quoted(sign) for sign in name)
        + '"'
    )


def _is_visible(sign: str) -> bool:
    return sign.isprintable() and sign != "<" and ord(sign) not in _HIDDEN


def _quoted(sign: str) -> str:
    return "\\" + sign if sign in '"\\' else _escape(ord(sign))
