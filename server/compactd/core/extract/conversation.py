"""A conversation as the extract sees it: its statistics' scene, and the units that may be quoted."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property
from sys import byteorder

from msgspec import Struct

from compactd.core.authors.authors import is_typed, spans
from compactd.core.constraints.constraints import NO_DEMANDS, demanded_lines, is_constraint
from compactd.core.constraints.user_text import typed_sentences, without_bullet
from compactd.core.extract.facts import MARKED, Facts, Part, UnitReader, units_of
from compactd.core.extract.lexicon import Lexicon
from compactd.core.extract.line_roles import HEADER, RESULT, TODO
from compactd.core.extract.lines import Call, Unit, without_directory
from compactd.core.extract.reuse_model import Scene, Told
from compactd.core.history.entries import Item, number_of
from compactd.core.text.atoms import atoms
from compactd.core.text.quoting import quoted_line
from compactd.core.text.search import stands_alone, texts_written
from compactd.core.text.slices import release
from compactd.protocol.messages import Author, Text


class Place(Struct, frozen=True, array_like=True, gc=False):
    """A unit that may be quoted, where it stands."""

    item: int
    """Index of its message."""
    role: int
    text: str
    marked: bool


class Quotable(Struct, frozen=True, array_like=True, gc=False):
    """A part whose units may be quoted."""

    item: int
    """Index of its message."""
    at: int
    """Index among the message's parts."""
    role: int
    group: int
    part: Part


def in_order(removed: Sequence[Item], kept: Sequence[Item]) -> list[tuple[Item, bool]]:
    """Both in the order of the conversation, each with whether it is removed."""
    marked = [(item, True) for item in removed] + [(item, False) for item in kept]
    numbers = [number_of(item.entry_id) for item, _ in marked]
    known = [n for n in numbers if n is not None]
    if len(known) < len(numbers):
        return marked
    order = sorted(range(len(marked)), key=known.__getitem__)
    return [marked[i] for i in order]


class Conversation:
    """Every message's facts in order, and what the record can quote of them."""

    def __init__(
        self, order: list[tuple[Item, bool]], facts: list[Facts], request: Item | None, lexicon: Lexicon
    ) -> None:
        self.order = order
        self._facts = facts
        self._lexicon = lexicon
        self.demands = NO_DEMANDS
        """What stands in the record word for word, whatever is picked."""
        self._directory, self._anywhere = "", False
        self.quotable: list[Quotable] = []
        self.kept: list[bool] = []
        """Of each part told: its message stays as it is."""
        self.told_as: list[int] = []
        """Of each quotable part: its index among those told."""
        self.header: list[int] = []
        """By group: the index of its header among the quotable parts, or -1."""
        self.failed: set[int] = set()
        """Groups whose call failed."""
        self.changing: set[int] = set()
        """Groups whose call changes a file."""
        self._begins: list[int] = [0]
        self._places: dict[int, Place] = {}
        self._reading: tuple[int, UnitReader | None] = (-1, None)
        """The message that `alone` read last, and its reader."""
        self._written: dict[tuple[str, str], bool] = {}
        self._limits: dict[str, bool] = {}
        self._quoted: dict[tuple[str, Author], str] = {}
        self._typed: dict[int, str] = {}
        self._listed: dict[int, frozenset[str]] = {}
        self._texts: dict[int, tuple[tuple[Unit, ...], ...]] = {}
        self._calls: dict[str, Call] = {}
        self._opened: dict[str, int] = {}
        self._said: dict[int, int] = {}
        self._pasted: dict[int, str] = {}
        self._told: list[Told] = []
        last_todo = max(
            (i for i, known in enumerate(facts) if any(part.role == TODO for part in known.parts)), default=-1
        )
        for index, known in enumerate(facts):
            self._take(index, known, removed=order[index][1], with_todo=index == last_todo)
        requests = [index for index, (item, _) in enumerate(order) if is_typed(item.message)]
        self.scene = Scene(
            told=self._told,
            tokens=[item.tokens for item, _ in order],
            turns=_turns_after(len(order), requests),
            current_turn=requests[-1] if requests else 0,
            request=next((i for i, (item, _) in enumerate(order) if item is request), None),
        )

    def release(self) -> None:
        """Lets go of everything, piece by piece: nothing is asked any more."""
        release(self.order)
        release(self._facts)
        release(self.quotable)
        release(self._told)

    @property
    def units(self) -> int:
        """How many may be quoted; each has an index below this."""
        return self._begins[-1]

    def leave_out(self, directory: str, *, told: bool) -> None:
        """Quote lines without `directory` before their paths: where the client told it, always; where it was
        told from the paths, only so far as the shorter path is written somewhere in the conversation."""
        self._directory = directory.rstrip("/") + "/" if directory.strip("/") else ""
        self._anywhere = told

    def text(self, place: Place) -> str:
        """The unit as it is quoted."""
        text = place.text
        if not self._directory or self._directory not in text:
            return text
        short = without_directory(text, self._directory)
        if self._anywhere or short == text:
            return short
        return short if all(self._is_written(atom) for atom in atoms(short)) else text

    def quoted(self, place: Place, author: Author) -> str:
        """The unit as it is quoted of this author, on one line."""
        text = self.text(place)
        known = self._quoted.get((text, author))
        if known is None:
            known = self._quoted[text, author] = quoted_line(text, author)
        return known

    def is_quotation(self, place: Place) -> bool:
        """Whether a unit of an assistant's message is a line that it quotes: one with `>` in front, or one
        that looks like a decision and stands in a quotation or a fence. O(the message) the first time, then
        a search in what the message quotes."""
        line = place.text.strip()
        if line.startswith((">", "＞")):
            return True
        return place.marked and line in self._pasted_in(place.item)

    def _pasted_in(self, index: int) -> str:
        """The quotations and fences of a message, one after the other."""
        known = self._pasted.get(index)
        if known is None:
            known = self._pasted[index] = "\n\n".join(
                block.text[span.start : span.end]
                for block in self.order[index][0].message.content
                if isinstance(block, Text)
                for span in spans(block.text)
                if span.pasted
            )
        return known

    def is_typed(self, place: Place) -> bool:
        """Whether a unit of a user's message is something the user typed, not a line of something pasted.
        O(the message) the first time."""
        known = self._typed.get(place.item)
        if known is None:
            sentences = typed_sentences(self.order[place.item][0])
            known = self._typed[place.item] = "".join("".join(sentences).split())
        return "".join(without_bullet(place.text).split()) in known

    def beside_lists(self, place: Place) -> str:
        """The unit as it is quoted, without what belongs to a demand over several lines, which stands in the
        record as a whole: the lines of a list under `Never:` are no wishes. O(the message) the first time."""
        text = self.text(place)
        known = self._listed.get(place.item)
        if known is None:
            known = self._listed[place.item] = demanded_lines(self.order[place.item][0], self.demands)
        bare = without_bullet(text)
        if bare in known:
            return ""
        lead = next((line for line in known if line.endswith((":", "：")) and bare.endswith(line)), "")
        return bare.removesuffix(lead).strip() if lead else text

    def _is_written(self, atom: tuple[str, str]) -> bool:
        """Whether somebody wrote a name as it is, and not only behind the folder. O(all texts) at worst, once
        a name."""
        known = self._written.get(atom)
        if known is None:
            known = self._lexicon.atoms.get(atom, -1) in self._named and (
                atom[0] != "path" or any(stands_alone(text, atom[1]) for text in self._texts_as_written)
            )
            self._written[atom] = known
        return known

    @cached_property
    def _named(self) -> frozenset[int]:
        return frozenset().union(*(known.atoms for known in self._facts))

    @cached_property
    def _texts_as_written(self) -> list[str]:
        return [text for item, _ in self.order for text in texts_written(item.message.content)]

    def place(self, unit: int) -> Place:
        """A unit by its index. O(its message) the first time."""
        known = self._places.get(unit)
        if known is None:
            known = self._places[unit] = self._placed(unit)
        return known

    def _placed(self, unit: int) -> Place:
        at = bisect_right(self._begins, unit) - 1
        quotable = self.quotable[at]
        nth = unit - self._begins[at]
        part = quotable.part
        marked = part.packed[len(part.packed) - part.count + nth] & MARKED
        text = self._units(quotable)[nth].text
        return Place(quotable.item, quotable.role, text, bool(marked))

    def alone(self, unit: int) -> str:
        """The text of a unit whose neighbours nobody asks for. Asked in order, those of one message take
        O(its length) together: it may have thousands."""
        at = bisect_right(self._begins, unit) - 1
        quotable = self.quotable[at]
        nth = unit - self._begins[at]
        if quotable.part.units:
            return quotable.part.units[nth].text
        item, reader = self._reading
        if reader is None or item != quotable.item or reader.is_past(quotable.at, nth):
            reader = UnitReader(self.order[quotable.item][0], self._facts[quotable.item])
            self._reading = (quotable.item, reader)
        return reader.read(quotable.at, nth).text

    def tokens(self, unit: int) -> float:
        """Estimated tokens of a unit."""
        at = bisect_right(self._begins, unit) - 1
        nth, part = unit - self._begins[at], self.quotable[at].part
        low = len(part.packed) - 3 * part.count + 2 * nth
        return int.from_bytes(part.packed[low : low + 2], byteorder) / 100

    def group(self, unit: int) -> int:
        """What `unit` stands in: a call with its result, or what one message says."""
        return self.quotable[bisect_right(self._begins, unit) - 1].group

    def heading(self, group: int) -> str | None:
        """The text of a group's header; none where it has none."""
        head = self.header[group]
        return self.quotable[head].part.units[0].text if head >= 0 else None

    def sets_limit(self, text: str) -> bool:
        """Whether what a user wrote sets a limit. O(length) the first time."""
        known = self._limits.get(text)
        if known is None:
            known = self._limits[text] = is_constraint(text)
        return known

    @cached_property
    def mended(self) -> frozenset[str]:
        """Calls that went well at last, by their headers."""
        last: dict[str, int] = {}
        for group in range(len(self.header)):
            text = self.heading(group)
            if text is not None:
                last[text] = group
        return frozenset(text for text, group in last.items() if group not in self.failed)

    @cached_property
    def tried(self) -> frozenset[str]:
        """Calls that failed at least once, by their headers."""
        return frozenset(text for group in self.failed if (text := self.heading(group)) is not None)

    def _units(self, quotable: Quotable) -> tuple[Unit, ...]:
        units = quotable.part.units
        if units or not quotable.part.count:
            return units
        known = self._texts.get(quotable.item)
        if known is None:
            item, facts = self.order[quotable.item][0], self._facts[quotable.item]
            known = self._texts[quotable.item] = tuple(units_of(item, facts))
        return known[quotable.at]

    def _take(self, index: int, known: Facts, *, removed: bool, with_todo: bool) -> None:
        for call in known.calls:
            self._calls[call.call_id] = call
        for at, part in enumerate(known.parts):
            role = part.role
            call_of = self._calls.get(part.call_id) if part.call_id is not None else None
            if call_of is None:
                self._told.append(Told(index, part, role))
            else:
                is_result = role == RESULT
                role = call_of.role if is_result else role
                changes = call_of.changes and not is_result
                self._told.append(Told(index, part, role, call_of.files, changes))
            self.kept.append(not removed)
            if removed and (role != TODO or with_todo):
                group = self._group(index, role, part.call_id)
                if call_of is not None and call_of.changes:
                    self.changing.add(group)
                if part.call_id in known.failed:
                    self.failed.add(group)
                self.told_as.append(len(self._told) - 1)
                self.quotable.append(Quotable(index, at, role, group, part))
                self._begins.append(self._begins[-1] + part.count)

    def _group(self, index: int, role: int, call_id: str | None) -> int:
        """The group of a part: a call with its result, or what one message says."""
        if call_id is not None:
            if role == HEADER:
                self._opened[call_id] = len(self.header)
                self.header.append(len(self.quotable))
            if call_id in self._opened:
                return self._opened[call_id]
        known = self._said.get(index)
        if known is None:
            known = self._said[index] = len(self.header)
            self.header.append(-1)
        return known

    def begin(self, quotable: int) -> int:
        """The index of the first unit of a quotable part."""
        return self._begins[quotable]


def _turns_after(messages: int, requests: Sequence[int]) -> list[int]:
    """For each message the number of user requests after it."""
    asks = set(requests)
    turns = [0] * messages
    after = 0
    for index in range(messages - 1, -1, -1):
        turns[index] = after
        after += index in asks
    return turns
