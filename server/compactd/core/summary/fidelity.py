"""Find what a model's summary states but the conversation does not contain: paths, names, literals, numbers,
commands.

Only summaries by a model need this check, because `extract` quotes. What is found is listed in the summary;
nothing is removed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from compactd.core.text.atoms import atoms, commands
from compactd.core.text.lazy_patterns import LazyPattern

MAX_UNFOUNDED: Final = 20
"""At most this many statements are listed."""

NOT_FOUND: Final = "Stated above, but nowhere in the conversation: "
"""The beginning of the line in the summary that lists what was not found."""

_NUMBER = LazyPattern(r"(?<![\w.,/:#-])\d[\d,_]*(?:\.\d+)?(?![\w/:-]|\.\d)")
_NUMBERED = LazyPattern(r"\A\s*(?:[-*]\s+)?\d{1,3}[.)]\s")
_SPAN = LazyPattern(r"`([^`\n]*)`")
_WRITTEN_BY_HAND = LazyPattern(r"[A-Z][a-z]+[A-Z][a-z]+")
"""Matches words such as `JavaScript` and `GitHub`. They look like identifiers, but only count as such if the
summary marks them as code."""
SLICE: Final = 1_000_000
"""Texts are searched in slices of this many code points, because a search holds the interpreter lock."""


def find_unfounded(
    summary: str, told: Sequence[str], past: Iterable[str], programs: Collection[str] = ()
) -> tuple[str, ...]:
    """Return what `summary` states although no text of `told` or `past` contains it: at most `MAX_UNFOUNDED`
    items, in the order of the summary. `past` are the texts of the conversation, `told` other texts that the
    summariser has read.

    A path counts as found if a longer path ends with it, and words joined by slashes if each word is found.
    Numbers of one digit are not checked. A command is text in backquotes that begins with one of `programs`.
    O(items × past) in the worst case; an item that was found is not searched again.
    """
    open_ = dict(_stated_facts(summary, programs))
    for text in chain(told, past):
        for start in range(0, len(text), SLICE):
            if not open_:
                return ()
            # Slices overlap, so that no fact is missed at a border.
            part = text[start : start + SLICE + 400]
            _take_out(open_, part)
            if any(" " in form for forms in open_.values() for form in forms) and (
                "\n" in part or "  " in part
            ):
                # A command may be wrapped over several lines.
                _take_out(open_, " ".join(part.split()))
    return tuple(open_)[:MAX_UNFOUNDED]


def _take_out(open_: dict[str, tuple[str, ...]], text: str) -> None:
    """Remove the items that `text` contains from `open_`, which has the spellings of each item."""
    held = [fact for fact, forms in open_.items() if any(form in text for form in forms)]
    for fact in held:
        del open_[fact]


def _stated_facts(summary: str, programs: Collection[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield what the summary states, as pairs of (the spelling of the summary, the spellings that count as
    the same)."""
    coded = " ".join(span for line in summary.split("\n") for span in _SPAN.findall(line))
    for kind, value in atoms(summary):
        parts = value.strip("/").split("/") if kind == "path" else ()
        if len(parts) > 1 and not any("." in part for part in parts) and not value.startswith(("/", "~")):
            yield from ((part, (part,)) for part in parts if len(part) >= 4)
        elif kind != "id" or value in coded or _WRITTEN_BY_HAND.fullmatch(value) is None:
            yield value, (value,)
    for line in summary.split("\n"):
        for span in _SPAN.findall(line):
            if 6 <= len(span) <= 200:
                said = (one for one in commands(span) if one.split(" ", 1)[0] in programs)
                yield from ((command, (command,)) for command in said)
        for found in _NUMBER.findall(_NUMBERED.sub("", line)):
            bare = found.strip(",").replace(",", "").replace("_", "")
            if len(bare) >= 2:
                yield found.strip(","), (found.strip(","), bare, _group_digits(bare))


def _group_digits(number: str) -> str:
    """Return a number with commas between its thousands."""
    whole, point, part = number.partition(".")
    return f"{int(whole):,}{point}{part}" if len(whole) < 30 else number
