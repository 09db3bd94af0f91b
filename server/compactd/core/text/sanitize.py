"""Remove or show characters that must not reach a reader (a person or a model) from text that a tool, a file
or a program wrote.

Sessions contain whatever a tool printed: control characters, marks that change the text direction, invisible
characters. Tabs and line feeds are allowed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from compactd.core.text.lazy_patterns import LazyPattern

CODES: Final = (
    # Control characters, which a terminal takes for commands.
    *(code for code in range(0x20) if code not in (0x09, 0x0A)),
    *range(0x7F, 0xA0),
    # Line and paragraph separators, which a search for line ends does not see.
    0x2028,
    0x2029,
    # Marks that change the text direction, so that a name looks like another.
    0x061C,
    0x200E,
    0x200F,
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
    # Invisible characters that a model may read: soft hyphen, joiners and fillers, invisible operators, the
    # byte order mark, annotations, variation selectors (each can carry a byte), tags.
    0x00AD,
    0x034F,
    0x115F,
    0x1160,
    *range(0x180B, 0x1810),
    0x200B,
    *range(0x2060, 0x2066),
    *range(0x206A, 0x2070),
    0x2800,
    0x3164,
    *range(0xFE00, 0xFE0E),
    0xFEFF,
    0xFFA0,
    *range(0xFFF9, 0xFFFC),
    *range(0xE0000, 0xE0080),
    *range(0xE0100, 0xE01F0),
)
"""The code points of the characters that are not allowed."""
NOTHING: Final = dict.fromkeys(CODES)
"""A table for `str.translate` that removes the characters of `CODES`."""
INVISIBLE_MARK: Final = "�"
"""The character that replaces a removed one, so that a reader sees where it was."""
MARKED: Final = dict.fromkeys(CODES, INVISIBLE_MARK)
"""A table for `str.translate` that replaces each character of `CODES` by `INVISIBLE_MARK`."""

_JOINERS: Final = "\u200c\u200d"
"""Characters that some scripts need between letters, and emoji between their parts. In other places they
are invisible."""
_SELECTORS: Final = "\ufe0e\ufe0f"
"""Characters that choose how the sign or emoji before them looks. In other places they are invisible."""


def _ranges(codes: Sequence[int]) -> str:
    """Return the inside of a character class that matches these codes, as ranges: `re` compares characters
    above U+FFFF one by one, and ranges as a whole."""
    starts = [code for code in codes if code - 1 not in CODES]
    ends = [code for code in codes if code + 1 not in CODES]
    return "".join(f"\\U{start:08x}-\\U{end:08x}" for start, end in zip(starts, ends, strict=True))


_RUNS: Final = LazyPattern(
    "["
    + _ranges(sorted(CODES))
    + "]+"
    # A joiner, unless it is single and between two non-ASCII characters.
    + f"|(?<![^\x00-\x7f{_JOINERS}])[{_JOINERS}]+|[{_JOINERS}](?=[\x00-\x7f{_JOINERS}]|\\Z)[{_JOINERS}]*"
    # A selector after nothing that it could select.
    + f"|(?<![#*0-9\u00a9\u00ae\u2000-\u3300\U0001f000-\U0001faff])[{_SELECTORS}]+"
    + f"|(?<=[{_SELECTORS}])[{_SELECTORS}]+"
)
"""Matches a run of characters that are not allowed, or of joiners and selectors in places where they are
invisible."""


def mark_invisible(text: str) -> str:
    """Return `text` with `INVISIBLE_MARK` in place of each run of invisible characters. Joiners and emoji
    selectors are kept where a script or an emoji needs them. O(characters)."""
    return _RUNS.sub(INVISIBLE_MARK, text)
