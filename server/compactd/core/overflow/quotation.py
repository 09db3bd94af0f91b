"""Decide whether a text only quotes or discusses an overflow: source code, a log, a test report, a thread
about errors.

A provider's refusal is short, says one thing, and has at most a wrapper's words around it. A quotation looks
like the place that it comes from: it has line numbers, list items, comments or quotation marks, or the words
of someone who describes it. Each such sign gives points (`quotes`).
"""

from __future__ import annotations

import re
from functools import cache
from itertools import islice, pairwise
from typing import Literal

from compactd.core.overflow.prose_words import (
    DESCRIBING_PAIRS,
    DESCRIBING_WORDS,
    FAMILIAR,
    HINTING,
    OPENINGS,
    POLITE,
    PROVIDERS,
    word_set,
)
from compactd.core.overflow.strip_log_marks import PATHS, bare
from compactd.core.overflow.translations import WORDS_OF
from compactd.core.overflow.unwrap import Unwrapped
from compactd.core.overflow.vocabulary import WORDS

NAMES = r"https?://\S+|\b\w*[_/\d]\w*\b|\b\w{0,60}(?:Error|Exception)\b"
"""Matches addresses, identifiers and class names. These are not words of a sentence."""
STATUS = r"[45][0-2]\d"
"""Matches an HTTP error status."""
STATUSES = r"(?<![\d.,])(?:HTTP |status )?([45][0-2]\d)(?=[:;,)| ](?!\s*(?:tokens|>|\d)))"
"""Matches an HTTP error status in a list of statuses or before its explanation."""
PARSING = word_set(
    "pars json schema unterminated deserializ decod tool arguments template near regex syntax yaml xml"
    " function"
)
"""Strings to search for first. Every match of `PARSED` contains one of them, so a text without them needs no
regular expression."""
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
READ = 4000
"""How many characters of the prose outside of structured data are examined."""
MAX_REFUSAL_CHARS = 1000
"""The maximum number of characters in one line of a refusal outside of its body. The longest lines, of
Anthropic and AWS, have about 600."""
LINES = 4
"""A refusal has fewer lines of prose than this. Lines of the form `Key: value` are not counted."""

HOLLOW = re.compile(r"\{\{?[a-z_]\w*\}?\}|\$\{\w")
"""Matches a placeholder of a template: `{name}`."""
PATTERNED = (
    ("%", r"%[ds]\b"),
    ("<", r"<[A-Z]+>"),
    ("Assert", r"\bAssert\w*Error\b"),
    (" tokens", r"\b[NXM] tokens\b"),
    ("=", r"\blevel=\w|\bpid=\d|, \w+=(?:True|False|None)\b|\w=[\"'][^\"']*[\"'], \w+=|==|!="),
    ("(", r"\w\(\)|\w\.\w+\(|\b\w+\([^()]*[\"'][^()]*\)|\(\?[:i]"),
    ("[", r"\[\w+\.\w{1,4}:\d+\]|\[_[ -]?\]|\[\^|\]\(https?:"),
    ("\\", r"\\[sdwbS][+*]?"),
    (".*", r"\.\*"),
    (".+", r"\.\+"),
    ("**", r"\*\*\w"),
    ("&&", "&&"),
    ("||", r"\|\|"),
    ("/", r"/\d/"),
)
"""Signs of placeholders, logs, calls, patterns and markup, as (a string that must occur, a pattern)."""
STAMPED = (
    r"(?m)^\W{0,3}(?:\S{1,24}\s+\|?\s*)?"
    r"(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\[?\d\d:\d\d:\d\d|\w{3} +\d{1,2} \d\d:\d\d"
    r"|(?:DEBUG|INFO|WARN|WARNING|ERROR|TRACE)\b[ :\]])"
)
"""Matches the beginning of a log line: a time or a level."""
KEYED = (
    r"(?m)(?i:^\W{0,3}(?:error ?|http ?|request ?|response ?|status ?|provider ?|x-)?"
    r"(?:type|details?|code|message|name|status|error|id|reason|fault|metadata|content(?:-\w+)?|headers?|body|url"
    r"|info|raw|provider|model|cause|param|date|description|title|last)[\w ]{0,12}:\s)"
    r"|^ {2,4}[a-z]{2,12}(?:[A-Z][a-z]{1,12}){1,3}:\s"
)
"""Matches the beginning of a line of the form `Key: value` with a key that error reports use."""
TAGS = re.compile(r"<([A-Za-z][\w:.-]*)")
"""Matches the beginning of a tag and its name."""
PLAIN_TAGS = word_set(
    "html head title body h1 h2 h3 p center pre hr br div span meta style script link a b i strong"
    " small address error errors message requestid hostid response lm string exception detail fault"
    " faultstring faultcode xml status description errorresponse type resource reason request_id uuid"
    " nginx nil none null model url id org key redacted removed hidden masked secret token"
)
"""Tags of error pages and of XML errors, and names of placeholders (`<LM Studio error>`)."""
WORD = re.compile(r"[a-z]+(?:'[a-z]+)?|#\d+")
"""Matches an English word or a number of an issue."""
QUOTED_PASSAGE = r"(?<![\w=])[\"“'‘`«](?=\S)([^\"“”`»\n]{8,300}?)(?<=\S)[\"”'’`»](?!\w)"
"""Matches a passage in quotation marks."""

OPENED = re.compile(
    r"[\"'\[(]?(?:[\w.]{0,90}(?:Error|Exception)\b|API\b|HTTP\b|\d{3}\b|An error occurred|Request failed"
    r"|Failed to|Sorry)"
)
"""Matches words with which a report of one failure begins."""
RAISED = re.compile(
    r"(?:(?:litellm|openai|anthropic|google|groq|ollama|botocore|cohere|mistralai)[\w.]{0,60}\.)?"
    r"(?:BadRequestError|API\w{0,20}Error|AI_\w{3,30}|ContextWindow\w{0,30}|InvalidRequestError|ClientError)\b"
)
"""Matches the name of an exception of a provider's SDK. The text after it is the provider's refusal,
whatever the SDK appends."""
REPORTED = (
    r"(?i)(?!\[\w+\]\s|\d{3}\s-)[\[\"'(✕❌⎿✗⚠️📝! ]{0,6}(?:[^\s:=\"“«'#]{1,40} ){0,9}?"
    r"\(?(?:\w{0,40}error|\w{0,40}exception|failed|failure|fails|rejected|exhausted|refused|not sent"
    r"|too many (?:\w{1,20} ){0,3}failures)\b"
    r"(?:\s(?!because|when|that|if|as|since|with|like)[^\s:=\"“«]{1,60}){0,8}\s?[:—]\s"
)
"""Matches the beginning of a client's report of one failure: `Batch generation failed: …`, `Message not
sent — …`."""
RETURNED = r"\b(?:returned|status|responded|replied|HTTP|got)\b[^\n]{0,20}\b[45]\d\d\b[^\n]{0,30}$"
"""Matches the end of a text which says that a server answered with the body that follows: `inference
returned 400 Bad Request:`."""
ADVICE = (
    r"(?i)\n\s{0,8}[^\w\s]{0,4}\s{0,3}(?:possible )?(?:solutions?|suggestions?|tips?|hints?|options|try"
    r"|how to fix|to fix|what (?:to|you can) do)\b[^\n]{0,30}:[ \t]{0,4}"
    r"(?:\n[ \t]{0,12}(?:[-*•]|\d\.)[ ][^\n]{1,200}){1,9}\s*$"
)
"""Matches the advice that a client adds after a refusal: a heading and its list, at the end of the text."""
ADVISED = (
    r"(?<=[a-z)][.!]) (?:Please |You can )?(?:Use|Try|Reduce|Start|Choose|Switch|Remove|Shorten|Lower"
    r"|Consider|Select|Compact|Clear|Pick|Split|Narrow)\b[^.\n]{1,200}\.?\s*$"
)
"""Matches the advice that a client adds after a refusal as the last sentence."""
ADVISING = 500
"""`ADVISED` is removed only from a text with fewer characters than this."""
SENTENCE = r"[.!?。！？]+(?=\s|$|[^\x00-\x7f])|[；。！？]"
"""Matches the end of a sentence."""
MEASURES = r"(?<!\S)[a-z][a-z_]{2,80}=[\w().:-]{1,80}(?=\s|$)"
"""Matches a measurement that a logger appends: `total_tokens=117322`."""
FOREIGN_QUOTES = r"«[^»\n]{4,400}»|„[^“”\n]{4,400}[“”]|「[^」\n]{4,400}」|『[^』\n]{4,400}』"
"""Matches a passage in quotation marks of kinds that providers' refusals do not contain."""
LETTERS = r"[^\W\d_]{2,}"
"""Matches a word of two or more letters."""
ERRING = r"(?i)[\d_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]|exceed|overflow|token|too\s?l"
"""Matches what a quoted error contains, but a quoted name of a button, a file or a model does not."""
UNSPACED = r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]"
"""Matches a letter of a script that needs few letters per word and has no spaces."""


@cache
def _layout_pattern() -> re.Pattern[str]:
    """Return the pattern that matches a line of source code, a log, a list, a diff or a test report. It is
    compiled at the first call, because that takes milliseconds."""
    return re.compile(
        r"""^(?:
    [ \t]{0,40}[#]{1,6}\s\S | [ \t]{0,40}(?://|/\*|\*/|\*\s|--\s|<!--|\"{3}|'{3}|\#\s|\#!)
    | >\s | [ \t]{0,40}[-*+•]\s\S | [ \t]{0,40}\|.*\|[ \t]{0,40}$
    | [\w.-]+\s+\|\s\S
    | \[?\d{1,2}:\d\d(?::\d\d)?\]?\s(?:[AP]M\s)?\W?\w+
    | \d\d:\d\d:\d\d[,.]\d+\s--> | [\w.-]{1,20}\s\(?\[?\d\d:\d\d
    | (?:[QA]|Question|Answer):\s
    | (?:msgid|msgstr|INSERT\sINTO|SELECT\s|VALUES\s|RUN\s|COPY\s|ENV\s|FROM\s|panic:|goroutine\s|Caused\sby:)
    | (?:\#\#\[|\\begin|\\section|In\s\[\d|Out\[\d|PS\b.{0,60}>|[A-Z]:\\.{0,60}>|<\sHTTP|\*\s\w)
    | (?:mysql|sqlite|irb.{0,20}|redis.{0,20})> | \w+@[\w.-]+:\S*[$\#]
    | [0-9a-f]{7,40}\s\(? | (?:[\w.-]{1,40},){2,} | [\w.-]{1,40},".*",
    | (?:user|assistant|human|ai|system|bot|agent|me|you|bob|alice|speaker\s?\w*|interviewer|host|guest)\s?:\s
    | (?:Subject|Re|Fwd|Title|title|(?:Expected|Received|Actual|Got)(?=:|\s["'])|Summary|Searching\sfor
        |TODO|FIXME|REM
        |description
        |summary|name|note|label)\b:?\s
    | (?:echo|grep|rg|cat|curl|git|gh|npm|pnpm|python3?|sed|awk|find|ls|cd|make|docker|kubectl)\s\S
    | ;\s | _\w.*_$
    | [A-Z][a-z]{2}\s{1,2}\d{1,2}\s\d\d:\d\d:\d\d\s | [EWI]\d{4}\s | Found\s\d | \#\d+\s | (?:test|Test)\w+\s
    | [ \t]{0,40}(?![45]\d\d\s)\d{1,6}\s(?=[a-z])(?!is\s|exceeds\s)(?!(?:\w+\s)?(?:tokens?
        |characters|bytes|requests|seconds
        |input)\b)
    | [\w-]+(?:\.[\w-]+)+=\w | [\w.-]+\s\|\s.*\| | \w+:\s.*\{\w*\}
    | [+-]\s{0,12}[\w"'(] | @@ | diff\s--git | [ \t]{0,40}\d{1,5}(?:→|\t|\s?[|│])
        | [ \t]{0,40}(?:\$|❯|%|>>>)\s\w
    | (?:\S+[/\\])?[\w.-]+\.(?:pyi?|tsx?|jsx?|mjs|go|rs|exs?|java|kt|rb|php|c|cc|cpp|h|hpp|cs|swift|md|rst|txt
        |jsonl?|ya?ml|toml|log|sh|sql|vue|html)(?:[:(-]\d+|\s*[:-]\s)
    | [ \t]{0,40}\d{1,2}[.)]\s+\S | ={4,} | -{4,} | ```
    | [ \t]{0,40}(?:E|FAILED|PASSED|FAIL|PASS|ok|not\sok|✓|✗|✘|●|===+|---+|___+|\.\.\.)(?:\s|$)
    | [ \t]{0,40}(?:def|class|func|fn|function|async|export|public|private|protected|static|pub|struct
        |interface|enum
        |impl|module|package|namespace)\s+\w+.*[({:;=]
    | [ \t]{0,40}(?:if|elif|else|for|while|return|raise|throw|assert|switch|case|when|try|except|catch
        |import|from
        |const|let|var|yield|await|print|expect|it|test|describe|require|with|match|self|this|unless
        |rescue)\b[\s.(].*[(){}\[\];=:'",][ \t]{0,40}$
    | [ \t]{0,40}(?:return|assert|raise|yield|const|let|var)\s | .*\S[ ](?:=|return)[ \t]{0,40}$
        | .*\S[ ]{2,8}\#[ ]
    | [ \t]{0,40}(?:import|from)\s[\w.{}*,\s]+(?:\simport\s|\sfrom\s|;|$)
    | [ \t]{0,40}["'][^"'\n]{1,200}["']\s*[,)\]}:;+]
    | [ \t]{0,40}[\w.\[\]"'@$]{1,60}\s*(?::\s?[\w.\[\]|,<>\s]{1,40})?\s(?:=|:=|==|\+=|=>|->|\?)\s\S
    | .*[;{][ \t]{0,40}$ | .*["')\]],[ \t]{0,40}$ | .*\)\s*(?:->\s\w+\s*)?:[ \t]{0,40}$
    | \[[xX\s]\]\s | On\s.{5,80}wrote:
    )""",
        re.VERBOSE | re.MULTILINE,
    )


def quotes(text: str, body: Unwrapped, *, answered: bool, coded: bool) -> Literal["", "likely", "surely"]:
    """Return whether `text` quotes an error, and how certain that is; empty if `text` is itself the error.
    `body` is `text` taken apart. `answered` says that a server refused a request with this text; `coded`
    says that the caller knows the error's code. O(characters), for at most `READ` characters outside of
    structured data."""
    if body.is_record and not answered:
        return "surely"
    if coded and answered:
        return ""
    points = _tag_points(text[:READ]) if "<" in text[:READ] else 0
    points += 2 if HOLLOW.search(text[:READ]) is not None else 0
    whole = body.prose[:READ].strip()
    prose = bare(whole).strip()
    logged = prose != whole
    if body.messages:
        prose = "\n".join(line.rstrip(" \t:=-") for line in prose.split("\n"))
    if body.messages and re.search(RETURNED, prose[-MAX_REFUSAL_CHARS:]) is not None:
        points -= 2
    prose = re.sub(ADVICE, "", prose) if "\n" in prose else prose
    prose = re.sub(ADVISED, "", prose) if len(prose) < ADVISING else prose
    if prose:
        points += (
            _layout_points(prose)
            + _telling_points(prose, is_wrapper=bool(body.messages or body.codes))
            + _other_language_points(prose)
        )
        if RAISED.match(prose) is not None:
            points -= 3
        elif re.match(REPORTED, prose + (": " if body.messages else "")) is not None or logged:
            points -= 2
        elif "\n" not in prose and OPENED.match(prose) is not None:
            points -= 1
    if points < (6 if answered or coded else 2):
        return ""
    return "surely" if points >= 5 else "likely"


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
    low = head.lower()
    parsed = any(word in low for word in PARSING) and re.search(PARSED, head) is not None
    return head if parsed else None


def _tag_points(text: str) -> int:
    """Return points for tags in `text` that no server's error page has."""
    tags = {tag for tag in TAGS.findall(text) if tag.lower() not in PLAIN_TAGS}
    return 2 if tags - {"Code"} else 0


def _layout_points(prose: str) -> int:
    """Return points for the look of the lines: signs of source code and logs, placeholders, many lines,
    very long lines."""
    points = 0
    lines = [line for line in prose.split("\n") if line.strip(" \t.,;:|(){}[]")]
    prose = "\n".join(lines)
    marked = sum(1 for _ in islice(_layout_pattern().finditer(prose), 4))
    if marked:
        points += 2 if marked < 4 else 4
    if any(sign in prose and re.search(pattern, prose) is not None for sign, pattern in PATTERNED):
        points += 2
    if len(lines) > 1:
        if len(lines) - sum(1 for _ in re.finditer(KEYED, prose)) >= LINES:
            points += 3
        if sum(1 for _ in re.finditer(STAMPED, prose)) >= 2:
            points += 3
        if "Traceback (most recent" in prose or "\n    at " in prose or '\n  File "' in prose:
            points += 2
    if max(map(len, lines), default=0) > MAX_REFUSAL_CHARS:
        points += 2
    return points


def _unusual_word_points(prose: str, words: list[str]) -> int:
    """Return points for English words that refusals do not use. `words` are the words of `prose`; a text
    in another language gets none."""
    if not prose.isascii() or sum(word in WORDS_OF for word in words) > 2:
        return 0
    plain = WORD.findall(re.sub(NAMES, " ", prose).lower())
    strange = [
        word
        for word in plain
        if len(word) > 1 and word not in FAMILIAR and word not in WORDS and word not in WORDS_OF
    ]
    if len(strange) >= 4 and len(strange) * 4 >= len(plain):
        return 2
    return 1 if len(strange) >= 2 and len(strange) * 6 >= len(plain) else 0


def _other_language_points(prose: str) -> int:
    """Return points for a text in another language than English that has long quotations or at least four
    sentences. Refusals of providers have neither."""
    if prose.isascii():
        return 0
    closed = any(mark in prose for mark in "»“”」』")
    for quoted in islice(re.finditer(FOREIGN_QUOTES, prose), 4 if closed else 0):
        few = sum(1 for _ in re.finditer(LETTERS, quoted.group())) < 3
        if few and re.search(ERRING, quoted.group()) is None:
            continue
        outside = prose[: quoted.start()] + " " + prose[quoted.end() :]
        if (
            sum(1 for _ in islice(re.finditer(LETTERS, outside), 9)) + len(re.findall(UNSPACED, outside)) // 2
            > 8
        ):
            return 3
    size = len(prose) + 3 * sum(1 for _ in re.finditer(UNSPACED, prose))
    return 3 if size > 300 and sum(1 for _ in islice(re.finditer(SENTENCE, prose), 4)) > 3 else 0


def _telling_points(prose: str, *, is_wrapper: bool) -> int:
    """Return points for the words of someone who describes an error. If `is_wrapper`, structured data next
    to `prose` contains the error."""
    if prose.count("/") + prose.count("\\") > 1:
        prose = re.sub(PATHS, " ", prose)
    if "=" in prose:
        prose = re.sub(MEASURES, " ", prose)
    words = WORD.findall(prose.lower())
    if is_wrapper and len(words) < 30:
        words = []
    points = 2 * len(DESCRIBING_WORDS.intersection(words)) + len(HINTING.intersection(words))
    pairs = DESCRIBING_PAIRS.intersection(pairwise(words))
    if pairs:
        strong = len(pairs - POLITE)
        points += 2 * strong + (len(pairs) - strong) // 2
    if len(words) > 1 and words[0] in OPENINGS and not prose[len(words[0]) :].lstrip(" \"'").startswith(":"):
        points += 2 if words[1] != "your" else 0
    if len(PROVIDERS.intersection(words)) > 2:
        points += 2
    if len(re.findall(STATUS, prose)) > 1:
        points += (0, 0, 2, 3)[min(3, len(set(re.findall(STATUSES, prose))))]
    if not is_wrapper or words:
        points += _unusual_word_points(prose, words)
    if (not is_wrapper and '"' in prose) or "“" in prose or " '" in prose:
        for spoken in _quoted_passages(prose, 6):
            before = len(WORD.findall(prose[: spoken.start()].lower()))
            behind = len(WORD.findall(prose[spoken.end() :].lower()))
            said = spoken.group(1)
            if " " in said.strip() and len(said) > 20 and (before + behind >= 8 or behind >= 4):
                points += 2
                break
    if prose.rstrip().endswith("?"):
        points += 2
    return points
