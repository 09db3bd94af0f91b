"""Find the role of a number from the words next to it: a limit, what was requested, the prompt's part or
the output's part."""

from __future__ import annotations

from collections.abc import Sequence

from compactd.core.overflow.lexer import Lexeme
from compactd.core.overflow.vocabulary import (
    END,
    GIVEN,
    LIMIT,
    LONG,
    MODEL,
    NONE,
    OUTPUT,
    OVER,
    PACE,
    PROMPT,
    REQUEST,
    SHORTEN,
    SIZE,
    TOKENS,
    TOTAL,
    WINDOW,
    WITHIN,
    word_set,
)

MIN_ROLE_TOKENS = 64
"""The smallest number, in tokens, that can be a window. A smaller number is an ordinal, a count or a
status."""
GLUE = word_set("in of for from into the your text was were is are by to which a an total about this")
"""Words without a role of their own, which may come between a number and the noun that it counts."""
WEAK = word_set("is was were has have had requires used using")
"""Verbs that precede a limit as often as the size of the request, so that they decide nothing."""
LACKING = frozenset({"no room", "no space", "not enough", "little room", "insufficient"})
"""Words that say that room is missing. A number after them need not be a limit."""
MORE_THAN_WORDS = frozenset({"over", "above", "more than"})
"""Words before a counted number: `resulted in over N`. After a verb such as "resulted in" they do not name
a limit."""
SENT = word_set(
    "given sent received requested provided supplied submitted found counted used measured passed"
)
"""Participles that follow the size of the request: `but 9001 were given`."""
NEEDING = word_set("requires require required needs need needed")
"""Verbs before the size of the window that a request would need."""
BEARING = word_set("takes accepts accept supports support handles handle holds allows has fits tolerates")
"""Verbs whose object is the limit if their subject is a model or a window: `the model supports N`."""


def value_is_odd(value: int) -> bool:
    """Return whether a number is unlikely to be tokens: it is below `MIN_ROLE_TOKENS` or in the range of HTTP
    error statuses."""
    return value < MIN_ROLE_TOKENS or 400 <= value < 600


def has_concept_before(before: Sequence[Lexeme], concept: str) -> bool:
    """Return whether one of the last three lexemes of `before` has this concept."""
    return any(lexeme.concept == concept for lexeme in before[-3:])


def request_part(after: Sequence[Lexeme]) -> str:
    """Return the role that the words directly after a number give it: the prompt's part (`N in your
    prompt`), the output's (`N output tokens`), a limit (`N limit`), a window, or `NONE`."""
    for place, lexeme in enumerate(after):
        if place == 0 and lexeme.word == "(" and any(x.word == ")" for x in after):
            continue
        if lexeme.word in (",", ")", "/", "(", ":"):
            break
        if lexeme.concept == END:
            break
        if place + 1 < len(after) and after[place + 1].word in ("=", ":"):
            break
        if any(x.concept == PACE for x in after[place : place + 3]):
            return LIMIT
        if lexeme.concept in (PROMPT, REQUEST) and lexeme.word not in (
            "request",
            "requests",
            "text",
            "sequence",
        ):
            return PROMPT
        if lexeme.word in ("functions", "function", "tools", "tool"):
            return PROMPT
        if lexeme.concept == OUTPUT or lexeme.word in ("response", "responses"):
            return OUTPUT
        if lexeme.concept in (LIMIT, PACE) or lexeme.word in ("at most", "at maximum"):
            return LIMIT
        if lexeme.concept == WINDOW:
            return WINDOW if place < 3 else NONE
        if lexeme.concept not in (TOKENS, NONE) or (
            lexeme.concept == NONE and lexeme.word not in GLUE and lexeme.word != "-"
        ):
            break
    return NONE


def role_before(before: Sequence[Lexeme]) -> tuple[str, bool]:
    """Return (role, named) for a number, judged by the words before it. `named` is true if the number is a
    limit that is called a window's or a prompt's. The nearest word decides."""
    start = 0
    for place in range(len(before) - 1, -1, -1):
        if before[place].concept == END:
            start = place + 1
            break
    words = before[start:]
    role, named, subject = NONE, False, NONE
    strength, over = 0, False
    for place, lexeme in enumerate(words):
        concept = lexeme.concept
        if (
            lexeme.word in BEARING
            and place
            and (
                words[place - 1].concept in (MODEL, WINDOW)
                or (words[place - 1].word in ("it", "which") and lexeme.word != "has")
            )
        ):
            role, strength, named = LIMIT, 2, True
            continue
        if lexeme.word == ":" and over:
            role, strength, named = NONE, 0, False
        if concept == OVER and lexeme is words[-1] and role == GIVEN and lexeme.word in MORE_THAN_WORDS:
            continue
        if lexeme.word in ("budget", "allowance") and place and words[place - 1].concept in (TOKENS, PROMPT):
            role, strength = LIMIT, 2
            continue
        if (
            concept == WINDOW
            and role != LIMIT
            and any(x.word in NEEDING for x in words[max(0, place - 3) : place])
        ):
            role, strength = GIVEN, 2
            continue
        if concept != NONE:
            over = concept == OVER and lexeme.word not in (">", "hit", "reached")
        if lexeme.word in LACKING:
            continue
        if concept in (WINDOW, LIMIT, WITHIN, OVER) or (concept == PACE and "limit" in lexeme.word):
            if concept == LIMIT and lexeme.word in ("supported", "available", "supports") and role == GIVEN:
                continue
            role, strength = LIMIT, 2
            named = named or concept == WINDOW
        elif concept == GIVEN and (
            lexeme.word not in WEAK or (role == LIMIT and lexeme.word == "used" and lexeme is words[-1])
        ):
            if (
                role == LIMIT
                and lexeme.word in ("containing", "requested", "received", "given")
                and words[-1] is not lexeme
                and not _is_next_to_number(words, lexeme)
            ):
                continue
            role, strength, named = (TOTAL if role == TOTAL else GIVEN), 2, False
        elif concept == TOTAL:
            if strength < 2 or role == GIVEN:
                role, strength = TOTAL, 2
        elif concept == OUTPUT:
            subject = OUTPUT
            if strength < 1:
                role = OUTPUT
        elif concept in (PROMPT, REQUEST):
            subject = PROMPT
            named = named or (role == LIMIT and concept == PROMPT)
            if strength < 1 and (
                concept == PROMPT or lexeme.word in ("request", "message", "text", "content", "query")
            ):
                role = PROMPT
        elif concept == LONG:
            role, strength, named = (OUTPUT if subject == OUTPUT else GIVEN), 2, False
        elif concept in (SIZE, TOKENS) and role == NONE:
            role = SIZE
    if (
        role in (SIZE, NONE, PROMPT)
        and words
        and words[-1].word == "to"
        and any(x.concept == SHORTEN for x in words)
    ):
        role = LIMIT
    if role == SIZE:
        role = NONE
    if role == LIMIT and subject == PROMPT and words and not named:
        named = True
    if role == GIVEN and subject == OUTPUT and not any(lexeme.concept == PROMPT for lexeme in words):
        role = OUTPUT
    return role, named


def _is_next_to_number(words: Sequence[Lexeme], lexeme: Lexeme) -> bool:
    """Return whether only filler words follow `lexeme` in `words`, which end at the number."""
    place = next(i for i in range(len(words) - 1, -1, -1) if words[i] is lexeme)
    return all(
        x.concept in (NONE, TOKENS, PROMPT, REQUEST, SIZE)
        and (x.concept != NONE or x.word in GLUE or not x.word.isalpha())
        for x in words[place + 1 :]
    )


def is_followed_by_sent(after: Sequence[Lexeme], following: Lexeme | None) -> bool:
    """Return whether a participle directly after a number says that this many were sent: `9001 were
    given`. The participle does not count if it begins the next phrase. `following` is the next number."""
    words = [x for x in after if x.concept != TOKENS and x.word not in ("were", "was", "are", "have", "been")]
    if not words or words[0].word not in SENT or words[0].concept != GIVEN:
        return False
    if len(words) == 1:
        return following is None or following.concept == END
    behind = words[1]
    return behind.concept == END or behind.word in (",", ")", "but", "for", "and")
