"""Find the provider's refusal in a program's own log.

Three forms of log are known: a line of a logger that begins with its place in the source, an agent's card
about a failure (a heading, then `key: value` lines), and llama.cpp's lines about one request.

Source code that quotes errors looks similar. A logger, however, writes a single place in the source with one
space after it. An error object follows, or a code with its sentence, without quotation marks. Source code has
several places or folder paths, or the text after them is indented, quoted or assigned.
"""

from __future__ import annotations

import re

from compactd.core.overflow.meaning import read_meaning
from compactd.core.overflow.prose_words import DESCRIBING_WORDS, HINTING, word_set

__all__ = ["refusal_in_log"]

READ = 6000
"""The length, in characters, up to which a text can be such a log."""
LINES = 40
"""The maximum number of lines in such a log."""

PLACE = (
    r"\s{0,8}\[?(?P<file>\w[\w-]{0,60})\.(?:go|py|rs|ts|js|mjs|cc|cpp|c|java|kt|rb|php|cs|ex|swift|scala)"
    r":\d{1,6}(?::\d{1,5})?(?:\]:?|:)[ ](?=\S)"
)
"""Matches a place in the source as a logger writes it: the file's name without its folder, the line, one
space (Go's `Lshortfile`)."""
TESTING = (
    r"(?i)(?:^|_|-)(?:tests?|spec|conftest|fixtures?|mocks?|samples?|examples?|cases|patterns)(?:_|-|$)"
    r"|test$|^test"
)
"""Matches names of files that contain errors as samples, such as tests."""
OBJECT = r"""\{\s?(?:\\?["'])(?:error|type|message|detail|code|errors)(?:\\?["'])\s?:"""
"""Matches the beginning of a provider's error object."""
CODE = r"(?:(?<=[ ]\()|(?<![\w\"'`./(\[|%$-]))[a-z]{3,20}(?:_[a-z]{2,20}){1,6}(?![\w\"'`(\[=|.])"
"""Matches a machine code that is not part of a path, a name, a call or a quotation."""
SDK = (
    r"(?:litellm|openai|anthropic|google|groq|cohere|mistralai|botocore)(?:\.\w{1,40}){0,4}"
    r"\.\w{2,50}(?:Error|Exception):[ ]"
)
"""Matches an exception of a provider's SDK with its module."""
SOURCE = (
    r"\s(?://|#)\s|:=|==|=>|\|\||&&|\s=\s"
    r"|\b(?:return|assert|raise|throw|case|if|elif|def|func|const|let|var)\s"
)
"""Matches signs and words of a line of source code."""
UNENDED = (",", ";", "(", "[", "{", ":")
"""Endings of lines that continue on the next line. A logger's lines do not end so."""
COMMENTED = ("//", "#", "*", "-", ";", ">", "+", "|", '"', "'", "`", "<")
"""Beginnings of a comment, a list item or a literal."""
CODES = 6
"""The maximum number of machine codes of one line that are examined."""
SENTENCE = r"(?:\b[A-Za-z][a-z']{0,20}[ ]){3}[a-z]"
"""Matches four words in a row."""

FAILING = r"(?i)\S[ ](?:\w{0,30}error|failed|failure|refused|rejected|code)\b[^:\n]{0,60}: $"
"""Matches what a logger writes before a code if the provider sent nothing but the code."""

SERVING = (
    r"(?:[\d.:-]{5,30}[ ])?(?:[IWED][ ])?(?:(?:slot|srv|que|res)\s{1,16}\w{2,30}|[a-z]\w{2,40}):[ ]{1,4}\S"
)
"""Matches a line of llama.cpp's server: component, function, text (tools/server, seen 2026-11)."""
SENT = r"(?:slot|srv)\s{1,16}\w{0,24}error:?[ ].{0,80}?\berror:[ ](?P<said>\S.*)"
"""Matches the line in which llama.cpp's server answers with an error. Group `said` is the error."""
TASK = r"\btask(?: id)?[ =]{1,3}(\d{1,9})\b"
"""Matches the number of the request that a line of llama.cpp's is about."""
MEASURED = r"\b((?:n_ctx|n_prompt_tokens)(?:_slot)?|task\.n_tokens)\s?=\s?(\d{2,9})\b"
"""Matches the window or the request's prompt tokens in a line of llama.cpp's."""

CARD_HEAD = (
    r"(?i)\W{0,8}(?:[^\s:\"'`]{1,30}[ ]){0,6}(?:\w{0,40}error|failed|failure|rejected|refused|exhausted)\b"
    r"(?:[ ](?:after|with|on|in|for)\b)?(?:[ :—-]{1,3}[^\"'`]{0,100})?"
)
"""Matches the first line of a card. It says that a call failed."""
KEYED = (
    r"\s{0,12}(?:[^\w\s\"'`#>|-][^\w\s]{0,4}\s{0,4})?"
    r"(?P<key>[A-Za-z]{2,12}(?:[ ][A-Za-z]{2,10})?):[ ]{1,4}(?P<value>\S.*)"
)
"""Matches a line of a card: `📝 Error: …`."""
CARD_MESSAGE_KEYS = word_set("error message reason details detail cause")
"""Keys of a card, by their last word, whose values are the error."""
SERVED = word_set("provider model endpoint url host api status code service backend")
"""Keys of a card that name what was called."""
FIRSTS = frozenset({"", "error", "provider", "api", "server"})
"""Words that may precede a key of `CARD_MESSAGE_KEYS`."""
CARD_OTHER_KEYS = word_set(
    "elapsed attempt attempts retry retries time duration session tokens type request hint action"
)
"""Other keys of a card, by their last word."""


def refusal_in_log(text: str) -> str:
    """Return what the provider said if `text` is a program's report of one refusal; otherwise `text`
    itself. O(characters); O(1) if `text` is longer than `READ`."""
    if len(text) > READ:
        return text
    lines = [line for line in text.split("\n") if line.strip()]
    if not lines or len(lines) > LINES:
        return text
    placed = re.match(PLACE, lines[0])
    if placed is not None:
        return _refusal_after_place(lines, placed) or text
    if len(lines) > 2 and ": " in lines[1]:
        return _server_refusal(lines) or _card_error(lines) or text
    return text


def _refusal_after_place(lines: list[str], placed: re.Match[str]) -> str | None:
    """Return the refusal after a logger's place in the source. `placed` is the match of the place in the
    first line. Return None if no logger wrote the lines: they have several places, the place is in a file of
    tests, or the text after it is source code or a description."""
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
        return rest if own and not _is_description(before) else None
    if re.search(SOURCE, rest) is not None:
        return None
    if (raised := re.match(rf"(?:[A-Za-z]{{2,20}}[: ]{{1,2}}){{0,4}}(?={SDK})", rest)) is not None:
        return rest[raised.end() :]
    for count, code in enumerate(re.finditer(CODE, rest)):
        if count == CODES:
            return None
        behind = rest[code.end() :]
        if read_meaning(code.group()).kind == "overflow":
            before = rest[: code.start()]
            alone = not behind.strip(" .)") and re.search(FAILING, before) is not None
            said = re.search(SENTENCE, behind) is not None and read_meaning(behind).kind == "overflow"
            return rest[code.start() :] if (said or alone) and not _is_description(before) else None
    return None


def _is_description(words: str) -> bool:
    """Return whether the words are those of someone who describes an error, not of a program that reports
    one."""
    said = set(re.findall(r"[a-z']+", words.lower()))
    return not said.isdisjoint(DESCRIBING_WORDS) or len(said & HINTING) > 1


def _server_refusal(lines: list[str]) -> str | None:
    """Return the error that llama.cpp's server sent, followed by the window and the prompt tokens that the
    lines name. None if the lines are not llama.cpp's, or are about several requests."""
    if any(re.match(SERVING, line.strip()) is None for line in lines):
        return None
    said = {found.group("said") for line in lines if (found := re.search(SENT, line)) is not None}
    text = "\n".join(lines)
    if len(said) != 1 or len(set(re.findall(TASK, text))) > 1:
        return None
    error = said.pop()
    measured = re.findall(MEASURED, text) if read_meaning(error).kind == "overflow" else []
    return " ; ".join([error, *(f"{name} = {value}" for name, value in dict(measured).items())])


def _card_error(lines: list[str]) -> str | None:
    """Return the error in a card: a line that says that a call failed, followed only by keys with values.
    At least one key must name what was called. None if the lines are not such a card."""
    if re.fullmatch(CARD_HEAD, lines[0].rstrip()) is None:
        return None
    said: list[str] = []
    served = False
    for line in lines[1:]:
        found = re.fullmatch(KEYED, line.rstrip())
        if found is None:
            return None
        first, _, key = found.group("key").lower().rpartition(" ")
        if key in CARD_MESSAGE_KEYS and first in FIRSTS:
            said.append(found.group("value"))
        elif key in SERVED:
            served = True
        elif key not in CARD_OTHER_KEYS:
            return None
    return "\n".join(said) if served and said else None
