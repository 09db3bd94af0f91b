"""The one refusal that a program's own log tells: its line with a place in source, an agent's card of a
failure, llama.cpp's lines about one request.

What tells such a log from a listing of source that quotes errors: a logger writes its place once and one
blank behind it, and what follows is an error's object, or its code with its sentence, outside of quotation
marks. A listing has several places, paths of folders, or what follows is indented, quoted, assigned.
"""

from __future__ import annotations

import re

from compactd.core.overflow.lists import listed
from compactd.core.overflow.meaning import meaning
from compactd.core.overflow.prose_words import HINTING, TELLING

__all__ = ["spoken"]

READ = 6000
"""Characters of a text that may be such a log. A longer one is none."""
LINES = 40
"""Lines of such a log."""

PLACE = (
    r"\s{0,8}\[?(?P<file>\w[\w-]{0,60})\.(?:go|py|rs|ts|js|mjs|cc|cpp|c|java|kt|rb|php|cs|ex|swift|scala)"
    r":\d{1,6}(?::\d{1,5})?(?:\]:?|:)[ ](?=\S)"
)
"""A logger's place: the file's name without its folder, the line, one blank (Go's `Lshortfile`)."""
TESTING = (
    r"(?i)(?:^|_|-)(?:tests?|spec|conftest|fixtures?|mocks?|samples?|examples?|cases|patterns)(?:_|-|$)"
    r"|test$|^test"
)
"""Names of files whose lines hold errors as samples."""
OBJECT = r"""\{\s?(?:\\?["'])(?:error|type|message|detail|code|errors)(?:\\?["'])\s?:"""
"""How a provider's error begins."""
CODE = r"(?:(?<=[ ]\()|(?<![\w\"'`./(\[|%$-]))[a-z]{3,20}(?:_[a-z]{2,20}){1,6}(?![\w\"'`(\[=|.])"
"""A machine code that stands for itself."""
SDK = (
    r"(?:litellm|openai|anthropic|google|groq|cohere|mistralai|botocore)(?:\.\w{1,40}){0,4}"
    r"\.\w{2,50}(?:Error|Exception):[ ]"
)
SOURCE = (
    r"\s(?://|#)\s|:=|==|=>|\|\||&&|\s=\s"
    r"|\b(?:return|assert|raise|throw|case|if|elif|def|func|const|let|var)\s"
)
"""Signs and words of a line of source."""
UNENDED = (",", ";", "(", "[", "{", ":")
"""Ends of lines that go on: source's, not a logger's."""
COMMENTED = ("//", "#", "*", "-", ";", ">", "+", "|", '"', "'", "`", "<")
"""Beginnings of a comment, a bullet, a literal."""
CODES = 6
"""Codes of one line that are looked at."""
SENTENCE = r"(?:\b[A-Za-z][a-z']{0,20}[ ]){3}[a-z]"

FAILING = r"(?i)\S[ ](?:\w{0,30}error|failed|failure|refused|rejected|code)\b[^:\n]{0,60}: $"
"""What a logger says before a code that is all the provider said."""

SERVING = (
    r"(?:[\d.:-]{5,30}[ ])?(?:[IWED][ ])?(?:(?:slot|srv|que|res)\s{1,16}\w{2,30}|[a-z]\w{2,40}):[ ]{1,4}\S"
)
"""A line of llama.cpp's server: component, function, text (tools/server, seen 2026-11)."""
SENT = r"(?:slot|srv)\s{1,16}\w{0,24}error:?[ ].{0,80}?\berror:[ ](?P<said>\S.*)"
"""The line in which it answers with an error."""
TASK = r"\btask(?: id)?[ =]{1,3}(\d{1,9})\b"
MEASURED = r"\b((?:n_ctx|n_prompt_tokens)(?:_slot)?|task\.n_tokens)\s?=\s?(\d{2,9})\b"
"""The window and the prompt of the request, in tokens."""

HEAD = (
    r"(?i)\W{0,8}(?:[^\s:\"'`]{1,30}[ ]){0,6}(?:\w{0,40}error|failed|failure|rejected|refused|exhausted)\b"
    r"(?:[ ](?:after|with|on|in|for)\b)?(?:[ :—-]{1,3}[^\"'`]{0,100})?"
)
"""The first line of a card: that a call failed."""
KEYED = (
    r"\s{0,12}(?:[^\w\s\"'`#>|-][^\w\s]{0,4}\s{0,4})?"
    r"(?P<key>[A-Za-z]{2,12}(?:[ ][A-Za-z]{2,10})?):[ ]{1,4}(?P<value>\S.*)"
)
"""A line of a card: `📝 Error: …`."""
TELLS = listed("error message reason details detail cause")
SERVED = listed("provider model endpoint url host api status code service backend")
FIRSTS = frozenset({"", "error", "provider", "api", "server"})
"""Words before such a key."""
BESIDE = listed(
    "elapsed attempt attempts retry retries time duration session tokens type request hint action"
)
"""Keys of a card, by their last word."""


def spoken(text: str) -> str:
    """What the provider said, where `text` is a program's own report of one refusal; else `text` itself.

    Cost: O(characters), nothing for a text longer than `READ`.
    """
    if len(text) > READ:
        return text
    lines = [line for line in text.split("\n") if line.strip()]
    if not lines or len(lines) > LINES:
        return text
    placed = re.match(PLACE, lines[0])
    if placed is not None:
        return _placed(lines, placed) or text
    if len(lines) > 2 and ": " in lines[1]:
        return _served(lines) or _carded(lines) or text
    return text


def _placed(lines: list[str], placed: re.Match[str]) -> str | None:
    """The refusal behind one logger's place. A second place makes it a listing."""
    place = placed.group()
    if re.search(TESTING, placed.group("file")) is not None or any(
        not line.startswith(place) for line in lines
    ):
        return None
    rest = lines[-1][placed.end() :].rstrip()
    if rest.endswith(UNENDED) or rest.startswith(COMMENTED):
        return None
    begun = re.search(OBJECT, rest)
    if begun is not None:
        before = rest[: begun.start()]
        own = re.search(rf"[\"'`]|{SOURCE}", before) is None and rest.endswith(("}", ")"))
        return rest if own and not _tells(before) else None
    if re.search(SOURCE, rest) is not None:
        return None
    if (raised := re.match(rf"(?:[A-Za-z]{{2,20}}[: ]{{1,2}}){{0,4}}(?={SDK})", rest)) is not None:
        return rest[raised.end() :]
    for count, code in enumerate(re.finditer(CODE, rest)):
        if count == CODES:
            return None
        behind = rest[code.end() :]
        if meaning(code.group()).kind == "overflow":
            before = rest[: code.start()]
            alone = not behind.strip(" .)") and re.search(FAILING, before) is not None
            said = re.search(SENTENCE, behind) is not None and meaning(behind).kind == "overflow"
            return rest[code.start() :] if (said or alone) and not _tells(before) else None
    return None


def _tells(words: str) -> bool:
    """Whether somebody tells of an error, instead of reporting one."""
    said = set(re.findall(r"[a-z']+", words.lower()))
    return not said.isdisjoint(TELLING) or len(said & HINTING) > 1


def _served(lines: list[str]) -> str | None:
    """What llama.cpp's server answered to the one request that its lines are of, with what it measured."""
    if any(re.match(SERVING, line.strip()) is None for line in lines):
        return None
    said = {found.group("said") for line in lines if (found := re.search(SENT, line)) is not None}
    text = "\n".join(lines)
    if len(said) != 1 or len(set(re.findall(TASK, text))) > 1:
        return None
    error = said.pop()
    measured = re.findall(MEASURED, text) if meaning(error).kind == "overflow" else []
    return " ; ".join([error, *(f"{name} = {value}" for name, value in dict(measured).items())])


def _carded(lines: list[str]) -> str | None:
    """The error of a card: a line that a call failed, then nothing but keys with values, one of them of the
    one that was called."""
    if re.fullmatch(HEAD, lines[0].rstrip()) is None:
        return None
    said: list[str] = []
    served = False
    for line in lines[1:]:
        found = re.fullmatch(KEYED, line.rstrip())
        if found is None:
            return None
        first, _, key = found.group("key").lower().rpartition(" ")
        if key in TELLS and first in FIRSTS:
            said.append(found.group("value"))
        elif key in SERVED:
            served = True
        elif key not in BESIDE:
            return None
    return "\n".join(said) if served and said else None
