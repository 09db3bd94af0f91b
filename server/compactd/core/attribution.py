"""What a model's summary says in the user's name, held against what the user typed.

A summary's text is the model's, and the model read what tools printed. A line that it puts under Constraints
or Goal, or anywhere in the user's name ("the user allowed it"), stays where it is only if the user's typed
sentences hold it. Any other line becomes a remark of the model's. A reference such as `[e12]` stays only
where that message exists and, behind a line in the user's name, where the user wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from compactd.core.answers import heading_of
from compactd.core.atoms import COMMON_WORDS, words_of_chunk
from compactd.core.authors import stretches
from compactd.core.constraints import is_constraint
from compactd.core.cues import NEGATIVE, pattern
from compactd.core.entries import EntryId, Item
from compactd.core.quoting import OWN, SIGN, neutral, without_frames
from compactd.core.record import NONE
from compactd.core.summary import under_heading
from compactd.core.typed import typed_sentences
from compactd.messages import Document, Message

REMARK: Final = "(model) "
"""Begins a line that the model put in the user's name and the user's words do not hold."""

RULE_SHARE: Final = 0.8
"""Of the telling words of a rule, those that one typed sentence must hold."""
CLAIM_SHARE: Final = 0.5
"""Of the telling words of a goal, or of what is told of the user, those that the user's words must hold."""
FOREIGN_SHARE: Final = 1 / 3
"""Of the telling words of a goal that the user's words do not hold, those that foreign text holds if the goal
came from there."""
GOAL_CHARS: Final = 300
"""Of a typed sentence that stands for a goal which was taken out."""

_RULES = re.compile(
    r"constraint|preference|\brules?\b|requirement|instruction|polic(?:y|ies)|permission|\bmust\b|\buser\b"
    r"|do(?:n['’]?t| not)s?\b"
)
_GOALS = re.compile(r"\bgoals?\b|objective|\btask\b|\brequests?\b|\bintent\b|\baims?\b")
_VERB = (
    r"want|wish|ask|said|say|told|tell|request|requir|demand|allow|permit|approv|agree|confirm|accept|prefer"
    r"|instruct|insist|authori|grant|need|expect|decid|chose|choos|specif|stat|mention|forb|prohibit|consent|ok"
    r"|gave|give|set|like|must|order|command|direct|clarif|emphasi|reiterat|stress"
)
_IN_THE_USERS_NAME = re.compile(
    rf"\busers?(?:['’]s)?(?:\s+(?:has|had|have|also|then|now|explicitly|already|later|who|is|was|would))*\s+(?:{_VERB})"
    r"|\b(?:by|per|from|for|according to)\s+(?:the\s+)?user\b"
    r"|\busers?['’]s?\s+\w+"
    r"|\buser[- ](?:approved|requested|specified|confirmed|required|authori[sz]ed|mandated|stated)\b",
    re.IGNORECASE,
)
_REFERENCE = re.compile(r"\s*\[((?:e\d{1,18})(?:\s*,\s*e\d{1,18})*)\]")
_LIKE_REFERENCE = re.compile(r"\[(?=[\s\ufffd]*e\d)(?!e\d{1,18}(?:\s*,\s*e\d{1,18})*\])", re.IGNORECASE)
"""What passes for a reference and is none that is looked up: `[e12 · user]`, `[ e12]`."""
_NUMBER = re.compile(r"(?<![\w.-])\d+(?:[.,]\d+)*(?![\w-])")
_ITEM = re.compile(r"\A(\s*(?:[-*•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?)?(.*)\Z", re.DOTALL)
_UNDERLINE = re.compile(r"\A\s{0,3}(?:=+|-+)\s*\Z")
_PERMITS = re.compile(
    r"\b(?:allow|permit|approv|agree|authori|grant|consent|accept|confirm|free to|may\b|can\b"
    r"|ok(?:ay)? (?:to|with))",
    re.IGNORECASE,
)
_TOLD = re.compile(
    r"\A\W*(?:the\s+)?users?\s+(?:(?:has|had|also|explicitly|then|now)\s+)*"
    r"(?:said|says|asked|asks|wants?|wanted|requested|told|stated)(?:\s+(?:that|us|me|to)\b)*[\s:,]*",
    re.IGNORECASE,
)
"""Before what the user said, that they said it."""
_AFFIRMS = frozenset(("always", "must", "only", "may", "can", "allow", "allowed", "free", "every", "any"))
_CLAUSE = re.compile(r"[,;:.!?–—-]\s*(?:(?:and|but|then|also|please|und|aber|et|y)\s+)*$")
_USERS = frozenset(("user", "users", "said", "asked", "wants", "wanted", "requested", "told", "according"))


_WORD = re.compile(r"[^\W\d_]+")
_HEADING_WORDS = """
a all an and any as asked at by constraint constraints do don explicit for from general given goal goals
hard instruction instructions intent key limit limits made must no not objective objectives of on other
permission permissions policies policy preference preferences request requested requests required
requirement requirements rule rules s said set should stated t task tasks that the their to user users want
wants what which who have has needs
"""
_OF_HEADINGS = frozenset(_HEADING_WORDS.split())
"""Words of headings under which the user's words stand; they claim nothing."""
INNER_WORDS: Final = 3
"""Telling words of a heading between the user's rules, at most; with more it is a rule itself."""
_PLAIN = re.compile(r"[\w\s,&/'’-]*")
"""A heading without a mark, a label or a reference."""


class Attributed(Struct, frozen=True):
    """A model's summary with nothing in the user's name that the user did not say."""

    text: str
    remarks: tuple[str, ...] = ()
    """The lines that became remarks, as the model wrote them."""


class _Sentence(Struct, frozen=True):
    words: frozenset[str]
    folded: str
    """In lower case, with one blank between words."""
    entry_id: EntryId
    negatives: int
    """How many words in it deny or forbid."""
    numbers: frozenset[str]

    def says(self, rule: _Sentence) -> bool:
        """Whether this sentence sets that rule: it holds the words or nearly all of them, its numbers and
        what makes it affirm, and denies as often. A part of a sentence counts from where a clause begins."""
        at = self.folded.find(rule.folded)
        if at >= 0 and (
            self.negatives == rule.negatives or (at > 0 and _CLAUSE.search(self.folded[:at]) is not None)
        ):
            return True
        return (
            self.negatives == rule.negatives
            and rule.numbers <= self.numbers
            and (rule.words & _AFFIRMS) <= self.words
            and len(rule.words & self.words) >= RULE_SHARE * len(rule.words)
        )


class ForeignWords:
    """What neither the user nor the model wrote in a conversation."""

    def __init__(self, originals: Iterable[Item]) -> None:
        self._originals = originals
        self._texts: list[str] | None = None

    def holds(self, line: str) -> bool:
        """Whether foreign text holds a third of the telling words of `line`. O(foreign text × words)."""
        if self._texts is None:
            self._texts = [text.lower() for item in self._originals for text in _foreign_texts(item.message)]
        words = _telling(line)
        open_ = set(words)
        for text in self._texts:
            open_ = {word for word in open_ if word not in text}
            if len(words) - len(open_) >= max(1, FOREIGN_SHARE * len(words)):
                return True
        return False


class TypedWords:
    """What the user typed in a conversation: sentence by sentence, and message by message."""

    def __init__(self, originals: Iterable[Item]) -> None:
        """`originals`: every message, oldest first. O(characters that users typed)."""
        self.first = self.last = ""
        self._sentences: list[_Sentence] = []
        self._words: set[str] = set()
        self.entry_ids: set[EntryId] = set()
        for item in originals:
            self.entry_ids.add(item.entry_id)
            opening = ""
            for sentence in typed_sentences(item):
                told = _sentence(sentence, item.entry_id)
                self._sentences.append(told)
                self._words |= told.words
                opening = opening or sentence
            if opening:
                said = f"- {neutral(opening[:GOAL_CHARS])} [{item.entry_id}]"
                self.first = self.first or said
                self.last = said

    def holds_rule(self, line: str) -> EntryId | None:
        """The newest message in which one typed sentence holds this rule: the same words, or nearly, with
        the same numbers, forbidding what it forbids. O(sentences)."""
        rule = _sentence(line, "")
        if not rule.words:
            return None
        return next((one.entry_id for one in reversed(self._sentences) if one.says(rule)), None)

    def holds_claim(self, line: str) -> bool:
        """Whether the user's words hold half of the telling words of what is said in the user's name. A limit
        or a permission must be in one typed sentence, as a rule is. O(sentences)."""
        words = _telling(line) - _USERS
        if not words:
            return True
        if is_constraint(line) or _PERMITS.search(line) is not None:
            return self.holds_rule(_TOLD.sub("", line, count=1)) is not None
        return len(words & self._words) >= CLAIM_SHARE * len(words)


def attributed(
    body: str,
    typed: TypedWords,
    foreign: ForeignWords,
    *,
    rules: Collection[str],
    mixed: Collection[str],
    remarks_under: str,
    fits: Callable[[str], bool],
) -> Attributed:
    """`body`, a model's summary, with its lines in the user's name checked.

    `rules`: headings (as `heading_of` gives them) under which each line is a rule of the user's; `mixed`:
    headings under which a line that sets a limit is one. Headings that mean the same in other words count
    too, however they are written. A rule or a
    claim stays if the user's words hold it; a goal also if no foreign text holds it. Remarks go under the
    heading `remarks_under`, and the user's first and last request under a goal that was left empty, as far
    as the text `fits`. O(lines × typed sentences).
    """
    lines = [_LIKE_REFERENCE.sub(f"[{SIGN}", without_frames(line)) for line in body.split("\n")]
    kept: list[str] = []
    remarks: list[str] = []
    kind, at_goal, goals = "", -1, 0
    within: list[tuple[int, str]] = []
    for at, line in enumerate(lines):
        following = lines[at + 1] if at + 1 < len(lines) else ""
        heading = _heading(line, following)
        if heading is not None:
            words, depth = heading
            while within and within[-1][0] >= depth:
                within.pop()
            outer = within[-1][1] if within else ""
            is_inner = outer == "rules"
            # Below the user's rules nothing is a goal, which would be asked for less.
            kind = outer if is_inner else _kind(words, rules, mixed) or outer
            within.append((depth, kind))
            if _says_nothing(words, typed, is_inner=is_inner):
                kept.append(line)
                if kind == "goal":
                    at_goal = len(kept)
                continue
            if line.strip():
                remarks.append(line.strip("# *_:\t"))
            continue
        found = _ITEM.match(line)
        said = found[2] if found is not None else line
        if not said.strip() or said.strip() == NONE or _UNDERLINE.match(line):
            kept.append(line)
            continue
        if _stays(said, kind, typed, foreign):
            kept.append(_with_references(line, typed, kind))
            goals += kind == "goal"
        else:
            remarks.append(said.strip())
    if not remarks:
        return Attributed("\n".join(kept))
    moved = [f"- {REMARK}{neutral(_REFERENCE.sub('', remark))}" for remark in remarks]
    asked = list(dict.fromkeys(filter(None, (typed.first, typed.last)))) if at_goal >= 0 and not goals else []
    while True:
        text = "\n".join(_filled([*kept[:at_goal], *asked, *kept[at_goal:]] if asked else kept))
        if moved:
            text = under_heading(text, "\n".join(moved), remarks_under)
        if fits(text) or not (asked or moved):
            return Attributed(text, tuple(remarks))
        (asked if len(asked) > 1 or not moved else moved).pop()


def _stays(said: str, kind: str, typed: TypedWords, foreign: ForeignWords) -> bool:
    bare = _REFERENCE.sub("", said).strip()
    if kind == "rules" or (kind == "mixed" and is_constraint(bare)):
        return typed.holds_rule(bare) is not None
    if _IN_THE_USERS_NAME.search(bare) is not None:
        return typed.holds_claim(bare)
    return kind != "goal" or typed.holds_claim(bare) or not foreign.holds(bare)


def _heading(line: str, following: str) -> tuple[str, int] | None:
    """(words in lower case, level) of a heading, however it is written; none for any other line."""
    bare = line.strip()
    if not bare:
        return None
    if bare.startswith("#"):
        return heading_of(line) or bare.strip("#* :").lower(), max(2, len(bare) - len(bare.lstrip("#")))
    if _UNDERLINE.match(following) and len(following.strip()) >= 2 and _ITEM.match(line)[1] is None:  # type: ignore[index]  # it matches any line
        return " ".join(bare.strip("*: ").lower().replace(" and ", " & ").split()), 2
    if bare.startswith(("**", "__")) and bare.rstrip(": ").endswith(("**", "__")):
        return " ".join(bare.strip("*_: ").lower().replace(" and ", " & ").split()), 3
    if bare.endswith(":") and len(bare) <= 60 and _ITEM.match(line)[1] is None:  # type: ignore[index]  # as above
        return " ".join(bare.strip("*_: ").lower().replace(" and ", " & ").split()), 4
    return None


def _says_nothing(words: str, typed: TypedWords, *, is_inner: bool) -> bool:
    """Whether a heading only names what follows: it claims nothing in the user's name that the user did not
    say, and, with `is_inner` under the user's rules, is short."""
    telling = [word for word in _WORD.findall(words) if word not in _OF_HEADINGS]
    is_plain = _PLAIN.fullmatch(words) is not None
    if not telling and (is_plain or not is_inner):
        return True
    if is_inner and (len(telling) > INNER_WORDS or not is_plain):
        return typed.holds_rule(words) is not None
    if is_constraint(words) or _IN_THE_USERS_NAME.search(words) is not None:
        return typed.holds_claim(words)
    return True


def _kind(words: str, rules: Collection[str], mixed: Collection[str]) -> str:
    if words in rules:
        return "rules"
    if words in mixed:
        return "mixed"
    if _RULES.search(words) is not None:
        return "rules"
    return "goal" if _GOALS.search(words) is not None else ""


def _with_references(line: str, typed: TypedWords, kind: str) -> str:
    """`line` with the references that are true: to messages there are, and in a rule to the user's."""
    if _REFERENCE.search(line) is None:
        return line
    if kind == "rules":
        source = typed.holds_rule(_REFERENCE.sub("", _ITEM.match(line)[2]))  # type: ignore[index]  # as above
        bare = _REFERENCE.sub("", line).rstrip()
        return line if source is None else f"{bare} [{source}]"

    def checked(found: re.Match[str]) -> str:
        there = [one.strip() for one in found[1].split(",") if one.strip() in typed.entry_ids]
        return f" [{', '.join(there)}]" if there else ""

    return _REFERENCE.sub(checked, line)


def _filled(lines: Sequence[str]) -> Iterator[str]:
    """`lines` with `(none)` under a heading that lost all that stood under it."""
    for at, line in enumerate(lines):
        yield line
        if line.lstrip().startswith("#"):
            rest = next((one for one in lines[at + 1 :] if one.strip()), "#")
            depth = len(line.strip()) - len(line.strip().lstrip("#"))
            deeper = len(rest.strip()) - len(rest.strip().lstrip("#"))
            if rest.lstrip().startswith("#") and deeper <= depth:
                yield NONE


def _foreign_texts(message: Message) -> Iterator[str]:
    """What others wrote in it; also the titles of documents, which a summariser reads."""
    for stretch in stretches(message):
        if stretch.author not in OWN:
            yield stretch.text
    for block in message.content:
        if isinstance(block, Document) and block.title:
            yield block.title


def _sentence(text: str, entry_id: EntryId) -> _Sentence:
    return _Sentence(
        words=_telling(text),
        folded=" ".join(text.lower().split()).strip(" .!\"'`*"),
        entry_id=entry_id,
        negatives=len(pattern(NEGATIVE).findall(text)),
        numbers=frozenset(_NUMBER.findall(text)),
    )


def _telling(text: str) -> frozenset[str]:
    words = (word for chunk in text.lower().split() for word in words_of_chunk(chunk))
    return frozenset(word for word in words if word not in COMMON_WORDS)
