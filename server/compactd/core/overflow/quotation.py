"""Tell a failed request's error from text that is about errors, and an error's own words from those that it
quotes."""

from __future__ import annotations

import re
from itertools import islice

from compactd.core.overflow.unwrap import Unwrapped
from compactd.core.overflow.vocabulary import word_set

PROSE_CHARS = 4000
"""How many characters outside of structured data are examined."""
LINES = 4
"""A text with more different lines of prose than this is not a provider's error."""
LISTED = r"(?! \. )[\s\[]|(?:slot|srv)\s|[\w.]{1,80}(?:Error|Exception)\b"
"""Matches the beginning of a line that is not counted as prose: it is indented, as the lines of a stack trace
are, comes from llama.cpp's server, or names an exception. A tag, which `unwrap` replaces by ` . `, is no
indentation."""
MARKUP = r"(?m)^\s{0,3}(?:>|//|/\*|\$|\d{1,4}(?:[.:|]|:\d{1,4}|\s\|)|#{1,6}|[-*•])\s|\*\*|```"
"""Matches the mark of a heading, a list item, a comment, a numbered line or bold text."""
NARRATED = (
    r"(?i)(?<![\w./:@<-])(?:I|I'm|I've|we|we've|my|our|they|when(?:ever)? (?:the|an?|your?|it)|because"
    r"|although|whether|means|such as|for example|yesterday|happens|says|said|error is|can you|how do|it's)"
    r"(?![\w/:@=>-])"
)
"""Matches a word of somebody who writes about an error. A few errors contain one."""
SPOKEN = r"[\"“«„「『*]\S[^\"“”»\n]{14,300}[\"”»」』*]|'[^'\n]{20,200}'|`(?=[^`\n]{9,200} )[^`\n]{14,300}`"
"""Matches several words in quotation marks, in italics or in code marks."""
SENTENCE_END = r"(?<![\s.])[.!?](?=\s|\Z)|[。！？；，]"
QUESTION = r"[?？]\s*\Z"
"""Matches the end of a text that ends with a question."""
SIGNS = 160
"""The maximum number of quotation marks in a text that is searched for quoted passages. Each mark costs a
search."""
QUOTE_SIGNS = frozenset("\"'“‘`«")
PARSED = (
    r"(?i)pars(?:e|ing)\b|json\b|schema\b|unterminated|deserializ|\bdecod(?:e|ing)\b(?! failed)"
    r"|tool[ _](?:call|use|result|output)|arguments\b|template\b|\bnear\b|\bregex|\bsyntax|\byaml\b|\bxml\b"
    r"|\bfunction[ _](?:call|arg|name)"
)
"""Matches the words of a refusal of a request that could not be parsed. The content of the request may
follow."""
ANSWERING = r"""["'](?:message|error|detail|msg)["']\s?[:=]\s?$"""
"""Matches the key before a quoted error message, in data that does not parse."""
CODED = re.compile(r"(?i)[a-z]_\w*(?:exceed|too_l|overflow)")
"""Matches a quoted machine code of an overflow. In quotation marks it may be a value in the request or the
name of a tool."""
WRAPPING = word_set(
    "all models exhausted attempts attempt retries after error"
    " errors request failed fail fails with message the a an from api response status code server"
    " http https bad reason details detail body provider returned model by of in is was and to last"
    " caused caught exception raw llm upstream call calling client said says responded reply text got"
    " received unexpected occurred following run while when generating completion stream agent unknown"
    " could not due post get invalid too many failures invoke"
)
"""Words around a quoted refusal that say nothing of their own."""
WORD = re.compile(r"[^\W\d_]+")
"""Matches a word."""
QUOTED_PASSAGE = r"(?<![\w=])(?:[\"“'‘`](?=\S)|«)([^\"“”`»\n]{8,300}?)(?:(?<=\S)[\"”'’`]|»)(?!\w)"
"""Matches a passage in quotation marks."""


def is_about_errors(body: Unwrapped) -> bool:
    """Return whether a text that no server answered with is about errors instead of being one. `body` is the
    text taken apart. A text is about errors if it is a record of a log, an issue or a tool, if it has more
    than `LINES` different lines of prose, or if it has two signs of somebody who writes about an error.

    Many quotations of one or two sentences cannot be told from an error. `provider_sentence.py` decides
    whether other sessions may use their limit.
    """
    if body.is_record:
        return True
    prose = body.prose[:PROSE_CHARS]
    lines = [line for line in prose.split("\n") if line.strip(" \t.,;:|(){}[]")]
    lines = [line for line in lines if re.match(LISTED, line) is None]
    if len({re.sub(r"[\W\d_]+", "", line) for line in lines}) > LINES:
        return True
    told = "\n".join(lines)
    signs = (
        re.search(MARKUP, prose) is not None,
        re.search(NARRATED, told) is not None,
        re.search(SPOKEN, told) is not None,
        len(re.findall(SENTENCE_END, told)) > 3,
        re.search(QUESTION, told) is not None,
    )
    return sum(signs) > 1


def without_quotations(message: str) -> str | None:
    """Return `message` without its long quotations, if it says something of its own; otherwise None.

    The refusal of a malformed request quotes the request: `Invalid content: "prompt is too long …" is not …`.
    """
    if not QUOTE_SIGNS.intersection(message):
        return _before_echo(message)
    spans = [
        found.span()
        for found in _quoted_passages(message, 12)
        if (found.group(1).count(" ") > 1 or CODED.search(found.group(1)) is not None)
        and not _is_error_key(message[: found.start()])
    ]
    if not spans:
        return _before_echo(message)
    pieces, at = [], 0
    for start, end in spans:
        pieces.append(message[at:start])
        at = end
    pieces.append(message[at:])
    outside = " ".join(pieces)
    own = [word for word in WORD.findall(outside.lower()) if word not in WRAPPING]
    return outside if len(own) > 1 else None


def _is_error_key(before: str) -> bool:
    """Return whether the text before a quotation ends with a key such as `"message":`, so that the
    quotation is an error message in data that does not parse. False if the text also says that something
    could not be parsed, because then the quotation may be the request."""
    return re.search(ANSWERING, before[-20:]) is not None and re.search(PARSED, before) is None


def _quoted_passages(text: str, most: int) -> list[re.Match[str]]:
    """Return at most `most` quoted passages of `text`; an empty list if it has more than `SIGNS` quotation
    marks."""
    if sum(text.count(sign) for sign in QUOTE_SIGNS) > SIGNS:
        return []
    return list(islice(re.finditer(QUOTED_PASSAGE, text), most))


def _before_echo(message: str) -> str | None:
    """Return the part of a message before the text that could not be parsed: `Failed to parse …: <text>`.
    None if the message has another form."""
    head, colon, echo = message.partition(": ")
    if not colon or len(echo) <= 20:
        return None
    return head if re.search(PARSED, head) is not None else None
