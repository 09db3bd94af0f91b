"""Split the text of an error into lexemes: words with their concepts, numbers and signs.

A concept is a class of words with the same role, such as "the prompt" or "exceeds" (`vocabulary.py`).
Identifiers are split (`contextLengthExceeded`, `max_prompt_tokens`), so that a machine code is read like a
sentence. Names of models, paths, dates and identifiers with digits have no concept.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from compactd.core.overflow.translations import LETTERS, WORDS_OF
from compactd.core.overflow.vocabulary import (
    BYTES,
    END,
    FIELD,
    FIRSTS,
    MONEY,
    NONE,
    NUMBER,
    OUTPUT,
    OVER,
    PACE,
    PAIRED,
    PLUS,
    WITHIN,
    WORDS,
    word_set,
)

WIDE = str.maketrans("：，。；！？（）【】［］「」＞＜≥≤＝／　\u00a0\u202f’`", ':,.;!?()[][]""><><=/   \' ')
"""Full-width and typographic signs, and the ASCII signs that replace them."""

TOKEN = re.compile(
    r"""https?://\S+
    |[A-Za-z\u00c0-\u024f_][\w']*(?:[-.@/\[]+[A-Za-z0-9_][\w]*\]?)*
    |(?P<number>\d{1,3}(?:,\d{3}){1,4}(?!\d)|\d{1,2}(?:,\d{2}){1,3},\d{3}(?!\d)|\d{1,3}(?:'\d{3}){1,4}(?![\d'])
        |\d{1,3}(?:[ ]\d{3}){1,4}(?!\d)|\d{1,3}(?:\.\d{3}){2,4}(?!\d)|\d+(?:_\d{3})*(?:\.\d+)*)
    |=>|>=|<=|->|[<>=+\-.;!?:,()\[\]{}/\n%|]""",
    re.VERBOSE,
)
PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z\u00c0-\u024f']+|\d+")
"""Matches one word inside an identifier, such as `context` and `Length` in `contextLength`."""
SUFFIXES = word_set("c h py js ts go rs md txt json yaml yml toml log java rb php cpp cs sh sql html css")
"""File extensions. The words of a file's name have no concept."""
FIELD_TAILS = ("name", "id", "description", "title", "_key")
"""Endings of the paths of fields with a short value: `tools[0].name`."""
LABELS = frozenset(
    {
        "message",
        "content",
        "body",
        "text",
        "response",
        "request",
        "data",
        "details",
        "failed",
        "error",
        "model",
    }
)
"""Words that only introduce what follows a colon: `message: …`. Before a colon they have no concept."""
MAXIMUM_YOU, MAX_YOU = ["maximum", "tokens", "you"], ["max", "tokens", "you"]
"""The words before "requested" in Bedrock's phrase for the output cap, "maximum tokens you requested"
(400, Converse, seen 2024-12)."""
GLUED = r"(?i)([a-z]{2,9})(\d{3,9})(tokens?)?"
"""Matches a word, a number and perhaps `tokens` without spaces between them."""
GLUING = word_set(
    "is are was has have had of to than by at only limit limited maximum max length size window"
)
"""Words after which the space before a number may be missing (gpt4all: `is2614tokens`)."""
NUMBERED = r"_\w*\d{3,}\w*$"
"""Matches the end of an identifier with a number of at least three digits, which names one single thing:
`call_prompt_is_too_long_202128`."""
SCALES = {"k": 1000, "m": 1_000_000}
"""Suffixes of a number that scale it: `32k`, `1M`."""
SPELLED = {**SCALES, "thousand": 1000, "million": 1_000_000}
"""Words and suffixes after a number that scale it."""
ARTICLES = word_set("l d n s qu un dell all nell sull dall quest")
"""French and Italian articles, and other words, that lose their vowel before an apostrophe: `l'entrée`."""
PARTICLES = word_set("de des di du del dei do da dos das der")
"""Words between two nouns in Romance languages: `límite de solicitudes`."""
TIMES = word_set("s sec secs second seconds min mins minute minutes h hour hours")
"""Units of time. After `per` they are about a rate limit."""
METRIC = word_set("ko mo go")
"""French units of bytes. They count as such only after a number."""
SMALL = 10_000
"""A number of this size or more is never scaled by the word after it."""
COUNTING = r"(?i)\s?-?(?:tok|jeton|токен|トークン|토큰)"
"""Matches a unit that has no fractions. A point before three digits is then a thousands separator:
`150.000 Token` is 150,000."""


MAX_LEXEME_CHARS = 80
"""An identifier with a number (`NUMBERED`) counts as the name of a single thing only if it has fewer
characters than this."""
SEAM = r"(?<=[\u3040-\u9fff\uac00-\ud7a3])(?=[A-Za-z0-9])|(?<=[A-Za-z0-9])(?=[\u3040-\u9fff\uac00-\ud7a3])"
"""Matches the place where a Chinese, Japanese or Korean letter is next to a Latin letter or digit, without
a space."""
CYRILLIC = "[\u0400-\u04ff]"


class Lexeme(NamedTuple):
    """A word, number or sign of a sentence."""

    concept: str
    """One of the concepts of `vocabulary.py`."""
    word: str
    """The word in lower case, or the sign or digits as written. If two words have one concept together, this
    is both words with a space between them."""
    value: int
    """The value of a number; otherwise 0."""
    at: int
    """The offset of its first character in the text."""


def lexemes(text: str) -> list[Lexeme]:
    """Split `text` into lexemes and return them in order. O(characters)."""
    if not text.isascii():
        text = re.sub(SEAM, " ", text.lower() if re.search(CYRILLIC, text) is not None else text)
        text = foreign_words().sub(lambda found: f" {LETTERS[found.group()]} ", text.translate(WIDE))
    elif "`" in text:
        text = text.replace("`", " ")
    found: list[Lexeme] = []
    for token in TOKEN.finditer(text):
        word, at = token.group().rstrip("'") or "'", token.start()
        first = word[0]
        if token.lastgroup == "number":
            found.append(_number(text, word, at, token.end()))
        elif first.isalpha() or first == "_":
            lower = word.lower()
            concept = WORDS.get(lower)
            if concept is None and "'" in lower:
                concept, lower = _split_elision(lower)
            if concept is None and lower in WORDS_OF:
                concept, lower = _translate(WORDS_OF[lower])
            if concept is None and lower in TIMES and len(found) > 1 and found[-2].word == "per":
                concept = PACE
            if concept is None and lower in METRIC and found and found[-1].concept == NUMBER:
                concept, lower = BYTES, "mb"
            if concept is not None:
                _push(found, concept, lower, at)
            elif lower in SPELLED and found and found[-1].concept == NUMBER and word != "m":
                if found[-1].value < SMALL and text[at - 1] == " ":
                    found[-1] = found[-1]._replace(value=found[-1].value * SPELLED[lower])
                continue
            elif lower.isalpha() and (word == lower or word[1:].islower() or word.isupper()):
                _push(found, NONE, lower, at)
            elif lower.startswith(("http://", "https://")):
                continue
            else:
                _identifier(found, word, lower, at)
        elif first in ".;!?\n{}|":
            found.append(Lexeme(END, word, 0, at))
        elif first in ">":
            found.append(Lexeme(OVER, ">", 0, at))
        elif first in "<":
            found.append(Lexeme(WITHIN, "<=", 0, at))
        elif first == "+":
            found.append(Lexeme(PLUS, word, 0, at))
        else:
            if first == ":" and found and found[-1].word in LABELS:
                found[-1] = Lexeme(NONE, found[-1].word, 0, found[-1].at)
            elif first == "=" and found and found[-1].word == "context":
                found[-1] = Lexeme(NONE, "context=", 0, found[-1].at)
            found.append(Lexeme(NONE, word, 0, at))
    return found


def _translate(english: str) -> tuple[str, str]:
    """Return (concept, word) for the English translation of a foreign word. A translation of two words has
    the concept that the pair has in `PAIRED`."""
    if " " not in english:
        return WORDS.get(english, NONE), english
    first, _, second = english.partition(" ")
    return PAIRED.get((first, second), NONE), english


def _split_elision(word: str) -> tuple[str | None, str]:
    """Return (concept, word) for a word without its French or Italian article: `l'entrée`, `dell'input`.
    The concept is what the rest of the word means in the vocabulary. It is None if the vocabulary does not
    have the rest, or if the word has no article; then the word is returned unchanged."""
    article, _, noun = word.partition("'")
    if article not in ARTICLES:
        return None, word
    return (WORDS[noun], noun) if noun in WORDS else (None, noun)


@cache
def foreign_words() -> re.Pattern[str]:
    """Return a pattern that matches the keys of `LETTERS`, the longest first. It is compiled at the first
    call and then cached."""
    return re.compile("|".join(map(re.escape, sorted(LETTERS, key=len, reverse=True))))


def _push(found: list[Lexeme], concept: str, word: str, at: int) -> None:
    """Append a word to `found`. If the word and the one before it have a concept together (`PAIRED`),
    merge the two."""
    if found:
        before = found[-1]
        if (
            before.word in PARTICLES
            and len(found) > 1
            and (folded := PAIRED.get((found[-2].word, word))) is not None
        ):
            found[-2:] = [Lexeme(folded, f"{found[-2].word} {word}", 0, found[-2].at)]
            return
        if word == "requested" and [x.word for x in found[-3:]] in (MAXIMUM_YOU, MAX_YOU):
            found[-3:] = [Lexeme(OUTPUT, "max tokens requested", 0, found[-3].at)]
            return
        if before.word in FIRSTS and (folded := PAIRED.get((before.word, word))) is not None:
            found[-1] = Lexeme(folded, f"{before.word} {word}", 0, before.at)
            return
    if word in FIRSTS and (alone := PAIRED.get((word, ""))) is not None:
        concept = alone
    found.append(Lexeme(concept, word, 0, at))


def _identifier(found: list[Lexeme], word: str, lower: str, at: int) -> None:
    """Append the lexemes of a name, path or code to `found`: one lexeme if the whole is known, otherwise
    one per word."""
    whole = lower.replace("_", "").replace("-", "").replace("'", "")
    if "/" in word:
        for part in word.split("/")[-2:]:
            if part and part[0].isalpha():
                low = part.lower()
                if (known := WORDS.get(low)) is not None or low.isalpha():
                    _push(found, known or NONE, low, at)
                else:
                    _identifier(found, part, low, at)
        return
    if (glued := re.fullmatch(GLUED, word)) is not None and glued.group(1).lower() in GLUING:
        before, digits, behind = glued.groups()
        _push(found, WORDS.get(before.lower(), NONE), before.lower(), at)
        found.append(Lexeme(NUMBER, digits, int(digits), at))
        if behind:
            _push(found, WORDS[behind.lower()], behind.lower(), at)
        return
    if len(word) < MAX_LEXEME_CHARS and re.search(NUMBERED, word) is not None:
        found.append(Lexeme(NONE, lower, 0, at))
        return
    if "[" in word or word.count(".") > 1 or (any(c.isdigit() for c in word) and "_" not in word):
        tail = re.split(r"[.\[\]]", lower)[-1]
        found.append(Lexeme(FIELD if tail.endswith(FIELD_TAILS) else NONE, lower, 0, at))
        return
    if lower.rpartition(".")[2] in SUFFIXES and "." in lower:
        found.append(Lexeme(NONE, lower, 0, at))
        return
    concept = WORDS.get(whole)
    if concept is not None and not lower.startswith("tool-"):
        found.append(Lexeme(concept, lower, 0, at))
        return
    for part in PART.findall(word):
        low = part.lower()
        if low in WORDS_OF and low not in WORDS:
            concept, low = _translate(WORDS_OF[low])
            _push(found, concept, low, at)
        elif not low.isdigit():
            _push(found, WORDS.get(low, NONE), low, at)


def _number(text: str, word: str, at: int, end: int) -> Lexeme:
    """Return the lexeme of a number. A number that is part of a name has no concept."""
    digits = word.replace(",", "").replace("_", "").replace(" ", "").replace("'", "")
    if digits.count(".") == 1:
        digits, _, fraction = digits.partition(".")
        scaled = _scale(text, end)
        if scaled > 1:
            return Lexeme(NUMBER, word, int(float(f"{digits[:12]}.{fraction[:6]}") * scaled), at)
        if len(fraction) == 3 and (fraction == "000" or re.match(COUNTING, text[end : end + 12]) is not None):
            digits += fraction
        elif fraction.strip("0"):
            return Lexeme(MONEY, "$", 0, at) if text[at - 1 : at] == "$" else Lexeme(NONE, word, 0, at)
    elif "." in digits:
        if re.fullmatch(r"\d{1,3}(?:\.\d{3})+", digits) is None:
            return Lexeme(NONE, word, 0, at)
        digits = digits.replace(".", "")
    before, after = text[at - 1 : at] if at else "", text[end : end + 1]
    if before == "$":
        return Lexeme(MONEY, "$", 0, at)
    if len(digits) > 12 or (before and before in "-_@#$.") or after == "%":
        return Lexeme(NONE, word, 0, at)
    if after and (after.isalpha() or after == "_"):
        scaled = _scale(text, end)
        if scaled > 1:
            return Lexeme(NUMBER, word, int(digits) * scaled, at)
        if not text[end : end + 6].lower().startswith(("tok", "input", "prompt")):
            return Lexeme(NONE, word, 0, at)
    if after == "-" and text[end + 1 : end + 2].isdigit():
        return Lexeme(NONE, word, 0, at)
    return Lexeme(NUMBER, word, int(digits), at)


def _scale(text: str, end: int) -> int:
    """Return what multiplies the number that ends at `end`: 1,000 for `32k`, 1,000,000 for `1M`, otherwise
    1."""
    scale = SCALES.get(text[end : end + 1].lower(), 1)
    return scale if scale > 1 and not text[end + 1 : end + 2].isalpha() else 1
