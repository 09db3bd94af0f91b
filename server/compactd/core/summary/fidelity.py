"""What a summary states and the conversation does not hold: paths, names, literals, numbers, commands.

A summary of ours quotes and needs no check; a model may invent. What is told here is marked, never removed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from compactd.core.text.atoms import atoms, commands

MOST: Final = 20
"""Named, of what was not found."""

NOT_FOUND: Final = "Stated above, but nowhere in the conversation: "
"""How the line begins that names it in the summary."""

_NUMBER = re.compile(r"(?<![\w.,/:#-])\d[\d,_]*(?:\.\d+)?(?![\w/:-]|\.\d)")
_NUMBERED = re.compile(r"\A\s*(?:[-*]\s+)?\d{1,3}[.)]\s")
_SPAN = re.compile(r"`([^`\n]*)`")
_WRITTEN_BY_HAND = re.compile(r"[A-Z][a-z]+[A-Z][a-z]+")
"""`JavaScript`, `GitHub`: no name of a program's, unless it stands as code."""
SLICE: Final = 1_000_000
"""Code points that one search looks at."""


def unfounded(
    summary: str, told: Sequence[str], past: Iterable[str], programs: Collection[str] = ()
) -> tuple[str, ...]:
    """What `summary` states and neither `told` nor any text of `past` holds: at most `MOST`, in the order in
    which it stands there.

    A path counts as held where a longer one ends with it, and words parted by slashes where each of them is
    held; a number of one digit is not asked for; a command is what stands in backquotes and begins with one
    of `programs`. O(facts × past) at worst; what was found is no longer looked for.
    """
    open_ = dict(_stated(summary, programs))
    for text in chain(told, past):
        for start in range(0, len(text), SLICE):
            if not open_:
                return ()
            # Slices overlap, so that nothing is parted.
            part = text[start : start + SLICE + 400]
            _take_out(open_, part)
            if any(" " in form for forms in open_.values() for form in forms) and (
                "\n" in part or "  " in part
            ):
                # A command may be broken over lines.
                _take_out(open_, " ".join(part.split()))
    return tuple(open_)[:MOST]


def _take_out(open_: dict[str, tuple[str, ...]], text: str) -> None:
    """The facts that a text holds are no longer looked for."""
    held = [fact for fact, forms in open_.items() if any(form in text for form in forms)]
    for fact in held:
        del open_[fact]


def _stated(summary: str, programs: Collection[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """(fact as it stands, the forms in which the past may hold it)."""
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
                yield found.strip(","), (found.strip(","), bare, _grouped(bare))


def _grouped(number: str) -> str:
    whole, point, part = number.partition(".")
    return f"{int(whole):,}{point}{part}" if len(whole) < 30 else number
