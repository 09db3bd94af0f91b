"""Reads a sentence of a refusal as concepts and numbers.

Identifiers are split (`contextLengthExceeded`, `max_prompt_tokens`), so that a machine code is read like a
sentence; names of models, paths, dates and identifiers with digits say nothing.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from compactd.core.overflow.lists import listed
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
)

WIDE = str.maketrans("：，。；！？（）【】［］「」＞＜≥≤＝／　\u00a0\u202f’`", ':,.;!?()[][]""><><=/   \' ')

TOKEN = re.compile(
    r"""https?://\S+
    |[A-Za-z\u00c0-\u024f_][\w']*(?:[-.@/\[]+[A-Za-z0-9_][\w]*\]?)*
    |(?P<number>\d{1,3}(?:,\d{3}){1,4}(?!\d)|\d{1,2}(?:,\d{2}){1,3},\d{3}(?!\d)|\d{1,3}(?:'\d{3}){1,4}(?![\d'])
        |\d{1,3}(?:[ ]\d{3}){1,4}(?!\d)|\d{1,3}(?:\.\d{3}){2,4}(?!\d)|\d+(?:_\d{3})*(?:\.\d+)*)
    |=>|>=|<=|->|[<>=+\-.;!?:,()\[\]{}/\n%|]""",
    re.VERBOSE,
)
PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z\u00c0-\u024f']+|\d+")
SUFFIXES = listed("c h py js ts go rs md txt json yaml yml toml log java rb php cpp cs sh sql html css")
"""Ends of file names, whose words say nothing."""
FIELD_TAILS = ("name", "id", "description", "title", "_key")
"""Ends of paths to short fields."""
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
"""Words before a colon that name what follows, and say nothing themselves."""
MAXIMUM_YOU, MAX_YOU = ["maximum", "tokens", "you"], ["max", "tokens", "you"]
"""Before "requested": Bedrock's name of the output cap (400, Converse, seen 2024-12)."""
GLUED = r"(?i)([a-z]{2,9})(\d{3,9})(tokens?)?"
GLUING = listed("is are was has have had of to than by at only limit limited maximum max length size window")
"""Words that a number is printed onto where a blank was forgotten (gpt4all: `is2614tokens`)."""
NUMBERED = r"_\w*\d{3,}\w*$"
"""Identifiers of one thing: `call_prompt_is_too_long_202128`."""
SCALES = {"k": 1000, "m": 1_000_000}
SPELLED = {**SCALES, "thousand": 1000, "million": 1_000_000}
"""Words behind a number."""
ARTICLES = listed("l d n s qu un dell all nell sull dall quest")
PARTICLES = listed("de des di du del dei do da dos das der")
"""What stands between two nouns of a Romance language: `límite de solicitudes`."""
TIMES = listed("s sec secs second seconds min mins minute minutes h hour hours")
METRIC = listed("ko mo go")
"""French units of bytes, behind a number."""
SMALL = 10_000
"""A number that is this large already is scaled no more."""
COUNTING = r"(?i)\s?-?(?:tok|jeton|токен|トークン|토큰)"
"""What is never counted in fractions: `150.000 Token`."""


LONGEST_NAME = 80
"""Characters of an identifier; a longer one is no name of anything."""
SEAM = r"(?<=[\u3040-\u9fff\uac00-\ud7a3])(?=[A-Za-z0-9])|(?<=[A-Za-z0-9])(?=[\u3040-\u9fff\uac00-\ud7a3])"
"""Between scripts, where no blank stands."""
CYRILLIC = "[\u0400-\u04ff]"


class Lexeme(NamedTuple):
    """A word, number or sign of a sentence."""

    concept: str
    word: str
    value: int
    """Of a number; else 0."""
    at: int
    """Offset in the text read."""


def lexemes(text: str) -> list[Lexeme]:
    """`text` as concepts, in order. Cost: O(characters)."""
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
                concept, lower = _elided(lower)
            if concept is None and lower in WORDS_OF:
                concept, lower = _translated(WORDS_OF[lower])
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


def _translated(english: str) -> tuple[str, str]:
    """(concept, word) of what a foreign word means: one word, or two that mean something together."""
    if " " not in english:
        return WORDS.get(english, NONE), english
    first, _, second = english.partition(" ")
    return PAIRED.get((first, second), NONE), english


def _elided(word: str) -> tuple[str | None, str]:
    """(concept, word) without a French or Italian article before an apostrophe: `l'entrée`, `dell'input`."""
    article, _, noun = word.partition("'")
    if article not in ARTICLES:
        return None, word
    return (WORDS[noun], noun) if noun in WORDS else (None, noun)


@cache
def foreign_words() -> re.Pattern[str]:
    """The words of `LETTERS`, longest first. Compiled at the first text that has one."""
    return re.compile("|".join(map(re.escape, sorted(LETTERS, key=len, reverse=True))))


def _push(found: list[Lexeme], concept: str, word: str, at: int) -> None:
    """Appends a word, or folds it into the one before where both have a meaning of their own."""
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
    """A name, path or code: known as a whole, or word by word."""
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
    if len(word) < LONGEST_NAME and re.search(NUMBERED, word) is not None:
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
            concept, low = _translated(WORDS_OF[low])
            _push(found, concept, low, at)
        elif not low.isdigit():
            _push(found, WORDS.get(low, NONE), low, at)


def _number(text: str, word: str, at: int, end: int) -> Lexeme:
    """A number that stands for itself; one that is part of a name has no concept."""
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
    """1000 behind `32k`, 1 000 000 behind `1M`, else 1."""
    scale = SCALES.get(text[end : end + 1].lower(), 1)
    return scale if scale > 1 and not text[end + 1 : end + 2].isalpha() else 1
