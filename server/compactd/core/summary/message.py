"""Write the text of the summary message: the lead (its first line), the body, the file lists and the end
line."""

from __future__ import annotations

from collections.abc import Sequence

from compactd.core.budget.rules import Rules
from compactd.core.history.entries import Item
from compactd.core.summary.answers import heading_of
from compactd.core.text.summary_format import (
    NATURE,
    NONE,
    ROLES,
    FileLists,
    count_line,
    file_tags,
    fit_files,
    list_files,
)
from compactd.core.tokens.counting import Counter


def frame_body(
    rules: Rules,
    body: str,
    *,
    messages: int,
    read: Sequence[str],
    modified: Sequence[str],
    budget_tokens: int,
    counter: Counter,
    nature: bool = True,
) -> str:
    """Put the lead, the file lists and the profile's end line around `body`. If the lists do not fit into
    what `body` leaves of the budget, they contain the newest files and a count of the others. With `nature`,
    a note follows the lead: it tells the model that the message is a record, not a request. O(text +
    files)."""
    lead = f"{rules.lead}\n{NATURE}" if nature else rules.lead
    end = rules.end.format(n=messages)
    frame = "\n\n".join(part for part in (lead, body, end) if part)
    room = budget_tokens - counter.count(frame) - 1
    tags = file_tags(_files_within(read, modified, room, counter))
    return "\n\n".join(part for part in (lead, body, tags, end) if part)


def truncated_summary(
    rules: Rules,
    removed: Sequence[Item],
    *,
    messages: int,
    extra: str = "",
    read: Sequence[str],
    modified: Sequence[str],
    budget_tokens: int,
    counter: Counter,
) -> str:
    """Return the summary message of the strategy `truncate`: the number of removed messages by role, `extra`,
    and the file lists."""
    roles = {role: sum(item.message.role == role for item in removed) for role in ROLES}
    body = "\n\n".join(part for part in (count_line(roles), extra) if part)
    return frame_body(
        rules,
        body,
        messages=messages,
        read=read,
        modified=modified,
        budget_tokens=budget_tokens,
        counter=counter,
        nature=False,
    )


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
    said, words = text.splitlines(), heading_of(heading)
    closing = ("## ", "### ") if heading.startswith("### ") else ("## ",)
    closing += ("<read-files>", "<modified-files>", *((end,) if end else ()))
    start = next((at for at, line in enumerate(said) if heading_of(line) == words), None)
    if start is None:
        return before_files(text, f"{heading}\n{lines}")
    stop = next((at for at in range(start + 1, len(said)) if said[at].startswith(closing)), len(said))
    section = [line for line in said[start + 1 : stop] if line.strip() and line.strip() != NONE]
    rest = said[stop:]
    return "\n".join([*said[: start + 1], *section, lines, *(["", *rest] if rest else [])])


def _files_within(read: Sequence[str], modified: Sequence[str], room: int, counter: Counter) -> FileLists:
    """Return the files to list in at most `room` tokens, the newest first, and how many are left out."""

    def fits(shown: Sequence[str]) -> bool:
        return counter.count(file_tags(list_files(read, modified, shown))) <= room

    if fits((*read, *modified)):
        return list_files(read, modified, (*read, *modified))
    if not fits(()):
        return FileLists()
    return fit_files(read, modified, (*reversed(modified), *reversed(read)), fits)
