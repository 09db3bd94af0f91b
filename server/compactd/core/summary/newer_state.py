"""Reconcile the two summaries of a split turn: that of the history, and that of the turn's beginning.

Both may say what is in progress and what comes next. The turn's beginning is newer, so what it says replaces
what the history says, and the text says it once, in the section where a reader looks for it.
"""

from __future__ import annotations

from typing import Final

from compactd.core.summary.answers import heading_of
from compactd.core.summary.message import replace_under_heading
from compactd.core.text.summary_format import BLOCKED, IN_PROGRESS, NEXT, NONE

STATE: Final = {
    "in progress": IN_PROGRESS,
    "current work": IN_PROGRESS,
    "blocked": BLOCKED,
    "next steps": NEXT,
    "next step": NEXT,
}
"""Headings of sections that say where the work stands, and the section of the history that they replace."""


def reconcile(history: str, beginning: str) -> tuple[str, str]:
    """Return the summaries of the history and of a turn's beginning, where sections about the state of the
    work are moved from the second to the first. O(text)."""
    rest: list[str] = []
    moved: dict[str, list[str]] = {}
    lines = rest
    for line in beginning.splitlines():
        heading = heading_of(line)
        if heading in STATE:
            lines = moved.setdefault(heading, [line])
        else:
            if line.lstrip().startswith("#"):
                lines = rest
            lines.append(line)
    for heading, (first, *body) in moved.items():
        said = "\n".join(line for line in body if line.strip() and line.strip() != NONE)
        newer = replace_under_heading(history, said, STATE[heading]) if said else None
        if newer is not None:
            history = newer
        elif said:
            rest += [first, *body]
    return history, "\n".join(rest).strip()
