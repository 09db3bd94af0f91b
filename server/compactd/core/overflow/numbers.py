"""Find what the numbers of an error are: the limit, and what was compared with it, in tokens.

Each number gets its role from the words and signs next to it (`maximum … is N`, `requested N`, `N in the
completion`, `A + B > C`), never from its position in the sentence. Ordinals, status codes, and numbers of
bytes, characters, pixels or money have no role.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

from compactd.core.overflow.lexer import Lexeme
from compactd.core.overflow.number_roles import (
    MIN_ROLE_TOKENS,
    has_concept_before,
    is_followed_by_sent,
    request_part,
    role_before,
    value_is_odd,
)
from compactd.core.overflow.vocabulary import (
    BY,
    BYTES,
    COUNTED,
    END,
    GIVEN,
    LIMIT,
    MEDIA,
    MODEL,
    MONEY,
    NONE,
    NUMBER,
    OUTPUT,
    OVER,
    PLUS,
    PROMPT,
    REQUEST,
    TOKENS,
    TOTAL,
    WINDOW,
    WITHIN,
    word_set,
)

MAX_WORDS_BEFORE = 12
"""How many lexemes before a number may give it its role."""
MAX_WORDS_AFTER = 5
"""How many lexemes after a number may give it its role."""
OTHER_UNITS = (BYTES, MEDIA, MONEY, COUNTED)
"""Concepts after a number that are units other than tokens."""
UNITS = word_set(
    "ms s sec secs second seconds minute minutes min hour hours day days times retries attempts usd"
    " dollars percent requests messages turns items tools pages files images characters bytes retry"
)
"""Words after a number that are units other than tokens."""
STATUSES = word_set(
    "status code http error errno statuscode httpstatuscode version line column port api id took task account"
)
"""Words before a number that is a status, a place, a version or an id."""


CODES = frozenset({"code", "status", "errno", "statuscode", "httpstatuscode", "errcode", "errorcode"})
"""Words before a colon and an error number."""
AMONG = frozenset({"/", "of", "vs", "versus", "against"})
"""Words and signs between the tokens used and the tokens available: `9001/8192`, `9001 vs 8192`."""
DAILY = frozenset({"per day", "per hour", "day", "per month"})
"""Words after a number that limits the use per day, hour or month, not one request."""
ADDENDS = (TOKENS, PROMPT, OUTPUT)
"""Concepts that may come between a number and a plus sign."""
NEARLY = frozenset({"about", "at least", "approximately", "roughly", "another"})
"""Words that may come between "by" and an excess: `exceeded by about N`."""
BOUNDS = frozenset({",", "-", "and", "to"})
"""Signs and words between the two bounds of a range: `[2, 4096]`."""


class Figures(Struct, frozen=True, kw_only=True):
    """The numbers of tokens that an error names. Each is None if the error does not name it."""

    limit: int | None = None
    """The limit that was exceeded."""
    requested: int | None = None
    """Everything that was compared with the limit."""
    input: int | None = None
    """The prompt's part of `requested`. If the error names several parts of the prompt, their sum."""
    output: int | None = None
    """The part of `requested` that was reserved for the answer."""
    lower_bound: bool = False
    """Whether the error says "at least": the true `requested` may be higher."""
    by_window: bool = False
    """Whether the error says that the limit is a window's or a prompt's."""


class _Role(Struct):
    """A number and its role."""

    role: str
    """A concept of `vocabulary.py`, such as `LIMIT`, `PROMPT`, `OUTPUT`, `TOTAL`, `GIVEN`, `BY` (an
    excess) or `NONE`."""
    value: int
    at: int
    """The index of the number's lexeme."""
    named: bool = False
    """Whether the number is a limit that is called a window's or a prompt's."""


def figures(found: Sequence[Lexeme]) -> Figures:
    """Return the numbers of tokens that one message names. O(lexemes)."""
    roles = _roles(found)
    limits = [r for r in roles if r.role == LIMIT]
    inputs = [r.value for r in roles if r.role == PROMPT]
    outputs = [r.value for r in roles if r.role == OUTPUT]
    totals = [r.value for r in roles if r.role in (TOTAL, GIVEN)]
    excess = [r.value for r in roles if r.role == BY]
    loose = [r.value for r in roles if r.role == NONE]
    output = outputs[0] if outputs else None

    limit = _limit(limits, inputs + totals, outputs)
    if limit is not None and not inputs and not totals and not excess:
        excess = [r.value for r in roles if r.role == NONE and r.value < limit and _is_beyond(found, r.at)]
        loose = [value for value in loose if value not in excess]
    if limit is None and loose and (inputs or totals):
        below = [v for v in loose if v < max(inputs + totals)]
        limit = max(below) if below and max(below) >= MIN_ROLE_TOKENS else None
        loose = [v for v in loose if v != limit]
    if limit is not None and not inputs and not totals:
        above = [v for v in loose if v > limit]
        others = [r.value for r in limits if r.value > limit]
        totals = above[:1] or others[:1]
    if (
        limit is None
        and not limits
        and not inputs
        and not totals
        and len(loose) == 1
        and loose[0] >= MIN_ROLE_TOKENS
    ):
        totals = loose
    if limit is None and not inputs and not totals and len(set(loose)) == 2 and min(loose) >= MIN_ROLE_TOKENS:
        totals, limit = [max(loose)], min(loose)

    requested, prompt = _requested_sizes(inputs, totals, output, limit)
    if limit is not None and requested is not None and requested < limit and output is None:
        beyond = next((x for x in roles if x.value == requested and _is_beyond(found, x.at)), None)
        if beyond is not None:
            requested = prompt = limit + requested
    if requested is None and limit is not None and excess:
        requested = limit + excess[0]
    if prompt is None and requested is not None and output is not None and requested >= output:
        prompt = requested - output
    if not limits and requested is not None and requested < MIN_ROLE_TOKENS:
        requested = prompt = None
    words = {lexeme.word for lexeme in found}
    return Figures(
        limit=limit,
        requested=requested,
        input=prompt,
        output=output,
        lower_bound="at least" in words,
        by_window=any(r.named for r in limits if r.value == limit),
    )


def _limit(limits: list[_Role], asked: list[int], outputs: list[int]) -> int | None:
    """Return the limit among `limits`, the numbers with the role of a limit; None if all are too small. A
    window's limit is preferred to others, and a limit that was exceeded to one that was not. `asked` and
    `outputs` are the sizes of the request and of its output that the error names."""
    fitting = [r for r in limits if r.value >= MIN_ROLE_TOKENS]
    if not fitting:
        return None
    named = [r for r in fitting if r.named] or fitting
    most = sum(outputs) + max(asked, default=0)
    two = fitting if not any(value_is_odd(r.value) for r in fitting) else named
    if not most and len({r.value for r in two}) == 2:
        return min(r.value for r in two)
    passed = [r for r in named if r.value < most] or [r for r in fitting if r.value < most]
    return (passed or named)[0].value


def _requested_sizes(
    inputs: list[int], totals: list[int], output: int | None, limit: int | None
) -> tuple[int | None, int | None]:
    """Return (everything that was compared with the limit, the prompt's part of it). `inputs` are the parts
    of the prompt that the error names, `totals` the sizes of the whole request, and `output` is the output's
    part."""
    prompt = sum(inputs) if inputs else None
    if totals:
        total = max(totals)
        if (
            prompt is not None
            and output is not None
            and prompt + output > total
            and max(inputs) + output == total
        ):
            prompt = max(inputs)
        if prompt is not None and output is None and limit is not None and prompt > limit >= total:
            return prompt, prompt
        if prompt is not None and total < prompt and max(inputs) != total:
            total = prompt
        if (
            prompt is None
            and output is not None
            and total <= (limit or total)
            and total + output > (limit or 0)
        ):
            return total + output, total
        if prompt is not None and output is not None and total == prompt and total <= (limit or 0):
            return total + output, total
        return total, prompt if output is not None or prompt == total else (
            prompt if prompt == total else total
        )
    if prompt is None:
        return None, None
    if output is not None:
        return prompt + output, prompt
    return prompt, prompt


def _roles(found: Sequence[Lexeme]) -> list[_Role]:
    """Return the numbers that may be tokens, with their roles, in order. A value occurs twice only if it
    has two roles."""
    places = [i for i, lexeme in enumerate(found) if lexeme.concept == NUMBER]
    roles: list[_Role] = []
    last = -1
    for order, i in enumerate(places):
        following = places[order + 1] if order + 1 < len(places) else len(found)
        value = found[i].value
        before = found[max(last + 1, i - MAX_WORDS_BEFORE) : i]
        after = found[i + 1 : min(following, i + 1 + MAX_WORDS_AFTER)]
        role, named = _role(before, after, found, i, following)
        bounds = value < MIN_ROLE_TOKENS and following == i + 2 < len(found) and found[i + 1].word in BOUNDS
        if role == "-" or value <= 1 or bounds or _is_counted_off(found, i):
            last = last if value <= 1 or bounds else i
            continue
        if role == LIMIT and roles and roles[-1].role == LIMIT and _is_what_passed(before):
            role, named = GIVEN, False
        last = i
        known = next((r for r in roles if r.value == value), None)
        if known is None:
            roles.append(_Role(role, value, i, named))
        elif known.role == NONE or (named and role == LIMIT == known.role):
            known.role, known.named = role, named
        elif (role == LIMIT and known.role != LIMIT and (named or known.role in (PROMPT, GIVEN))) or (
            role == OUTPUT and known.role == LIMIT
        ):
            roles.append(_Role(role, value, i, named))
    return roles


def _role(
    before: Sequence[Lexeme], after: Sequence[Lexeme], found: Sequence[Lexeme], i: int, following: int
) -> tuple[str, bool]:
    """Return (role, named) of the number at `i`. `named` is true if the number is a limit that is called a
    window's or a prompt's. The role is `-` if the number does not count tokens."""
    previous = before[-1] if before else None
    if previous is not None and (
        previous.word in STATUSES
        or (previous.word in ("=", "#") and len(before) > 1 and before[-2].word in STATUSES)
        or (previous.word == ":" and len(before) > 1 and before[-2].word in CODES)
    ):
        return "-", False
    behind = after[0] if after else None
    counted = any(lexeme.concept == TOKENS for lexeme in after[:2])
    if behind is not None and not counted and (behind.concept in OTHER_UNITS or behind.word in UNITS):
        return "-", False
    if any(lexeme.word in ("left", "remaining") for lexeme in after[:2] if counted):
        return "-", False
    if previous is not None and previous.word in ("remaining", "left") and behind is not None:
        return "-", False
    if behind is not None and behind.word in DAILY:
        return "-", False
    if previous is not None and (
        previous.concept == BY or (previous.word in NEARLY and len(before) > 1 and before[-2].concept == BY)
    ):
        return BY, False
    # Check signs before words: in "A + B > C", the role of each number is clear.
    sign = found[i - 1].concept if i else NONE
    ahead = found[i + 1] if i + 1 < len(found) else None
    skip = 1 if ahead is not None and (ahead.concept == TOKENS or ahead.word == ")") else 0
    if ahead is not None and i + 3 < following and found[i + 1 : i + 5]:
        plus = next((j for j in range(i + 1, min(i + 5, following)) if found[j].concept == PLUS), None)
        if plus is not None and all(x.concept in ADDENDS or x.word in "()" for x in found[i + 1 : plus]):
            skip = plus - i - 1
    next_sign = found[i + 1 + skip] if i + 1 + skip < len(found) else None
    if previous is not None and previous.word in (">", "<=") and i >= 2:
        return LIMIT, any(
            x.concept in (WINDOW, PROMPT) for x in found[max(0, i - 16) : i]
        ) or previous.word == ">"
    if previous is not None and previous.word in AMONG and i >= 2:
        rest = found[i - 2].word in ("left", "remaining")
        if found[i - 2].concept == NUMBER or (
            rest and any(x.concept == NUMBER for x in found[max(0, i - 5) : i])
        ):
            return LIMIT, True
    if next_sign is not None and next_sign.word in AMONG and following == i + 2 + skip < len(found):
        return PROMPT, False
    if sign == NONE and found[i - 1].word == "=" and _added_part(found[max(0, i - 16) : i]) is not None:
        return TOTAL, False
    if next_sign is not None and next_sign.word == ">":
        return (OUTPUT, False) if sign == PLUS or _added_part(before) == OUTPUT else (PROMPT, False)
    if next_sign is not None and next_sign.concept == PLUS and not has_concept_before(before, LIMIT):
        return (OUTPUT if has_concept_before(before, OUTPUT) else PROMPT), False
    if sign == PLUS:
        return (OUTPUT, False) if not any(x.concept == PROMPT for x in after[:3]) else (PROMPT, False)
    if (added := _added_part(before)) in (PROMPT, OUTPUT):
        return added, False

    if counted and _covers_both(after) and not any(x.concept == GIVEN for x in before):
        return LIMIT, True
    part = request_part(after)
    if is_followed_by_sent(after, found[following] if following < len(found) else None):
        return GIVEN, False
    role, named = role_before(before)
    if role == LIMIT and _is_compared(before, after, found[i + 1 : following]) and following < len(found):
        return GIVEN, False
    if role == LIMIT:
        if (
            part in (PROMPT, OUTPUT)
            and not named
            and not any(x.concept in (LIMIT, WITHIN, OVER) for x in before[-4:])
        ):
            return part, False
        return LIMIT, named or part == WINDOW
    next_named = (
        following < len(found) and following - i <= 4 and found[following - 1].concept in (LIMIT, WINDOW)
    )
    if part in (LIMIT, WINDOW) and next_named and role in (PROMPT, GIVEN, TOTAL):
        return role, False
    if part == LIMIT:
        return LIMIT, True
    if part == WINDOW:
        bound = role != GIVEN or _is_a_models(before) or any(x.word == "for" for x in before[-3:])
        return (LIMIT, True) if bound else (GIVEN, False)
    heading = role == GIVEN and behind is not None and behind.word == ":"
    if (
        not counted
        and part != OUTPUT
        and (role in (NONE, PROMPT) or heading)
        and value_is_odd(found[i].value)
    ):
        return "-", False
    if part in (PROMPT, OUTPUT) and role != TOTAL:
        return part, False
    return role, False


def _is_compared(before: Sequence[Lexeme], after: Sequence[Lexeme], between: Sequence[Lexeme]) -> bool:
    """Return whether the number is a length that exceeds the limit named after it: `sequence length N is
    larger than … M`."""
    if any(x.concept in (LIMIT, OVER, WITHIN) or x.word in ("budget", "allowance") for x in before):
        return False
    if any(x.word == ":" or x.concept == END for x in between):
        return False
    if any(x.word == "exceeded" and y.concept == BY for x, y in pairwise(between)):
        return False
    return any((x.concept == OVER and "than" in x.word) or x.word.startswith("exceed") for x in after)


def _covers_both(after: Sequence[Lexeme]) -> bool:
    """Return whether the words after a number say that it is for prompt and answer together: `4096 tokens
    for question and answer`."""
    words = [lexeme.word for lexeme in after]
    has = {lexeme.concept for lexeme in after}
    return "for" in words and "and" in words and OUTPUT in has and bool(has & {PROMPT, REQUEST})


def _added_part(words: Sequence[Lexeme]) -> str | None:
    """Return the concept of a number that is added to another, judged by the words after the plus sign: `+
    max new tokens (N)`. None if `words` has no plus sign, or a comparison follows it."""
    part = None
    if not any(lexeme.concept == PLUS for lexeme in words):
        return None
    for lexeme in words:
        if lexeme.concept == PLUS:
            part = NONE
        elif lexeme.concept in (OVER, WITHIN, END):
            part = None
        elif part is not None and lexeme.concept in (PROMPT, OUTPUT):
            part = lexeme.concept
        elif part == NONE and lexeme.word in ("draft", "reserve", "reserved"):
            part = OUTPUT
    return part


def _is_counted_off(found: Sequence[Lexeme], i: int) -> bool:
    """Return whether the number at `i` is small and counts attempts: `attempt 3/3`."""
    if found[i].value >= MIN_ROLE_TOKENS:
        return False
    beside = [found[j].value for j in (i - 2, i + 2) if 0 <= j < len(found) and found[j].concept == NUMBER]
    signs = [found[j].word for j in (i - 1, i + 1) if 0 <= j < len(found)]
    return bool(AMONG.intersection(signs)) and any(value < MIN_ROLE_TOKENS for value in beside)


def _is_what_passed(before: Sequence[Lexeme]) -> bool:
    """Return whether this number exceeded the limit named before it: `limit of N exceeded (M)`."""
    return any(x.concept == OVER and x.word in ("exceeded", "reached") for x in before) and not any(
        x.concept in (LIMIT, WINDOW, WITHIN, BY, END) or "than" in x.word for x in before
    )


def _is_a_models(before: Sequence[Lexeme]) -> bool:
    """Return whether the last thing that the words before a number name is a model, not what was sent: `was
    submitted to a model with a N-token window`. The number is then the model's limit."""
    told = [x.concept for x in before if x.concept in (MODEL, GIVEN)]
    return bool(told) and told[-1] == MODEL


def _is_beyond(found: Sequence[Lexeme], at: int) -> bool:
    """Return whether the number at `at` is the excess over the limit: `N tokens over the limit`."""
    return any(lexeme.concept == OVER and lexeme.word != ">" for lexeme in found[at + 1 : at + 4])
