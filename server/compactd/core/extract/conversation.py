"""Prepare a conversation for the extract: the input of the reuse model, and the units (lines) that may be
quoted."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from functools import cache, cached_property
from itertools import islice
from sys import byteorder

from msgspec import Struct

from compactd.core.authors.authors import is_typed, spans
from compactd.core.constraints.constraints import NO_CONSTRAINTS, constraint_lines, is_constraint
from compactd.core.constraints.user_text import typed_sentences, without_bullet
from compactd.core.extract.facts import MARKED, FactPart, Facts, units_of
from compactd.core.extract.features import Lexicon
from compactd.core.extract.line_roles import COMMAND, HEADER, RESULT, TODO
from compactd.core.extract.lines import CallInfo, Unit, without_directory
from compactd.core.extract.reuse_model import PlacedPart, Scene
from compactd.core.history.entries import EntryId, Item, number_of
from compactd.core.text.atoms import atoms
from compactd.core.text.lazy_patterns import LazyPattern
from compactd.core.text.quoting import quote_line
from compactd.core.text.whole_names import contains_whole_path, written_texts
from compactd.core.work.tool_kinds import tool_kind
from compactd.protocol.messages import Author, Text

_COMMITS = LazyPattern(r"(?:^|&& |; |\A\w+ )git (?:-C \S+ )?(?:commit|add)\b")
"""Matches a line with a command that commits, or that prepares it."""


class PlacedUnit(Struct, frozen=True, array_like=True, gc=False):
    """A unit (a line, or a piece of one) that a summary may quote: its text, and the message that contains
    it."""

    item: int
    """The index of the message that contains the unit."""
    role: int
    text: str
    marked: bool
    """Whether the unit contains a decision of the agent, a limit of the user or an error."""


class Quotable(Struct, frozen=True, array_like=True, gc=False):
    """One text of a removed message. A summary may quote each of its units (lines)."""

    item: int
    """The index of the message that contains the text."""
    at: int
    """The index of this text among the texts (parts) of its message."""
    role: int
    group: int
    """The index of the text's group. A group is a call with its result, or the text of one message."""
    part: FactPart


def conversation_order(removed: Sequence[Item], kept: Sequence[Item]) -> list[tuple[Item, bool]]:
    """Return the removed and the kept messages in the order of the conversation, as pairs of a message and
    whether it is removed. The numbers in the entry ids give the order. If an id has no number, the removed
    messages come first."""
    marked = [(item, True) for item in removed] + [(item, False) for item in kept]
    numbers = [number_of(item.entry_id) for item, _ in marked]
    known = [n for n in numbers if n is not None]
    if len(known) < len(numbers):
        return marked
    order = sorted(range(len(marked)), key=known.__getitem__)
    return [marked[i] for i in order]


def _keeps_plan(part: FactPart) -> bool:
    """Return whether a call's header names a tool that keeps the agent's plan."""
    if part.role != HEADER or not part.units:
        return False
    name = part.units[0].text.split(" ", 1)[0]
    return tool_kind(name, {}) in ("plan", "task_create", "task_update")


def _commits(part: FactPart) -> bool:
    """Return whether a call's header or command has a `git commit`, or a `git add`."""
    return any(_COMMITS.search(unit.text) is not None for unit in part.units)


class _SplitText:
    """The units of a text, which is split as far as they are asked for."""

    def __init__(self, units: Iterator[Unit]) -> None:
        self._units: list[Unit] = []
        self._rest = units

    def unit(self, nth: int) -> Unit:
        """Return the unit with this index. O(text before it) the first time."""
        missing = nth + 1 - len(self._units)
        if missing > 0:
            self._units += islice(self._rest, missing)
        return self._units[nth]


class Conversation:
    """The facts of all messages of a conversation, in order, and the units of removed messages that the
    summary can quote. A *group* is a call with its result, or the text of one message."""

    def __init__(
        self,
        order: list[tuple[Item, bool]],
        facts: list[Facts],
        request: Item | None,
        lexicon: Lexicon,
        unquoted: Collection[EntryId] = (),
        *,
        has_story: bool = False,
    ) -> None:
        """`unquoted` are removed messages of which no line may be quoted. `has_story` says whether the
        summary tells the commits."""
        self.order = order
        self._unquoted, self._has_story = unquoted, has_story
        self._facts = facts
        self._lexicon = lexicon
        self.demands = NO_CONSTRAINTS
        """The user's constraints. The summary contains them word for word, whatever units are picked."""
        self.replaced: Collection[str] = ()
        """The user's statements that a newer one replaces. They are not quoted."""
        self._directory, self._anywhere = "", False
        self.quotable: list[Quotable] = []
        self.kept: list[bool] = []
        """For each part of the conversation: whether its message stays in the view."""
        self.told_as: list[int] = []
        """For each quotable part: its index among all parts of the conversation."""
        self.header: list[int] = []
        """For each group: the index of its header among the quotable parts; -1 if it has none."""
        self.failed: set[int] = set()
        """Groups whose call failed."""
        self.changing: set[int] = set()
        """Groups whose call modifies a file."""
        self._begins: list[int] = [0]
        """For each quotable part, the index of its first unit; then the number of all units."""
        self._places: dict[int, PlacedUnit] = {}
        self._written: dict[tuple[str, str], bool] = {}
        self.sets_limit = cache(is_constraint)
        """Return whether a text that a user wrote sets a limit. O(length) the first time."""
        self._quote = cache(quote_line)
        self._typed: dict[int, str] = {}
        self._listed: dict[int, frozenset[str]] = {}
        self._texts: dict[int, tuple[_SplitText, ...]] = {}
        self._calls: dict[str, CallInfo] = {}
        self._opened: dict[str, int] = {}
        self._said: dict[int, int] = {}
        self._pasted: dict[int, str] = {}
        self._told_calls: set[str] = set()
        """Calls of which the story tells what they did. They are not quoted."""
        self._told: list[PlacedPart] = []
        for index, known in enumerate(facts):
            self._take(index, known, removed=order[index][1])
        requests = [index for index, (item, _) in enumerate(order) if is_typed(item.message)]
        self.scene = Scene(
            parts=self._told,
            tokens=[item.tokens for item, _ in order],
            turns=_turns_after(len(order), requests),
            current_turn=requests[-1] if requests else 0,
            request=next((i for i, (item, _) in enumerate(order) if item is request), None),
        )

    @property
    def units(self) -> int:
        """The number of units (lines) that a summary may quote. They are numbered from 0."""
        return self._begins[-1]

    def leave_out(self, directory: str, *, told: bool) -> None:
        """From now on, quote paths without the folder `directory` in front. `told` says that the client named
        this folder: then it is always cut. Otherwise the folder was derived from the paths, and it is cut
        only if the shorter path occurs somewhere in the conversation."""
        self._directory = directory.rstrip("/") + "/" if directory.strip("/") else ""
        self._anywhere = told

    def text(self, place: PlacedUnit) -> str:
        """Return the text of a unit as the summary quotes it: without the working folder in front of
        paths."""
        return self.without_folder(place.text)

    def without_folder(self, text: str) -> str:
        """Return a text of the conversation without the working folder in front of paths. A path stays as it
        is if its shorter form occurs nowhere."""
        if not self._directory or self._directory not in text:
            return text
        short = without_directory(text, self._directory)
        if self._anywhere or short == text:
            return short
        return short if all(self._is_written(atom) for atom in atoms(short)) else text

    def file_name(self, path: str) -> str:
        """Return the name of a file without its folder if the conversation names it so, otherwise its
        path without the working folder. O(all texts) in the worst case, once per name."""
        name = path.rsplit("/", 1)[-1]
        known = atoms(name)
        if len(known) == 1 and all(self._is_written(atom) for atom in known):
            return name
        return self.without_folder(path)

    def quote(self, place: PlacedUnit, author: Author) -> str:
        """Return the text of the unit at `place` as a quotation on one line. If `author` is neither the user
        nor the assistant, the line is marked, for example with `(tool)`."""
        return self._quote(self.text(place), author)

    def is_quotation(self, place: PlacedUnit) -> bool:
        """Return whether the assistant only quotes this unit of its message: the line begins with `>`, or it
        is marked as a decision and is inside a quotation or a code fence. O(the message) the first time, then
        a search in the quoted text."""
        line = place.text.strip()
        if line.startswith((">", "＞")):
            return True
        return place.marked and line in self._pasted_in(place.item)

    def _pasted_in(self, index: int) -> str:
        """Return the text inside the quotations and code fences of the message with this index."""
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

    def is_typed(self, place: PlacedUnit) -> bool:
        """Return whether the user typed this unit and did not paste it. O(the message) the first time."""
        known = self._typed.get(place.item)
        if known is None:
            sentences = typed_sentences(self.order[place.item][0])
            known = self._typed[place.item] = "".join("".join(said.text for said in sentences).split())
        return "".join(without_bullet(place.text).split()) in known

    def text_outside_lists(self, place: PlacedUnit) -> str:
        """Return the text of a unit without what belongs to a constraint of several lines, such as a list
        under `Never:`; empty if nothing else is left. The summary already contains such constraints, and the
        items of the list alone would read as wishes. O(the message) the first time."""
        text = self.text(place)
        known = self._listed.get(place.item)
        if known is None:
            known = self._listed[place.item] = constraint_lines(self.order[place.item][0], self.demands)
        bare = without_bullet(text)
        if bare in known:
            return ""
        lead = next((line for line in known if line.endswith((":", "：")) and bare.endswith(line)), "")
        return bare.removesuffix(lead).strip() if lead else text

    def _is_written(self, atom: tuple[str, str]) -> bool:
        """Return whether the conversation contains this atom in exactly this form. A path does not count if
        it only occurs with the working folder in front. O(all texts) in the worst case, once per atom."""
        known = self._written.get(atom)
        if known is None:
            known = self._lexicon.atoms.get(atom, -1) in self._named_atoms and (
                atom[0] != "path"
                or any(contains_whole_path(text, atom[1]) for text in self._texts_as_written)
            )
            self._written[atom] = known
        return known

    @cached_property
    def _named_atoms(self) -> frozenset[int]:
        """The atoms of all messages, as numbers."""
        return frozenset().union(*(known.atoms for known in self._facts))

    @cached_property
    def _texts_as_written(self) -> list[str]:
        return [text for item, _ in self.order for text in written_texts(item.message.content)]

    def place(self, unit: int) -> PlacedUnit:
        """Return the unit with this index, with its text. O(its message) the first time."""
        known = self._places.get(unit)
        if known is None:
            known = self._places[unit] = self._place(unit)
        return known

    def _place(self, unit: int) -> PlacedUnit:
        at = bisect_right(self._begins, unit) - 1
        quotable = self.quotable[at]
        nth = unit - self._begins[at]
        part = quotable.part
        marked = part.packed[len(part.packed) - part.count + nth] & MARKED
        text = self._unit(quotable, nth).text
        return PlacedUnit(quotable.item, quotable.role, text, bool(marked))

    def tokens(self, unit: int) -> float:
        """Return the estimated tokens of the unit with this index."""
        at = bisect_right(self._begins, unit) - 1
        nth, part = unit - self._begins[at], self.quotable[at].part
        low = len(part.packed) - 3 * part.count + 2 * nth
        return int.from_bytes(part.packed[low : low + 2], byteorder) / 100

    def group(self, unit: int) -> int:
        """Return the index of the group that a unit belongs to."""
        return self.quotable[bisect_right(self._begins, unit) - 1].group

    def heading(self, group: int) -> str | None:
        """Return the header line of a group; None if the group has none."""
        head = self.header[group]
        return self.quotable[head].part.units[0].text if head >= 0 else None

    @cached_property
    def mended_calls(self) -> frozenset[str]:
        """The headers of calls that succeeded when they were last run."""
        last: dict[str, int] = {}
        for group in range(len(self.header)):
            text = self.heading(group)
            if text is not None:
                last[text] = group
        return frozenset(text for text, group in last.items() if group not in self.failed)

    @cached_property
    def failed_calls(self) -> frozenset[str]:
        """The headers of calls that failed at least once."""
        return frozenset(text for group in self.failed if (text := self.heading(group)) is not None)

    def _unit(self, quotable: Quotable, nth: int) -> Unit:
        """Return the unit with this index in a quotable part. O(its message) the first time."""
        if quotable.part.units:
            return quotable.part.units[nth]
        known = self._texts.get(quotable.item)
        if known is None:
            item, facts = self.order[quotable.item][0], self._facts[quotable.item]
            known = self._texts[quotable.item] = tuple(map(_SplitText, units_of(item, facts)))
        return known[quotable.at].unit(nth)

    def _take(self, index: int, known: Facts, *, removed: bool) -> None:
        """Add the parts of the message with this index. `removed` says whether the message is removed, so
        that its parts may be quoted."""
        for call in known.calls:
            self._calls[call.call_id] = call
        for at, part in enumerate(known.parts):
            role = part.role
            if role in (HEADER, COMMAND) and part.call_id is not None and self._is_in_story(part):
                self._told_calls.add(part.call_id)
            call_of = self._calls.get(part.call_id) if part.call_id is not None else None
            if call_of is None:
                self._told.append(PlacedPart(index, part, role))
            else:
                is_result = role == RESULT
                role = call_of.role if is_result else role
                changes = call_of.changes and not is_result
                self._told.append(PlacedPart(index, part, role, call_of.files, changes))
            self.kept.append(not removed)
            is_quotable = removed and self.order[index][0].entry_id not in self._unquoted
            if is_quotable and role != TODO and part.call_id not in self._told_calls:
                group = self._group(index, role, part.call_id)
                if call_of is not None and call_of.changes:
                    self.changing.add(group)
                if part.call_id in known.failed:
                    self.failed.add(group)
                self.told_as.append(len(self._told) - 1)
                self.quotable.append(Quotable(index, at, role, group, part))
                self._begins.append(self._begins[-1] + part.count)

    def _is_in_story(self, part: FactPart) -> bool:
        """Return whether the summary tells what a call did, so that the call is not quoted."""
        return _keeps_plan(part) or (self._has_story and _commits(part))

    def _group(self, index: int, role: int, call_id: str | None) -> int:
        """Return the index of the group (a call with its result, or the text of one message) that a text
        belongs to. If the text starts a new group, register it."""
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
        """Return the index of the first unit of the quotable part with this index."""
        return self._begins[quotable]


def _turns_after(messages: int, requests: Sequence[int]) -> list[int]:
    """Return, for each message, the number of user requests after it. `requests` are the indices of
    requests."""
    asks = set(requests)
    turns = [0] * messages
    after = 0
    for index in range(messages - 1, -1, -1):
        turns[index] = after
        after += index in asks
    return turns
