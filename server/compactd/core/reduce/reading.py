"""Make the page of an output: its lines as a terminal or a browser shows them, without forged marks."""

from __future__ import annotations

from typing import Final

from compactd.core.history.entries import EntryId
from compactd.core.reduce.huge import RULE as HUGE
from compactd.core.reduce.huge import cut_middle
from compactd.core.reduce.kinds import Origin
from compactd.core.reduce.marks import defuse, left_out
from compactd.core.reduce.output import ToolOutput
from compactd.core.reduce.page import Page
from compactd.core.reduce.searches import RULE as GROUPED
from compactd.core.reduce.searches import group_found
from compactd.core.reduce.structured import RULE as JSON
from compactd.core.reduce.structured import is_json, shorten_json
from compactd.core.reduce.terminal import RULE as TERMINAL
from compactd.core.reduce.terminal import without_escapes, without_overwritten
from compactd.core.reduce.web_pages import RULE as HTML
from compactd.core.reduce.web_pages import is_page, text_of_page

MAX_LINE_CHARS: Final = 20_000
"""Of a longer line, only the ends are read at all."""
LINE_HEAD_CHARS: Final = 4_000
LINE_TAIL_CHARS: Final = 1_000
LONG_LINE: Final = "long_line"


def read_page(output: ToolOutput, origin: Origin, entry_id: EntryId, *, lists: bool, links: bool) -> Page:
    """Return the page of an output. Long lists in JSON are shortened if `lists`. Fields of it that are links
    are left out unless `links`. O(characters)."""
    if origin.kind in ("file", "edit"):
        # The escapes in a file are its text: an edit needs them.
        return _page(output.text, entry_id, [])
    text = without_overwritten(without_escapes(output.text))
    rules = [] if text == output.text else [TERMINAL]
    if origin.kind == "search":
        return _grouped(_page(text, entry_id, rules), entry_id)
    if origin.kind in ("shell", "web", "other"):
        if is_page(text) and len(seen := text_of_page(text)) < len(text) - MAX_HTML_MARK_CHARS:
            page = _page(seen, entry_id, [*rules, HTML])
            page.note(left_out(len(text), "characters of HTML are shown as text", entry_id))
            return page
        if is_json(text):
            safe = defuse(text)
            short = shorten_json(safe, entry_id, lists=lists, links=links)
            return Page(short.split("\n"), entry_id, rules=rules if short == safe else [*rules, JSON])
    return _page(text, entry_id, rules)


MAX_HTML_MARK_CHARS: Final = 120
"""The mark for a page is not longer."""


def _page(text: str, entry_id: EntryId, rules: list[str]) -> Page:
    """Return the page of a text; of a huge one, without its middle."""
    lines, gaps = cut_middle(text)
    if gaps:
        rules.append(HUGE)
    if max(map(len, lines)) <= MAX_LINE_CHARS:
        return Page(defuse("\n".join(lines)).split("\n"), entry_id, gaps, rules=rules)
    safe = [defuse(line) if len(line) <= MAX_LINE_CHARS else _ends(line, entry_id) for line in lines]
    return Page(safe, entry_id, gaps, rules=[*rules, LONG_LINE])


def _ends(line: str, entry_id: EntryId) -> str:
    """Return the ends of a line, with a mark between them."""
    mark = left_out(len(line) - LINE_HEAD_CHARS - LINE_TAIL_CHARS, "characters left out", entry_id)
    return f"{defuse(line[:LINE_HEAD_CHARS])} {mark} {defuse(line[-LINE_TAIL_CHARS:])}"


def _grouped(page: Page, entry_id: EntryId) -> Page:
    """Return the page of a search with each file named once."""
    if page.has_gaps:
        return page
    lines, count = group_found(page.lines)
    mark = left_out(count, "repeated file names left out", entry_id)
    if len(mark) + sum(map(len, lines)) + len(lines) >= sum(map(len, page.lines)) + len(page.lines):
        return page
    grouped = Page(lines, entry_id, rules=[*page.rules, GROUPED])
    grouped.note(mark)
    return grouped
