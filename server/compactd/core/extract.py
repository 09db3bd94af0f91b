"""The summary without a model: what is likely to be needed again, quoted, within a budget of tokens.

The same originals, settings and counter give the same bytes. Method and figures: `docs/extract.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from compactd.core.atoms import CONSTRAINT, CUE, ERROR
from compactd.core.cover import Candidates, cover
from compactd.core.entries import EntryId, Item, is_summary
from compactd.core.fileops import FileLedger, ledger_of
from compactd.core.record import (
    BLOCKED,
    CONSTRAINTS,
    CONTEXT,
    DECISIONS,
    DONE,
    GOAL,
    IN_PROGRESS,
    LEAD,
    NEXT,
    TOOL_MARK,
    Files,
    record,
)
from compactd.core.reuse import Chances, Scene, Statistics, Told
from compactd.core.units import (
    ARGUMENT,
    ASSISTANT,
    ATOM,
    COMMAND,
    HEADER,
    KINDS,
    NOTE,
    OLD,
    READ,
    RESULT,
    RESULT_ROLES,
    SUMMARY,
    TODO,
    USER,
    Call,
    FactCache,
    Facts,
    Unit,
)
from compactd.messages import Text

Count = Callable[[str], int]

FEATURE_WORTH: Final = (2.0, 2.0, 2.0, 4.0)
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
    ASSISTANT: 2.0,
    ARGUMENT: 2.0,
    OLD: 0.75,
    READ: 0.65,
}
ERROR_FACTOR: Final = 2.0
CUE_FACTOR: Final = 2.0
LOW_FACTOR: Final = 0.42

OVERSHOOT: Final = 0.10
"""The greedy runs this share past the budget; an exact count then says where the picks end."""
FILES_SHARE: Final = 0.04
FILES_TOKENS: Final = 96
"""File lists take at most the larger of the two while other material waits."""


class Extract(Struct, frozen=True):
    """A summary message's text and what it is made of."""

    text: str
    tokens: int
    """By the counter that was given."""
    read_files: tuple[str, ...]
    """Whole, whatever found room in the text."""
    modified_files: tuple[str, ...]
    quoted: tuple[EntryId, ...]
    """Entries of which something is quoted, oldest first."""


class _Place(Struct, frozen=True, array_like=True, gc=False):
    """Where a candidate stands."""

    item: int
    role: int
    unit: Unit
    failed: bool
    request: int
    """Index of the user message it belongs to; -1 before the first."""


def _number(entry_id: EntryId) -> int | None:
    digits = entry_id[1:]
    return int(digits) if entry_id[:1] == "e" and digits.isdecimal() else None


def _in_order(removed: Sequence[Item], kept: Sequence[Item]) -> list[tuple[Item, bool]]:
    """Both in the order of the conversation, each with whether it is removed."""
    marked = [(item, True) for item in removed] + [(item, False) for item in kept]
    numbers = [_number(item.entry_id) for item, _ in marked]
    known = [n for n in numbers if n is not None]
    if len(known) < len(numbers):
        return marked
    order = sorted(range(len(marked)), key=known.__getitem__)
    return [marked[i] for i in order]


def _is_request(item: Item) -> bool:
    message = item.message
    meta = message.meta
    return (
        message.role == "user"
        and not is_summary(message)
        and not (meta is not None and (meta.synthetic or meta.kind == "bash_execution"))
        and any(isinstance(b, Text) and b.text.strip() for b in message.content)
    )


class _Conversation:
    """Every message's facts in order, and what the record can quote of them."""

    def __init__(
        self, order: list[tuple[Item, bool]], facts: list[Facts], request: Item | None, size: int
    ) -> None:
        self.order = order
        self.facts = facts
        told: list[Told] = []
        calls: dict[str, Call] = {}
        failed: dict[str, int] = {}
        self.places: list[_Place] = []
        self.candidates = Candidates([], [], [], [], [], [], [])
        self.groups: dict[tuple[int, str | None], int] = {}
        opened: dict[str, int] = {}
        self.kept_features: set[int] = set()
        parts = 0
        turn = -1
        requests: list[int] = []
        for index, (item, removed) in enumerate(order):
            if _is_request(item):
                turn = index
                requests.append(index)
            for call in facts[index].calls:
                calls[call.call_id] = call
            for part in facts[index].parts:
                role = part.role
                files: tuple[str, ...] = ()
                changes = False
                call_of = calls.get(part.call_id) if part.call_id is not None else None
                if call_of is not None:
                    files, changes = call_of.files, call_of.changes and role != RESULT
                    if role == RESULT:
                        role = call_of.role
                told.append(Told(index, part, role, files, changes))
                if not removed:
                    self.kept_features.update(f for f, _ in part.shown)
                    continue
                group = self._group(index, role, part.call_id, opened)
                parts += 1
                for unit in part.units:
                    self._add(_Place(index, role, unit, False, turn), group, parts)
        at_request = next((i for i, (item, _) in enumerate(order) if item is request), None)
        turns = [0] * len(order)
        after = 0
        is_turn = bytearray(len(order))
        for r in requests:
            is_turn[r] = 1
        for i in range(len(order) - 1, -1, -1):
            turns[i] = after
            after += is_turn[i]
        self.first_request = next((r for r in requests if order[r][1]), -1)
        self.failed_calls = failed
        self.scene = Scene(
            told=told,
            tokens=[item.tokens for item, _ in order],
            turns=turns,
            current_turn=requests[-1] if requests else 0,
            request=at_request,
            size=size,
        )

    def _group(self, index: int, role: int, call_id: str | None, opened: dict[str, int]) -> int:
        """The group of a part: a call with its result, or what one message says."""
        headers = self.candidates.header
        if role == HEADER and call_id is not None:
            headers.append(len(self.places))
            opened[call_id] = len(headers) - 1
            return opened[call_id]
        if call_id is not None and call_id in opened:
            return opened[call_id]
        key = (index, call_id)
        known = self.groups.get(key)
        if known is None:
            headers.append(-1)
            known = self.groups[key] = len(headers) - 1
        return known

    def _add(self, place: _Place, group: int, part: int) -> None:
        c = self.candidates
        role, unit = place.role, place.unit
        worth = ROLE_WORTH.get(role, 1.0)
        if role in RESULT_ROLES:
            if ERROR.search(unit.text):
                worth *= ERROR_FACTOR
        elif role == ASSISTANT and CUE.search(unit.text):
            worth *= CUE_FACTOR
        if unit.low:
            worth *= LOW_FACTOR
        c.features.append(unit.line.features)
        c.price.append(unit.line.tokens + (4.0 if role == HEADER else 1.5))
        c.worth.append(worth)
        c.group.append(group)
        c.part.append(part)
        c.gap.append(3.0 if role != HEADER else 0.0)
        self.places.append(place)


def _link(conversation: _Conversation, weights: list[float]) -> None:
    """Give each atom's last telling lines a feature of their own, which the first of them to be quoted covers."""
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


def extract(
    removed: Sequence[Item],
    kept: Sequence[Item],
    *,
    request: Item | None,
    budget_tokens: int,
    count: Count,
    working_dir: str | None = None,
    cache: FactCache | None = None,
    lead: str = LEAD,
) -> Extract:
    """The summary message that stands for `removed`, of at most `budget_tokens` by `count`.

    `removed` are the originals, oldest first, that the new view does not show word for word, those of
    earlier compactions included; `kept` those that stay (what they show is not quoted); `request` the
    newest user request. Where even the smallest record is larger than the budget, that is returned: the
    caller compares `tokens`. O(size of the messages) the first time, then O(features) of them.
    """
    cache = cache if cache is not None else FactCache(working_dir)
    order = _in_order(removed, kept)
    facts = [cache.learn(item) for item, _ in order]
    ledger = ledger_of(f.files for f, (_, gone) in zip(facts, order, strict=True) if gone)
    conversation = _Conversation(order, facts, request, cache.lexicon.size)
    chances = Chances(Statistics(conversation.scene))
    weights = chances.weights(FEATURE_WORTH)
    for feature in conversation.kept_features:
        weights[feature] = 0.0
    _link(conversation, weights)
    done = _fill(conversation, weights, ledger, budget_tokens, count, lead)
    cache.trim()
    return done


def _fill(
    conversation: _Conversation,
    weights: list[float],
    ledger: FileLedger,
    budget: int,
    count: Count,
    lead: str,
) -> Extract:
    files = _files_that_fit(ledger, max(FILES_TOKENS, int(budget * FILES_SHARE)), count)
    frame = count(record({}, files, lead=lead))
    room = budget - frame
    ratio = _ratio(conversation, count)
    picks = cover(conversation.candidates, weights, max(0, room) * (1 + OVERSHOOT) / ratio + 20)
    low, high = 0, len(picks)
    while low < high:
        middle = (low + high + 1) // 2
        if count(record(_sections(conversation, picks[:middle]), files, lead=lead)) <= budget:
            low = middle
        else:
            high = middle - 1
    text = record(_sections(conversation, picks[:low]), files, lead=lead)
    tokens = count(text)
    if tokens > budget:
        text = record({}, Files(), lead=lead, full=False)
        tokens = count(text)
    places = conversation.places
    quoted = sorted({places[i].item for i in picks[:low]})
    return Extract(
        text=text,
        tokens=tokens,
        read_files=ledger.read,
        modified_files=ledger.modified,
        quoted=tuple(conversation.order[i][0].entry_id for i in quoted),
    )


def _ratio(conversation: _Conversation, count: Count) -> float:
    """Tokens by `count` for each estimated one, on a sample of the units."""
    places = conversation.places
    sample = places[:: max(1, len(places) // 200)]
    estimated = sum(p.unit.line.tokens + 1.5 for p in sample)
    if not estimated:
        return 1.0
    return min(6.0, max(0.2, count("\n".join(p.unit.text for p in sample)) / estimated))


def _files_that_fit(ledger: FileLedger, room: int, count: Count) -> Files:
    modified, read = set(ledger.modified), set(ledger.read)
    kept: set[str] = set()
    spent = 0
    for path in [p for p in ledger.newest_first if p in modified] + [
        p for p in ledger.newest_first if p in read
    ]:
        spent += count(path + "\n")
        if spent > room:
            break
        kept.add(path)
    return Files(
        tuple(p for p in ledger.read if p in kept),
        tuple(p for p in ledger.modified if p in kept),
        sum(p not in kept for p in ledger.read),
        sum(p not in kept for p in ledger.modified),
    )


def _sections(conversation: _Conversation, picks: Sequence[int]) -> dict[str, list[str]]:
    """The picked units under their headings, in the order of the conversation."""
    sections: dict[str, list[str]] = {
        h: [] for h in (GOAL, CONSTRAINTS, DONE, IN_PROGRESS, BLOCKED, DECISIONS, NEXT, CONTEXT)
    }
    places, c, order = conversation.places, conversation.candidates, conversation.order
    chosen = sorted(picks)
    size: dict[int, int] = {}
    for i in chosen:
        size[c.group[i]] = size.get(c.group[i], 0) + 1
    groups: dict[int, list[int]] = {}
    for i in chosen:
        groups.setdefault(c.group[i], []).append(i)
    for members in groups.values():
        first = places[members[0]]
        entry = order[first.item][0].entry_id
        if first.role == USER:
            for i in members:
                text = places[i].unit.text.strip()
                to = CONSTRAINTS if CONSTRAINT.search(text) else GOAL
                sections[to].append(f"- {text} [{entry}]")
            continue
        body: list[str] = []
        previous = -2
        for i in members:
            place = places[i]
            text = place.unit.text
            if place.role == HEADER:
                continue
            if place.role == TODO:
                sections[NEXT].append(f"- {text}")
                continue
            if place.role == ASSISTANT and CUE.search(text):
                sections[DECISIONS].append(f"- {text.strip()} [{entry}]")
                continue
            if place.role in RESULT_ROLES or place.role == NOTE:
                joined = previous == i - 1 and c.part[previous] == c.part[i]
                body.append(text if joined else TOOL_MARK + text)
            else:
                body.append(text)
            previous = i
        if first.role == HEADER:
            head = first.unit.text
            if body or not _is_work(conversation, first):
                sections[CONTEXT].append(f"[{entry} {head}]")
            else:
                sections[DONE].append(f"- [x] {head} [{entry}]")
        elif body:
            if first.role in (ASSISTANT, SUMMARY):
                body[0] = f"[{entry}] {body[0]}"
            else:
                sections[CONTEXT].append(f"[{entry}]")
        sections[CONTEXT].extend(body)
    return sections


def _is_work(conversation: _Conversation, place: _Place) -> bool:
    return True
