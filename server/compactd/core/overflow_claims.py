"""What one clause of a refusal claims: a window, a prompt, an output, a body or a count over its limit."""

from __future__ import annotations

from collections.abc import Sequence

from compactd.core.overflow_vocabulary import (
    BYTES,
    COUNTED,
    FIELD,
    GIVEN,
    INVALID,
    LIMIT,
    LONG,
    MEDIA,
    MODEL,
    MONEY,
    NONE,
    NUMBER,
    OUTPUT,
    OVER,
    PACE,
    PLUS,
    PROMPT,
    REQUEST,
    SHORTEN,
    SIZE,
    TOKENS,
    TOOLED,
    TOTAL,
    WINDOW,
    WITHIN,
)
from compactd.core.overflow_words import Lexeme

NEGATED = frozenset(
    {"not", "cannot", "can't", "doesn't", "won't", "no longer", "does not", "never", "don't", "no"}
)
SMALLEST = 64
"""Tokens. A smaller number is no window."""
SHORT_FIELD = 8192
"""Characters: a string capped at less is a name, a description, an id, not a conversation."""


ODD = frozenset({"parser", "lexer", "parse", "jwt", "csrf", "cookie"})
"""Words of tokens that are not a model's."""


def claims_of(clause: Sequence[Lexeme]) -> list[tuple[str, str]]:
    """(claim, why) of one clause."""
    has = {lexeme.concept for lexeme in clause}
    if PACE in has and WINDOW not in has:
        return []
    if PACE in has and not (has & {LONG, OVER}):
        return []
    words = {lexeme.word for lexeme in clause}
    if "field" in words and _field_long(clause):
        return [("count", "a short field's cap")]
    over = bool(has & {OVER, LONG})
    if SHORTEN in has and not over and NUMBER not in has:
        return []
    within = any(
        lexeme.concept == WITHIN and (lexeme.word not in ("fit", "fits") or words & NEGATED)
        for lexeme in clause
    )
    numbered = NUMBER in has
    big = any(lexeme.value >= SMALLEST for lexeme in clause)
    claims: list[tuple[str, str]] = []
    length = (
        bool(has & {SIZE, TOKENS}) and LIMIT in has and over and not (has & {BYTES, MEDIA, COUNTED, FIELD})
    )
    if length and WINDOW not in has and OUTPUT not in has:
        if MODEL in has and SIZE in has:
            claims.append(("tokens", "the model's length is said to be exceeded"))
        elif PLUS in has and sum(x.concept == NUMBER for x in clause) > 1:
            claims.append(("tokens", "a sum exceeds the limit"))
    asks_output = OUTPUT in has and not (has & {PROMPT, TOTAL, PLUS}) and not _summed(clause)
    media = MEDIA in has and TOKENS not in has
    tooled = TOOLED in has or (
        words & {"tool", "tool use"} and bool(words & {"response", "output", "result", "results"})
    )
    if tooled and (over or LIMIT in has) and not (has & {WINDOW, PROMPT}):
        return [("tooled", "a cap on a tool's result")]
    if (
        {"cache", "memory", "kv cache", "buffer", "cache memory", "vram", "cuda"} & words
        and WINDOW not in has
        and over
    ):
        return [("memory", "the provider's memory")]

    if WINDOW in has and not has & {TOKENS, MODEL, PROMPT, REQUEST, TOTAL}:
        named = {lexeme.word for lexeme in clause if lexeme.concept == WINDOW}
        if named == {"window"}:
            return claims
    if WINDOW in has and not media and PACE not in has:
        if asks_output and not numbered and any(x.word.startswith("exceed") for x in clause):
            return [("window", "what was asked for exceeds the window")]
        if (over or (within and (numbered or PROMPT in has or TOKENS in has))) and not asks_output:
            if not (BYTES in has and TOKENS not in has and PROMPT not in has):
                claims.append(("window", "the context window is named as exceeded"))
        elif (
            (big or (numbered and LIMIT in has))
            and not asks_output
            and not (INVALID in has and PROMPT not in has and not has & {LIMIT})
        ):
            claims.append(("statement", "the context window is stated"))
    if "thinking" in words and WINDOW not in has:
        return [("count", "a relation of two parameters")]
    if asks_output:
        if _typed(words) and not (over and numbered):
            claims.append(("count", "a parameter's type"))
        elif (
            over
            or within
            or (LIMIT in has and (numbered or has & {LONG, OVER}))
            or {"range", "between"} & words
        ) or (INVALID in has and (numbered or "value" in words)):
            claims.append(("output", "the output's own cap"))
        return claims
    if BYTES in has and not (TOKENS in has and WINDOW in has):
        if over or within or LIMIT in has:
            if _short(clause):
                claims.append(("count", "a short field's cap"))
            else:
                claims.append(("payload", "a cap in bytes or characters"))
        return claims
    if media:
        if over or within or LIMIT in has:
            sized = (
                "pixels" not in words and bool({"size", "file size"} & words) and "dimensions" not in words
            )
            claims.append(
                ("payload", "a file's size") if sized and LONG in has else ("count", "a cap on media")
            )
        return claims
    if "string" in words and over and "prompt" not in words and TOKENS not in has:
        claims.append(
            ("count", "a short field's cap") if _short(clause) else ("payload", "a string's length")
        )
        return claims
    if (
        COUNTED in has
        and TOKENS not in has
        and WINDOW not in has
        and (over or within)
        and not _prompt_long(clause)
    ):
        claims.append(("count", "a count of items"))
        return claims

    if (
        words & ODD or ("value" in words and "error" not in words and TOKENS not in has)
    ) and REQUEST not in has:
        return claims
    prompt = PROMPT in has or (
        {"message", "request", "query", "conversation", "text", "content"} & words and TOKENS in has
    )
    if prompt and over and MONEY not in has:
        if LONG in has and "too many" in words and TOKENS not in has:
            claims.append(("count", "a count of messages"))
        elif (
            LONG in has
            or has & {LIMIT, MODEL, TOKENS, SIZE, NUMBER}
            or (not words <= {""} and OVER in has and len(clause) <= 8 and INVALID not in has)
        ):
            claims.append(("prompt", "the prompt is said to be too long"))
    elif (PROMPT in has or TOTAL in has) and within and numbered and has & {TOKENS, SIZE, LIMIT, OUTPUT}:
        claims.append(("prompt", "the prompt's bound is told"))
    elif (
        PROMPT in has
        and numbered
        and has & {LIMIT}
        and has & {TOKENS, SIZE}
        and GIVEN in has
        and "pages" not in words
    ):
        claims.append(("statement", "the prompt's limit is stated"))
    elif "message" in words and LONG in has and "too large" not in words:
        claims.append(("prompt", "the message is said to be too long"))
    elif (
        TOKENS in has
        and over
        and (LONG in has or has & {LIMIT, MODEL, REQUEST, SIZE, TOTAL, NUMBER} or len(clause) <= 6)
    ) or (TOKENS in has and within and numbered and has & {TOTAL, REQUEST} and not has & {COUNTED}):
        claims.append(("tokens", "too many tokens"))
    elif REQUEST in has and within and SIZE in has and (value := max((x.value for x in clause), default=0)):
        claims.append(
            ("count", "a short field's cap") if value < SHORT_FIELD else ("payload", "a body's length")
        )
    elif REQUEST in has and over and (LONG in has or has & {LIMIT, SIZE}):
        claims.append(("payload", "the request is said to be too large"))
    return claims


def _typed(words: set[str]) -> bool:
    """Whether a parameter's type, name or relation is refused, not its size."""
    return bool(
        words
        & {
            "integer",
            "type",
            "instead",
            "not supported",
            "unsupported",
            "unrecognized",
            "unknown",
            "thinking",
        }
    ) or ("null" in words)


def _summed(clause: Sequence[Lexeme]) -> bool:
    """Whether output stands beside the prompt in what was compared: `messages or completion`, `input +
    output`."""
    return any(
        lexeme.concept in (REQUEST,) and lexeme.word in ("text", "message", "conversation")
        for lexeme in clause
    )


def _prompt_long(clause: Sequence[Lexeme]) -> bool:
    return any(lexeme.concept == PROMPT for lexeme in clause) and any(
        lexeme.concept == LONG for lexeme in clause
    )


def _field_long(clause: Sequence[Lexeme]) -> bool:
    """Whether a field that is named, and is not the prompt, is too long: `field system too long`."""
    plain = [lexeme for lexeme in clause if lexeme.word.isalpha() or lexeme.concept == LONG]
    start = next(place for place, lexeme in enumerate(plain) if lexeme.word == "field") + 1
    named = 0
    for lexeme in plain[start : start + 5]:
        if lexeme.concept == LONG:
            return named > 0 and lexeme.word.startswith("too ")
        if lexeme.word == "is":
            continue
        if lexeme.concept not in (NONE, FIELD, INVALID, COUNTED):
            return False
        named += 1
    return False


def _short(clause: Sequence[Lexeme]) -> bool:
    """Whether a cap is that of a short field: its name says so, or its number."""
    if any(lexeme.concept == FIELD and lexeme.word not in ("file", "metadata", "url") for lexeme in clause):
        return True
    caps = [lexeme.value for lexeme in clause if lexeme.concept == NUMBER and lexeme.value >= 16]
    if any(lexeme.word in ("mb", "kb", "gb", "mib", "kib", "megabytes") for lexeme in clause):
        return False
    return (
        bool(caps)
        and max(caps) < SHORT_FIELD
        and not any(lexeme.concept in (PROMPT, REQUEST) and lexeme.word != "string" for lexeme in clause)
    )
