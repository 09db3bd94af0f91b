"""Characters that a stranger's text must not bring along where a person or a model reads it.

Sessions hold whatever a tool printed. Tab and line end stay.
"""

from __future__ import annotations

import re
from typing import Final

CODES: Final = (
    # Control characters: what a terminal takes for a command.
    *(code for code in range(0x20) if code not in (0x09, 0x0A)),
    *range(0x7F, 0xA0),
    # Line and paragraph separators: a line end that a search for line ends does not see.
    0x2028,
    0x2029,
    # Marks that turn the reading direction: a name looks like another than it is.
    0x061C,
    0x200E,
    0x200F,
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
    # Letters that nobody sees and a model may read: soft hyphen, joiners and fillers, invisible operators,
    # the byte order mark, annotations, variation selectors (each can carry a byte), tags.
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
NOTHING: Final = dict.fromkeys(CODES)
"""For `str.translate`: leaves them out."""
SHOWN: Final = "�"
MARKED: Final = dict.fromkeys(CODES, SHOWN)
"""For `str.translate`: shows where one stood."""

_JOINERS: Final = "\u200c\u200d"
"""Needed between letters of some scripts and between emoji; nobody sees them elsewhere."""
_SELECTORS: Final = "\ufe0e\ufe0f"
"""Needed behind a sign that is a letter or an emoji; nobody sees them elsewhere."""

_RUNS: Final = re.compile(
    "["
    + re.escape("".join(map(chr, sorted(CODES))))
    + "]+"
    # A joiner that does not stand alone between two characters that are not ASCII.
    + f"|(?<![^\x00-\x7f{_JOINERS}])[{_JOINERS}]+|[{_JOINERS}](?=[\x00-\x7f{_JOINERS}]|\\Z)[{_JOINERS}]*"
    # A selector behind nothing that it could select.
    + f"|(?<![#*0-9\u00a9\u00ae\u2000-\u3300\U0001f000-\U0001faff])[{_SELECTORS}]+"
    + f"|(?<=[{_SELECTORS}])[{_SELECTORS}]+"
)


def visible(text: str) -> str:
    """`text` with `SHOWN` for each run of characters that nobody sees. Joiners and emoji selectors stay
    where a script or an emoji needs them. O(characters)."""
    return _RUNS.sub(SHOWN, text)
