"""Find what one clause of an error claims to be over its limit: the window, a prompt, an output, a body or
a count."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from compactd.core.overflow.lexer import Lexeme
from compactd.core.overflow.vocabulary import (
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

NEGATED = frozenset(
    {"not", "cannot", "can't", "doesn't", "won't", "no longer", "does not", "never", "don't", "no"}
)
MIN_CLAIMED_TOKENS = 64
"""The smallest number, in tokens, that can be a window."""
SHORT_FIELD = 8192
"""A cap below this many characters belongs to a short field, such as a name, a description or an id, and not
to a conversation."""


POSSIBLE = frozenset({"may", "can", "could", "might"})
"""Verbs of a warning. With one of them, nothing was refused."""
LARGER = frozenset({"larger", "longer", "bigger", "greater", "higher"})
"""Comparatives that may also recommend a larger window or model."""
MEMBERS = frozenset(
    {"message", "messages", "message limit", "messages limit", "turns", "parts", "blocks", "rows", "records"}
)
"""Words for the countable parts of a prompt."""
ROWED = frozenset({"array", "list"})
"""Words for a list of items."""
GRAPHIC = frozenset({"gpu", "vram", "cuda"})
"""Words about a graphics card."""
SCARCE = frozenset({"not enough", "insufficient", "allocate", "out of", "enough"})
"""Words which say that memory is missing."""
PLACED = frozenset({"line", "column", "expected", "syntax"})
"""Words about a syntax error. Tokens next to them are those of a parsed language."""
ODD = frozenset(
    {"parser", "lexer", "parse", "jwt", "csrf", "cookie", "rsa", "cipher", "encryption", "padding"}
)
"""Words which say that the tokens next to them are not a model's but, for example, a parser's or a
login's."""


def claims_of(clause: Sequence[Lexeme]) -> list[tuple[str, str]]:
    """Return the claims of one clause as (claim, reason). `meaning.py` ranks them.

    A claim is one of these words: `window` (the window is exceeded), `room` (the window has no room for the
    answer), `prompt` (the prompt is too long), `tokens` (there are too many tokens), `statement` (a limit is
    only stated), `output` (the output's own cap), `payload` (a size in bytes or characters), `count` (a
    number of items, a short field or another parameter), `tooled` (a cap on a tool's result) and `memory`
    (the provider's memory).
    """
    has = {lexeme.concept for lexeme in clause}
    if PACE in has and WINDOW not in has:
        return []
    if PACE in has and not (has & {LONG, OVER}):
        return []
    words = {lexeme.word for lexeme in clause}
    if "field" in words and _field_long(clause):
        return [("count", "a short field's cap")]
    over = LONG in has or _exceeds(clause)
    if SHORTEN in has and not over and NUMBER not in has:
        return []
    within = any(
        lexeme.concept == WITHIN and (lexeme.word not in ("fit", "fits") or words & NEGATED)
        for lexeme in clause
    )
    numbered = NUMBER in has
    big = any(lexeme.value >= MIN_CLAIMED_TOKENS for lexeme in clause)
    claims: list[tuple[str, str]] = []
    length = (
        bool(has & {SIZE, TOKENS}) and LIMIT in has and over and not (has & {BYTES, MEDIA, COUNTED, FIELD})
    )
    if length and WINDOW not in has and OUTPUT not in has:
        if MODEL in has and SIZE in has:
            claims.append(("tokens", "the model's length is said to be exceeded"))
        elif PLUS in has and sum(x.concept == NUMBER for x in clause) > 1:
            claims.append(("tokens", "a sum exceeds the limit"))
    asks_output = OUTPUT in has and not (has & {PROMPT, TOTAL, PLUS}) and not _is_output_added(clause)
    if {OUTPUT, TOTAL} <= has and "reasoning" in words and not has & {PROMPT, REQUEST, WINDOW}:
        return [("output", "the output's own cap")]
    if asks_output and WINDOW in has and _is_long(clause):
        return [("window", "the context is said to be too long")]
    if WINDOW in has and LIMIT in has and "failed" in words and len(clause) <= 6:
        return [("window", "the context's length is what failed")]
    if asks_output and WINDOW in has and _is_full(clause):
        return [("window", "the context window is said to be full")]
    if (
        asks_output
        and WINDOW in has
        and within
        and words & {"available", "remaining", "left", "availablecontext"}
    ):
        return [("room", "the window has no room for the answer")]
    media = MEDIA in has and TOKENS not in has
    tooled = TOOLED in has or (
        words & {"tool", "tool use"} and bool(words & {"response", "output", "result", "results"})
    )
    if tooled and words & POSSIBLE:
        return [("tooled", "a cap on a tool's result")]
    if over and not has & {MODEL, TOTAL} and (capped := _client_cap(clause, has)) is not None:
        return [("tooled", capped)]
    if tooled and (over or LIMIT in has) and not (has & {WINDOW, PROMPT}):
        return [("tooled", "a cap on a tool's result")]
    if (
        {"cache", "memory", "kv cache", "buffer", "buffers", "cache memory", "vram", "cuda"} & words
        and WINDOW not in has
        and (over or words & {"allocate", "requires", "failed"})
        and "body" not in words
        and not any(x.concept == MODEL and y.word == "memory" for x, y in pairwise(clause))
    ):
        return [("memory", "the provider's memory")]
    if {LIMIT, SIZE} <= has and "expected" in words and not has & {TOKENS, WINDOW} and numbered:
        low = any(MIN_CLAIMED_TOKENS <= lexeme.value < SHORT_FIELD for lexeme in clause) or _short(clause)
        return [("count", "a short field's cap") if low else ("payload", "a string's length")]
    if words & SCARCE and words & {"memory", "vram", "gpu", "ram"} and PROMPT not in has:
        return [("memory", "the provider's memory")]

    if words & GRAPHIC and WINDOW in has and not has & {PROMPT, TOKENS, REQUEST}:
        return [("memory", "the provider's memory")]
    if WINDOW in has and not has & {TOKENS, PROMPT, REQUEST, TOTAL, GIVEN} and _is_setting(clause, words):
        return [("count", "a relation of two parameters")] if "between" in words else claims
    if WINDOW in has and not has & {TOKENS, MODEL, PROMPT, REQUEST, TOTAL}:
        named = {lexeme.word for lexeme in clause if lexeme.concept == WINDOW}
        if named == {"window"}:
            return claims
    if media and over and MODEL in has and any(x.concept == WINDOW and "context" in x.word for x in clause):
        return [("window", "a file is said to exceed the context window")]
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
        if _is_type_refused(words) and not (over and numbered):
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
            if "truncated" in words:
                claims.append(("tooled", "a cap on a tool's result"))
            elif _short(clause):
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
                ("payload", "a file's size")
                if (sized and (LONG in has or (over and not numbered))) or words & {"too large", "too big"}
                else ("count", "a cap on media")
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
        and (over or within or ({LIMIT, SIZE} <= has and numbered))
        and not (_prompt_long(clause) and not _compares_counts(clause))
    ):
        claims.append(("count", "a count of items"))
        return claims

    if "conversations" in words and SIZE in has and TOKENS not in has:
        return [("count", "a count of conversations")]
    if (
        words & ODD
        or (words & PLACED and not big and not has & {PROMPT, LIMIT, MODEL})
        or ("value" in words and "error" not in words and TOKENS not in has)
    ) and REQUEST not in has:
        return claims
    prompt = (
        PROMPT in has
        or ({"message", "request", "query", "conversation", "text", "content"} & words and TOKENS in has)
        or ({"thread", "session"} & words and "length" in words)
        or (MODEL in has and REQUEST in has and "sequence" not in words and _too_long(clause))
    )
    if prompt and over and MONEY not in has:
        if (LONG in has and "too many" in words and TOKENS not in has) or is_counted(clause):
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
    elif "sequence" in words and LONG in has and not has & {BYTES, MEDIA, COUNTED}:
        claims.append(("tokens", "the sequence is said to be too long"))
    elif words & {"message", "question", "query"} and LONG in has and "too large" not in words:
        claims.append(("prompt", "the message is said to be too long"))
    elif (
        TOKENS in has
        and over
        and (LONG in has or has & {LIMIT, MODEL, REQUEST, SIZE, TOTAL, NUMBER} or len(clause) <= 6)
    ) or (TOKENS in has and within and numbered and has & {TOTAL, REQUEST, SIZE} and not has & {COUNTED}):
        claims.append(("tokens", "too many tokens"))
    elif REQUEST in has and within and SIZE in has and (value := max((x.value for x in clause), default=0)):
        claims.append(
            ("count", "a short field's cap") if value < SHORT_FIELD else ("payload", "a body's length")
        )
    elif REQUEST in has and over and (LONG in has or has & {LIMIT, SIZE}):
        claims.append(("payload", "the request is said to be too large"))
    return claims


def _exceeds(clause: Sequence[Lexeme]) -> bool:
    """Return whether the clause says that something exceeds a limit. The advice to use a larger window or
    model does not count, nor does "full" next to a percentage."""
    shared = any(lexeme.word == "%" for lexeme in clause)
    return any(
        x.concept == OVER
        and not (x.word in LARGER and i + 1 < len(clause) and clause[i + 1].concept in (WINDOW, MODEL))
        and not (x.word == "full" and shared)
        for i, x in enumerate(clause)
    )


def _is_setting(clause: Sequence[Lexeme], words: set[str]) -> bool:
    """Return whether the clause compares the settings of windows with each other or with their bounds."""
    windows = sum(lexeme.concept == WINDOW for lexeme in clause)
    return "between" in words or (windows > 1 and any(lexeme.word == "<=" for lexeme in clause))


def _is_long(clause: Sequence[Lexeme]) -> bool:
    """Return whether the clause calls the window's content too long: `the context of this session is too
    long`."""
    places = [place for place, lexeme in enumerate(clause) if lexeme.concept == WINDOW]
    return _too_long(clause[places[0] :]) and not any(x.concept == OUTPUT for x in clause[places[0] :])


def _is_full(clause: Sequence[Lexeme]) -> bool:
    """Return whether the clause calls the window itself full: `context window full`, `context exhausted`."""
    return any(
        x.concept == WINDOW and any(y.concept == OVER and y.word != ">" for y in clause[i + 1 : i + 3])
        for i, x in enumerate(clause)
    )


def is_counted(clause: Sequence[Lexeme]) -> bool:
    """Return whether a clause compares a count of items with a limit, or calls an array too long."""
    has = {lexeme.concept for lexeme in clause}
    if any(
        x.word in ROWED and any(y.concept == LONG for y in clause[i : i + 3]) for i, x in enumerate(clause)
    ):
        return True
    return bool(has & {LIMIT, OVER, WITHIN, SIZE}) and _compares_counts(clause)


def _compares_counts(clause: Sequence[Lexeme]) -> bool:
    """Return whether a number in the clause counts items or messages: `2049 items`, `the 800-message
    limit`. False if the clause also compares two other numbers, or counts tokens: `9001 > 8192 (35
    messages)`."""
    numbers = [place for place, x in enumerate(clause) if x.concept == NUMBER]
    units = [next((z for z in clause[i + 1 : i + 3] if z.word != "-"), None) for i in numbers]
    of_items = [unit is not None and (unit.concept == COUNTED or unit.word in MEMBERS) for unit in units]
    others = [
        clause[i].value >= MIN_CLAIMED_TOKENS for i, item in zip(numbers, of_items, strict=True) if not item
    ]
    in_tokens = any(unit is not None and unit.concept == TOKENS for unit in units)
    return any(of_items) and not in_tokens and sum(others) < 2


def _is_type_refused(words: set[str]) -> bool:
    """Return whether a parameter is refused for its type, name or relation to another one, not for its
    size."""
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


def _is_output_added(clause: Sequence[Lexeme]) -> bool:
    """Return whether the clause counts the output together with the prompt: `messages or completion`. Then
    the output's own cap is not what was exceeded."""
    return any(
        lexeme.concept in (REQUEST,) and lexeme.word in ("text", "message", "conversation")
        for lexeme in clause
    )


def _prompt_long(clause: Sequence[Lexeme]) -> bool:
    """Return whether the clause names the prompt and says "too long" or "too many"."""
    return any(lexeme.concept == PROMPT for lexeme in clause) and any(
        lexeme.concept == LONG for lexeme in clause
    )


def _client_cap(clause: Sequence[Lexeme], has: set[str]) -> str | None:
    """Return the reason if the clause is about a client's cap on a piece of the request, such as a tool's
    result, a file or a chunk; otherwise None. `has` are the concepts in the clause."""
    over = next((i for i, x in enumerate(clause) if x.concept in (OVER, LONG)), 0)
    subject = [x for x in clause[:over] if x.concept not in (NONE, NUMBER, FIELD, SIZE, TOKENS)]
    if not subject or any(x.concept in (PROMPT, REQUEST, TOTAL) for x in subject):
        return None
    first = subject[0]
    if first.concept == TOOLED and (
        (NUMBER not in has and WINDOW in has) or (TOKENS in has and WINDOW not in has)
    ):
        return "a cap on a tool's result"
    if first.word == "file" and TOKENS in has and WINDOW not in has:
        return "a cap on a file's content"
    if subject[-1].word == "chunk" and WINDOW not in has:
        return "a cap on a piece"
    return None


def _too_long(clause: Sequence[Lexeme]) -> bool:
    """Return whether the clause says "too long", as opposed to "too large". What is too long for a model
    is measured in the model's unit, tokens."""
    return any(lexeme.concept == LONG and lexeme.word in ("too long", "too lengthy") for lexeme in clause)


def _field_long(clause: Sequence[Lexeme]) -> bool:
    """Return whether the clause calls a named field other than the prompt too long: `field system too
    long`."""
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
    """Return whether the cap in the clause is that of a short field, judged by the field's name or by the
    number (`SHORT_FIELD`)."""
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
