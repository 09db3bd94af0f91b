"""A conversation as the extract sees it: its statistics' scene, and the units that may be quoted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from compactd.core.atoms import atoms
from compactd.core.cover import Candidates
from compactd.core.entries import EntryId, Item, is_summary
from compactd.core.lexicon import ATOM, KINDS, Lexicon
from compactd.core.pieces import release
from compactd.core.reuse import Scene, Told
from compactd.core.roles import (
    ARGUMENT,
    ASSISTANT,
    COMMAND,
    HEADER,
    OLD,
    READ,
    RESULT,
    SEARCH,
    SHELL,
    TODO,
    USER,
)
from compactd.core.units import Call, Facts, Unit, without_directory
from compactd.messages import Text

FEATURE_WORTH: Final = (3.0, 2.0, 2.0, 4.0)
"""What a certain atom, word, run of four, line is worth."""
LINK_WORTH: Final = 6.0
"""What an atom is worth in a line that says something about it."""
LINK_LINES: Final = 3
LINK_WORDS: Final = 3
"""Telling words, the atom among them, of a line that says something about it."""

ROLE_WORTH: Final = {
    USER: 10.0,
    HEADER: 2.6,
    COMMAND: 2.25,
    ASSISTANT: 2.4,
    ARGUMENT: 2.0,
    OLD: 0.75,
    TODO: 3.0,
    READ: 0.65,
}
"""Factor for the features of a line, 1 for the roles left out: what they are worth beyond being foretold."""
MARK_FACTOR: Final = {ASSISTANT: 2.0, READ: 2.0, SHELL: 2.0, SEARCH: 2.0, RESULT: 2.0}
"""For the agent's decisions and for errors."""
LOW_FACTOR: Final = 0.42

LINE_TOKENS: Final = 1.2
HEADER_TOKENS: Final = 4.0
OPENING_TOKENS: Final = 5.0
"""What the marks around a line, a call's header, a text's entry id cost."""


class Place(Struct, frozen=True, array_like=True, gc=False):
    """Where a candidate stands."""

    item: int
    """Index of its message."""
    role: int
    unit: Unit


def _number(entry_id: EntryId) -> int | None:
    digits = entry_id[1:]
    return int(digits) if entry_id[:1] == "e" and digits.isdecimal() else None


def in_order(removed: Sequence[Item], kept: Sequence[Item]) -> list[tuple[Item, bool]]:
    """Both in the order of the conversation, each with whether it is removed."""
    marked = [(item, True) for item in removed] + [(item, False) for item in kept]
    numbers = [_number(item.entry_id) for item, _ in marked]
    known = [n for n in numbers if n is not None]
    if len(known) < len(numbers):
        return marked
    order = sorted(range(len(marked)), key=known.__getitem__)
    return [marked[i] for i in order]


def is_request(item: Item) -> bool:
    """True for a message in which a person asks: a user's text that no program wrote."""
    message = item.message
    meta = message.meta
    return (
        message.role == "user"
        and not is_summary(message)
        and not (meta is not None and (meta.synthetic or meta.kind == "bash_execution"))
        and any(isinstance(b, Text) and b.text.strip() for b in message.content)
    )


class Conversation:
    """Every message's facts in order, and what the record can quote of them."""

    def __init__(
        self, order: list[tuple[Item, bool]], facts: list[Facts], request: Item | None, lexicon: Lexicon
    ) -> None:
        self.order = order
        self._lexicon = lexicon
        self._directory, self._anywhere = "", False
        self._written: set[int] = set().union(*(known.atoms for known in facts))
        self.places: list[Place] = []
        self.candidates = Candidates([], [], [], [], [], [], [])
        self.failed: set[int] = set()
        """Groups whose call failed."""
        self.changing: set[int] = set()
        """Groups whose call changes a file."""
        self.kept_features: set[int] = set()
        self._calls: dict[str, Call] = {}
        self._opened: dict[str, int] = {}
        self._said: dict[int, int] = {}
        self._told: list[Told] = []
        self._parts = 0
        last_todo = max(
            (i for i, known in enumerate(facts) if any(part.role == TODO for part in known.parts)), default=-1
        )
        for index, known in enumerate(facts):
            self._take(index, known, removed=order[index][1], with_todo=index == last_todo)
        requests = [index for index, (item, _) in enumerate(order) if is_request(item)]
        self.scene = Scene(
            told=self._told,
            tokens=[item.tokens for item, _ in order],
            turns=_turns_after(len(order), requests),
            current_turn=requests[-1] if requests else 0,
            request=next((i for i, (item, _) in enumerate(order) if item is request), None),
            size=lexicon.size,
        )

    def release(self) -> None:
        """Lets go of the candidates, piece by piece: nothing can be picked any more."""
        c = self.candidates
        for numbers in (c.price, c.worth, c.opening):
            release(numbers)
        for indices in (c.group, c.part, c.header):
            release(indices)
        release(c.features)
        release(self.places)

    def leave_out(self, directory: str, *, told: bool) -> None:
        """Quote lines without `directory` before their paths: where the client told it, always; where it was
        told from the paths, only so far as the shorter path is written somewhere in the conversation."""
        self._directory = directory.rstrip("/") + "/" if directory.strip("/") else ""
        self._anywhere = told

    def text(self, place: Place) -> str:
        """The unit as it is quoted."""
        text = place.unit.text
        if not self._directory or self._directory not in text:
            return text
        short = without_directory(text, self._directory)
        if self._anywhere or short == text:
            return short
        known = self._lexicon.atoms
        if all(known.get(atom, -1) in self._written for atom in atoms(short)):
            return short
        return text

    def _take(self, index: int, known: Facts, *, removed: bool, with_todo: bool) -> None:
        for call in known.calls:
            self._calls[call.call_id] = call
        for part in known.parts:
            role = part.role
            call_of = self._calls.get(part.call_id) if part.call_id is not None else None
            if call_of is None:
                self._told.append(Told(index, part, role))
            else:
                is_result = role == RESULT
                role = call_of.role if is_result else role
                changes = call_of.changes and not is_result
                self._told.append(Told(index, part, role, call_of.files, changes))
            if not removed:
                self.kept_features.update(part.features)
            elif role != TODO or with_todo:
                group = self._group(index, role, part.call_id)
                if call_of is not None and call_of.changes:
                    self.changing.add(group)
                if part.call_id in known.failed:
                    self.failed.add(group)
                self._parts += 1
                for unit in part.units:
                    self._add(Place(index, role, unit), group)

    def _group(self, index: int, role: int, call_id: str | None) -> int:
        """The group of a part: a call with its result, or what one message says."""
        c = self.candidates
        if call_id is not None:
            if role == HEADER:
                self._opened[call_id] = len(c.header)
                c.header.append(len(self.places))
                c.opening.append(0.0)
            if call_id in self._opened:
                return self._opened[call_id]
        known = self._said.get(index)
        if known is None:
            known = self._said[index] = len(c.header)
            c.header.append(-1)
            c.opening.append(OPENING_TOKENS)
        return known

    def _add(self, place: Place, group: int) -> None:
        c = self.candidates
        role, unit = place.role, place.unit
        worth = ROLE_WORTH.get(role, 1.0)
        if unit.marked:
            worth *= MARK_FACTOR.get(role, 1.0)
        if unit.low:
            worth *= LOW_FACTOR
        c.features.append(unit.line.features)
        c.price.append(unit.line.tokens + (HEADER_TOKENS if role == HEADER else LINE_TOKENS))
        c.worth.append(worth)
        c.group.append(group)
        c.part.append(self._parts)
        self.places.append(place)


def _turns_after(messages: int, requests: Sequence[int]) -> list[int]:
    """For each message the number of user requests after it."""
    asks = set(requests)
    turns = [0] * messages
    after = 0
    for index in range(messages - 1, -1, -1):
        turns[index] = after
        after += index in asks
    return turns


def link_atoms(conversation: Conversation, weights: list[float]) -> None:
    """Give each atom's last telling lines a feature of their own; the first one quoted covers it."""
    features = conversation.candidates.features
    places = conversation.places
    links: dict[int, int] = {}
    carried: dict[int, int] = {}
    for i in range(len(places) - 1, -1, -1):
        place = places[i]
        if place.role == HEADER or place.unit.line.telling < LINK_WORDS:
            continue
        extra: list[int] = []
        for feature in features[i]:
            if feature % KINDS == ATOM and weights[feature] > 0:
                times = carried.get(feature, 0)
                if times < LINK_LINES:
                    carried[feature] = times + 1
                    link = links.get(feature)
                    if link is None:
                        link = links[feature] = len(weights)
                        weights.append(weights[feature] / FEATURE_WORTH[ATOM] * LINK_WORTH)
                    extra.append(link)
        if extra:
            features[i] = (*features[i], *extra)
