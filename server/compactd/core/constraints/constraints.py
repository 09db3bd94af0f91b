"""The user's constraints: sentences in which the user sets a limit, kept word for word in every later view.

Found by code, in what the user typed (`user_text.py`): never in tool output, never in what a program wrote
or a summariser was told. They are worked out from the originals at each compaction, so that undo, branch and
redaction need no rule of their own, and nothing wears out.

**Newest wins.** Two constraints disagree where they are about the same thing, that is, hold the same words
but for cues and the number of a limit, and one forbids what the other demands, or both set one limit to
different numbers. The older one is then no longer in force. A question, and a sentence that may have been
pasted (`user_text.Said.is_sure`), replaces none: both count. Said again in the same words, it counts once,
at the place where it was said last.

**A flood evicts nothing.** At most `MAX_OF_A_MESSAGE` limits of one message count, and a summary holds at
most `MAX_IN_ALL`. If room is short, a message with more than `FEW_OF_A_MESSAGE` waits its turn. What is left
out is counted, and the result of the compaction says how many those are.

The time grows as the length of what users typed: constraints are not compared in pairs (`_Newer`), and a text
is searched for all of them at once (`phrases.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final, Protocol

from msgspec import Struct

from compactd.core.constraints.patterns import LIMIT, NEGATIVE, OTHERS, STRONG, WEAK, pattern
from compactd.core.constraints.user_text import typed
from compactd.core.history.entries import EntryId, Item
from compactd.core.text.atoms import COMMON_WORDS
from compactd.core.text.phrases import Phrases
from compactd.core.text.quoting import visible_lines

MOST_CHARS: Final = 1_000
"""A longer sentence is an account of something, no rule."""

MAX_OF_A_MESSAGE: Final = 100
"""Distinct limits of one message that count: the strong ones first, from both of its ends inwards, because
people write before or after what they paste. The recordings hold at most 13 in a message (2026-11)."""
MAX_IN_ALL: Final = 500
"""Constraints that one summary holds, whatever room there is."""
FEW_OF_A_MESSAGE: Final = 5
"""A message with more limits than that gets room for one at a time; the others get it for all of theirs."""

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
    r"(?:why|what|how|is|are|do(?!n)|does|did|should|when|where|who|which|has|have|was|were|isn|aren"
    r"|don['’]?t\s+you"
    r"|warum|wieso|wie|ist|sind|pourquoi|comment|est|por\s+qué|qué|cómo)\b",
    re.IGNORECASE,
)
_EMPHASIS = re.compile(
    r"(?<![\w*_])[*_]{1,3}(?=\w)|(?<=\w)[*_]{1,3}(?![\w*_])|</?(?:b|strong|em|i|u|mark)>", re.IGNORECASE
)
"""Signs of emphasis, which could part the words of a cue."""
_IS_QUESTION = re.compile(r"[?？؟][\s!?？؟\"'”’)\]*_]{0,8}\Z")
_REQUESTS = re.compile(
    r"\b(?:please|could\s+you|can\s+you|would\s+you|will\s+you|won['’`]?t\s+you)\b|,\s*(?:ok(?:ay)?|right"
    r"|yes|got\s+it|deal|will\s+you)\W*\Z"
    r"|\b(?:bitte|kannst\s+du|könntest\s+du|peux-tu|pouvez-vous|pourrais-tu|puedes|podrías|por\s+favor)\b",
    re.IGNORECASE,
)
"""Words of a question that demands."""
_NUMBER = re.compile(r"(?<![\w.-])\d+(?:[.,]\d+)*(?![\w-])")
_OPENING = re.compile(
    r"\W*(?:please|also|and|but|so|oh|ok(?:ay)?|hey|note|rule|btw|ps|p\.s\.|\d+)\b[,:.]?\s*",
    re.IGNORECASE,
)
_WORDS = re.compile(r"\w+")
_REFERENCES = re.compile(r"(?:\s*\[e\d{1,18}(?:\s*,\s*e\d{1,18})*\])+\s*\Z")
"""At the end of a line: `[e12]`, `[e12, e15]`."""
_MARK = re.compile(r"\A\s*(?:(?:[-*•+]|\d{1,3}[.)])\s+)?(?:\[ \]\s+)?")
"""Of an item, or of one of a list to tick off that nobody ticked off."""
_HEADING = re.compile(
    r"#{1,6}\s|(?:\d{1,3}[.)]\s+)?(?:\*\*|__)?[^\s*_•+-][^\n]{0,58}[:：](?:\*\*|__)?\Z|(?:\*\*|__)[^\n]{1,60}(?:\*\*|__)\Z"
)
"""Marked as one, ends with a colon, or is all bold."""
_LEAST = re.compile(
    r"\bleast|\bno\s+(?:less|fewer)|\bnot\s+less|\bmin|\bmore\b(?!\s+than)|mindestens|moins|menos|mínimo"
    r"|[>≥]|以上|至少",
    re.IGNORECASE,
)
_NO = re.compile(r"\W*(?:please\s+)?no\s", re.IGNORECASE)
"""`No tabs.` is what `Never use tabs.` is."""
_NEXT_CHARS: Final = 12
"""A number is a limit's if it stands in it or begins at most so many characters behind."""
_AROUND: Final = "\"'`“”„«»‘’「」『』()[]{},;:!?*。！？、，；："
_BEHIND: Final = "."
"""A full stop in front is part of a name."""
_IN_NAMES: Final = r"-_./\#@"
_NAME_GOES_ON = re.compile(r"[-_/\\#@]\w|\.\w")
_SAYS = """
must mustn never always do don dont don't don’t mustn't mustn’t only not no prefer preferred preferably avoid
should shouldn shouldn't shouldn’t shall ensure important please also now and but so ok okay you we
the a an be is are ever may can cannot can't refrain from
"""
_SAYS_NOTHING: Final = frozenset((*_SAYS.split(), ""))
"""Words that say nothing of what a constraint is about: its cues, and what stands around them."""
_CUES_OF_OTHERS = """
ne не no bitte nicht kein keine keinen por favor favor, pas jamais plus que il faut surtout hay
"""
_PARTICLES: Final = frozenset(_CUES_OF_OTHERS.split())
"""Words of a cue of several words that are no more than a cue."""


Limit = tuple[str, bool, bool]
Limits = tuple[Limit, ...]
"""The sentences of one message that set a limit, each with whether it leaves no choice, and whether it may
replace an older one."""


class Found(Protocol):
    """The limits of messages, as far as they were looked for, by entry id."""

    def get(self, key: EntryId, /) -> Limits | None:
        """None where nobody looked yet."""

    def __setitem__(self, key: EntryId, value: Limits, /) -> None: ...


class Constraint(Struct, frozen=True):
    """A sentence in which the user sets a limit."""

    text: str
    """The whole sentence, as it was typed, with a sign for characters that nobody sees."""
    entry_id: EntryId
    """The message it stands in; of one said twice, the last."""
    is_strong: bool = True
    """It has a word that leaves no choice, or a number; these go first where not all have room."""
    is_sure: bool = True
    """The person says it, as far as the form tells. A question, and what may be quoted, replaces no other."""


def is_constraint(sentence: str) -> bool:
    """True for a sentence that sets a limit. What stands in quotes in it sets none. O(length)."""
    return _strength(sentence) is not None


class Constraints(Struct, frozen=True, dict=True):
    """What the user demands, in the order it was said last."""

    in_force: tuple[Constraint, ...] = ()
    superseded: tuple[Constraint, ...] = ()
    """Those that a newer one disagrees with."""
    left_out: tuple[tuple[EntryId, int], ...] = ()
    """(message, how many of its limits count for nothing: it has more than `MAX_OF_A_MESSAGE`)."""

    @cached_property
    def phrases(self) -> Phrases:
        """The sentences of all of them, to be looked for in a text: those in force first."""
        return Phrases(one.text for one in (*self.in_force, *self.superseded))

    @cached_property
    def sentences_in_force(self) -> frozenset[str]:
        """The sentences of those in force."""
        return frozenset(one.text for one in self.in_force)

    @cached_property
    def sentences(self) -> frozenset[str]:
        """The sentences of all of them."""
        return frozenset(one.text for one in (*self.in_force, *self.superseded))

    def left_out_of(self, stays: Collection[EntryId] = ()) -> int:
        """How many limits were left out of messages that are not in `stays`."""
        return sum(count for entry_id, count in self.left_out if entry_id not in stays)


NO_DEMANDS: Final = Constraints()


class Said(Struct, frozen=True):
    """The user's constraints, as far as a path was read."""

    read: int = 0
    """Its first entries."""
    found: Mapping[str, Constraint] = {}
    """All of them by their words, in the order they were said last."""
    demands: Constraints = NO_DEMANDS
    left_out: Mapping[EntryId, int] = {}
    """By message: how many of its limits count for nothing."""

    def further(self, items: Iterable[Item], known: Found | None = None, read: int = 0) -> Said:
        """The same with the originals `items` read as well, oldest first, up to entry `read` of the path.
        O(characters that users typed in them); with what is `known` of messages, which is added to,
        O(messages)."""
        known = {} if known is None else known
        found: dict[str, Constraint] | None = None
        left_out = dict(self.left_out)
        for item in items:
            limits = known.get(item.entry_id)
            if limits is None:
                limits = known[item.entry_id] = limits_in(item)
            counted, more = _counted(limits)
            if more:
                left_out[item.entry_id] = more
            for key, (sentence, strong, sure) in counted:
                if found is None:
                    found = dict(self.found)
                if not sure and key in found and found[key].is_sure:
                    # What is only quoted again is not said anew: it would replace what was said since.
                    continue
                found.pop(key, None)
                found[key] = Constraint(sentence, item.entry_id, strong, sure)
        if found is None:
            return Said(read, self.found, self.demands, self.left_out)
        kept, gone = _settled(tuple(found.values()))
        return Said(read, found, Constraints(kept, gone, tuple(left_out.items())), left_out)


NOTHING_SAID: Final = Said()


def constraints_of(items: Iterable[Item], known: Found | None = None) -> Constraints:
    """The user's constraints. `items` are originals, oldest first. O(characters that users typed); with what
    is `known` of messages, which is added to, O(messages)."""
    return NOTHING_SAID.further(items, known).demands


def limits_in(item: Item) -> Limits:
    """What one message demands by itself. O(characters that the user typed)."""
    if item.message.role != "user":
        return ()
    marked = ((said, _strength(said.text)) for said in typed(item))
    return tuple(
        [
            (said.text, strong, said.is_sure and not _asks(said.text))
            for said, strong in marked
            if strong is not None
        ]
    )


def within(
    constraints: Sequence[Constraint], most_tokens: int, count: Callable[[str], int]
) -> tuple[Constraint, ...]:
    """Those that have room in `most_tokens`, at most `MAX_IN_ALL`, each whole, in their order.

    The strong ones get room first, and of them the newest. A message with more than `FEW_OF_A_MESSAGE` gets
    room for one at a time. O(n log n).
    """
    chosen: set[int] = set()
    left = most_tokens
    for at in _by_weight(constraints):
        cost = count(bullet(constraints[at]) + "\n")
        if cost <= left:
            chosen.add(at)
            left -= cost
            if len(chosen) == MAX_IN_ALL:
                break
    return tuple(one for at, one in enumerate(constraints) if at in chosen)


def bullet(constraint: Constraint) -> str:
    """The line that names it in a summary."""
    return f"- {constraint.text} [{constraint.entry_id}]"


def bullets(constraints: Sequence[Constraint]) -> tuple[str, ...]:
    """The lines of all of them."""
    return tuple(map(bullet, constraints))


def missing(constraints: Sequence[Constraint], lines: Iterable[str]) -> tuple[Constraint, ...]:
    """Those that none of `lines` states: word for word, and nothing else on the line but the mark of an item,
    emphasis and references. A sentence that only mentions a constraint may be taking it back.
    O(constraints + lines)."""
    stated = {_bare(_REFERENCES.sub("", line)) for line in lines}
    return tuple(one for one in constraints if _bare(one.text) not in stated)


def lines_under(text: str, is_rules: Callable[[str], bool]) -> Iterator[str]:
    """The lines of a summary in which constraints can stand: items and sentences right under a heading for
    which `is_rules` is true; it gets the heading's line, and "" for what precedes all headings. What is set
    in below another line depends on that line and is left out. O(text)."""
    counts = is_rules("")
    for line in visible_lines(text).split("\n"):
        bare = line.strip()
        if _HEADING.match(bare) is not None:
            counts = is_rules(bare)
        elif counts and bare and not line[0].isspace():
            yield line


def stated_in(text: str, demands: Constraints) -> list[str]:
    """The constraints in force that stand in `text` word for word. O(text)."""
    return [one for one in demands.phrases.found_in(visible_lines(text)) if one in demands.sentences_in_force]


def without_them(line: str, demands: Constraints) -> str:
    """`line` without the constraints that stand in it; empty where nothing but marks is left. O(line), and
    once for each that stands in it."""
    rest = shown = visible_lines(line)
    for text in demands.phrases.found_in(shown):
        rest = rest.replace(text, " ")
    return line if rest is shown else rest.strip() if _WORDS.search(rest) is not None else ""


def demanded_lines(item: Item, demands: Constraints) -> frozenset[str]:
    """The lines of a message that belong to a demand over several lines, without the signs of a list."""
    known = demands.sentences
    several = (said for said in typed(item) if said.lines and said.text in known)
    return frozenset(line for said in several for line in said.lines)


def _bare(line: str) -> str:
    """What a line says: without the mark of an item, and emphasis or quotation marks around it."""
    return " ".join(_MARK.sub("", line, count=1).strip(" *_\"“”'`").split())


def _counted(limits: Limits) -> tuple[Iterable[tuple[str, Limit]], int]:
    """The limits of a message that count, by their words, in order, and how many more it has."""
    by_words = [(" ".join(limit[0].lower().split()), limit) for limit in limits]
    if len(limits) <= MAX_OF_A_MESSAGE:
        return by_words, 0
    distinct: dict[str, Limit] = {}
    for key, limit in by_words:
        distinct.pop(key, None)
        distinct[key] = limit
    last = list(distinct.items())
    strong = [at for at, (_, (_, is_strong, _)) in enumerate(last) if is_strong]
    weak = [at for at, (_, (_, is_strong, _)) in enumerate(last) if not is_strong]
    order = (*_from_both_ends(strong), *_from_both_ends(weak))
    return [last[at] for at in sorted(order[:MAX_OF_A_MESSAGE])], max(0, len(last) - MAX_OF_A_MESSAGE)


def _by_weight(constraints: Sequence[Constraint]) -> list[int]:
    """Their places, in the order in which they get room."""
    places: dict[EntryId, tuple[list[int], list[int]]] = {}
    for at, one in enumerate(constraints):
        places.setdefault(one.entry_id, ([], []))[not one.is_strong].append(at)
    turn = [0] * len(constraints)
    for strong, weak in places.values():
        if len(strong) + len(weak) > FEW_OF_A_MESSAGE:
            for nth, at in enumerate((*_from_both_ends(strong), *_from_both_ends(weak))):
                turn[at] = nth
    return sorted(range(len(constraints)), key=lambda at: (turn[at], not constraints[at].is_strong, -at))


def _from_both_ends(places: Sequence[int]) -> Iterator[int]:
    """The last, the first, the last but one, the second …"""
    for nth in range(len(places)):
        yield places[-1 - nth // 2] if nth % 2 == 0 else places[nth // 2]


def _strength(sentence: str) -> bool | None:
    """True for a strong constraint, False for a weak one, None for none."""
    if not 4 <= len(sentence) <= MOST_CHARS:
        return None
    bare = _EMPHASIS.sub("", _QUOTED.sub(" ", sentence)).strip()
    while (match := _OPENING.match(bare)) is not None and match.end():
        bare = bare[match.end() :]
    if bare.endswith(("?", "？")) and _ASKS.match(bare) is not None:
        return None
    if bare.isascii() and len(_WORDS.findall(sentence)) < 2:
        return None
    if pattern(STRONG, LIMIT, OTHERS).search(bare) is not None:
        return not _asks(bare) or _REQUESTS.search(bare) is not None
    return False if pattern(WEAK).search(bare) is not None else None


def _asks(sentence: str) -> bool:
    """Whether a sentence is a question. One may demand, but it takes no limit away."""
    return _IS_QUESTION.search(sentence) is not None


class _Newer:
    """What the constraints about one thing say that were said later, and are in force."""

    def __init__(self) -> None:
        self._numbers: set[str] = set()
        """Of those that set a limit to one number."""
        self._forbids: set[bool] = set()
        """Whether they forbid: of all of them."""
        self._forbids_without_limit: set[bool] = set()
        """Of those that set no limit to a number."""

    def disagrees(self, sense: _Sense) -> bool:
        """Whether one of them forbids what this older one demands, demands what it forbids, or limits it to
        another number. O(1), whatever their number."""
        if not sense.is_limit:
            return (not sense.forbids) in self._forbids
        if sense.number is not None and len(self._numbers) > (sense.number in self._numbers):
            return True
        return (not sense.forbids) in self._forbids_without_limit

    def add(self, sense: _Sense) -> None:
        self._forbids.add(sense.forbids)
        if not sense.is_limit:
            self._forbids_without_limit.add(sense.forbids)
        elif sense.number is not None:
            self._numbers.add(sense.number)


class _Sense(Struct, frozen=True):
    """What a constraint says about its subject."""

    forbids: bool
    is_limit: bool
    number: str | None
    """The number that it limits it to; none where it names none or several."""
    span: tuple[int, int] | None
    """Where the limit and its number stand."""


def _settled(said: Sequence[Constraint]) -> tuple[tuple[Constraint, ...], tuple[Constraint, ...]]:
    """(those in force, those that a newer one disagrees with), oldest first. O(characters)."""
    stands: dict[frozenset[str], _Newer] = {}
    kept: list[Constraint] = []
    gone: list[Constraint] = []
    for one in reversed(said):
        sense = _sense(one.text)
        subject = _subject(one.text, sense)
        if subject:
            newer = stands.setdefault(subject, _Newer())
            if newer.disagrees(sense):
                gone.append(one)
                continue
            if one.is_sure:
                newer.add(sense)
        kept.append(one)
    return tuple(reversed(kept)), tuple(reversed(gone))


def _subject(text: str, sense: _Sense) -> frozenset[str]:
    """What a constraint is about: all its words but those that only say that it is one, and the number of a
    limit with the words that set it. Nothing where they are common words alone, or where it forbids twice:
    what then disagrees with it cannot be told by words."""
    if len(pattern(NEGATIVE).findall(_QUOTED.sub(" ", text))) > 1:
        return frozenset()
    direction, said = "", text
    if sense.span is not None:
        start, end = sense.span
        direction = "≤" if _LEAST.search(text[start:end]) is None else "≥"
        text = f"{text[:start]} {text[end:]}"
    for cues in (OTHERS, NEGATIVE):
        text = pattern(cues).sub(_without_cues, text)
    every = (word.strip(_AROUND).rstrip(_BEHIND) for word in text.split())
    words = {word if len(word) == 1 else word.lower() for word in every} - _SAYS_NOTHING
    if _NO.match(said) is not None:
        words.add("use")
    if words <= COMMON_WORDS:
        return frozenset()
    return frozenset((*words, direction) if direction else words)


def _without_cues(cue: re.Match[str]) -> str:
    """What stays of words in which a cue was found: all that is no cue, such as the verb of `ne touche pas`,
    and a name of which a cue is only a part, such as `no-op` or `solo.py`."""
    text, start, end = cue.string, cue.start(), cue.end()
    in_name = (start and text[start - 1] in _IN_NAMES) or _NAME_GOES_ON.match(text, end) is not None
    if in_name and cue[0].isascii():
        return cue[0]
    words = cue[0].split()
    return (
        f" {' '.join(word for word in words if word.lower() not in _PARTICLES)} " if len(words) > 1 else " "
    )


def _sense(text: str) -> _Sense:
    bare = _QUOTED.sub(lambda quoted: " " * len(quoted[0]), text)
    numbers = list(_NUMBER.finditer(bare))
    limit = pattern(LIMIT).search(bare)
    span = None
    if limit is not None and len(numbers) == 1:
        start, end = numbers[0].span()
        if start >= limit.start() and start - limit.end() <= _NEXT_CHARS:
            span = limit.start(), max(end, limit.end())
    return _Sense(
        forbids=pattern(NEGATIVE).search(bare) is not None,
        is_limit=limit is not None,
        number=numbers[0][0] if span is not None else None,
        span=span,
    )
