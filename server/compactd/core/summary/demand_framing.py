"""Decide whether a line of a summary presents foreign words as a demand, or only reports them.

Foreign words are words that neither the user nor the model wrote, but a tool, a file or a program. A
*repetition* is the part of a line that repeats foreign words. The check is an allow-list of what may be
around a repetition: a word that names its source ("README says: ...") or that reports a deed ("Fixed: ...").
Any other word around it could give it authority, in any language.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from compactd.core.text.atoms import COMMON_WORDS
from compactd.core.text.lazy_patterns import LazyPattern

PROSE_WORDS: Final = 3
"""A repetition with fewer words of prose than this is a name, a path or a number, not a demand."""
CODE_SHARE: Final = 0.25
"""A repetition is code if at least this share of its words look like code."""

_WORD: Final = LazyPattern(r"[^\W\d_]{2,}|[^\x00-\x7f]")
_LETTERS: Final = LazyPattern(r"[^\W\d_]+")
_CODE: Final = LazyPattern(r"[_(){}=;<>\[\]]|\w[./\\]\w|\d")
_LOOKS_CODED: Final = LazyPattern(r"[_(){}=;<>\[\]|$]|\A\s*(?://|#|--|\*)|\A\s{2,}\S|\w[./\\]\w|\w:\s*\Z")
_SOURCE: Final = LazyPattern(
    r"\b(?:says?|state[sd]?|reads?|show[sn]?|showed|print(?:s|ed)?|report(?:s|ed)?|return(?:s|ed)?|outputs?"
    r"|contain(?:s|ed)?|describe[sd]?|document(?:s|ed|ation)?|mention(?:s|ed)?|list(?:s|ed)?|log(?:s|ged)?"
    r"|quote[sd]?|readme|docs?|files?|page|web ?site|tools?|command|tests?|errors?|warnings?|comments?"
    r"|docstring|changelog|issues?|tickets?|prs?|commits?|branch|lines?|script|config|string|example|bugs?"
    r"|problems?|causes?|fix|finding|epic|code|function|method|module|class|field|parameter|component|hook)\b"
    r"|[\w-]+/[\w/-]+|\w\.\w|\w_\w|\(\)|https?:|#\d\d|\b(?=[a-f]*\d)[0-9a-f]{7,40}\b"
)
"""Words that name where a repetition comes from, or what it is about."""
_DEED: Final = LazyPattern(
    r"\W*(?:\[x\]\W*)?(?:(?:also|then|now|i|we|was|were|all)\s+)*"
    r"(?!request|approv|agree|ask|order|instruct|direct|mandat|allow|permi|author|decid|confirm|accept|want|need"
    r"|requir|prefer|demand|insist|suppos|expect|desir|wish|oblig|requis|grant|sanction|commission|assign|task"
    r"|charg|command|forc|urg|beg|call|pledg|promis|agreed)"
    r"(?:[a-z]{2,}ed|ran|wrote|read|found|saw|got|built|made|did)\b"
)
"""Matches the beginning of a text that reports what the model did. Words such as "requested" do not count."""
_AUTHORITY: Final = LazyPattern(
    r"\b(?:users?|humans?|persons?|clients?|customers?|owners?|operators?|maintainers?|requesters?|boss"
    r"|admin(?:istrator)?s?|they|he|she|you|your|we|us|our)\b"
    r"|request|\bask|approv|agree|permi|\ballow|\brules?\b|constrain|\bgoals?\b|\bmust\b|requir|instruct|\border"
    r"|demand|mandat|\bwant|\bprefer|\bwish|\bpolic|directive"
    r"|nutzer|anwender|utilisateur|usuario|utente|usuário|gebruiker|użytkownik|användare|kullanıcı"
    r"|пользовател|用户|使用者|ユーザー|利用者|사용자|المستخدم"
)
"""Words that give a repetition authority, even if its source is named too."""


def is_prose(repeated: str) -> bool:
    """Return whether a repetition (in lower case) can be a demand: it is neither code nor just a name.
    O(characters)."""
    chunks = repeated.split()
    coded = sum(_CODE.search(chunk) is not None for chunk in chunks)
    return coded < CODE_SHARE * len(chunks) and (
        len(_WORD.findall(repeated)) >= PROSE_WORDS or not repeated.isascii()
    )


def is_bare(before: str, after: str) -> bool:
    """Return whether the text before and after a repetition (in lower case) says nothing about it: only
    common and very short words are there."""
    around = f"{before} | {after}"
    if _AUTHORITY.search(around) is not None:
        return False
    return all(
        word in COMMON_WORDS or (word.isascii() and len(word) < 3) for word in _LETTERS.findall(around)
    )


def gives_authority(before: str, after: str) -> bool:
    """Return whether the text before and after a repetition (in lower case) may give it authority. It does if
    it says whose demand the repetition is, or if it neither names a source nor reports a deed."""
    if is_bare(before, after):
        return False
    around = f"{before} | {after}"
    if _AUTHORITY.search(around) is not None:
        return True
    return _SOURCE.search(around) is None and _DEED.match(before) is None


def code_lines(lines: Sequence[str]) -> frozenset[int]:
    """Return the indices of the lines that are code: they are inside a code fence in which more than half of
    the lines look like code. O(characters)."""
    found: set[int] = set()
    opened = -1
    for at, line in enumerate(lines):
        if not line.lstrip().startswith(("```", "~~~")):
            continue
        if opened < 0:
            opened = at
            continue
        inner = [one for one in range(opened + 1, at) if lines[one].strip()]
        if 2 * sum(_LOOKS_CODED.search(lines[one]) is not None for one in inner) > len(inner):
            found.update(inner)
        opened = -1
    return frozenset(found)


def reports_deed(repeated: str) -> bool:
    """Return whether a repetition (in lower case) itself reports an action that was carried out, and so
    demands nothing."""
    return _DEED.match(repeated) is not None
