"""The user's constraints: sentences in which the user sets a limit, kept word for word in every later view.

Constraints are found by code in what the user typed (`user_text.py`), never in tool output, in a program's
text or in a summariser's instructions. Each compaction computes them from the original messages. So undo,
branch and redaction need no rule of their own, and repeated compactions lose nothing.

**Newest wins.** Two constraints contradict each other if they are about the same thing, and one forbids what
the other demands or both set a limit to different numbers. They are about the same thing if they have the
same words, apart from cue words (which express the limit, such as `never`) and the number of a limit. The
newer one is then in force, the older one no longer. A newer one that says that something changed (`from now
on …`) also replaces an older one with another value (`replaced.py`). A question, or a sentence that may have
been pasted (`user_text.PathConstraints.is_sure`), replaces nothing: both count. A constraint that is repeated
in the same words counts once, at its last place.

**A message with many limits does not displace other messages.** At most `MAX_OF_A_MESSAGE` limits of one
message count, and a summary contains at most `MAX_CONSTRAINTS`. If room is short, messages with more than
`MAX_LIMITS_AT_ONCE` limits get room for one limit at a time. The result of the compaction reports how many
limits were left out.

The time is proportional to the length of what users typed. Constraints are not compared in pairs
(`_NewerConstraints`), and a text is searched for all of them at once (`core/text/phrases.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from compactd.core.constraints.patterns import LIMIT, NEGATIVE, OTHER_LANGUAGES, WEAK, leaves_no_choice
from compactd.core.constraints.replaced import find_replaced
from compactd.core.constraints.user_text import TypedSentence, typed_sentences
from compactd.core.history.entries import EntryId, Item
from compactd.core.text.atoms import COMMON_WORDS
from compactd.core.text.lazy_patterns import LazyPattern
from compactd.core.text.phrases import Phrases
from compactd.core.text.quoting import visible_lines
from compactd.protocol.messages import Text

MAX_LIMIT_CHARS: Final = 1_000
"""The most characters of a constraint. A longer sentence is a story, not a rule."""

DEPENDENT_CHARS: Final = 100
"""A longer sentence says what it limits."""
REFERENT_CHARS: Final = 200
REFERENT_WORDS: Final = 3
"""A longer sentence before a limit is not part of it, and one with fewer words is a greeting."""

MAX_OF_A_MESSAGE: Final = 100
"""The most distinct limits of one message that count. Strong ones (`Constraint.is_strong`) are taken first,
alternately from the end and the beginning of the message, because people write before or after what they
paste. Recorded sessions have at most 13 in a message (2026-11)."""
MAX_CONSTRAINTS: Final = 500
"""The most constraints in one summary, however much room there is."""
MAX_LIMITS_AT_ONCE: Final = 5
"""A message with more limits than this gets room in the summary for one limit at a time, in turn with other
messages. A message with fewer gets room for all of its limits at once."""

MIN_CONSTRAINT_TOKENS: Final = 64
TARGET_DIVISOR: Final = 2
SUMMARY_DIVISOR: Final = 2
"""By default, constraints may take half of `target_tokens`; without a target, half of the summary's budget;
and always at least `MIN_CONSTRAINT_TOKENS`. In 40 recorded sessions, they took 0 to 444 tokens (2026-11)."""

_QUOTED = LazyPattern(
    r"`[^`]*`|\"[^\"\n]*\"|“[^”\n]*”|«[^»\n]*»|„[^“”\n]*[“”]|「[^」\n]*」|『[^』\n]*』|‘[^’\n]* [^’\n]*’"
)
_ASKS = LazyPattern(
    r"(?:why|what|how|is|are|do(?!n)|does|did|should|when|where|who|which|has|have|was|were|isn|aren"
    r"|don['’]?t\s+you"
    r"|warum|wieso|wie|ist|sind|pourquoi|comment|est|por\s+qué|qué|cómo)\b",
    re.IGNORECASE,
)
_EMPHASIS = LazyPattern(
    r"(?<![\w*_])[*_]{1,3}(?=\w)|(?<=\w)[*_]{1,3}(?![\w*_])|</?(?:b|strong|em|i|u|mark)>", re.IGNORECASE
)
"""Marks of emphasis. They are removed because they could separate the words of a cue."""
_IS_QUESTION = LazyPattern(r"[?？؟][\s!?？؟\"'”’)\]*_]{0,8}\Z")
_REQUESTS = LazyPattern(
    r"\b(?:please|could\s+you|can\s+you|would\s+you|will\s+you|won['’`]?t\s+you)\b|,\s*(?:ok(?:ay)?|right"
    r"|yes|got\s+it|deal|will\s+you)\W*\Z"
    r"|\b(?:bitte|kannst\s+du|könntest\s+du|peux-tu|pouvez-vous|pourrais-tu|puedes|podrías|por\s+favor)\b",
    re.IGNORECASE,
)
"""Words that make a question a demand."""
_NUMBER = LazyPattern(r"(?<![\w.-])\d+(?:[.,]\d+)*(?![\w-])")
_DEPENDENT = LazyPattern(
    r"\b(?:it|that|them|those|these|this)(?=[.!]?\Z|[,;.!]|\s+(?:to|in|for|with|without|unless|until|before|after"
    r"|again|or|and|on|at|from|anywhere|yourself|alone)\b)"
    r"|(?:\bnever|\bnot|n['’`]t)\s+(?:exceed|disclose|reveal|share|mention|repeat|reuse|touch|change|modify|remove|delete|rename|edit|break"
    r"|skip|overwrite)(?=[.!]?\Z|\s+(?:without|unless|until|before|after|again)\b)",
    re.IGNORECASE,
)
"""Matches a sentence with a pronoun, or with a verb without an object. Who does not know the sentence before
it does not know what it limits."""
_OPENING = LazyPattern(
    r"\W*(?:please|also|and|but|so|oh|ok(?:ay)?|hey|note|rule|btw|ps|p\.s\.|\d+)\b[,:.]?\s*",
    re.IGNORECASE,
)
_WORDS = LazyPattern(r"\w+")
_REFERENCES = LazyPattern(r"(?:\s*\[e\d{1,18}(?:\s*,\s*e\d{1,18})*\])+\s*\Z")
"""References at the end of a line: `[e12]`, `[e12, e15]`."""
_MARK = LazyPattern(r"\A\s*(?:(?:[-*•+]|\d{1,3}[.)])\s+)?(?:\[ \]\s+)?")
"""The mark before a list item, or before an unticked checkbox."""
_HEADING = LazyPattern(
    r"#{1,6}\s|(?:\d{1,3}[.)]\s+)?(?:\*\*|__)?[^\s*_•+-][^\n]{0,58}[:：](?:\*\*|__)?\Z|(?:\*\*|__)[^\n]{1,60}(?:\*\*|__)\Z"
)
"""A line that is marked as a heading, ends with a colon, or is completely bold."""
_AT_LEAST = LazyPattern(
    r"\bleast|\bno\s+(?:less|fewer)|\bnot\s+less|\bmin|\bmore\b(?!\s+than)|mindestens|moins|menos|mínimo"
    r"|[>≥]|以上|至少",
    re.IGNORECASE,
)
_NO = LazyPattern(r"\W*(?:please\s+)?no\s", re.IGNORECASE)
"""The beginning of a sentence with `no`. `No tabs.` means the same as `Never use tabs.`"""
_NEXT_CHARS: Final = 12
"""A number belongs to a limit if it is inside the limit's words or begins at most this many characters after
them."""
_AROUND: Final = "\"'`“”„«»‘’「」『』()[]{},;:!?*。！？、，；："
_TRAILING: Final = "."
"""A full stop is only removed at the end of a word, because at the beginning it is part of a name."""
_IN_NAMES: Final = r"-_./\#@"
_NAME_CONTINUES = LazyPattern(r"[-_/\\#@]\w|\.\w")
_FILLER_TEXT = """
must mustn never always do don dont don't don’t mustn't mustn’t only not no prefer preferred preferably avoid
should shouldn shouldn't shouldn’t shall ensure important please also now and but so ok okay you we
the a an be is are ever may can cannot can't refrain from
"""
_FILLER_WORDS: Final = frozenset((*_FILLER_TEXT.split(), ""))
"""Words that do not say what a constraint is about: cue words, such as `never`, and filler words."""
_OTHER_LANGUAGE_CUES = """
ne не no bitte nicht kein keine keinen por favor favor, pas jamais plus que il faut surtout hay
"""
_PARTICLES: Final = frozenset(_OTHER_LANGUAGE_CUES.split())
"""Words that say nothing about the subject if they occur in a cue of several words, such as `ne` and `pas` in
`ne touche pas`."""


Limit = tuple[str, bool, bool]
MessageLimits = tuple[Limit, ...]
"""The sentences of one message that set a limit, as (sentence, whether it is strong, whether it may replace
an older constraint)."""


class LimitIndex(Protocol):
    """A cache of the limits in messages, by entry id."""

    def get(self, key: EntryId, /) -> MessageLimits | None:
        """Return the limits of a message; None if the message was not searched yet."""

    def __setitem__(self, key: EntryId, value: MessageLimits, /) -> None: ...


class Constraint(Struct, frozen=True):
    """A sentence in which the user sets a limit."""

    text: str
    """The whole sentence as it was typed, with a replacement sign for invisible characters."""
    entry_id: EntryId
    """The message that contains the sentence; the last one if the sentence was repeated."""
    is_strong: bool = True
    """Whether the sentence has a word that leaves no choice (such as `never`), or a numeric limit. Strong
    constraints come first if there is no room for all."""
    is_sure: bool = True
    """Whether the sentence is clearly the person's own statement. A question, or something that may be
    quoted, does not replace another constraint."""


def is_constraint(sentence: str) -> bool:
    """Return whether a sentence sets a limit. Text inside quotation marks is ignored. O(length)."""
    return _strength(sentence) is not None


class Constraints(Struct, frozen=True, dict=True):
    """The user's constraints, in the order in which each was last stated."""

    in_force: tuple[Constraint, ...] = ()
    superseded: tuple[Constraint, ...] = ()
    """Constraints that a newer one contradicts."""
    left_out: tuple[tuple[EntryId, int], ...] = ()
    """(message, how many of its limits do not count because it has more than `MAX_OF_A_MESSAGE`)."""

    @cached_property
    def phrases(self) -> Phrases:
        """A search for the sentences of all constraints in a text. The constraints that are in force come
        first."""
        return Phrases(one.text for one in (*self.in_force, *self.superseded))

    @cached_property
    def sentences_in_force(self) -> frozenset[str]:
        """The sentences of the constraints that are in force: those that no newer one contradicts."""
        return frozenset(one.text for one in self.in_force)

    @cached_property
    def sentences(self) -> frozenset[str]:
        """The sentences of all constraints, superseded ones included."""
        return frozenset(one.text for one in (*self.in_force, *self.superseded))

    def count_left_out(self, stays: Collection[EntryId] = ()) -> int:
        """Return how many limits do not count because their message has too many. Messages in `stays` are
        ignored."""
        return sum(count for entry_id, count in self.left_out if entry_id not in stays)


NO_CONSTRAINTS: Final = Constraints()


class PathConstraints(Struct, frozen=True):
    """The user's constraints in the part of a path that was read so far. A path has the entries from the root
    to the leaf."""

    read: int = 0
    """The number of entries that were read, from the first on."""
    found: Mapping[str, Constraint] = {}
    """All constraints, superseded ones included, by their words in lower case, in the order in which each was
    last stated."""
    constraints: Constraints = NO_CONSTRAINTS

    def read_more(
        self, items: Iterable[Item], known: LimitIndex | None = None, read: int = 0
    ) -> PathConstraints:
        """Return the constraints after reading more original messages, `items`, oldest first. `read` is the
        number of the path's entries that are read then. `known` caches the limits of messages, and missing
        ones are added to it. O(characters that users typed in `items`); O(messages) for messages in the
        cache."""
        known = {} if known is None else known
        found: dict[str, Constraint] | None = None
        left_out = dict(self.constraints.left_out)
        for item in items:
            limits = known.get(item.entry_id)
            if limits is None:
                limits = known[item.entry_id] = limits_in(item)
            counted, more = _count_limits(limits)
            if more:
                left_out[item.entry_id] = more
            for key, (sentence, strong, sure) in counted:
                if found is None:
                    found = dict(self.found)
                if not sure and key in found and found[key].is_sure:
                    # A quoted repetition is not a new statement: it must not replace what was said since.
                    continue
                found.pop(key, None)
                found[key] = Constraint(sentence, item.entry_id, strong, sure)
        if found is None:
            return PathConstraints(read, self.found, self.constraints)
        kept, gone = _settle(tuple(found.values()))
        return PathConstraints(read, found, Constraints(kept, gone, tuple(left_out.items())))


NO_PATH_CONSTRAINTS: Final = PathConstraints()


def constraints_of(items: Iterable[Item]) -> Constraints:
    """Return the user's constraints in the original messages `items`, oldest first. O(characters that users
    typed)."""
    return NO_PATH_CONSTRAINTS.read_more(items).constraints


def limits_in(item: Item) -> MessageLimits:
    """Return the limits that one message sets, without regard to other messages. O(characters that the user
    typed)."""
    if item.message.role != "user":
        return ()
    limits: list[Limit] = []
    before: TypedSentence | None = None
    whole = ""
    for said in typed_sentences(item):
        strong = _strength(said.text)
        text, is_sure = said.text, said.is_sure and not _is_question(said.text)
        if strong is not None and before is not None and _needs(said, before):
            text = f"{before.text} {text}"
            whole = whole or _text_of(item)
            if text in whole:
                is_sure = is_sure and before.is_sure
                if limits and limits[-1][0] == before.text:
                    strong = limits.pop()[1] or strong
            else:
                text = said.text
        if strong is not None:
            limits.append((text, strong, is_sure))
            said = replace(said, text=text)
        before = said
    return tuple(limits)


def _needs(said: TypedSentence, before: TypedSentence) -> bool:
    """Return whether a sentence says what it limits only together with the one before it: `Never exceed
    without my approval.`"""
    return (
        len(said.text) <= DEPENDENT_CHARS
        and not said.lines
        and not before.lines
        and before.text.count(" ") >= REFERENT_WORDS - 1
        and len(before.text) <= REFERENT_CHARS
        and not before.text.endswith((":", "：", "?", "？"))
        and _DEPENDENT.search(said.text) is not None
    )


def _text_of(item: Item) -> str:
    return "\n".join(visible_lines(block.text) for block in item.message.content if isinstance(block, Text))


def fitting_constraints(
    constraints: Sequence[Constraint], most_tokens: int, count: Callable[[str], int]
) -> tuple[Constraint, ...]:
    """Return the constraints that fit into `most_tokens`, at most `MAX_CONSTRAINTS`, each complete, in their
    order.

    If not all fit, strong ones are chosen first, and of these the newest. Of a message with more than
    `MAX_LIMITS_AT_ONCE` constraints, one is chosen at a time, in turn with the other messages. O(n log n).
    """
    chosen: set[int] = set()
    left = most_tokens
    for at in _by_weight(constraints):
        cost = count(bullet(constraints[at]) + "\n")
        if cost <= left:
            chosen.add(at)
            left -= cost
            if len(chosen) == MAX_CONSTRAINTS:
                break
    return tuple(one for at, one in enumerate(constraints) if at in chosen)


def bullet(constraint: Constraint) -> str:
    """Return the line that states a constraint in a summary."""
    return f"- {constraint.text} [{constraint.entry_id}]"


def bullets(constraints: Sequence[Constraint]) -> tuple[str, ...]:
    """Return the lines that state these constraints in a summary."""
    return tuple(map(bullet, constraints))


def missing_constraints(constraints: Sequence[Constraint], lines: Iterable[str]) -> tuple[Constraint, ...]:
    """Return the constraints that none of `lines` states. A line states a constraint if it has nothing but
    the exact words, a list marker, emphasis and references. A line with further words states nothing, because
    it may withdraw the constraint. O(constraints + lines)."""
    if not constraints:
        return ()  # without reading the lines, which are often a whole summary
    stated = {_bare_words(_REFERENCES.sub("", line)) for line in lines}
    return tuple(one for one in constraints if _bare_words(one.text) not in stated)


def lines_under(text: str, is_rules: Callable[[str], bool]) -> Iterator[str]:
    """Yield the lines of a summary that can state constraints: list items and sentences directly under a
    heading for which `is_rules` returns true. `is_rules` gets the heading's line, or "" for the text before
    any heading. Indented lines are left out because they depend on the line above. O(text)."""
    counts = is_rules("")
    for line in visible_lines(text).split("\n"):
        bare = line.strip()
        if _HEADING.match(bare) is not None:
            counts = is_rules(bare)
        elif counts and bare and not line[0].isspace():
            yield line


def stated_constraints(text: str, demands: Constraints) -> list[str]:
    """Return the sentences of `demands` that are in force (contradicted by no newer constraint) and that
    `text` contains word for word. O(text)."""
    return [one for one in demands.phrases.found_in(visible_lines(text)) if one in demands.sentences_in_force]


def without_them(line: str, demands: Constraints) -> str:
    """Return `line` without the constraints that it contains; an empty text if no words are left. O(line) for
    each constraint that is found."""
    rest = shown = visible_lines(line)
    for text in demands.phrases.found_in(shown):
        rest = rest.replace(text, " ")
    return line if rest is shown else rest.strip() if _WORDS.search(rest) is not None else ""


def constraint_lines(item: Item, demands: Constraints) -> frozenset[str]:
    """Return the lines of a message that belong to a constraint which was typed over several lines. List
    markers are removed."""
    known = demands.sentences
    several = (said for said in typed_sentences(item) if said.lines and said.text in known)
    return frozenset(line for said in several for line in said.lines)


def _bare_words(line: str) -> str:
    """Return the words of a line, without a list marker, and without emphasis or quotation marks around
    them."""
    return " ".join(_MARK.sub("", line, count=1).strip(" *_\"“”'`").split())


def _count_limits(limits: MessageLimits) -> tuple[Iterable[tuple[str, Limit]], int]:
    """Return (the limits of a message that count, as pairs of words and limit, in order; how many more limits
    the message has)."""
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
    """Return the indices of the constraints in the order in which `fitting_constraints` gives them room."""
    places: dict[EntryId, tuple[list[int], list[int]]] = {}
    for at, one in enumerate(constraints):
        places.setdefault(one.entry_id, ([], []))[not one.is_strong].append(at)
    turn = [0] * len(constraints)
    for strong, weak in places.values():
        if len(strong) + len(weak) > MAX_LIMITS_AT_ONCE:
            for nth, at in enumerate((*_from_both_ends(strong), *_from_both_ends(weak))):
                turn[at] = nth
    return sorted(range(len(constraints)), key=lambda at: (turn[at], not constraints[at].is_strong, -at))


def _from_both_ends(places: Sequence[int]) -> Iterator[int]:
    """Yield `places` from both ends: the last, the first, the last but one, the second, and so on."""
    for nth in range(len(places)):
        yield places[-1 - nth // 2] if nth % 2 == 0 else places[nth // 2]


def _strength(sentence: str) -> bool | None:
    """Return True for a strong constraint, False for a weak one, None if the sentence is not a constraint."""
    if not 4 <= len(sentence) <= MAX_LIMIT_CHARS:
        return None
    bare = _EMPHASIS.sub("", _QUOTED.sub(" ", sentence)).strip()
    while (match := _OPENING.match(bare)) is not None and match.end():
        bare = bare[match.end() :]
    if bare.endswith(("?", "？")) and _ASKS.match(bare) is not None:
        return None
    if bare.isascii() and len(_WORDS.findall(sentence)) < 2:
        return None
    if leaves_no_choice(bare):
        return not _is_question(bare) or _REQUESTS.search(bare) is not None
    return False if WEAK.search(bare) is not None else None


def _is_question(sentence: str) -> bool:
    """Return whether a sentence is a question. A question may demand something, but it replaces no
    constraint."""
    return _IS_QUESTION.search(sentence) is not None


class _NewerConstraints:
    """What the later constraints about one subject say, so that an older constraint can be compared with
    them. Superseded constraints are not included."""

    def __init__(self) -> None:
        self._numbers: set[str] = set()
        """The numbers of the limits."""
        self._forbids: set[bool] = set()
        """The values of `_Sense.forbids` for all constraints."""
        self._forbids_without_limit: set[bool] = set()
        """The values of `_Sense.forbids` for the constraints that set no limit."""

    def disagrees(self, sense: _Sense) -> bool:
        """Return whether a later constraint forbids what the older constraint `sense` demands, demands what
        it forbids, or sets another number. O(1)."""
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
    """What a constraint says, apart from its subject: whether it forbids or demands, and which number is the
    limit."""

    forbids: bool
    is_limit: bool
    number: str | None
    """The number of the limit; None if the sentence names none or several."""
    span: tuple[int, int] | None
    """Where the words of the limit and its number are in the sentence; None if `number` is None."""


def _settle(said: Sequence[Constraint]) -> tuple[tuple[Constraint, ...], tuple[Constraint, ...]]:
    """Return (constraints that are in force, constraints that a newer one contradicts), oldest first.
    O(characters)."""
    stands: dict[frozenset[str], _NewerConstraints] = {}
    kept: list[Constraint] = []
    gone: list[Constraint] = []
    changed = find_replaced([one.text for one in said], [one.entry_id for one in said], only_limits=True)
    for at, one in reversed([*enumerate(said)]):
        if at in changed and said[changed[at]].is_sure:
            gone.append(one)
            continue
        sense = _sense(one.text)
        subject = _subject(one.text, sense)
        if subject:
            newer = stands.setdefault(subject, _NewerConstraints())
            if newer.disagrees(sense):
                gone.append(one)
                continue
            if one.is_sure:
                newer.add(sense)
        kept.append(one)
    return tuple(reversed(kept)), tuple(reversed(gone))


def _subject(text: str, sense: _Sense) -> frozenset[str]:
    """Return the words that say what a constraint is about: without cue words, and without the number and the
    words of a limit. A limit's direction is added as a sign, `≤` or `≥`.

    The result is empty if only common words are left. It is also empty if the sentence has two negations,
    because its words then do not show what contradicts it.
    """
    if len(NEGATIVE.findall(_QUOTED.sub(" ", text))) > 1:
        return frozenset()
    direction, said = "", text
    if sense.span is not None:
        start, end = sense.span
        direction = "≤" if _AT_LEAST.search(text[start:end]) is None else "≥"
        text = f"{text[:start]} {text[end:]}"
    for cues in (OTHER_LANGUAGES, NEGATIVE):
        text = cues.sub(_without_cues, text)
    every = (word.strip(_AROUND).rstrip(_TRAILING) for word in text.split())
    words = {word if len(word) == 1 else word.lower() for word in every} - _FILLER_WORDS
    if _NO.match(said) is not None:
        words.add("use")
    if words <= COMMON_WORDS:
        return frozenset()
    return frozenset((*words, direction) if direction else words)


def _without_cues(cue: re.Match[str]) -> str:
    """Return what remains of a matched cue: words that are not part of the cue, such as the verb in
    `ne touche pas`, and a name that contains a cue, such as `no-op` or `solo.py`."""
    text, start, end = cue.string, cue.start(), cue.end()
    in_name = (start and text[start - 1] in _IN_NAMES) or _NAME_CONTINUES.match(text, end) is not None
    if in_name and cue[0].isascii():
        return cue[0]
    words = cue[0].split()
    return (
        f" {' '.join(word for word in words if word.lower() not in _PARTICLES)} " if len(words) > 1 else " "
    )


def _sense(text: str) -> _Sense:
    bare = _QUOTED.sub(lambda quoted: " " * len(quoted[0]), text)
    numbers = list(_NUMBER.finditer(bare))
    limit = LIMIT.search(bare)
    span = None
    if limit is not None and len(numbers) == 1:
        start, end = numbers[0].span()
        if start >= limit.start() and start - limit.end() <= _NEXT_CHARS:
            span = limit.start(), max(end, limit.end())
    return _Sense(
        forbids=NEGATIVE.search(bare) is not None,
        is_limit=limit is not None,
        number=numbers[0][0] if span is not None else None,
        span=span,
    )
