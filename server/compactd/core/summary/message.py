"""Put lines and file lists into the text of a summary message."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compactd.core.summary.answers import heading_of
from compactd.core.text.summary_format import NONE, FileLists, file_tags, fit_files, list_files


def before_files(text: str, extra: str) -> str:
    """Return a summary's text with `extra` inserted before the file lists at its end."""
    if not extra:
        return text
    end = len(text)
    for tag in ("modified-files", "read-files"):
        block = text[:end].rstrip()
        if block.endswith(f"</{tag}>"):
            end = block.rfind(f"<{tag}>")
    parts = (text[:end].rstrip(), extra, text[end:])
    return "\n\n".join(part for part in parts if part)


def add_under_heading(text: str, lines: str, heading: str, end: str = "") -> str:
    """Return `text` with `lines` added at the end of its section `heading`. A missing section is created
    before the file lists.

    A section ends at the next heading of the same or a higher level, at the file lists, and, if `end` is not
    empty, at a line that begins with `end`. O(text).
    """
    said = text.splitlines()
    place = _section_place(said, heading, end)
    if place is None:
        return before_files(text, f"{heading}\n{lines}")
    start, stop = place
    section = [line for line in said[start:stop] if line.strip() and line.strip() != NONE]
    rest = said[stop:]
    return "\n".join([*said[:start], *section, lines, *(["", *rest] if rest else [])])


def replace_under_heading(text: str, lines: str, heading: str) -> str | None:
    """Return `text` with `lines` as the content of its section `heading`; None if it has no such section.
    O(text)."""
    said = text.splitlines()
    place = _section_place(said, heading)
    if place is None:
        return None
    start, stop = place
    rest = said[stop:]
    return "\n".join([*said[:start], lines, *(["", *rest] if rest else [])])


def _section_place(said: Sequence[str], heading: str, end: str = "") -> tuple[int, int] | None:
    """Return where the content of a section begins and ends, as line numbers; None if there is no such
    section."""
    words = heading_of(heading)
    closing = ("## ", "### ") if heading.startswith("### ") else ("## ",)
    closing += ("<read-files>", "<modified-files>", *((end,) if end else ()))
    start = next((at for at, line in enumerate(said) if heading_of(line) == words), None)
    if start is None:
        return None
    stop = next((at for at in range(start + 1, len(said)) if said[at].startswith(closing)), len(said))
    return start + 1, stop


def files_within(
    read: Sequence[str], modified: Sequence[str], room: int, count: Callable[[str], int]
) -> FileLists:
    """Return the files to list in at most `room` tokens, the newest first, and how many are left out."""

    def fits(shown: Sequence[str]) -> bool:
        return count(file_tags(list_files(read, modified, shown))) <= room

    if fits((*read, *modified)):
        return list_files(read, modified, (*read, *modified))
    if not fits(()):
        return FileLists()
    return fit_files(read, modified, (*reversed(modified), *reversed(read)), fits)
