"""Find the statements that a newer one replaces: the same subject with another value.

`The timeout is 30 s.` and later `The timeout is 45 s.`: a summary that has both does not say what holds. Two
rules find such pairs, both without a model:

- **Said again.** The sentences are the same, except for values behind the verb, or up to `is` and a value, or
  except for values and words such as `instead`.
- **Changed.** The newer sentence says that something changed (`now`, `moved to`, `80 €, not 50 €`), shares
  words with the older one that few other statements have, and has a different value of the same sort. Of two
  wishes, `I would rather …` replaces the one about the same thing.

Only statements take part: sentences that say how something is, and limits. A request such as `Now fix
parser.py` replaces nothing. What is replaced stays in the journal.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from msgspec import Struct

from compactd.core.text.atoms import COMMON_WORDS
from compactd.core.text.lazy_patterns import LazyPattern

MAX_STATEMENT_CHARS: Final = 180
"""A longer sentence is no plain statement."""
MAX_STATEMENTS: Final = 2_000
"""Only the newest statements, this many, are compared."""
STEM_CHARS: Final = 6
"""Two words with the same beginning, of this many characters, are about the same."""
RARE_SHARE: Final = 0.1
MIN_RARE: Final = 4
MAX_RARE: Final = 50
"""A word says what a statement is about if at most `RARE_SHARE` of the statements have it, but at least
`MIN_RARE` and at most `MAX_RARE`."""
SAME_SHARE: Final = 0.6
"""Without values to compare, the shorter of two statements must share this part of its words."""
SURE_SHARE: Final = 0.5
"""A limit is replaced only if the shorter of the two shares this part of its words, at least two; or if both
limit the same sort of value and share a word."""

MIN_SHAPE_WORDS: Final = 3
"""A sentence with fewer words that are no values has no shape of its own."""

_LABEL: Final = LazyPattern(r"\A[A-Z][A-Z _-]{1,30}:\s+")
"""Matches a label in capital letters: `NOTE: …`. It does not say what the statement is about."""
_CHANGES: Final = LazyPattern(
    r"\b(?:now|from now on|as of|no longer|any ?more|instead|correction|new|latest|retired|update[ds]?"
    r"|(?:re)?named|becomes?|became|rebased|rotat(?:ed|ion)|switch(?:ed)?|move[ds]?|chang(?:ed?|es)|replac(?:ed?|es)"
    r"|slip(?:s|ped)|postponed|delayed|after all|would rather)\b",
    re.IGNORECASE,
)
"""Matches a statement that something changed."""
_CHANGES_ALL: Final = LazyPattern(
    r"\b(?:from now on|as of|no longer|any ?more|instead|correction|update|would rather|after all)\b",
    re.IGNORECASE,
)
"""Matches a statement that something changed, even if it names no value."""
_STATES: Final = LazyPattern(
    r"\b(?:is|are|was|were|be|has|have|must|should|shall|may|needs?|belongs?|owns?|runs?|lives?|stays?|uses?"
    r"|work(?:s|ing)?|move[ds]|changed|switched|renamed|rebased|rotated|ships?|calling|called|prefers?|wants?|would)\b"
    r"|:(?=\s)|['’](?:s|re)\b",
    re.IGNORECASE,
)
"""Matches the verb, or the colon, of a sentence that says how something is."""
_BEFORE_VALUE: Final = LazyPattern(r"\b(?:is|are|was|were|becomes?|became)(?: now)? *\Z")
"""Matches the end of what says which value follows: `the budget is `."""
_DENIES: Final = LazyPattern(r"\b(?:not|instead of|rather than|no longer) *\Z", re.IGNORECASE)
"""Matches the words before a value that does not hold any more."""
_IF: Final = LazyPattern(r"\b(?:if|when|unless)\b", re.IGNORECASE)
"""Matches a condition. Two rules with a condition are the same only if nearly all words agree."""
SAME_RULE: Final = 0.8
"""This part of the words must agree then."""
_BETWEEN: Final = LazyPattern(r"\s*(?:(?:now|at|about|only|exactly|set|to|on)\s+)*")
"""Matches what may stand between the verb and a number that is a value."""
_WISHES: Final = LazyPattern(r"\b(?:wants?|prefers?|likes?|would (?:like|rather))\b", re.IGNORECASE)
"""Matches the verb of a wish."""
_LIMITS: Final = LazyPattern(
    r"\b(?:cap(?:ped)?|ceiling|limit(?:ed)?|budget|at most|at least|under|below|above|over|within|up to"
    r"|max(?:imum)?|min(?:imum)?|exceed(?:s|ing)?)\b|[<>≤≥]",
    re.IGNORECASE,
)
"""Matches the words of a limit to a number."""
_CUES: Final = frozenset(("always", "never", "must", "should", "only", "please"))
"""Words of a limit that do not say what it is about."""
_MONTHS: Final = "january|february|march|april|may|june|july|august|september|october|november|december"
_HUNDREDS: Final = "hundred|thousand|million"
_UNITS: Final = r"dollars?|euros?|pounds?|usd|eur|gbp"
_VALUE: Final = LazyPattern(
    r"(?P<address>\bhttps?://[^\s,;)]{1,200})"
    rf"|(?P<money>[$€£]\s?\d[\d.,]*[kKmM]?\b|\b\d[\d.,]*\s?(?:[$€£]|(?:{_UNITS})\b)"
    rf"|\b[a-z]{{2,12}}[ -](?:{_HUNDREDS})(?: [a-z]{{2,12}})?(?= (?:{_UNITS})\b))"
    rf"|(?P<date>\b\d{{4}}-\d\d-\d\d\b|\b\d{{1,2}}[./]\d{{1,2}}[./]\d{{2,4}}\b"
    rf"|(?i:\b(?:{_MONTHS}) \d{{1,2}}\b"
    rf"|\b\d{{1,2}}(?:st|nd|rd|th)? (?:{_MONTHS})\b))"
    r"|(?P<path>(?<![\w/.])(?:[\w.@~-]{1,60})?(?:/[\w.@-]{1,80}){1,8})"
    r"|(?P<code>\b(?=[\w-]{0,40}\d)(?=[\w-]{0,40}[A-Za-z])[A-Za-z0-9]{2,20}(?:-[A-Za-z0-9]{1,20}){1,4}\b"
    r"|\b(?=[0-9a-f]{0,39}\d)(?=[0-9a-f]{0,39}[a-f])[0-9a-f]{7,40}\b)"
    r"|(?P<name>\b[A-Z][a-z]{1,20} [A-Z][a-z]{1,20}\b)"
    r"|(?P<number>(?<![\w.-])\d[\d.,]*(?:\s?(?:ms|s|min|h|kb|mb|gb|%))?(?![\w-]))"
)
"""Matches a value, by its sort."""
_WORD: Final = LazyPattern(r"[^\W\d_]{3,}")


class _Statement(Struct, frozen=True):
    """What is compared of a statement."""

    values: tuple[tuple[str, str], ...]
    """(sort, text in lower case) of each value."""
    stems: frozenset[str]
    """The beginnings of the words that are no values."""
    pattern: str | None
    """The sentence with the sort in place of each value; None if a value stands before the verb, or if the
    sentence sets a limit."""
    subject: str | None
    """The words before the first value, if they end with `is`, and the sort of the value."""
    denied: frozenset[str]
    """The values that the sentence says do not hold any more."""
    is_change: bool
    is_sure_change: bool
    """Whether it says so without any doubt (`_CHANGES_ALL`)."""
    is_limit: bool
    has_condition: bool
    is_wish: bool
    is_plain: bool
    """Whether it says how something is, or sets a limit. Of other sentences, only the `shape` counts."""
    shape: str | None
    """The sentence with the sort in place of each value, without words that say that something changed; None
    if it has no value or few words."""


def find_replaced(
    statements: Sequence[str],
    messages: Sequence[str | None],
    *,
    limits: Collection[int] = (),
    only_limits: bool = False,
) -> dict[int, int]:
    """Return, for each of `statements` that a newer one replaces, the index of the newer one.

    `statements` are sentences, oldest first, and `messages` the message of each: a sentence replaces nothing
    in its own message. `limits` are the indices of those that set a limit: they are
    statements whatever their form, and no other sentence replaces them. With `only_limits`, all do. A limit
    is replaced by a limit only if more words agree. O(characters + pairs that share a rare word).
    """
    first = max(0, len(statements) - MAX_STATEMENTS)
    known = {
        at: found
        for at in range(first, len(statements))
        if (found := _read(statements[at], is_rule=only_limits or at in limits)) is not None
    }
    counts: dict[str, int] = {}
    for one in known.values():
        for stem in one.stems:
            counts[stem] = counts.get(stem, 0) + 1
    most = min(MAX_RARE, max(MIN_RARE, int(len(known) * RARE_SHARE)))
    by_stem: dict[str, list[int]] = {}
    by_pattern: dict[str, int] = {}
    by_shape: dict[str, int] = {}
    replaced: dict[int, int] = {}
    for at, one in known.items():
        is_rule = only_limits or at in limits
        older: int | None = None
        for pattern in (one.pattern, one.subject) if one.values else ():
            if pattern is not None:
                before = by_pattern.get(pattern, at)
                size = 1 if pattern == one.subject else len(one.values)
                if known[before].values[:size] != one.values[:size] and messages[before] != messages[at]:
                    older = before
                by_pattern[pattern] = at
        if one.shape is not None:
            before = by_shape.get(one.shape, at)
            if one.is_sure_change and known[before].values != one.values and messages[before] != messages[at]:
                older = before if older is None else older
            by_shape[one.shape] = at
        if older is None and one.is_change and one.is_plain:
            shared: dict[int, float] = {}
            for stem in sorted(one.stems):
                if counts[stem] <= most:
                    for other in by_stem.get(stem, ()):
                        shared[other] = shared.get(other, 0.0) + 1.0 / counts[stem]
            for other in sorted(shared, key=lambda other: (-shared[other], -other)):
                is_other_rule = only_limits or other in limits
                if (
                    other not in replaced
                    and messages[other] != messages[at]
                    and (is_rule or not is_other_rule)
                    and _is_changed(known[other], one, is_sure=is_other_rule)
                ):
                    older = other
                    break
        if older is not None and (is_rule or not (only_limits or older in limits)):
            replaced[older] = at
        for stem in one.stems if one.is_plain else ():
            by_stem.setdefault(stem, []).append(at)
    return replaced


def gives_value(sentence: str) -> bool:
    """Return whether a sentence is a statement that gives something a value. O(length)."""
    found = _read(sentence, is_rule=False)
    return found is not None and found.is_plain and bool(found.values)


def _read(text: str, *, is_rule: bool) -> _Statement | None:
    """Return what is compared of a sentence; None if it is no statement."""
    if len(text) > MAX_STATEMENT_CHARS or text.rstrip().endswith("?"):
        return None
    bare = _LABEL.sub("", text, count=1)
    verb = _STATES.search(bare)
    values: list[tuple[str, str]] = []
    denied: set[str] = set()
    rest: list[str] = []
    pattern: list[str] = []
    end = 0
    is_behind = verb is not None
    for found in _VALUE.finditer(bare):
        sort = found.lastgroup or ""
        values.append((sort, found[0].lower().strip('`"“”.,')))
        between = bare[end : found.start()]
        is_left = between.endswith("from ") and bare.startswith(" to ", found.end())
        if is_left or _DENIES.search(between) is not None:
            denied.add(values[-1][1])
        rest.append(between)
        pattern += (between.lower(), sort)
        end = found.end()
        is_behind = is_behind and verb is not None and found.start() >= verb.end()
        if sort == "number" and verb is not None and not _BETWEEN.fullmatch(bare, verb.end(), found.start()):
            is_behind = False  # `uses part 3 of the plan`: the number says which one.
    rest.append(bare[end:])
    pattern.append(bare[end:].lower())
    stems = frozenset(
        word[:STEM_CHARS]
        for part in rest
        for word in _WORD.findall(part.lower())
        if word not in COMMON_WORDS and word not in _CUES and not _CHANGES.fullmatch(word)
    )
    if verb is None and not is_rule and (not values or len(stems) < MIN_SHAPE_WORDS):
        return None
    before = rest[0].lower()
    shape = " ".join(_CHANGES.sub(" ", "\0".join(pattern)).split()).rstrip(" .!")
    return _Statement(
        values=tuple(values),
        subject=f"{before}\0{values[0][0]}" if values and stems and _BEFORE_VALUE.search(before) else None,
        denied=frozenset(denied),
        stems=stems,
        pattern=" ".join("\0".join(pattern).split()) if is_behind and stems and not is_rule else None,
        is_change=bool(denied) or _CHANGES.search(bare) is not None,
        is_sure_change=_CHANGES_ALL.search(bare) is not None,
        is_limit=_LIMITS.search(bare) is not None,
        has_condition=_IF.search(bare) is not None,
        is_wish=_WISHES.search(bare) is not None,
        is_plain=verb is not None or is_rule,
        shape=shape if values and not is_rule and len(stems) >= MIN_SHAPE_WORDS else None,
    )


def _is_changed(older: _Statement, newer: _Statement, *, is_sure: bool) -> bool:
    """Return whether `newer`, which says that something changed, gives another value for the same thing."""
    common = older.stems & newer.stems
    share = len(common) / (min(len(older.stems), len(newer.stems)) or 1)
    sorts = set(_other_values(older, newer))
    if not newer.denied.isdisjoint(text for _, text in older.values):
        return True
    if newer.is_wish and newer.is_sure_change and older.is_wish and common:
        return True
    if not sorts:
        return newer.is_sure_change and not older.values and len(common) > 1 and share >= SAME_SHARE
    if older.has_condition:
        return share >= SAME_RULE
    if not is_sure:
        return True
    if older.is_limit and newer.is_limit and not sorts.isdisjoint(("money", "number", "date")):
        return True
    return len(common) > 1 and share >= SURE_SHARE


def _other_values(older: _Statement, newer: _Statement) -> Iterator[str]:
    """Yield the sorts of value of which the newer statement has a different one."""
    texts = {text for _, text in newer.values}
    sorts = {sort for sort, _ in newer.values}
    for sort, text in older.values:
        if sort in sorts and text not in texts:
            yield sort
