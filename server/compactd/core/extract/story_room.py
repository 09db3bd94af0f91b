"""The room of a story: each kind of item has a largest share of it, and what one kind leaves is free for
those after it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from compactd.core.text.lazy_patterns import LazyPattern
from compactd.core.text.summary_format import CHANGES, DONE, GOAL, Layout

SAMPLE: Final = "All tests of the parser pass; src/parser.py is edited, but not committed since [e12]."
"""A text by which it is estimated how many characters one of the units has in which a size is given."""
SAFE_SHARE: Final = 0.7
"""A text is shortened to this share of the characters that are estimated to fit."""
ITEM_CHARS: Final = 900
"""The most characters of one item."""
MIN_ITEM_CHARS: Final = 120
MIN_WORD_CHARS: Final = 4
KNOWN_SHARE: Final = 0.7
"""An item of which this share of the words is in a text is known from that text."""

SHARES: Final = {
    "now": 0.12,
    "goal": 0.16,
    "briefs": 0.18,
    "errors": 0.10,
    "plan": 0.14,
    "requests": 0.24,
    "said": 0.40,
    "failed": 0.22,
    "events": 0.20,
    "git": 0.06,
    "checks": 0.08,
    "changes": 0.14,
    "decisions": 0.14,
    "earlier": 0.30,
}
"""The largest share of the room that each kind of item gets, in the order in which the kinds are served. If
there is an earlier summary, its share is kept free for it."""
USER_LEAD: Final = "The user: "
"""The words before a request that is a step of the work."""
AGENT_LEAD: Final = "The agent: "
"""The words before a statement of the agent that begins with `USER_LEAD`."""
EARLIER: Final = "earlier"
FIRST_DIVISOR: Final = 6
FIRST_DIVISORS: Final = {"goal": 2, "requests": 2}
"""The first item of a kind may take all the room divided by this, whatever its share: `FIRST_DIVISOR`, or
the divisor of its kind."""
FULL: Final = sum(SHARES.values()) - SHARES[EARLIER]
_WORD: Final = LazyPattern(r"[\w./-]+")
_REFERENCE: Final = LazyPattern(r"\[e\d+\]")


class StoryText(Struct, frozen=True):
    """The lines of the story by section."""

    sections: Mapping[str, Sequence[tuple[int, Sequence[str]]]]
    """For each section, its items in order: the index of the message that the item is about (or the item's
    place, where it is about none), and the item's lines."""
    tokens: int
    """The tokens of all lines."""

    def laid_out(self, layout: Layout) -> dict[str, list[tuple[int, Sequence[str]]]]:
        """Return the items by section. If the layout has no section for changes, they are at the end of what
        was done."""
        found = {section: list(items) for section, items in self.sections.items()}
        if CHANGES in found and not any(CHANGES in parts for _, parts in layout.sections):
            found[DONE] = [*found.get(DONE, ()), *found.pop(CHANGES)]
        return found

    @property
    def lines(self) -> list[str]:
        """All lines, in the order of the sections."""
        return [line for items in self.sections.values() for _, lines in items for line in lines]


NO_STORY: Final = StoryText({}, 0)


class Item(Struct, frozen=True):
    """A part of the story."""

    section: str
    rank: int
    """Items of a section are ordered by their rank and then by their place."""
    place: int
    lines: Sequence[str]
    is_users: bool = False
    """Whether it is a request, which only the user's words say."""


class Room:
    """Collects items while there is room."""

    def __init__(
        self, room: int, count: Callable[[str], int], known: frozenset[str], kinds: Collection[str]
    ) -> None:
        self._all = self._left = room
        self._count, self._known = count, known
        total = sum(share for kind, share in SHARES.items() if kind in kinds and kind != EARLIER) or FULL
        self._shares = {kind: min(1.0, SHARES[kind] * FULL / total) for kind in kinds}
        self._reserved = 0
        """What is kept free for earlier summaries."""
        if EARLIER in kinds:
            self._shares[EARLIER] = SHARES[EARLIER]
            self._reserved = int(room * SHARES[EARLIER])
        self._items: list[Item] = []
        self._lines: list[str] = []
        self.places: set[tuple[str, int]] = set()
        """The section and the place of each item."""
        self.is_added = False
        """Whether there was room for the newest item. The caller may then stop, or offer a shorter
        one."""

    @property
    def items(self) -> list[Sequence[str]]:
        """The lines of each item so far."""
        return [item.lines for item in self._items]

    @property
    def text(self) -> str:
        """All lines so far."""
        return "\n".join(self._lines)

    def fill(self, kind: str, items: Iterator[Item], *, is_last: bool = False) -> None:
        """Add those items for which the share of this kind has room; with `is_last`, those for which there is
        any room. The first item may be larger than the share, so that a small room has one of each kind."""
        self.is_added = False
        if kind not in self._shares:
            return
        if kind == EARLIER:
            self._reserved = 0
        left = self._left - self._reserved
        most = left if is_last else min(left, int(self._all * self._shares[kind]))
        is_first = True
        for item in items:
            if self._known and is_known(item.lines, self._known):
                continue
            cost = self._count("\n".join(item.lines) + "\n")
            self.is_added = cost <= (
                max(most, min(left, self._all // FIRST_DIVISORS.get(kind, FIRST_DIVISOR)))
                if is_first
                else most
            )
            if self.is_added:
                self._items.append(item)
                self._lines += item.lines
                self.places.add((item.section, item.place))
                most -= cost
                self._left -= cost
                is_first = False

    def chars(self, kind: str, parts: int = 1, most: int | None = ITEM_CHARS) -> int:
        """Return how many characters one of so many items of this kind may have."""
        chars = SAFE_SHARE * len(SAMPLE) / self._count(SAMPLE)
        left = self._left - (0 if kind == EARLIER else self._reserved)
        room = min(left, self._all * self._shares.get(kind, 0.0)) * chars / parts
        return max(MIN_ITEM_CHARS, int(room) if most is None else min(most, int(room)))

    def story(self) -> StoryText:
        """Return the items in order. If nobody did anything, all requests are goals."""
        items = self._items
        if not any(one.section in (DONE, CHANGES) and not one.is_users for one in items):
            items = [_as_goal(one) if one.is_users else one for one in items]
        sections: dict[str, list[tuple[int, Sequence[str]]]] = {}
        for item in sorted(items, key=lambda one: (one.rank, one.place)):
            sections.setdefault(item.section, []).append((item.place, item.lines))
        return StoryText(sections, self._all - self._left)


def _as_goal(item: Item) -> Item:
    """Return a request as an item under Goal, where all words are the user's."""
    lines = [item.lines[0].replace(USER_LEAD, "", 1), *item.lines[1:]] if item.section == DONE else item.lines
    return replace(item, section=GOAL, lines=lines)


def words_in(text: str) -> Iterator[str]:
    """Yield the words of a text that say something: names, numbers, and words of at least four letters."""
    for word in _WORD.findall(text.lower()):
        bare = word.strip("_./-:")
        if len(bare) >= MIN_WORD_CHARS or any(sign.isdigit() for sign in bare):
            yield bare


def is_known(lines: Sequence[str], known: frozenset[str]) -> bool:
    """Return whether most words of an item are among `known`. References do not count."""
    words = set(words_in(_REFERENCE.sub("", "\n".join(lines))))
    return len(words & known) >= KNOWN_SHARE * len(words)


def words_of(lines: Sequence[str]) -> frozenset[str]:
    return frozenset(words_in(_REFERENCE.sub("", "\n".join(lines))))
