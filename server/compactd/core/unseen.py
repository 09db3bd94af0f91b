"""Characters that a stranger's text must not bring along where a person or a model reads it.

Sessions hold whatever a tool printed. Tab and line end stay.
"""

from __future__ import annotations

from typing import Final

CODES: Final = (
    # Control characters: what a terminal takes for a command.
    *(code for code in range(0x20) if code not in (0x09, 0x0A)),
    *range(0x7F, 0xA0),
    # Marks that turn the reading direction: a name looks like another than it is.
    0x061C,
    0x200E,
    0x200F,
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
    # Letters that nobody sees and a model may read: the byte order mark, tags.
    0xFEFF,
    *range(0xE0000, 0xE0080),
)
NOTHING: Final = dict.fromkeys(CODES)
"""For `str.translate`: leaves them out."""
MARKED: Final = dict.fromkeys(CODES, "�")
"""For `str.translate`: shows where one stood."""
