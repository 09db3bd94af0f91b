"""The text of a summary message around what a model or nobody wrote: lead, file lists, end."""

from __future__ import annotations

from collections.abc import Sequence

from compactd.core.budget.rules import Rules
from compactd.core.history.entries import Item
from compactd.core.summary.answers import heading_of
from compactd.core.text.summary_format import NATURE, NONE, ROLES, Files, counted, file_tags
from compactd.core.tokens.counting import Counter


def framed(
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
    """Lead, `body`, file lists, the profile's end line. Lists that do not fit what the budget leaves beside
    `body` are cut in the text, newest kept, with a count. O(text + files)."""
    lead = f"{rules.lead}\n{NATURE}" if nature else rules.lead
    end = rules.end.format(n=messages)
    frame = "\n\n".join(part for part in (lead, body, end) if part)
    room = budget_tokens - counter.count(frame) - 1
    tags = file_tags(_files_within(read, modified, room, counter))
    return "\n\n".join(part for part in (lead, body, tags, end) if part)


def truncated(
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
    """The summary of the strategy `truncate`: how many messages of which role it were, and the file lists."""
    roles = {role: sum(item.message.role == role for item in removed) for role in ROLES}
    body = "\n\n".join(part for part in (counted(roles), extra) if part)
    return framed(
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
    """`extra` as a further part of a summary's text, before the file lists that end it."""
    if not extra:
        return text
    end = len(text)
    for tag in ("modified-files", "read-files"):
        block = text[:end].rstrip()
        if block.endswith(f"</{tag}>"):
            end = block.rfind(f"<{tag}>")
    parts = (text[:end].rstrip(), extra, text[end:])
    return "\n\n".join(part for part in parts if part)


def under_heading(text: str, lines: str, heading: str, end: str = "") -> str:
    """`text` with `lines` at the end of what stands under `heading`, which is added where it is missing.

    A section ends at the next heading of its level or above, at the file lists, and at a line that begins
    with `end`, where that is not empty. O(text).
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


def _files_within(read: Sequence[str], modified: Sequence[str], room: int, counter: Counter) -> Files:
    whole = Files(tuple(read), tuple(modified))
    if counter.count(file_tags(whole)) <= room:
        return whole
    shown: set[str] = set()
    best = Files(more_read=len(read), more_modified=len(modified))
    if counter.count(file_tags(best)) > room:
        return Files()
    for path in (*reversed(modified), *reversed(read)):
        shown.add(path)
        files = Files(
            read=tuple(p for p in read if p in shown),
            modified=tuple(p for p in modified if p in shown),
            more_read=sum(p not in shown for p in read),
            more_modified=sum(p not in shown for p in modified),
        )
        if counter.count(file_tags(files)) > room:
            return best
        best = files
    return best
