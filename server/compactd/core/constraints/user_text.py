"""Extract the sentences that a user typed: no code, quoted lines, logs, or text that programs put into the
message.

`core/authors/authors.py` says which stretches of a message are the person's. From these, this module leaves
out lines that were copied from a log, a file or a terminal, because a rule in quoted or pasted text is not
the user's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import compress
from typing import Final

from msgspec import Struct

from compactd.core.authors.authors import USER, author_of, spans_of
from compactd.core.authors.typed_parts import typed_parts
from compactd.core.constraints.patterns import LIMIT, NEGATIVE, OTHER_LANGUAGES, STRONG, leaves_no_choice
from compactd.core.history.entries import Item
from compactd.core.text.atoms import sentences
from compactd.core.text.lazy_patterns import LazyPattern
from compactd.core.text.quoting import visible_lines
from compactd.protocol.messages import Text

WRAPPED_CHARS: Final = 50
"""A line with at least this many characters that ends in the middle of a sentence continues on the next
line."""

ITEM_CHARS: Final = 100
"""After a line that announces a list, a longer line without a list marker is not an item of the list."""
LIST_CHARS: Final = 900
"""The most characters of a constraint that includes a list. A longer list gives several constraints."""

LOG_LINES: Final = 4
LOG_SHARE: Final = 0.5
"""If a block of lines has at least `LOG_LINES` lines, and at least this share of them look like a program's
output, the whole block counts as a program's output. (Its first and last line may still be the person's.)"""

_BULLET = LazyPattern(r"\A\s*(?:[-*+•‣–]|\(?\d{1,3}[.)]|[a-z][.)])\s+")
_CERTAIN = LazyPattern(
    r"\s*(?:"
    r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d"  # a date and time
    r"|\[?\d\d:\d\d:\d\d"
    r"|at \S+ ?\(|at \S+:\d+|File \"[^\"]+\", line \d+|Traceback \(|Caused by:|goroutine \d+"
    r"|\d{1,6}(?:→|\||\t)"  # a numbered line of a file
    r"|(?:\+\+\+|---|@@) |diff --git "
    r"|[$%❯➜] \S+ |>>> |\.\.\. |E   +|\(tool\) |\[e\d+ "
    r"|[{}\[\]]+,?\s*$|\"[^\"]*\":|</?\w+[^<>]*>\s*$"
    r"|[A-Za-z_]\w*(?:Error|Exception)\b:"
    r")"
)
"""Beginnings of lines that no person types."""
_LIKELY = LazyPattern(
    r"\s*(?:"
    r"\[?(?:INFO|DEBUG|TRACE|WARN(?:ING)?|ERROR|FATAL|CRITICAL|NOTICE|FAIL(?:ED)?|PASS(?:ED)?|OK)\b[\]: ]"
    r"|(?:npm|yarn|pip|cargo|go|make(?:\[\d+\])?|gcc|ld|fatal|error|warning|note|hint|remote)"
    r"(?: ERR!| WARN|:|\[\w+\]:)"
    r"|[\w./\\-]+:\d+(?::\d+)?:"  # a place in a file
    r"|[+-](?=\S*[;{}()=])"
    r")"
)
"""Beginnings of lines that programs print and that people sometimes type. A single such line counts as the
person's."""
_LABELLED = LazyPattern(r"\s*(?:CRITICAL|WARNING|NOTICE|NOTE)\s*:\s", re.IGNORECASE)
"""A label such as `WARNING:`, with which people begin an important rule and programs begin a log line."""
_REPORTS = LazyPattern(
    r"\b(?:logs?|output|console|terminal|std(?:err|out)|says?|(?<!\bI )said|prints?|printed|shows?|showed"
    r"|reports?|reported|got|gets?|gave|errors?|warnings?|saw|sees?|response|returned|returns)\b",
    re.IGNORECASE,
)
"""Words in a line that announces a program's output."""
_LIMIT_VERBS = LazyPattern(
    r"(?:use|keep|limit|stay|set|have|write|make|allow|give|take|at|max(?:imum)?|no)\b", re.IGNORECASE
)
_IN_QUOTES = LazyPattern(r"`[^`]*`|\"[^\"]*\"")
_CODE = LazyPattern(r"[{}();=<>]")
_PROSE = LazyPattern(r"(?<!\S)[^\W\d_][\w'’-]*[.,:;!]?(?!\S)|[^\x00-\x7f]{4,}")
PROSE_WORDS: Final = 3
SENTENCE_WORDS: Final = 6
"""A line with this many plain words outside backticks is a sentence about the code inside."""
_BACKTICKS = LazyPattern(r"`[^`]*`")
_WITHOUT_CODE_SIGNS = str.maketrans("", "", "{}()[];=<>|\\$&*#@~^+_")
_CONTINUATION = LazyPattern(
    r"(?:unless|until|except|if|when|while|because|before|after|without|and|or|but|nor|that|which|to|for"
    r"|with|in|on|of"
    r"|as|than|so|by|at|from|wenn|bevor|ohne|außer|und|oder|sauf|sans|et|ou|si|salvo|sin|y|o)\b",
    re.IGNORECASE,
)
"""Words that begin the continuation of a wrapped line, even if the line before is short."""
_KEEPS = LazyPattern(
    r"(?:please\s+|and\s+|but\s+|also\s+)*(?:keep|leave|make\s+sure|ensure)\b", re.IGNORECASE
)
_HEADING = LazyPattern(r"\s*#{1,6}\s+\S|\s*(?P<bold>\*\*|__)(?:(?!(?P=bold)).){1,200}(?P=bold)\s*[:：]?\s*\Z")
"""A Markdown heading, or a line that is completely bold."""
_MARKUP = LazyPattern(
    r"^\s*#{1,6}\s+|\s#++\s*+$|(?<!\w)[*_]{1,3}|[*_]{1,3}(?!\w)|</?(?:b|strong|em|i|u|mark)>", re.IGNORECASE
)
_BOLD = LazyPattern(
    r"\*\*(?=[^\s*])[^*\n]{1,200}\*\*|(?<![\w.])__(?=[^\s_])[^_\n]{1,200}__(?![\w(.])"
    r"|</?(?:b|strong|em|i|u|mark)>",
    re.IGNORECASE,
)
"""Bold words, and tags for emphasis; their signs do not mean that the line is code."""
_FENCE = LazyPattern(r"^[ \t>]*+(?:(?:[-*+]|\d{1,9}[.)])[ \t]++)?(?:```|~~~)", re.MULTILINE)
_REPORTED = LazyPattern(
    r"^(?=[^\n]{1,200}[:：][ \t*_]*$)(?![ \t]*(?:I|we)\b)[^\n]*\b(?:says?|said|states?|stated|reads|wrote"
    r"|writes|written|shows?|showed"
    r"|prints?|printed|outputs?|outputted|tells?|told\s+me|returned|returns|replied|answered|mentions?"
    r"|contains?|got|gave|according|quote[sd]?|quoting"
    r"|excerpt|copied|pasted|paste|readme|docs?|documentation|email|e-mail|mail|message|slack|ticket"
    r"|issue|comment|log|logs|review(?:er)?"
    r"|file|page|article|snippet|text|\w+\.(?:md|txt|rst|log)|from|sagt\w*|schreibt|schrieb|steht|meldet"
    r"|lautet|dit|[ée]crit|affiche|indique"
    r"|dice|dijo|muestra|pone|diz|disse|mostra|zegt|schrijft|säger|skriver|siger|sier|mówi|pisze|говорит"
    r"|пишет|сказано|написано|diyor|yazıyor"
    r")\b[^\n]*$|^[^\n]{0,200}(?:说|写|写着|表示|書いて|言って|あります|말|적혀)[^\n]{0,40}[:：][ \t]*$",
    re.MULTILINE | re.IGNORECASE,
)
"""A line that announces someone else's words."""
BLANKS: Final = 3
"""At most this many blank lines may be between a line and the list that it announces."""
_HASHES = LazyPattern(r"^\s*#{1,6}\s+|\s#++\s*+$")
_ENDS: Final = ":：;,.!。；，！"
_OPEN_END = LazyPattern(
    r"(?:[:：\-–—…>↓⬇👇]|\.\.\.)\ufe0f?\Z|\b(?:to|from|into|of|in|on|with|the|any|either|touch|change)\Z",
    re.IGNORECASE,
)
"""The end of a line that is not complete without the lines after it."""
_REFERS = LazyPattern(
    r"\b(?:following|below|(?:any|none|all|one|each|either)\s+of\s+(?:this|these|those)|these(?:\s+\w+)?\W*\Z"
    r"|folgende[ns]?|suivante?s?|siguientes?|seguintes?|seguenti|volgende|följande)\b|以下|下列|다음",
    re.IGNORECASE,
)
"""Words that refer to the text below."""
_LEAD_NAMES = r"""
(?:non[- ]?goals?|out\s+of\s+(?:scope|bounds)|do\s?n['’`]?t['’`]?s|do\s+nots|no[- ]?go['’`]?e?s?|restrictions?
|constraints?|limit(?:ation)?s|no|taboos?)
"""
_LEAD_CUES = r"""
(?:never|do\s*n['’`]?t|do\s+not|(?:must|should|shall|may|can|will|could|would)(?:\s+not|\s*n['’`]?t)
    |cannot|avoid
|refrain|(?:not|n['’`]t)\s+(?:be\s+)?(?:allowed|permitted|ok(?:ay)?|acceptable|to\s+(?:do|touch|change|use))
|forbidden|prohibited|disallowed|banned|off[- ]limits|hands\s+off|under\s+no\s+circumstances|stay\s+away
|not\s*(?=\W*\Z))
"""
_LEAD_FILLERS = r"""
(?:(?:please|also|and|but|or|so|then|you|we|they|it|agents?|ever|do|be|is|are|have|to|the|a|an|any|all|of
    |this|that
|these|those|following|below|here|things?|stuff|anything|everything|what|which|strictly|absolutely
  |completely|explicitly|touch
|change|edit|modify|use|delete|remove|add|rename|move|run|do|list|files?|folders?|directories|paths?
  |items?|actions?
|commands?|ones?|from|in|on|at|by|with|as|me|must|should|may|can|will|ok(?:ay)?|allowed|permitted|important
|critical|warning|note|hard|limits?)\b|[^\w\n])*+
"""
_BARE_LEAD = LazyPattern(
    rf"\A{_LEAD_FILLERS}(?:{_LEAD_CUES}(?!\w){_LEAD_FILLERS})++\Z|\A[\W\d]*{_LEAD_NAMES}\W*\Z",
    re.IGNORECASE | re.VERBOSE,
)
"""A line such as `Do not touch:` or `Constraints` that forbids something but does not say what. The lines
below it do."""
LEAD_WORDS: Final = 3
"""A line with at most this many words, a negation and no full stop announces the list below it."""
LEAD_CHARS: Final = 160

_ABBREVIATED = LazyPattern(
    r"\b(?:(?i:e\.g|i\.e|etc|vs|cf|resp|approx|incl|nr|dr|mr|mrs|fig|bzw|ca|z\.\s?B|p\.\s?ex)|[A-Z])\.$"
)


class TypedSentence(Struct, frozen=True):
    """A sentence that the user typed, joined to one line."""

    text: str
    lines: tuple[str, ...] = ()
    """The lines that the sentence was on, if there are several, without list markers."""
    is_sure: bool = True
    """False if an earlier line announces someone else's words, or if the sentence is between two code
    fences."""


def typed_sentences(item: Item) -> Iterator[TypedSentence]:
    """Yield the sentences that the user typed in this message, in order. A sentence over several lines is
    joined. There are none if no person wrote the message.

    Of a text longer than `OWN_WORDS_CHARS`, only the first and the last quarter of that number of characters
    count as typed. O(characters).
    """
    message = item.message
    if message.role != "user":
        return
    for block in message.content:
        if isinstance(block, Text) and author_of(message, block) == USER:
            yield from _part_sentences(block.text, typed_parts(block.text, spans_of(message, block)))


def _part_sentences(text: str, parts: Iterable[tuple[int, int, bool]]) -> Iterator[TypedSentence]:
    """Yield the sentences of `text` in those of its `parts` that are typed. `parts` are what `typed_parts`
    yields for `text`.

    Some of them may be pasted and are marked as not sure: those between the first and the last of several
    code fences, because it is not always clear which fences belong together, and those after a line such as
    `The README says:`.
    """
    fences = [found.start() for found in _FENCE.finditer(text)]
    first, last = (fences[0], fences[-1]) if len(fences) > 2 else (len(text), len(text))
    is_reported = False
    for start, end, is_own in parts:
        if not is_own:
            continue
        part = text[start:end]
        report = _REPORTED.search(part)
        sure: frozenset[str] | None = None
        if is_reported or first <= start < last:
            sure = frozenset()
        elif report is not None:
            sure = frozenset(said.text for said in sentences_in(part[: report.start()]))
        is_reported = is_reported or report is not None
        for said in sentences_in(part):
            yield said if sure is None or said.text in sure else _as_unsure(said)


def _as_unsure(said: TypedSentence) -> TypedSentence:
    return TypedSentence(said.text, said.lines, is_sure=False)


def sentences_in(text: str) -> Iterator[TypedSentence]:
    """Yield the sentences of a text, without lines that were copied from somewhere else.

    A sentence that sets a limit and announces a list includes the list, so that an item that the list forbids
    is not read as a wish. O(characters).
    """
    lines = list(_typed_lines(visible_lines(text)))
    at = 0
    while at < len(lines):
        line, at = lines[at], at + 1
        if not line.text:
            continue
        parts = list(_rejoin_sentences(sentences(line.text)))
        lead = parts[-1] if parts else ""
        opens = _opening(lead, is_line=len(parts) == 1) if at < len(lines) else NO_LIST
        below = at + _length_of_list(lines, at, opens) if opens else at
        items = [item for item in lines[at:below] if item.text]
        if not items or not (_forbids(lead) or not all(leaves_no_choice(item.text) for item in items)):
            yield from (_on_lines(part, line) for part in parts)
            continue
        yield from (_on_lines(part, line) for part in parts[:-1])
        yield from _with_list(lead, items)
        at = below


def _on_lines(sentence: str, line: _Line) -> TypedSentence:
    return TypedSentence(sentence, tuple(one for one in line.lines if one in sentence))


NO_LIST, ITEMS, LINES, ANY_LINES = range(4)
"""What belongs to a sentence of the lines below that sentence: nothing, list items, also short lines without
a list marker, or also long ones."""


def _opening(sentence: str, *, is_line: bool) -> int:
    """Return which lines below a sentence belong to it (`NO_LIST` to `ANY_LINES`). `is_line` means that the
    sentence is a whole line."""
    if len(sentence) > LEAD_CHARS and not sentence.endswith((":", "：")):
        return NO_LIST
    bare = _without_markup(without_bullet(sentence))
    if is_line and len(bare) <= LEAD_CHARS and _BARE_LEAD.match(bare) is not None:
        return ANY_LINES
    ends_with_colon = bare.endswith((":", "："))
    if not is_line and not ends_with_colon:
        return NO_LIST
    demands = leaves_no_choice(bare) or _KEEPS.match(bare) is not None
    has_open_end = _OPEN_END.search(bare) is not None
    if ends_with_colon:
        return LINES if demands or (_forbids(bare) and len(bare.split()) <= LEAD_WORDS) else NO_LIST
    if not (demands or _forbids(bare)):
        return NO_LIST
    if _HEADING.match(sentence) is not None:
        return LINES
    if demands and has_open_end:
        return LINES
    if demands and _REFERS.search(bare) is not None:
        return ITEMS
    is_short = len(bare.split()) <= LEAD_WORDS and bare[-1:] not in ".!?。！？"
    return ITEMS if is_short and _forbids(bare) else NO_LIST


def _without_markup(line: str) -> str:
    return _MARKUP.sub("", line).strip()


def _forbids(sentence: str) -> bool:
    return NEGATIVE.search(sentence) is not None


def _length_of_list(lines: list[_Line], at: int, opens: int) -> int:
    """Return how many lines from index `at` on are a list: list items, or lines without list markers up to
    the next blank line, if `opens` allows these."""
    first = next((nth for nth in range(at, min(at + BLANKS + 1, len(lines))) if lines[nth].text), at)
    if first == len(lines):
        return 0
    if not lines[first].is_item:
        # A line without a list marker belongs to the line directly above it, or to a heading.
        if opens < LINES or (first > at and opens < ANY_LINES and not lines[at - 1].is_heading):
            return 0
        most = LIST_CHARS if opens == ANY_LINES else ITEM_CHARS
        end = first
        while end < len(lines) and 0 < len(lines[end].text) <= most and not _begins_another(lines[end]):
            end += 1
        return end - at if end > first else 0
    end = last = first
    while end < len(lines) and (lines[end].is_item or not lines[end].text or lines[end].is_indented):
        end += 1
        if lines[end - 1].text:
            last = end
    return last - at


def _begins_another(line: _Line) -> bool:
    """Return whether `line` begins something new, so that a list without list markers ends before it."""
    return (
        line.is_item
        or line.is_heading
        or line.text.endswith((":", "："))
        or _opening(line.text, is_line=True) > ITEMS
    )


def _with_list(lead: str, items: list[_Line]) -> Iterator[TypedSentence]:
    """Yield `lead`, a sentence that announces a list, joined with the list's items. If there are too many
    items for one sentence, yield several, each with the lead."""
    shown = _HASHES.sub("", lead).strip()
    begin = shown if _without_markup(shown)[-1:] in _ENDS else f"{shown}:"
    text, lines = begin, [lead, without_bullet(lead)]
    for item in items:
        if text != begin and len(text) + len(item.text) + 2 > LIST_CHARS:
            yield TypedSentence(text, tuple(lines))
            text, lines = begin, [lead, without_bullet(lead)]
        between = " " if text == begin or text.endswith(tuple(_ENDS)) else "; "
        text = f"{text}{between}{item.text}"
        lines += item.lines or (item.text,)
    yield TypedSentence(text, tuple(lines))


def without_bullet(line: str) -> str:
    """Return `line` without a list marker at its beginning."""
    return _BULLET.sub("", visible_lines(line), count=1).strip()


class _Line(Struct, frozen=True):
    """A typed line, joined with the lines that continue it. For a blank line, `text` is empty."""

    text: str
    is_item: bool = False
    is_indented: bool = False
    is_heading: bool = False
    lines: tuple[str, ...] = ()
    """The lines that this line was joined from, if there are several."""


_BLANK: Final = _Line("")


def _typed_lines(text: str) -> Iterator[_Line]:
    """Yield the typed lines of a text, with wrapped lines joined, and the blank lines between them."""
    for block, are_typed in _blocks(text):
        yield from _join_wrapped(list(compress(block, are_typed)))
        yield _BLANK


def are_typed(text: str) -> list[bool]:
    """Return, for each line of a text (see `visible_lines`), whether the user typed it. Blank lines count as
    not typed. O(characters)."""
    found: list[bool] = []
    for block, typed in _blocks(visible_lines(text)):
        found += (*typed, False) if block else (False,)
    return found[:-1]


def _blocks(text: str) -> Iterator[tuple[list[str], list[bool]]]:
    """Yield the blocks of a text: the lines before each blank line, and for each line whether a person typed
    it. A blank line after another one, or at the beginning, gives an empty block. The text counts as if a
    blank line followed it."""
    block: list[str] = []
    before = ""
    for line in (*_without_common_indent(text.split("\n")), ""):
        if line.strip():
            block.append(line)
            continue
        typed = _typed_of(block, before)
        yield block, typed
        before = block[-1] if any(typed) else before
        block = []


def _without_common_indent(lines: list[str]) -> list[str]:
    """Remove the indentation that all lines share, because a message that is indented as a whole is not a
    quotation."""
    indents = {line[: len(line) - len(line.lstrip(" \t"))] for line in lines if line.strip()}
    common = min(indents, key=len, default="")
    if not common or not all(indent.startswith(common) for indent in indents):
        return lines
    return [line.removeprefix(common) for line in lines]


def _typed_of(block: list[str], before: str) -> list[bool]:
    """Return, for each line of a block (between two blank lines), whether a person typed it. `before` is the
    last line before the block.

    A line that may be a program's (`LIKELY`) counts as a program's only if there are at least two in a row or
    if it reports a limit, because a single one may be a person's `WARNING: never do this`. All lines count as
    typed if each that looks like a program's is a rule with such a label, and no line before announces a
    program's output.
    """
    kinds = [_kind(line) for line in block]
    if _are_labelled_demands(block, kinds, before):
        return [True] * len(block)
    foreign = [kind == CERTAIN for kind in kinds]
    for nth, kind in enumerate(kinds):
        if kind == LIKELY:
            run = (nth and kinds[nth - 1] != TYPED) or (nth + 1 < len(kinds) and kinds[nth + 1] != TYPED)
            foreign[nth] = bool(run) or _reports_limit(block[nth])
    looks = sum(kind != TYPED for kind in kinds)
    if len(block) >= LOG_LINES and any(foreign) and looks >= LOG_SHARE * len(block):
        # People write before and after what they paste.
        first = not foreign[0] and _has_strong_cue(block[0])
        return [first, *[False] * (len(block) - 2), not foreign[-1]]
    return [not is_foreign for is_foreign in foreign]


def _are_labelled_demands(block: list[str], kinds: list[int], before: str) -> bool:
    """Return whether all lines that look like a program's are rules with a label, as in
    `WARNING: never do this`, and no line before them announces a program's output."""
    likely = [nth for nth, kind in enumerate(kinds) if kind != TYPED]
    if not all(_LABELLED.match(block[nth]) is not None and _has_strong_cue(block[nth]) for nth in likely):
        return False
    lead = (before, *block)[likely[0]].strip() if likely else ""
    return not (
        lead.endswith((":", "：")) and _REPORTS.search(lead) is not None and not _has_strong_cue(lead)
    )


def _has_strong_cue(text: str) -> bool:
    unquoted = _IN_QUOTES.sub(" ", text)
    return STRONG.search(unquoted) is not None or OTHER_LANGUAGES.search(unquoted) is not None


def _reports_limit(line: str) -> bool:
    """Return whether a line only reports a limit, such as `WARN: capped at 30s`, instead of setting one."""
    if LIMIT.search(line) is None or _has_strong_cue(line):
        return False
    head = _LIKELY.match(line)
    return _LIMIT_VERBS.match(line[head.end() if head is not None else 0 :].lstrip()) is None


TYPED, LIKELY, CERTAIN = range(3)


def _kind(line: str) -> int:
    """Return whether a person typed a line (`TYPED`). If not, the line was quoted, or copied from a log, a
    file, a terminal or someone else's message (`CERTAIN`). `LIKELY` means that it looks copied but that a
    person may have typed it."""
    if line.lstrip().startswith((">", "|")):
        return CERTAIN
    is_item = _BULLET.match(line) is not None
    if line.startswith(("    ", "\t")) and not is_item:
        return CERTAIN
    bare = line.strip()
    if not is_item and _CERTAIN.match(bare) is not None:
        return CERTAIN
    plain = _BOLD.sub("", bare) if "**" in bare or "__" in bare or "<" in bare else bare
    outside = _BACKTICKS.sub(" ", plain)
    if outside != plain and len(_PROSE.findall(outside)) >= SENTENCE_WORDS:
        # Code in backticks is part of the person's sentence.
        bare = plain = outside
    signs = len(plain) - len(plain.translate(_WITHOUT_CODE_SIGNS))
    if (signs >= 4 and signs * 8 > len(bare)) or '":' in bare or '"}' in bare or r"\n\n" in bare:
        return TYPED if _is_prose(bare) else CERTAIN
    return LIKELY if not is_item and _LIKELY.match(bare) is not None else TYPED


def _is_prose(bare: str) -> bool:
    """Return whether a line with signs of code or data is a demand that mentions code: whether it demands
    something before the first sign and has at least `PROSE_WORDS` plain words."""
    bare = _IN_QUOTES.sub(" ", without_bullet(bare))
    code = _CODE.search(bare)
    return (
        _has_strong_cue(bare[: code.start()] if code is not None else bare)
        and len(_PROSE.findall(bare)) >= PROSE_WORDS
    )


def _join_wrapped(lines: list[str]) -> Iterator[_Line]:
    """Yield `lines`. If several of them are one line that was wrapped, they are joined."""
    waiting: list[str] = []
    begins = ""
    for line in lines:
        bare = line.strip()
        if waiting and _BULLET.match(line) is None and _continues_line(waiting, bare):
            waiting.append(bare)
            continue
        if waiting:
            yield _line(begins, waiting)
        begins, waiting = line, [without_bullet(line)]
    if waiting:
        yield _line(begins, waiting)


def _continues_line(lines: list[str], bare: str) -> bool:
    """Return whether the line `bare` continues `lines`, the parts of a wrapped line."""
    if lines[-1].endswith((".", "!", "?", ":", ";", "。", "！", "？", "：")) or not bare[:1].islower():
        return False
    return sum(map(len, lines)) >= WRAPPED_CHARS or _CONTINUATION.match(bare) is not None


def _line(begins: str, lines: list[str]) -> _Line:
    return _Line(
        " ".join(lines),
        is_item=_BULLET.match(begins) is not None,
        is_indented=begins[:1] in (" ", "\t"),
        is_heading=_HEADING.match(begins) is not None,
        lines=tuple(lines) if len(lines) > 1 else (),
    )


def _rejoin_sentences(parts: list[str]) -> Iterator[str]:
    """Yield the sentences `parts`. Parts that were split after an abbreviation are joined again."""
    waiting = ""
    for part in parts:
        waiting = f"{waiting} {part.strip()}" if waiting else part.strip()
        if _ABBREVIATED.search(waiting[-12:]) is None:
            yield waiting
            waiting = ""
    if waiting:
        yield waiting
