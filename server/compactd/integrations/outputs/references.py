"""Name the original of a reduced output so that it is found from anywhere: `k3f7q2-e41`.

A pipe or an MCP server does not know the session of the model that reads its output. The originals are in a
session of their own (`own_session.py`), and each mark names that session and the entry.
"""

from __future__ import annotations

import re

from msgspec import Struct

from compactd.core.history.entries import EntryId
from compactd.core.reduce.marks import find_marks

PREFIX = "outputs:"
"""How the ids of sessions begin that only have outputs. Such a session is nobody's conversation."""
_REFERENCE = re.compile(r"([a-z2-7]{6}(?:\.[1-9][0-9]{0,2})?)-(e[1-9][0-9]{0,11})")


class Reference(Struct, frozen=True):
    """Where the original of an output is."""

    session_id: str
    entry_id: EntryId

    def __str__(self) -> str:
        """Return the text of the reference. Only for a session whose id begins with `PREFIX`."""
        return f"{self.session_id.removeprefix(PREFIX)}-{self.entry_id}"


def read_reference(text: str) -> Reference | None:
    """Return the reference that a mark named; None if the text is none."""
    found = _REFERENCE.fullmatch(text)
    return None if found is None else Reference(f"{PREFIX}{found[1]}", EntryId(found[2]))


def name_originals(text: str, original: Reference, how: str) -> str:
    """Return a reduced text whose marks name `original` in full, after the words `how`: `[… 40 lines left
    out, HOW k3f7q2-e41]`. O(characters).

    No text of the output can pass for such a mark either, because it begins like every mark
    (`core/reduce/marks.defuse`).
    """
    ending = f"expand {original.entry_id}]"
    parts: list[str] = []
    at = 0
    for mark in find_marks(text):
        if mark.entry_id == original.entry_id and text.endswith(ending, mark.start, mark.stop):
            parts += (text[at : mark.stop - len(ending)], f"{how} {original}]")
            at = mark.stop
    return "".join((*parts, text[at:]))
