"""Find the meaning of a provider's error message: what was too long, against which limit, and in which unit.

A message is split into clauses of lexemes, each with a concept (`vocabulary.py`). Each clause may make claims
(`claims.py`). All claims together, in the order of evidence in `_kind`, give the kind of failure.
No whole sentence of a provider is stored.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from compactd.core.overflow.claims import claims_of, is_counted
from compactd.core.overflow.lexer import Lexeme, lexemes
from compactd.core.overflow.number_roles import MIN_ROLE_TOKENS
from compactd.core.overflow.numbers import Figures, figures
from compactd.core.overflow.vocabulary import (
    AUTH,
    BUSY,
    BYTES,
    COUNTED,
    EMBEDDING,
    END,
    FILTER,
    GIVEN,
    INVALID,
    LIMIT,
    LONG,
    MEDIA,
    MODEL,
    MONEY,
    NUMBER,
    OUTPUT,
    OVER,
    PACE,
    PLAN,
    PROMPT,
    REQUEST,
    SERVER,
    SHORTEN,
    SIZE,
    TOKENS,
    TOOLED,
    TOTAL,
    WINDOW,
)

FailureKind = Literal[
    "overflow",
    "output_limit",
    "rate_limit",
    "payload_too_large",
    "auth",
    "quota",
    "content_filter",
    "invalid_request",
    "server",
    "other",
]
"""What kind of failure an error reports."""

UNSERVED = "a model that does not serve this"
"""The reason given if a model or endpoint does not offer what was requested."""
STATEMENTS = ("the context window is stated", "the prompt's limit is stated")
"""The reasons given if a message only states a limit and does not say that it was exceeded."""
ALREADY_CUT_WORDS = frozenset(
    {
        "truncated",
        "truncating",
        "summarizing",
        "summarized",
        "reduced",
        "kept",
        "compacted",
        "compacting",
        "removed",
        "dropped",
        "trimmed",
    }
)
"""Words which say that something was already cut."""
OUGHT = frozenset({"must", "must be", "should be", "should", "cannot", "not", "disabled", "off"})
"""Words which say that something should be done or was not done. Next to them, a word of `ALREADY_CUT_WORDS`
is advice."""
PASSIVE = frozenset({"been", "were"})
"""Auxiliary verbs before a word of `ALREADY_CUT_WORDS`: `has been truncated`."""
STOPPED = frozenset({"deactivated", "discontinued", "delisted", "retired", "decommissioned", "sunset"})
"""Words which say that a model is no longer served."""
MISSING_MODEL_WORDS = STOPPED | {"not found", "not exist", "does not", "exist", "nonexistent", "unknown"}
"""Words which say that a model does not exist, or no longer does."""
MEMORY = frozenset({"memory", "ram", "vram", "gpu", "prefill", "kv", "kv cache", "cache memory", "cuda"})
"""Words for what a server measures in gigabytes."""
INCOMPLETE = re.compile(
    r"(?i)\bincomplete\b(?:[^.\n]|\.(?=\w)){0,120}\b(?:max|maximum)[_ ]?"
    r"(?:(?:output|completion|new)[_ ]?)?tokens\b"
)
"""Matches the reason given for an answer that the output cap cut (OpenAI's Responses,
`incomplete_details.reason`)."""
GIGABYTES = frozenset({"gb", "gib", "mb", "mib"})
CAPPED = ("a cap in bytes or characters", "a short field's cap")
"""The reasons given for a text that is too long in characters."""
NEARLY = 1.25
"""If a message names a window and a request that is smaller by at most this factor, the two numbers are kept
as they are (see `_in_order`)."""
REMAINING_WORDS = frozenset({"remaining", "left"})
"""Words for what is left of the window."""
FREE_SPACE_WORDS = frozenset({"remaining", "left", "available"})
"""Words for what the prompt leaves free of the window."""
MONTHS = frozenset({"monthly", "weekly", "month", "week"})
"""Words for the periods of a plan's allowance."""
REACHED = frozenset(
    {"limit", "reached", "requests limit", "request limit", "exceeded", "exceeds", "exhausted"}
)
"""Words which say that an allowance is used up."""
RATED = frozenset(
    {"per minute", "per second", "per hour", "rate limit", "rate", "tpm", "rpm", "too many requests"}
)
"""Words about a rate limit. If a message contains one, the month in it belongs to an advertisement."""
SHORT = 14
"""A message with fewer lexemes than this and two counts of tokens is about the prompt, even if it does not
name the prompt."""
RETRY_WORDS = frozenset({"retry", "again", "retrying", "resend", "resubmit"})
"""Words that ask the user to send the same request again, shortened."""
MAX_MESSAGE_CHARS = 3000
"""How many characters of a message are read: three quarters of them from the beginning, one quarter from
the end. A longer message repeats the request."""


class Meaning(Struct, frozen=True, kw_only=True):
    """The meaning of a message."""

    kind: FailureKind | None
    """The kind of failure; None if the words do not decide."""
    why: str = ""
    """A short phrase for people that says what decided."""
    figures: Figures = Figures()
    """The numbers of tokens in the message."""
    curable: bool = True
    """Whether the limit is that of a model that writes answers. False for an embedding model's."""
    needs_refusal: bool = False
    """Whether the words only state a limit, or say that something was already cut. They are about an
    overflow only if a server refused with them; otherwise they are a report."""
    clear: bool = False
    """Whether words decided, such as a named window or "too long", and not only two numbers."""


NOTHING = Meaning(kind=None)
"""The meaning of a message that says nothing about a failure."""
NEGATIVE = re.compile(r"(?<![\w.\-\d])-\d{1,9}\b(?!-)")
"""Matches a negative integer."""


def read_meaning(text: str, *, embeds: bool = False) -> Meaning:
    """Return the meaning of `text`, one message without its wrappers. `embeds` says that an embedding
    model was called. O(characters)."""
    found = lexemes(
        text
        if len(text) <= MAX_MESSAGE_CHARS
        else f"{text[: MAX_MESSAGE_CHARS * 3 // 4]}\n{text[-MAX_MESSAGE_CHARS // 4 :]}"
    )
    if not found:
        return NOTHING
    clauses = _clauses(found)
    everywhere = {lexeme.concept for lexeme in found}
    if COUNTED in everywhere and not any(
        {COUNTED, NUMBER} <= {lexeme.concept for lexeme in clause} for clause in clauses
    ):
        everywhere.discard(COUNTED)
    words = {lexeme.word for lexeme in found}
    embeds = embeds or EMBEDDING in everywhere
    claims: dict[str, str] = {}
    for clause in clauses:
        for claim, why in claims_of(clause):
            claims.setdefault(claim, why)
    if "prompt" in claims and not everywhere & {TOKENS, WINDOW} and any(map(is_counted, clauses)):
        claims["counted"] = "a count of items"
    if SERVER in everywhere and "deadline" in text:
        return Meaning(kind="server", why="a deadline passed")
    counted = everywhere & {TOKENS, OUTPUT, PROMPT, WINDOW} or words & {"tpm", "tpd", "itpm", "otpm"}
    found_figures = figures(found) if counted or "tokens" in claims else Figures()
    kind, why, clear = _kind(text, claims, everywhere, words, found_figures, found)
    if kind is None:
        return NOTHING
    if kind == "overflow" and embeds:
        return Meaning(kind="invalid_request", why="an embedder's input limit", curable=False)
    if kind not in ("overflow", "output_limit", "rate_limit", "quota"):
        found_figures = Figures()
    if "room" in claims:
        found_figures = Figures()
    if kind == "overflow" and why not in STATEMENTS:
        found_figures = (
            _without_remaining(found_figures) if words & REMAINING_WORDS else _in_order(found_figures)
        )
    if kind == "rate_limit" and "requested" not in words:
        found_figures = Figures(limit=found_figures.limit)
    if kind == "overflow" and found_figures.limit is not None and not everywhere & {TOKENS, SIZE}:
        found_figures = _without_number_of_error(found_figures, found)
    only_stated = kind == "overflow" and why in STATEMENTS
    cut = (
        kind == "overflow"
        and bool(words & ALREADY_CUT_WORDS)
        and not words & OUGHT
        and LONG not in everywhere
    )
    cut = cut or ("truncated" in words and bool(words & PASSIVE) and not words & OUGHT)
    if only_stated and found_figures.requested is not None and found_figures.limit is not None:
        only_stated = found_figures.requested < found_figures.limit
    return Meaning(
        kind=kind,
        why=why,
        figures=found_figures,
        clear=clear,
        curable=not embeds,
        needs_refusal=cut or (only_stated and SHORTEN not in everywhere),
    )


def _without_number_of_error(stated: Figures, found: Sequence[Lexeme]) -> Figures:
    """Return `stated`, or no figures if its only number is an error number: it is in parentheses and no
    window has that size (MiniMax: `limit (2013)`)."""
    numbers = [place for place, lexeme in enumerate(found) if lexeme.concept == NUMBER]
    if len(numbers) != 1 or found[numbers[0] - 1].word != "(" or stated.limit is None:
        return stated
    odd = stated.limit < 10_000 and stated.limit % 50 and all((stated.limit + i) % 64 for i in (-1, 0, 1))
    return Figures() if odd else stated


def _without_remaining(stated: Figures) -> Figures:
    """Return the figures of an error that says how much of the window is left. If the two numbers are a limit
    and a smaller one, the smaller one is what is left, not the request, and only the limit is kept."""
    if stated.limit is None or stated.requested is None or stated.requested > stated.limit:
        return stated
    return Figures(limit=max(stated.limit, stated.requested))


def _in_order(stated: Figures) -> Figures:
    """Return the figures of an error about the prompt alone. If the limit is larger than what was sent, the
    two numbers are swapped. A limit that is named as a window's is never swapped: then what was sent is kept
    if it is close to the limit (`NEARLY`), and otherwise dropped."""
    if stated.output is not None or stated.limit is None or stated.requested is None:
        return stated
    if stated.requested >= stated.limit or stated.requested < MIN_ROLE_TOKENS:
        return stated
    if stated.by_window and stated.requested * NEARLY >= stated.limit:
        return stated
    if stated.by_window:
        return Figures(limit=stated.limit, by_window=True)
    return Figures(limit=stated.requested, requested=stated.limit, input=stated.limit)


def _kind(
    text: str,
    claims: dict[str, str],
    everywhere: set[str],
    words: set[str],
    stated: Figures,
    found: Sequence[Lexeme],
) -> tuple[FailureKind | None, str, bool]:
    """Return (kind, reason, clear): `clear` is `Meaning.clear`. The order of the checks is the order of
    evidence. `claims` are the claims of all clauses with their reasons. `everywhere` are the concepts and
    `words` the words of the message `text`, `stated` are its figures, `found` its lexemes."""
    paced = PACE in everywhere
    if "window" in claims:
        return "overflow", claims["window"], True
    if "room" in claims:
        return "overflow", claims["room"], True
    if words & GIGABYTES and words & MEMORY and not everywhere & {TOKENS, MEDIA}:
        return "server", "the provider's memory", False
    if {"key", "limit"} <= words and OVER in everywhere and not everywhere & {PROMPT, WINDOW, INVALID}:
        return "quota", "money or a plan's allowance", False
    if FILTER in everywhere and not ({"prompt", "tokens"} & claims.keys()):
        return "content_filter", "refused for its content", False
    if paced or MONEY in everywhere or PLAN in everywhere:
        kind = _pace_or_money(found, everywhere, words, claims)
        if kind is not None:
            return kind, "pace" if kind == "rate_limit" else "money or a plan's allowance", False
    if "tooled" in claims:
        return "other", "a cap on a tool's result", False
    if "memory" in claims:
        return "server", "the provider's memory", False
    if "prompt" in claims and not everywhere & {TOKENS, WINDOW}:
        if "counted" in claims:
            return "invalid_request", claims["counted"], False
        capped = claims.get("payload", claims.get("count"))
        if capped in CAPPED:
            return "payload_too_large", capped, False
    if "prompt" in claims:
        return "overflow", claims["prompt"], True
    passed = stated.limit is not None and stated.requested is not None and stated.requested > stated.limit
    about_prompt = bool(everywhere & {PROMPT, REQUEST, TOTAL, GIVEN}) or len(found) < SHORT
    output_alone = "output" in claims and stated.input is None and PROMPT not in everywhere
    evident = passed or SHORTEN in everywhere or "output" not in claims
    if "response" in words and "truncated" in words and not everywhere & {PROMPT, WINDOW, TOOLED}:
        return "output_limit", "the answer was cut at its cap", False
    if "statement" in claims and evident and not output_alone:
        return "overflow", claims["statement"], True
    if "tokens" in claims:
        return "overflow", claims["tokens"], True
    if "output" in claims:
        if "negative" in claims or (OUTPUT in everywhere and NEGATIVE.search(text) and "got" in text):
            return "overflow", "the prompt left no room for an answer", True
        if passed and PROMPT in everywhere and stated.input is not None and stated.output is not None:
            return "overflow", "prompt and output exceed the limit", True
        return "output_limit", claims["output"], False
    if (OUTPUT in everywhere or (everywhere & {WINDOW, TOKENS} and words & FREE_SPACE_WORDS)) and (
        NEGATIVE.search(text) or "negative" in words
    ):
        return "overflow", "the prompt left no room for an answer", True
    if BUSY in everywhere and not everywhere & {BYTES, MEDIA, TOKENS, PROMPT}:
        return "server", "the provider's own failure", False
    first = next((claim for claim in claims if claim in ("payload", "count")), None)
    if first == "payload":
        if TOKENS in everywhere and BYTES not in everywhere and MEDIA not in everywhere:
            return "overflow", "the request is too large, in tokens", True
        return "payload_too_large", claims["payload"], False
    if first == "count":
        return "invalid_request", claims["count"], False
    if (
        passed
        and about_prompt
        and not words & ALREADY_CUT_WORDS
        and "->" not in words
        and not everywhere & {BYTES, MEDIA, COUNTED}
        and (
            everywhere & {TOKENS, SHORTEN}
            or (PROMPT in everywhere and any(word.endswith("tokens") for word in words))
        )
    ):
        return "overflow", "more tokens than the limit", False
    sized = bool(words & {"length", "size"} or {TOKENS, NUMBER} <= everywhere)
    if {SHORTEN, PROMPT} <= everywhere and sized and not everywhere & {BYTES, MEDIA, PACE}:
        return "overflow", "a shorter prompt is asked for", True
    if (
        SHORTEN in everywhere
        and everywhere & {WINDOW, PROMPT}
        and words & RETRY_WORDS
        and len(found) < 16
        and not everywhere & {BYTES, MEDIA, COUNTED, PACE, MONEY, PLAN, TOOLED, AUTH, INVALID}
    ):
        return "overflow", "a shorter prompt is asked for", True
    if OUTPUT in everywhere and stated.limit is not None and not everywhere & {PROMPT, WINDOW, BYTES, MEDIA}:
        return "output_limit", "the output's own cap", False
    if (
        AUTH in everywhere
        and not (MODEL in everywhere and words & MISSING_MODEL_WORDS)
        and not words & {"thinking", "thought"}
    ):
        return "auth", "key or permission", False
    answer = OUTPUT in everywhere or ({"response", "length"} <= words and LIMIT in everywhere)
    if answer and words & {"truncated", "cut"} and not everywhere & {PROMPT, WINDOW, TOOLED}:
        return "output_limit", "the answer was cut at its cap", False
    if (
        OUTPUT in everywhere
        and INCOMPLETE.search(text[:MAX_MESSAGE_CHARS]) is not None
        and WINDOW not in everywhere
    ):
        return "output_limit", "the answer was cut at its cap", False
    if SERVER in everywhere or BUSY in everywhere:
        return "server", "the provider's own failure", False
    if INVALID in everywhere or (MODEL in everywhere and words & STOPPED):
        return "invalid_request", UNSERVED if MODEL in everywhere else "a malformed request", False
    return None, "", False


def _pace_or_money(
    found: Sequence[Lexeme], everywhere: set[str], words: set[str], claims: dict[str, str]
) -> FailureKind | None:
    """Return `rate_limit`, `quota` or `invalid_request` for a message with words about pace, money or a
    plan; None if these words do not decide. The first such word counts, because the others are advice and
    advertising."""
    if MONEY in everywhere and "insufficient" in words and words & {"balance", "credits", "credit", "funds"}:
        return "quota"
    if (
        "out of" in words
        and words & {"messages", "requests", "usage", "codex messages"}
        and "prompt" not in claims
    ):
        return "quota"
    first = next(lexeme for lexeme in found if lexeme.concept in (PACE, MONEY, PLAN))
    if first.word.endswith("wait"):
        return None if {"prompt", "window"} & claims.keys() or SERVER in everywhere else "rate_limit"
    if first.concept == PACE:
        return "rate_limit"
    if PACE in everywhere and first.word in MONTHS and words & REACHED and not words & RATED:
        return "quota"
    if PACE in everywhere and first.concept == PLAN:
        return "quota" if "usage" in first.word or "current" in words else "rate_limit"
    if first.word in ("message limit", "messages limit") and "conversation" in words and not words & MONTHS:
        return "invalid_request"
    if first.word in ("message limit", "messages limit") and "count" in claims:
        return None
    if (
        first.concept == PLAN
        and ({"prompt"} & claims.keys())
        and first.word in ("upgrade", "plan", "tier", "plans")
    ):
        return None
    if (
        "$" not in words
        and first.word in ("budget", "budgets", "upgrade")
        and (TOKENS in everywhere or "cost" not in words)
    ):
        return None
    return "quota"


def _clauses(found: Sequence[Lexeme]) -> list[list[Lexeme]]:
    """Split lexemes at each `END`. Empty clauses are left out."""
    clauses: list[list[Lexeme]] = [[]]
    for lexeme in found:
        if lexeme.concept == END:
            if clauses[-1]:
                clauses.append([])
        else:
            clauses[-1].append(lexeme)
    return clauses if clauses[-1] else clauses[:-1]
