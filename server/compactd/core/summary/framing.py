"""Whether a line of a summary presents the foreign words that it repeats as a demand, or as what they are.

What may stand around them is an allow-list: a word that names the source ("README says: ...") or tells what
was done ("Fixed: ..."). Any other word around them could give them an authority, in any language.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from compactd.core.text.atoms import COMMON_WORDS

PROSE_WORDS: Final = 3
"""A repetition with fewer words of prose is a name, a path or a number."""
CODE_SHARE: Final = 0.25
"""Of the words of a repetition: from so many with the signs of code on it is code."""

_WORD: Final = re.compile(r"[^\W\d_]{2,}|[^\x00-\x7f]")
_LETTERS: Final = re.compile(r"[^\W\d_]+")
_CODE: Final = re.compile(r"[_(){}=;<>\[\]]|\w[./\\]\w|\d")
_LOOKS_CODED: Final = re.compile(r"[_(){}=;<>\[\]|$]|\A\s*(?://|#|--|\*)|\A\s{2,}\S|\w[./\\]\w|\w:\s*\Z")
_SOURCE: Final = re.compile(
    r"\b(?:says?|state[sd]?|reads?|show[sn]?|showed|print(?:s|ed)?|report(?:s|ed)?|return(?:s|ed)?|outputs?"
    r"|contain(?:s|ed)?|describe[sd]?|document(?:s|ed|ation)?|mention(?:s|ed)?|list(?:s|ed)?|log(?:s|ged)?"
    r"|quote[sd]?|readme|docs?|files?|page|web ?site|tools?|command|tests?|errors?|warnings?|comments?"
    r"|docstring|changelog|issues?|tickets?|prs?|commits?|branch|lines?|script|config|string|example|bugs?"
    r"|problems?|causes?|fix|finding|epic|code|function|method|module|class|field|parameter|component|hook)\b"
    r"|[\w-]+/[\w/-]+|\w\.\w|\w_\w|\(\)|https?:|#\d\d|\b(?=[a-f]*\d)[0-9a-f]{7,40}\b"
)
"""Names where the repeated words come from, or what they are about."""
_DEED: Final = re.compile(
    r"\W*(?:\[x\]\W*)?(?:(?:also|then|now|i|we|was|were|all)\s+)*"
    r"(?!request|approv|agree|ask|order|instruct|direct|mandat|allow|permi|author|decid|confirm|accept|want|need"
    r"|requir|prefer|demand|insist|suppos|expect|desir|wish|oblig|requis|grant|sanction|commission|assign|task"
    r"|charg|command|forc|urg|beg|call|pledg|promis|agreed)"
    r"(?:[a-z]{2,}ed|ran|wrote|read|found|saw|got|built|made|did)\b"
)
"""Tells what the model did."""
_AUTHORITY: Final = re.compile(
    r"\b(?:users?|humans?|persons?|clients?|customers?|owners?|operators?|maintainers?|requesters?|boss"
    r"|admin(?:istrator)?s?|they|he|she|you|your|we|us|our)\b"
    r"|request|\bask|approv|agree|permi|\ballow|\brules?\b|constrain|\bgoals?\b|\bmust\b|requir|instruct|\border"
    r"|demand|mandat|\bwant|\bprefer|\bwish|\bpolic|directive"
    r"|nutzer|anwender|utilisateur|usuario|utente|usuário|gebruiker|użytkownik|användare|kullanıcı"
    r"|пользовател|用户|使用者|ユーザー|利用者|사용자|المستخدم"
)
"""Gives words an authority, whatever source stands next to it."""


def is_prose(repeated: str) -> bool:
    """Whether a repetition (in lower case) can be a demand: neither code nor a name. O(characters)."""
    chunks = repeated.split()
    coded = sum(_CODE.search(chunk) is not None for chunk in chunks)
    return coded < CODE_SHARE * len(chunks) and (
        len(_WORD.findall(repeated)) >= PROSE_WORDS or not repeated.isascii()
    )


def is_bare(before: str, after: str) -> bool:
    """Whether nothing that tells anything stands around a repetition (in lower case)."""
    around = f"{before} | {after}"
    if _AUTHORITY.search(around) is not None:
        return False
    return all(
        word in COMMON_WORDS or (word.isascii() and len(word) < 3) for word in _LETTERS.findall(around)
    )


def gives_authority(before: str, after: str) -> bool:
    """Whether what stands around a repetition (in lower case) may give it an authority: it does not say that
    the words are a source's, or that the model did something; or it says whose demand they are."""
    if is_bare(before, after):
        return False
    around = f"{before} | {after}"
    if _AUTHORITY.search(around) is not None:
        return True
    return _SOURCE.search(around) is None and _DEED.match(before) is None


def code_lines(lines: Sequence[str]) -> frozenset[int]:
    """The places of the lines in fences of which more than half the lines look like code. O(characters)."""
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


def tells_deed(repeated: str) -> bool:
    """Whether a repetition (in lower case) tells what was done, and so demands nothing."""
    return _DEED.match(repeated) is not None
