"""The user's constraints: sentences in which the user sets a limit, kept word for word in every later view.

Found by code, in what the user typed (`typed.py`): never in tool output, never in what a program wrote or a
summariser was told. They are worked out from the originals at each compaction, so that undo, branch and
redaction need no rule of their own, and nothing wears out.

**Newest wins.** Two constraints disagree where they are about the same thing, that is, hold the same words
but for cues, numbers and common words, and one forbids what the other demands, or both set one limit to
different numbers. The older one is then no longer in force. Said again in the same words, it counts once,
where it was said last.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol

from msgspec import Struct

from compactd.core.atoms import COMMON_WORDS, words_of_chunk
from compactd.core.cues import CUE_WORDS, LIMIT, NEGATIVE, OTHERS, STRONG, WEAK, pattern
from compactd.core.entries import EntryId, Item
from compactd.core.typed import typed_sentences

MOST_CHARS: Final = 1_000
"""A longer sentence is an account of something, no rule."""

LEAST_TOKENS: Final = 64
TARGET_DIVISOR: Final = 8
SUMMARY_DIVISOR: Final = 4
"""By default the constraints take at most an eighth of `target_tokens`, where there is none a quarter of the
summary's budget, and `LEAST_TOKENS` in any case. The 40 sessions that this was tried on (2026-11) hold 0 to
444 tokens of them."""

_QUOTED = re.compile(
    r"`[^`]*`|\"[^\"\n]*\"|“[^”\n]*”|«[^»\n]*»|„[^“”\n]*[“”]|「[^」\n]*」|『[^』\n]*』|‘[^’\n]* [^’\n]*’"
)
_ASKS = re.compile(
    r"(?:why|what|how|is|are|do(?!n)|does|did|should|when|where|who|which|has|have|was|were|isn|aren|don['’]?t\s+you"
    r"|warum|wieso|wie|ist|sind|pourquoi|comment|est|por\s+qué|qué|cómo)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?<![\w.-])\d+(?:[.,]\d+)*(?![\w-])")
_OPENING = re.compile(
    r"\W*(?:please|also|and|but|so|oh|ok(?:ay)?|hey|note|rule|btw|ps|p\.s\.|\d+)\b[,:.]?\s*",
    re.IGNORECASE,
)
_WORDS = re.compile(r"\w+")


Limits = tuple[tuple[str, bool], ...]
"""The sentences of one message that set a limit, each with whether it leaves no choice."""


class Found(Protocol):
    """The limits of messages, as far as they were looked for, by entry id."""

    def get(self, key: EntryId, /) -> Limits | None:
        """None where nobody looked yet."""

    def __setitem__(self, key: EntryId, value: Limits, /) -> None: ...


class Constraint(Struct, frozen=True):
    """A sentence in which the user sets a limit."""

    text: str
    """The whole sentence, as it was typed."""
    entry_id: EntryId
    """The message it stands in; of one said twice, the last."""
    is_strong: bool = True
    """It has a word that leaves no choice, or a number; these go first where not all have room."""


def is_constraint(sentence: str) -> bool:
    """True for a sentence that sets a limit. What stands in quotes in it sets none. O(length)."""
    return _strength(sentence) is not None


class Constraints(Struct, frozen=True):
    """What the user demands, in the order it was said last."""

    in_force: tuple[Constraint, ...] = ()
    superseded: tuple[Constraint, ...] = ()
    """Those that a newer one disagrees with."""


NO_DEMANDS: Final = Constraints()


class Said(Struct, frozen=True):
    """The user's constraints, as far as a path was read."""

    read: int = 0
    """Its first entries."""
    found: Mapping[str, Constraint] = {}
    """All of them by their words, in the order they were said last."""
    demands: Constraints = NO_DEMANDS

    def further(self, items: Iterable[Item], known: Found | None = None, read: int = 0) -> Said:
        """The same with the originals `items` read as well, oldest first, up to entry `read` of the path.
        O(characters that users typed in them); with what is `known` of messages, which is added to,
        O(messages)."""
        known = {} if known is None else known
        found: dict[str, Constraint] | None = None
        for item in items:
            limits = known.get(item.entry_id)
            if limits is None:
                limits = known[item.entry_id] = limits_in(item)
            for sentence, strong in limits:
                if found is None:
                    found = dict(self.found)
                key = " ".join(sentence.lower().split())
                found.pop(key, None)
                found[key] = Constraint(sentence, item.entry_id, strong)
        if found is None:
            return Said(read, self.found, self.demands)
        return Said(read, found, _settled(tuple(found.values())))


NOTHING_SAID: Final = Said()


def constraints_of(items: Iterable[Item], known: Found | None = None) -> Constraints:
    """The user's constraints. `items` are originals, oldest first. O(characters that users typed); with what
    is `known` of messages, which is added to, O(messages)."""
    return NOTHING_SAID.further(items, known).demands


def limits_in(item: Item) -> Limits:
    """What one message demands by itself. O(characters that the user typed)."""
    if item.message.role != "user":
        return ()
    marked = ((sentence, _strength(sentence)) for sentence in typed_sentences(item))
    return tuple([(sentence, strong) for sentence, strong in marked if strong is not None])


def within(
    constraints: Sequence[Constraint], most_tokens: int, count: Callable[[str], int]
) -> tuple[Constraint, ...]:
    """Those that have room in `most_tokens`, each whole, in their order: the strong ones first, the newest
    first. O(constraints)."""
    chosen: set[int] = set()
    left = most_tokens
    for wanted in (True, False):
        for at in range(len(constraints) - 1, -1, -1):
            if constraints[at].is_strong == wanted:
                cost = count(bullet(constraints[at]) + "\n")
                if cost <= left:
                    chosen.add(at)
                    left -= cost
    return tuple(one for at, one in enumerate(constraints) if at in chosen)


def bullet(constraint: Constraint) -> str:
    """The line that names it in a summary."""
    return f"- {constraint.text} [{constraint.entry_id}]"


def bullets(constraints: Sequence[Constraint]) -> tuple[str, ...]:
    """The lines of all of them."""
    return tuple(map(bullet, constraints))


def missing(constraints: Sequence[Constraint], text: str) -> tuple[Constraint, ...]:
    """Those that do not stand in `text` word for word. O(constraints × text)."""
    return tuple(one for one in constraints if one.text not in text)


def without_them(line: str, demands: Constraints) -> str:
    """`line` without the constraints that stand in it; empty where nothing but marks is left."""
    rest = line
    for one in (*demands.in_force, *demands.superseded):
        if one.text in rest:
            rest = rest.replace(one.text, " ")
    return line if rest is line else rest.strip() if _WORDS.search(rest) is not None else ""


def _strength(sentence: str) -> bool | None:
    """True for a strong constraint, False for a weak one, None for none."""
    if not 4 <= len(sentence) <= MOST_CHARS:
        return None
    bare = _QUOTED.sub(" ", sentence).strip()
    while (match := _OPENING.match(bare)) is not None and match.end():
        bare = bare[match.end() :]
    if bare.endswith(("?", "？")) and _ASKS.match(bare) is not None:
        return None
    if bare.isascii() and len(_WORDS.findall(sentence)) < 2:
        return None
    if pattern(STRONG, LIMIT, OTHERS).search(bare) is not None:
        return True
    return False if pattern(WEAK).search(bare) is not None else None


def _settled(said: Sequence[Constraint]) -> Constraints:
    stands: dict[frozenset[str], list[Constraint]] = {}
    kept: list[Constraint] = []
    gone: list[Constraint] = []
    for one in reversed(said):
        subject = _subject(one.text)
        newer = stands.setdefault(subject, [])
        if subject and any(_disagree(one.text, other.text) for other in newer):
            gone.append(one)
            continue
        newer.append(one)
        kept.append(one)
    return Constraints(tuple(reversed(kept)), tuple(reversed(gone)))


def _subject(text: str) -> frozenset[str]:
    """What a constraint is about: its words but for cues, numbers and common ones."""
    rest = _NUMBER.sub(" ", pattern(NEGATIVE).sub(" ", pattern(OTHERS).sub(" ", text)))
    words = (word for chunk in rest.split() for word in words_of_chunk(chunk))
    return frozenset(word for word in words if word not in COMMON_WORDS and word not in CUE_WORDS)


def _disagree(older: str, newer: str) -> bool:
    """Of two about the same thing: one forbids and one demands, or they limit it to different numbers."""
    limit, negative = pattern(LIMIT), pattern(NEGATIVE)
    if limit.search(older) is not None and limit.search(newer) is not None:
        mine, other = _NUMBER.findall(older), _NUMBER.findall(newer)
        return len(mine) == 1 == len(other) and mine != other
    return (negative.search(older) is None) != (negative.search(newer) is None)
