"""Check the statements that a model's summary makes in the user's name against what the user typed.

The model that writes a summary has also read what tools printed, so the summary could turn a tool's text into
a demand of the user (prompt injection). *Foreign* text is text that neither the user nor the model wrote.
*Significant* words are all words except common ones such as "the" and "please". A *rule* is a constraint that
the summary ascribes to the user.

A line is checked if it is under Constraints, Goal or a plan, or if it speaks in the user's name ("the user
allowed it"). It stays if sentences that the user typed support it; a goal or a plan also stays if it does not
come from foreign text. Wherever a line repeats a foreign sentence, it stays only if it says where the
sentence comes from (`demand_framing.py`). A line that does not stay becomes a remark, marked as the model's
own.

A reference such as `[e12]` stays only if the message e12 contains words of the line. In a rule, references
are replaced by one to the message in which the user set the rule.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Final
from unicodedata import normalize

from msgspec import Struct

from compactd.core.authors.authors import stretches
from compactd.core.constraints.constraints import MAX_LIMIT_CHARS, is_constraint
from compactd.core.constraints.patterns import NEGATIVE
from compactd.core.constraints.user_text import typed_sentences
from compactd.core.history.entries import EntryId, Item
from compactd.core.summary.demand_framing import code_lines, gives_authority, is_bare, is_prose, reports_deed
from compactd.core.summary.foreign_repeats import Repetitions, fold_line
from compactd.core.summary.input import item_texts
from compactd.core.summary.message import add_under_heading
from compactd.core.text.atoms import COMMON_WORDS, words_of_chunk
from compactd.core.text.escape_invisible import file_name
from compactd.core.text.lazy_patterns import LazyPattern
from compactd.core.text.quoting import SIGN, UNMARKED_AUTHORS, neutralise, without_frames
from compactd.core.text.sanitize import INVISIBLE_MARK
from compactd.core.text.summary_format import NONE
from compactd.protocol.messages import Document, Message

REMARK: Final = "(model) "
"""The beginning of a remark: a line that the model wrote in the user's name without support in the user's
words."""

RULE_SHARE: Final = 0.8
"""A rule in a summary counts as the user's if one typed sentence contains this share of the rule's
significant words."""
QUOTED_WORDS: Final = 3
"""A line can count as a quotation of a typed sentence only if that sentence has this many significant
words."""
INTRODUCING_WORDS: Final = 4
"""A line that quotes a typed sentence may add this many introducing words (`_INTRODUCES`) to the sentence."""
CLAIM_SHARE: Final = 0.5
"""A goal, or a statement about the user, counts as supported if the user's words contain this share of its
significant words."""
FOREIGN_SHARE: Final = 1 / 3
"""A goal that the user's words do not support is removed if the foreign texts together contain this share of
its significant words."""
REFERENCE_SHARE: Final = 1 / 4
"""A reference stays if the message that it names contains this share of the line's significant words."""
HEADING_WORDS: Final = 4
"""A heading of the model's own under the user's rules or goal may have at most this many significant
words."""
WORDS_IN_ORDER: Final = 60
"""The order of words is compared for this many words of a sentence."""
HEADING_CHARS: Final = 60
"""A line that ends with a colon is a heading only if it has at most this many characters."""
GOAL_CHARS: Final = 300
"""If a goal was removed, typed sentences take its place. Each is cut at this many characters."""

_RULES = LazyPattern(
    r"constraint|preference|\brules?\b|requirement|instruction|polic(?:y|ies)|permission|\bmust\b"
    r"|\busers?\b|do(?:n['’]?t| not)s?\b|guardrail|boundar|standing order|restriction|prohibit|forbidden"
    r"|allowed|guideline"
    r"|vorgabe|regeln?\b|einschränkung|benutzer|nutzer|contrainte|règles?\b|restricci|reglas?\b|usuario"
    r"|utilisateur|约束|限制|规则|制約|ルール|ограничени|правила"
)
"""Words in headings under which each line is a rule of the user, in the languages that models write most."""
_PLANS = LazyPattern(
    r"\bplans?\b|next step|to-?dos?\b|\bprogress\b|\bdone\b|pending|remaining|\btasks\b|blocked|current work"
)
_GOALS = LazyPattern(r"\bgoals?\b|objective|\btask\b|\brequests?\b|\bintent\b|\baims?\b")
_ACTOR = (
    r"(?:users?|humans?|(?:be)?nutzer(?:in)?|anwender|utilisateur|usuario|utente|пользователь|用户|使用者"
    r"|ユーザー)"
)
_VERB = (
    r"waiv|happy|fine|okay|consent|verlang|erlaub|möchte|wünsch|demande|autoris|veut|permite|quiere|pide"
    r"|want|wish|ask|said|say|told|tell|request|requir|demand|allow|permit|approv|agree|confirm|accept|prefer"
    r"|instruct|insist|authori|grant|need|expect|decid|chose|choos|specif|stat|mention|forb|prohibit|consent|ok"
    r"|gave|give|set|like|must|order|command|direct|clarif|emphasi|reiterat|stress"
)
_IN_THE_USERS_NAME = LazyPattern(
    rf"\b{_ACTOR}(?:['’]s)?(?:\s+(?:has|had|have|also|then|now|explicitly|already|later|who|is|was|would|hat|a))*"
    rf"\s+(?:{_VERB})"
    rf"|\b(?:by|per|from|for|according to|von|par|por)\s+(?:(?:the|der|dem|den|le|l['’]|el)\s*)?{_ACTOR}\b"
    rf"|\b{_ACTOR}['’]s?\s+(?:own\s+|explicit\s+)?(?:request|instruction|constraint|preference|wish|decision|approval"
    r"|permission|consent|goal|word|rule|demand|order)"
    r"|(?:用户|使用者|ユーザー|пользовател)"
    r"|\buser[- ](?:approved|requested|specified|confirmed|required|authori[sz]ed|mandated|stated)\b",
    re.IGNORECASE,
)
_LABEL = LazyPattern(r"\A[*_`\s]*([^\W\d_][\w &'’-]{2,39})[*_`]*\s*[:：][*_`]*\s+(?=\S)")
"""Matches a label such as `Constraint: …` at the start of a line."""
_DASHED_LABEL = LazyPattern(r"\A[*_`\s]*([^\W\d_][\w &'’]{2,39}?)[*_`]*\s+[–—-]+\s+(?=\S)")
"""Matches a label such as `Constraints — …`. It counts as a label only if all its words are in
`_OF_HEADINGS`."""
_UNQUOTED: Final = dict.fromkeys(map(ord, '"“”„«»「」『』‘’`'), " ")
"""A table for `str.translate` that removes quotation marks."""
_LONG_QUOTATION = LazyPattern(
    r"\"[^\"\n]*\s[^\"\n]*\s[^\"\n]*\"|“[^”\n]*\s[^”\n]*\s[^”\n]*”|«[^»\n]*\s[^»\n]*»|`[^`\n]*\s[^`\n]*\s[^`\n]*`"
)
_LOOK_ALIKE = str.maketrans("аеорсухіѕјһԁɡո", "aeopcyxisjhdgn", "*`")
_EMPHASIS = LazyPattern(r"(?<!\w)_+|_+(?!\w)")
_LEET = str.maketrans("013457@$", "oieastas")
_NAME = LazyPattern(r"\w[./_]\w|[\w-]+\.(?:com|org|net|io|example|py|sh)\b")
_REFERENCE = LazyPattern(r"\s*\[((?:e\d{1,18})(?:\s*,\s*e\d{1,18})*)\]")
_LIKE_REFERENCE = LazyPattern(r"\[(?=[\s\ufffd]*e\d)(?!e\d{1,18}(?:\s*,\s*e\d{1,18})*\])", re.IGNORECASE)
"""Matches text that looks like a reference but does not have its form, so that it is not checked: `[e12 ·
user]`, `[ e12]`."""
_MARKS = LazyPattern(r"[*_`~]{1,3}(?=\S)|(?<=\S)[*_`~]{1,3}(?!\w)")
"""Matches Markdown marks of emphasis and code around words."""
_PARTS = LazyPattern(r"[:：|)\]→]\s|\s[–—-]+\s")
"""Matches the separator between a label and its text."""
_NUMBER = LazyPattern(r"(?<![\w.-])\d+(?:[.,]\d+)*(?![\w-])")
_ITEM = LazyPattern(r"\A(\s*(?:[-*•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?)?(.*)\Z", re.DOTALL)
_UNDERLINE = LazyPattern(r"\A\s{0,3}(?:=+|-+)\s*\Z")
_PERMITS = LazyPattern(
    r"\b(?:allow|permit|approv|agree|authori|grant|consent|accept|confirm|free to|may\b|can\b"
    r"|ok(?:ay)? (?:to|with))",
    re.IGNORECASE,
)
_USER_SAID = LazyPattern(
    r"\A\W*(?:the\s+)?users?\s+(?:(?:has|had|also|explicitly|then|now)\s+)*"
    r"(?:said|says|asked|asks|wants?|wanted|requested|told|stated)(?:\s+(?:that|us|me|to)\b)*[\s:,]*",
    re.IGNORECASE,
)
"""Matches the words that introduce what the user said: "the user said that"."""
_AFFIRMS = frozenset(("always", "must", "only", "may", "can", "allow", "allowed", "free", "every", "any"))
_CLAUSE = LazyPattern(r"[,;:.!?–—-]\s*(?:(?:and|but|then|also|please|und|aber|et|y)\s+)*$")
_VOIDS = LazyPattern(
    r"~~|</?(?:s|del|strike)>"
    r"|\b(?:obsolete|void|lift|waiv|no longer|supersed|outdated|revok|rescind|ignor|disregard|until|unless"
    r"|except|former|previous|expir|remov|dropp|relax|cancel|deprecat|withdr|overrid|overrul|retire|invalid|inactive"
    r"|optional|annul|repeal|suspend|resolved|not (?:in force|valid|appl)|n/a|used to|was\b|were\b)"
    r"|aufgehoben|überholt|veraltet|hinfällig|obsolèt|caduque|annulé|obsolet|anulad|derogad|作废|废除|取消|失效"
    r"|廃止|無効|отмен|устарел",
    re.IGNORECASE,
)
"""Words that withdraw or narrow a rule. A rule that contains such a word counts as the user's only if the
user's sentence contains the same word."""
_INTRODUCING = """
important constraint rule note limit hard strict strictly explicit explicitly stated requirement instruction
request preference standing original message turn
"""
_INTRODUCES = frozenset(_INTRODUCING.split())
"""Words that may be in a line next to the typed sentence that it quotes."""
_USERS = frozenset(("user", "users", "said", "asked", "wants", "wanted", "requested", "told", "according"))


_WORD = LazyPattern(r"[^\W\d_]+")
_HEADING_WORDS = """
a all an and any as asked at by constraint constraints do don explicit for from general given goal goals
hard instruction instructions intent key limit limits made must no not objective objectives of on other
permission permissions policies policy preference preferences request requested requests required
requirement requirements rule rules s said set should stated t task tasks that the their to user users want
wants what which who have has needs
"""
_OF_HEADINGS = frozenset(_HEADING_WORDS.split())
"""Words of headings above the user's words. A heading of these words makes no statement of its own."""
_STRICTNESS = ("", "plan", "mixed", "goal", "rules")
"""The kinds of sections of a summary, the one with the least strict check first."""
LOOSE: Final = 6
"""What is added to the level of a heading that is indented, quoted, or has no space after its marks. Such a
line may come from text that the model repeats, so it ends no section that a proper heading began."""
_AT_MARGIN = LazyPattern(r"#+(?:\s|$)")
LISTED: Final = 20
"""The level of a list item that is a heading for the items below it is this number plus the item's
indentation. Such a heading is therefore always below a heading of another form."""
INNER_WORDS: Final = 3
"""A heading among the user's rules may have this many significant words. A longer one counts as a rule
itself."""
_PLAIN = LazyPattern(r"[\w\s,&/'’-]*")
"""Matches a heading without marks, label or reference."""


class Attributed(Struct, frozen=True):
    """A model's summary after the check. The user's words support every statement in it that is made in the
    user's name."""

    text: str
    remarks: tuple[str, ...] = ()
    """The lines that are not supported, as the model wrote them. In the text they are marked as the model's
    remarks, or missing."""


class _Sentence(Struct, frozen=True):
    """A sentence that the user typed, or a rule to compare with it, prepared for the comparison."""

    words: frozenset[str]
    """The significant words."""
    order: tuple[str, ...]
    """The significant words in the order of the sentence."""
    folded: str
    """The sentence in lower case, with one space between words."""
    entry_id: EntryId
    negatives: int
    """The number of words that deny or forbid."""
    numbers: frozenset[str]
    is_question: bool
    """Whether the sentence is a question. A question sets no rule."""
    voids: frozenset[str]
    """The words that withdraw or narrow a rule."""

    def sets_rule(self, rule: _Sentence) -> bool:
        """Return whether this sentence sets the given rule. A question sets none. The sentence must contain
        nearly all words of the rule in the same order, all its numbers and affirming words, and as many
        negations. It also sets the rule if it contains the rule's text as a clause that nothing before the
        clause denies."""
        at = self.folded.find(rule.folded)
        if at >= 0 and not self.is_question:
            before = self.folded[:at]
            denies = NEGATIVE.search(before) is not None
            if self.negatives == rule.negatives or (_CLAUSE.search(before) is not None and not denies):
                return True
        return (
            self.negatives == rule.negatives
            and not self.is_question
            and rule.voids <= self.voids
            and rule.numbers <= self.numbers
            and (rule.words & _AFFIRMS) <= self.words
            and len(rule.words & self.words) >= RULE_SHARE * len(rule.words)
            and _in_order(rule.order, self.order) >= RULE_SHARE * len(rule.order)
        )


def is_of_rules(heading: str) -> bool:
    """Return whether the lines under a heading count as rules of the user. `heading` is the whole line."""
    return _kind(" ".join(_plain(heading).strip("#:：* ").lower().split()), (), ()) == "rules"


def may_revoke(line: str) -> bool:
    """Return whether a line that contains a rule may say that the rule no longer applies. O(length of the
    line)."""
    return _VOIDS.search(line) is not None


class ForeignWords:
    """The texts of a conversation that neither the user nor the model wrote, with searches in them."""

    def __init__(self, originals: Collection[Item]) -> None:
        self._originals = originals

    @cached_property
    def _texts(self) -> list[str]:
        """The foreign texts, in lower case."""
        return [text.lower() for item in self._originals for text in _foreign_texts(item.message)]

    @cached_property
    def _models(self) -> list[str]:
        """The texts that the model wrote, in lower case."""
        answers = (item for item in self._originals if item.message.role == "assistant")
        return [text.lower() for item in answers for text in item_texts(item)]

    def contains_words(self, line: str) -> bool:
        """Return whether foreign texts contain a third of the significant words of `line`. O(foreign text ×
        words)."""
        words = _telling_words(line)
        open_ = set(words)
        for text in self._texts:
            open_ = {word for word in open_ if word not in text}
            if len(words) - len(open_) >= max(1, FOREIGN_SHARE * len(words)):
                return True
        return False

    def names(self, name: str) -> bool:
        """Return whether a foreign text contains this name (in lower case) and the model never wrote it.
        O(texts)."""
        return any(name in text for text in self._texts) and not any(name in text for text in self._models)

    def repetitions(self, body: str) -> Repetitions:
        """Return an index for finding lines of `body` that repeat foreign sentences. O(characters of the
        conversation)."""
        return Repetitions(body, self._foreign_texts_read())

    def _foreign_texts_read(self) -> Iterator[tuple[str, bool]]:
        """Yield the texts of the model and the foreign ones, each with whether it is foreign."""
        for item in self._originals:
            if item.message.role == "assistant":
                yield from ((text, False) for text in item_texts(item))
            else:
                yield from ((text, True) for text in _foreign_texts(item.message))

    def repeats(self, line: str) -> bool:
        """Return whether a line of a foreign text contains nearly all significant words of `line` and no text
        of the model does. O(foreign text × words)."""
        words = _telling_words(line)
        if len(words) < QUOTED_WORDS:
            return False
        most = RULE_SHARE * len(words)

        def held(text: str) -> bool:
            return sum(word in text for word in words) >= most

        if not any(held(text) and any(map(held, text.split("\n"))) for text in self._texts):
            return False
        return not any(map(held, self._models))


class TypedWords:
    """An index of the words that the user typed in a conversation. Its methods find the sentences and
    messages that contain given words."""

    def __init__(self, originals: Iterable[Item]) -> None:
        """Collect the typed sentences of `originals`: all messages, oldest first. O(characters that users
        typed)."""
        self.first = self.last = ""
        self._sentences: list[_Sentence] = []
        self._words: set[str] = set()
        self._items: dict[EntryId, Item] = {}
        self._typing: set[EntryId] = set()
        for item in originals:
            self._items[item.entry_id] = item
            opening = ""
            for sentence in typed_sentences(item):
                # Leave out long quotations, because the user only repeats the words of others in them.
                told = _sentence(_LONG_QUOTATION.sub(" ", sentence.text), item.entry_id)
                self._sentences.append(told)
                self._words |= told.words
                opening = opening or sentence.text
            if opening:
                self._typing.add(item.entry_id)
                said = f"- {neutralise(opening[:GOAL_CHARS])} [{item.entry_id}]"
                self.first = self.first or said
                self.last = said

    def entry_contains_words(self, entry_id: EntryId, line: str, share: float) -> bool:
        """Return whether this message, by any author, contains this share of the significant words of `line`.
        O(length of the message)."""
        item = self._items.get(entry_id)
        if item is None:
            return False
        words = _telling_words(line)
        text = "\n".join(item_texts(item)).lower()
        return sum(word in text for word in words) >= share * len(words)

    def is_forged(self, entry_id: EntryId, line: str) -> bool:
        """Return whether a reference to this message is false: the user typed the message, but it does not
        contain `line`."""
        return entry_id in self._typing and not self.entry_contains_words(entry_id, line, RULE_SHARE)

    def find_rule(self, line: str) -> EntryId | None:
        """Return the newest message in which one typed sentence sets this rule: the same words, or nearly,
        with the same numbers and the same negations. Return None if there is none. O(sentences)."""
        rule = _sentence(line, "")
        if not rule.words:
            return None
        for one in reversed(self._sentences):
            if one.sets_rule(rule) or (one.folded in rule.folded and self._is_introduced(line, one)):
                return one.entry_id
        return None

    def _is_introduced(self, line: str, sentence: _Sentence) -> bool:
        """Return whether a line that contains this whole typed sentence adds only a few introducing words to
        it."""
        if len(sentence.words) < QUOTED_WORDS:
            return False
        rest = " ".join(line.lower().split()).replace(sentence.folded, " ")
        beside = _telling_words(rest) - _USERS - sentence.words
        return (
            len(beside) <= INTRODUCING_WORDS
            and beside <= _INTRODUCES
            and _VOIDS.search(rest) is None
            and not is_constraint(rest)
            and _PERMITS.search(rest) is None
        )

    def supports_claim(self, line: str, foreign: ForeignWords | None = None) -> bool:
        """Return whether the user's words support a statement in the user's name. They must contain half of
        its significant words and, with `foreign`, each name in it that foreign text contains and the model
        never wrote. If the statement is a limit or a permission, also one in quotation marks, one typed
        sentence must set it, as for a rule. O(sentences)."""
        words = _telling_words(line) - _USERS
        if not words:
            return True
        if _sets_limit(line.translate(_UNQUOTED)) or _PERMITS.search(line) is not None:
            return self.find_rule(_USER_SAID.sub("", line, count=1)) is not None
        if foreign is not None:
            names = [chunk.strip(".,;:!?()\"'`") for chunk in line.lower().split() if _NAME.search(chunk)]
            if any(foreign.names(name) and not _telling_words(name) <= self._words for name in names):
                return False
        return len(words & self._words) >= CLAIM_SHARE * len(words)


def attribute(
    body: str,
    typed: TypedWords,
    foreign: ForeignWords,
    *,
    rules: Collection[str],
    mixed: Collection[str],
    remarks_under: str,
    fits: Callable[[str], bool],
) -> Attributed:
    """Check the statements that `body`, a model's summary, makes in the user's name. Lines that are not
    supported become remarks of the model.

    `rules` are headings (as `heading_of` returns them) under which each line is a rule of the user. Under the
    headings `mixed`, only a line that sets a limit is a rule. Headings with the same meaning in other words
    count too, in any markup.

    A rule, or a statement about the user, stays if the user's words support it. A goal also stays if no
    foreign text contains it, and a line of a plan if it does not repeat a foreign line. A line that repeats
    foreign words stays if it names their source, or if it is directly under `remarks_under` and only common
    words are around them. Code always stays.

    Remarks are put under the heading `remarks_under`. If no line is left under the goal, the user's first and
    last request are put there. Remarks and requests are added only as long as `fits` returns true for the
    whole text. O(lines × typed sentences).
    """
    lines = [_LIKE_REFERENCE.sub(f"[{SIGN}", without_frames(line)) for line in body.split("\n")]
    kept: list[str] = []
    remarks: list[str] = []
    kind, at_goal, goals = "", -1, 0
    repetitions, is_of_facts = foreign.repetitions(body), False
    code = code_lines(lines)
    within: list[tuple[int, str]] = []
    for at, line in enumerate(lines):
        following = lines[at + 1] if at + 1 < len(lines) else ""
        while within and line.strip() and within[-1][0] >= LISTED + _indent(line):
            within.pop()
            kind = within[-1][1] if within else ""
        heading = _heading(line, following)
        if heading is not None:
            around = [one for one in within if one[0] < heading.level]
            outer = around[-1][1] if around else ""
            is_inner = outer == "rules"
            if _is_heading(heading, kind, (*rules, *mixed), foreign) and _only_announces(
                heading.words, typed, is_inner=is_inner
            ):
                # Text below an inner heading is checked as strictly as text directly under the outer one.
                kind = max(outer, _kind(heading.words, rules, mixed), key=_STRICTNESS.index)
                within = [*around, (heading.level, kind)]
                is_of_facts = line.strip() == remarks_under
                kept.append(line)
                if kind == "goal":
                    at_goal = len(kept)
                continue
        found = _ITEM.match(line)
        said = found[2] if found is not None and heading is None else line.strip("#*_>= \t")
        if not said.strip() or said.strip() == NONE or _UNDERLINE.match(line):
            kept.append(line)
            continue
        is_of_facts = is_of_facts and heading is None and not _may_head(line, following)
        if _is_supported(said, kind, typed, foreign) and (
            at in code or not _is_laundered(said, typed, repetitions, is_of_facts=is_of_facts)
        ):
            kept.append(_with_references(line, typed, kind))
            goals += kind == "goal"
        else:
            remarks.append(said.strip())
    if not remarks:
        return Attributed("\n".join(kept))
    moved = [f"- {REMARK}{neutralise(_REFERENCE.sub('', remark))}" for remark in remarks]
    asked = list(dict.fromkeys(filter(None, (typed.first, typed.last)))) if at_goal >= 0 and not goals else []
    text = ""
    for openings in (asked, asked[:1], []):
        bare = "\n".join(_fill_empty([*kept[:at_goal], *openings, *kept[at_goal:]] if openings else kept))

        def text_with(count: int, bare: str = bare) -> str:
            return add_under_heading(bare, "\n".join(moved[:count]), remarks_under) if count else bare

        most = bisect_left(range(1, len(moved) + 1), True, key=lambda count: not fits(text_with(count)))
        text = text_with(most)
        if most or fits(text):
            break
    return Attributed(text, tuple(remarks))


def _is_heading(heading: _Heading, kind: str, own: Collection[str], foreign: ForeignWords) -> bool:
    """Return whether a line that looks like a heading is one, and not a rule, a statement about the user or
    an order in bold. `kind` is the kind of the section that it is in, `own` the headings that the prompt asks
    for."""
    words = heading.words
    if words in own or all(word in _OF_HEADINGS for word in _WORD.findall(words)):
        return True
    if is_constraint(words) and len(_telling_words(words)) >= QUOTED_WORDS:
        return False
    if _IN_THE_USERS_NAME.search(words) is not None and len(_telling_words(words)) >= QUOTED_WORDS:
        return False
    if kind not in ("rules", "mixed", "goal", "plan"):
        return not foreign.repeats(words)
    telling = _telling_words(words)
    if len(telling) < QUOTED_WORDS:
        return _NAME.search(words) is None
    return heading.is_marked and len(telling) <= HEADING_WORDS and not foreign.contains_words(words)


def _is_supported(said: str, kind: str, typed: TypedWords, foreign: ForeignWords) -> bool:
    """Return whether the line `said` of a model's summary may stay in its section: whether what the section's
    `kind` (see `_STRICTNESS`) attributes to the user is backed by what the user typed."""
    bare = _plain(_REFERENCE.sub("", said)).strip()
    label = _LABEL.match(bare) or _dashed_label(bare)
    if label is not None and _kind(label[1].lower(), (), ()) == "rules":
        kind = "rules"
    if kind == "rules" or (kind == "mixed" and _sets_limit(bare)):
        return typed.find_rule(bare) is not None or (
            label is not None and typed.find_rule(bare[label.end() :]) is not None
        )
    if _IN_THE_USERS_NAME.search(bare) is not None:
        return typed.supports_claim(bare)
    if kind == "goal":
        return typed.supports_claim(bare, foreign) or not foreign.contains_words(bare)
    if kind == "plan" or _sets_limit(bare):
        return typed.supports_claim(bare) or not foreign.repeats(bare)
    return True


def _is_laundered(said: str, typed: TypedWords, repetitions: Repetitions, *, is_of_facts: bool) -> bool:
    """Return whether a line presents foreign words as someone's demand. It does in three cases. The words
    around the foreign ones may give them authority. Or only common words are around them, and the heading
    above is not the one for facts (`is_of_facts`). Or the line refers to a message of the user that does not
    contain the foreign words."""
    bare = _plain(_REFERENCE.sub("", said)).strip()
    line = fold_line(_MARKS.sub(" ", bare))
    label = _PARTS.search(line)
    run, at = repetitions.find(line), 0
    if run is None and label is not None:
        at = label.end()
        run = repetitions.find(line[at:])
    if run is None:
        return False
    before, repeated, after = (
        line[: at + run.start],
        line[at + run.start : at + run.end],
        line[at + run.end :],
    )
    if not is_prose(repeated):
        return False
    if any(typed.find_rule(text) is not None for text in (repeated, line, line[at:])):
        return False
    named = [one.strip() for found in _REFERENCE.finditer(said) for one in found[1].split(",")]
    if any(typed.is_forged(one, repeated) for one in named):
        return True
    if is_bare(before, after):
        return not is_of_facts and not reports_deed(repeated)
    return gives_authority(before, after)


def _may_head(line: str, following: str) -> bool:
    """Return whether a reader could take a line for a heading although `_heading` does not: it is short and
    not a plain list item."""
    bare = _REFERENCE.sub("", line).strip()
    if len(bare) > HEADING_CHARS:
        return False
    return (
        not bare.startswith(("- ", "* "))
        or bare.rstrip("*_ ").endswith((":", "：", "—", "–", "-", "]", ">", "|"))
        or bare.rstrip().endswith(("**", "__"))
        or bare.isupper()
        or (bool(following.strip()) and _indent(following) > _indent(line))
    )


class _Heading(Struct, frozen=True):
    """A line of a summary that is a heading."""

    words: str
    """The heading's text in lower case, without its marks."""
    level: int
    """The depth of the heading: 2 for a section, more for what is below it."""
    is_marked: bool
    """Whether the heading is written with `#`."""


def _heading(line: str, following: str) -> _Heading | None:
    """Return the heading in this line, in any markup; None if the line is not a heading. `following` is the
    next line."""
    bare = line.strip().lstrip("> \t")
    if not bare:
        return None
    numbered = re.sub(r"\A\d{1,3}[.)]\s+", "", bare)
    words = " ".join(_plain(numbered).strip("#:：* ").lower().replace(" and ", " & ").split())
    if bare.startswith("#"):
        level = min(6, max(2, len(bare) - len(bare.lstrip("#"))))
        return _Heading(words, level if _AT_MARGIN.match(line) else LOOSE + level, True)
    item = _ITEM.match(bare)
    if item is not None and item[1] is not None and numbered == bare:
        return _list_heading(line, item[2], following)
    if _UNDERLINE.match(following) and len(following.strip()) >= 2:
        return _Heading(words, 2, False)
    if bare.startswith(("**", "__", "*", "_")) and bare.rstrip(": ：").endswith(("*", "_")):
        return _Heading(words, 3, False)
    if numbered != bare and _is_bold(numbered) and _is_followed(following):
        return _Heading(words, 3, False)
    if bare.endswith((":", "：")) and len(bare) <= HEADING_CHARS:
        return _Heading(words, 4, False)
    return None


def _list_heading(line: str, item: str, following: str) -> _Heading | None:
    """Return a list item as a heading, if it is one for the items below it (`- **Constraints**:`, `-
    Rules:`); otherwise None."""
    is_named = _is_bold(item) or (item.rstrip().endswith((":", "：")) and len(item) <= HEADING_CHARS)
    if not is_named or "[" in item or not following.strip() or _indent(following) <= _indent(line):
        return None
    words = " ".join(_plain(item).strip("#:：* ").lower().replace(" and ", " & ").split())
    return _Heading(words, LISTED + _indent(line), False)


def _is_bold(text: str) -> bool:
    return text.startswith(("**", "__")) and text.rstrip(": ：").endswith(("**", "__"))


def _is_followed(following: str) -> bool:
    """Return whether the line after a numbered line has text and is no item of the same list."""
    return bool(following.strip()) and re.match(r"\s{0,1}\d{1,3}[.)]\s", following) is None


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _dashed_label(line: str) -> re.Match[str] | None:
    """Match a label such as `Constraints — …` if all its words are words of headings."""
    label = _DASHED_LABEL.match(line)
    if label is None or not all(word in _OF_HEADINGS for word in _WORD.findall(label[1].lower())):
        return None
    return label


def _only_announces(words: str, typed: TypedWords, *, is_inner: bool) -> bool:
    """Return True if a heading in a model's summary only introduces the text below it. `words` is the
    heading, `typed` what the user typed. A heading that claims a rule or wish of the user which the user did
    not type gives False. `is_inner` means that the heading is inside the section of the user's rules: there,
    it must also be short."""
    telling = [word for word in _WORD.findall(words) if word not in _OF_HEADINGS]
    is_plain = _PLAIN.fullmatch(words) is not None
    if not telling and (is_plain or not is_inner):
        return True
    if is_inner and (len(telling) > INNER_WORDS or not is_plain):
        return typed.find_rule(words) is not None
    if _sets_limit(words) or _IN_THE_USERS_NAME.search(words) is not None:
        return typed.supports_claim(words)
    return True


def _sets_limit(line: str) -> bool:
    """Return whether a line may set a limit. A line that is too long to check counts as one that does,
    because it could contain any limit."""
    return len(line) > MAX_LIMIT_CHARS or is_constraint(line)


def _kind(words: str, rules: Collection[str], mixed: Collection[str]) -> str:
    """Return the kind, one of `_STRICTNESS`, of the section whose heading is `words`. `rules` and `mixed` are
    the headings that are known to be of these kinds."""
    if words in rules:
        return "rules"
    if words in mixed:
        return "mixed"
    if _RULES.search(words) is not None or _RULES.search(words.translate(_LEET)) is not None:
        return "rules"
    if _GOALS.search(words) is not None:
        return "goal"
    return "plan" if _PLANS.search(words) is not None else ""


def _with_references(line: str, typed: TypedWords, kind: str) -> str:
    """Return `line` without false references. A reference is true if its message contains some of the line's
    words. In a rule, all references are replaced by one to the message in which the user set the rule."""
    if _REFERENCE.search(line) is None:
        return line
    if kind == "rules":
        source = typed.find_rule(_REFERENCE.sub("", _ITEM.match(line)[2]))  # type: ignore[index]  # it matches
        bare = _REFERENCE.sub("", line).rstrip()
        return line if source is None else f"{bare} [{source}]"

    bare = _REFERENCE.sub("", line)

    def checked(found: re.Match[str]) -> str:
        named = (one.strip() for one in found[1].split(","))
        there = [one for one in named if typed.entry_contains_words(one, bare, REFERENCE_SHARE)]
        return f" [{', '.join(there)}]" if there else ""

    return _REFERENCE.sub(checked, line)


def _fill_empty(lines: Sequence[str]) -> Iterator[str]:
    """Yield `lines`, with `(none)` under each heading whose section is empty. O(lines)."""
    depths = [len(line.strip()) - len(line.strip().lstrip("#")) for line in lines]
    after, next_depth = [0] * len(lines), 1
    for at in range(len(lines) - 1, -1, -1):
        after[at] = next_depth
        if lines[at].strip():
            next_depth = depths[at]
    for at, line in enumerate(lines):
        yield line
        if depths[at] and 0 < after[at] <= depths[at]:
            yield NONE


def _in_order(some: Sequence[str], others: Sequence[str]) -> int:
    """Return the number of words that the two sequences have in common in the same order (their longest
    common subsequence). Only the first `WORDS_IN_ORDER` words of each count. O(product of the lengths)."""
    row = [0] * (len(others) + 1)
    for one in some[:WORDS_IN_ORDER]:
        before = 0
        for at, other in enumerate(others[:WORDS_IN_ORDER], 1):
            before, row[at] = row[at], before + 1 if one == other else max(row[at], row[at - 1])
    return row[-1]


def _foreign_texts(message: Message) -> Iterator[str]:
    """Yield the texts in a message that neither the user nor the model wrote. Titles of documents count too,
    because a summariser reads them: as they are and, if that differs, as a transcript shows them."""
    for stretch in stretches(message):
        if stretch.author not in UNMARKED_AUTHORS:
            yield stretch.text
    for block in message.content:
        if isinstance(block, Document) and block.title:
            yield from dict.fromkeys((block.title, file_name(block.title)))


def _sentence(text: str, entry_id: EntryId) -> _Sentence:
    """Prepare a sentence for comparing it with others."""
    text = _plain(text)
    order = _telling_in_order(text)
    return _Sentence(
        words=frozenset(order),
        order=order,
        is_question=text.rstrip(" *_\"'`)").endswith(("?", "？")),
        folded=" ".join(text.lower().split()).strip(" .!\"'`*"),
        entry_id=entry_id,
        negatives=len(NEGATIVE.findall(text)),
        numbers=frozenset(_NUMBER.findall(text)),
        voids=frozenset(found[0].lower() for found in _VOIDS.finditer(text)),
    )


def _telling_words(text: str) -> frozenset[str]:
    """Return the significant words of a text, in lower case."""
    return frozenset(_telling_in_order(text))


def _telling_in_order(text: str) -> tuple[str, ...]:
    """Return the significant words of a text, in lower case and in their order."""
    words = (word for chunk in text.lower().split() for word in words_of_chunk(chunk))
    return tuple(word for word in words if word not in COMMON_WORDS)


def _plain(text: str) -> str:
    """Return `text` prepared for comparing words: without marks of emphasis and invisible characters, and
    with ordinary letters in place of letters that only look like them."""
    folded = _EMPHASIS.sub("", normalize("NFKC", text).translate(_LOOK_ALIKE))
    return folded if folded.isascii() else folded.replace(INVISIBLE_MARK, "")
