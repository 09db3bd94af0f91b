"""JSON: long texts and long lists are shortened, so that it stays JSON of the same shape."""

from __future__ import annotations

from collections.abc import Iterator
from re import Match
from typing import Final

import msgspec

from compactd.core.history.entries import EntryId
from compactd.core.reduce.marks import left_out
from compactd.core.reduce.unusual import unusual_items
from compactd.core.text.atoms import ERROR
from compactd.core.text.lazy_patterns import LazyPattern

RULE: Final = "json"
MAX_TEXT_CHARS: Final = 500
"""A longer text in JSON is shortened."""
HEAD_CHARS: Final = 240
TAIL_CHARS: Final = 80
MAX_ITEMS: Final = 12
"""Of a longer list, the first and the last items stay."""
HEAD_ITEMS: Final = 6
TAIL_ITEMS: Final = 2
MIN_GAIN_CHARS: Final = 40
MAX_UNUSUAL: Final = 8
"""Of the items that report an error, and of those with a rare value, so many stay."""
MAX_ERROR_SHARE: Final = 0.2
"""If more items report an error, that is nothing unusual."""
MAX_ERROR_CHARS: Final = 2_000
MAX_CHARS: Final = 2_000_000
"""A longer text is not read as JSON."""

_TEXT: Final = LazyPattern(rf'"(?:[^"\\\n]|\\[^\n]){{{MAX_TEXT_CHARS},}}+"')
"""Matches a long text in JSON, with its quotes."""
_TOKEN: Final = LazyPattern(r'"(?:[^"\\]|\\.)*+"|[\[\]{},]')
"""Matches what is needed to find the items of the lists in JSON."""
_LINK: Final = (
    r'(?:"(?:(?!html_)\w{0,40}_url|node_id|gravatar_id)"\s{0,4}:\s{0,4}(?:"[^"\\\n]{0,400}"|null)'
    r'|"_links"\s{0,4}:\s{0,4}\{[^{}]{0,200}(?:\{[^{}]{0,400}\}[^{}]{0,200}){0,12}\}'
    r'|"reactions"\s{0,4}:\s{0,4}\{[^{}]{0,800}\})'
)
_LINKS: Final = LazyPattern(rf"{_LINK}(?:\s{{0,40}},\s{{0,40}}{_LINK})*")
"""Matches fields in a row that link to other objects, or count reactions to one, as the APIs of GitHub and
GitLab write them (docs.github.com/rest, 2026-11). `html_url` is for people, so it stays."""
_LINK_NAME: Final = LazyPattern(r'"(?:\w{0,40}_url|node_id|gravatar_id|_links|reactions)"\s{0,4}:')
_ESCAPE_AT_END: Final = LazyPattern(r"\\(?:u[0-9a-fA-F]{0,3})?\Z|\\u[dD][89abAB][0-9a-fA-F]{2}\Z")
"""Matches an escape sequence that was cut, or half of a surrogate pair."""
_ESCAPE_CUT: Final = LazyPattern(r"\\(?:u[0-9a-fA-F]{4}|.)")


def is_json(text: str) -> bool:
    """Return whether a text is JSON, or JSON on each of its lines. O(characters)."""
    stripped = text.strip()
    if not stripped or stripped[0] not in "{[" or len(stripped) > MAX_CHARS:
        return False
    if _is_value(stripped):
        return True
    lines = [line for line in stripped.split("\n") if line and not line.isspace()]
    return len(lines) > 1 and all(line[0] in "{[" and _is_value(line) for line in lines)


def _is_value(text: str) -> bool:
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return False
    return True


def shorten_json(text: str, entry_id: EntryId, *, lists: bool, links: bool = True) -> str:
    """Return JSON with its long texts shortened, its long lists if `lists`, and without its runs of fields
    that are links unless `links`. It stays JSON: each mark is inside a text, or a text itself. O(characters).
    """
    short = _TEXT.sub(lambda found: _shorten(found[0], entry_id), text)
    if lists:
        short = _shorten_lists(short, entry_id)
    return short if links else _LINKS.sub(lambda found: _without_links(found, entry_id), short)


def _shorten(text: str, entry_id: EntryId) -> str:
    """Return a JSON text, with its quotes, without its middle. No escape sequence is cut."""
    head, tail_at = text[: HEAD_CHARS + 1], len(text) - TAIL_CHARS - 1
    backslashes = len(head) - len(head.rstrip("\\"))
    if backslashes % 2:
        head = head[:-1]
    else:
        cut = head.rfind("\\u", len(head) - 5)
        if cut >= 0 and (len(head[:cut]) - len(head[:cut].rstrip("\\"))) % 2 == 0:
            head = head[:cut]
    # The tail begins where no sequence can be under way: six characters without a backslash before it.
    while tail_at < len(text) - 1 and "\\" in text[tail_at - 12 : tail_at]:
        tail_at += 1
    mark = left_out(tail_at - len(head), "characters left out", entry_id)
    short = f"{head}{mark}{text[tail_at:]}"
    return short if len(short) < len(text) else text


def _without_links(found: Match[str], entry_id: EntryId) -> str:
    """Return a field with a mark instead of fields that are links, if that is shorter."""
    count = len(_LINK_NAME.findall(found[0]))
    # The first name stays, so that no name occurs twice.
    name = found[0][: found[0].index(":")].rstrip()
    short = f'{name}: "{left_out(count, "fields with links left out", entry_id)}"'
    return short if len(short) + MIN_GAIN_CHARS < len(found[0]) else found[0]


def _shorten_lists(text: str, entry_id: EntryId) -> str:
    """Return JSON in which a long list has its first and its last items, and a mark as a text between."""
    open_: list[tuple[bool, int, list[int]]] = []
    """For each open bracket: whether it is a list, where it is, and where its commas are."""
    cuts: list[tuple[int, int, int]] = []
    """(start, stop, items) of what is left out; inner ones before the outer."""
    for token in _TOKEN.finditer(text):
        sign = token[0]
        if sign in ("[", "{"):
            open_.append((sign == "[", token.start(), []))
        elif sign == "," and open_:
            open_[-1][2].append(token.start())
        elif sign in ("]", "}") and open_:
            is_list, _, commas = open_.pop()
            if is_list and len(commas) + 1 > MAX_ITEMS:
                cuts.extend(_cuts(text, commas, entry_id))
    parts: list[str] = []
    at = 0
    for start, stop, count in sorted(_outermost(cuts)):
        gap = text[start + 1 : start + 200]
        blank = gap[: len(gap) - len(gap.lstrip())]
        parts.extend((text[at : start + 1], blank, f'"{left_out(count, "items left out", entry_id)}"'))
        at = stop
    return "".join((*parts, text[at:]))


def _cuts(text: str, commas: list[int], entry_id: EntryId) -> Iterator[tuple[int, int, int]]:
    """Yield (start, stop, items) of what is left out of a list with these commas: all but its first and last
    items, and some that report an error or have a rare value. O(characters)."""
    items = [text[commas[at - 1] + 1 : commas[at]] for at in range(HEAD_ITEMS, len(commas) + 1 - TAIL_ITEMS)]
    errors = [at for at, item in enumerate(items) if ERROR.search(item, 0, MAX_ERROR_CHARS) is not None]
    if len(errors) > MAX_ERROR_SHARE * len(items):
        errors = []
    kept = sorted({*errors[:MAX_UNUSUAL], *unusual_items(items)[:MAX_UNUSUAL]})
    begin = 0
    for end in (*kept, len(items)):
        if end > begin:
            start, stop = commas[HEAD_ITEMS + begin - 1], commas[HEAD_ITEMS + end - 1]
            mark = left_out(end - begin, "items left out", entry_id)
            if stop - start > len(mark) + MIN_GAIN_CHARS:
                yield start, stop, end - begin
        begin = end + 1


def _outermost(cuts: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Return the cuts that are in no other one."""
    outer: list[tuple[int, int, int]] = []
    for cut in sorted(cuts, key=lambda one: (one[0], -one[1])):
        if not outer or cut[0] >= outer[-1][1]:
            outer.append(cut)
    return outer
