"""Find the sentences that say what was decided, what failed and what comes next."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from compactd.core.text.atoms import sentences
from compactd.core.text.lazy_patterns import LazyPattern

MIN_SENTENCE_CHARS: Final = 25
"""A shorter sentence is a heading or a fragment."""
MAX_SENTENCE_CHARS: Final = 500
"""A longer sentence is a listing."""
MAX_PROSE_CHARS: Final = 40_000
"""Only this many characters of a message are searched."""

_FENCE: Final = LazyPattern(
    r"^[ \t]*(?:```|~~~).*?(?:^[ \t]*(?:```|~~~)[ \t]*$|\Z)", re.DOTALL | re.MULTILINE
)
"""Matches a block of code between fences, or from the last fence to the end."""
_BULLET: Final = LazyPattern(r"\A\s*(?:[-*•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?")
"""Matches a list marker with the box of a checklist."""
_NOT_PROSE: Final = LazyPattern(r"\A\s*(?:#|\||>|```|<|[{}\[\]()]|\w+\s*[:=]\s*$|[-=_*]{3,})")
"""Matches the beginning of a heading, a table, a quote, markup, code or a ruler."""

# These patterns are matched against text in lower case: three times as fast as ignoring the case.
_DECIDES: Final = LazyPattern(
    r"\bdecid|\bdecision:|\binstead of\b|\brather than\b|\broot cause\b"
    r"|\bthe (?:real |actual |underlying )?(?:issue|problem|bug|fix|reason|cause|culprit) (?:is|was|here)\b"
    r"|\bturns out\b|\bso (?:i|we)(?:'ll| will| should| need)\b"
    r"|\bthe (?:right|correct|best|better|cleanest|simplest) (?:fix|approach|way|place|solution)\b"
    r"|\bchose\b|\bopted\b|\b(?:i|we)(?:'ll| will) (?:use|keep|go with)\b"
    r"|\bworkaround\b|\bintentional|\bby design\b|\bthis (?:means|ensures)\b"
    r"|\bno longer\b|\bmust\b|\bshould not\b|\bshouldn't\b|\bnever\b|\btrade-?off"
    r"|\b(?:can't|cannot|does(?:n't| not)|do(?:n't| not)|is(?:n't| not)|are(?:n't| not)) (?:[\w`]+ ){0,2}"
    r"(?:support|import|export|exist|have|accept|allow|handle|include|return|persist|available|reachable)"
    r"|\bthere(?:'s| is| are) no `",
)
"""Matches a sentence about a decision, a cause that was found, or a rule."""
_REASONS: Final = LazyPattern(
    r"\bbecause\b|\bsince\b|\bso that\b|\bdue to\b|\bwhich means\b|\bas (?:it|this|the)\b|\bin order to\b",
)
"""Matches a sentence that gives a reason."""
_FAILED_THEN: Final = (
    r"\bdid(?:n't| not) (?:\w+ )?(?:work|help|fix|compile|exist|support|apply)\b"
    r"|\bfail(?:ed|ing)? (?:because|since|due|as|with)\b|\bstill (?:fail|broken|not|the same|see)"
    r"|\bwrong approach\b|\brevert(?:ed|ing)?\b|\bdifferent approach\b|\bnot working\b"
    r"|\bmade (?:it|things) worse\b|\bmy mistake\b|\bthat(?:'s| is| was) (?:wrong|not right|incorrect)\b"
    r"|\b(?:give|gave|giving) (?:it |this |that )?up\b|\babandon(?:ed|ing)?\b"
    r"|\bthis broke\b|\bbroke (?:the|it|this)\b"
    r"|\baccidental|\bby mistake\b|\bunreachable\b|\bleft ?over\b|\bi (?:forgot|missed)\b"
    r"|\balso (?:hit|affected|replaced|removed|changed|matched)\b|\bsyntax error\b"
)
_FAILS_ALWAYS: Final = (
    r"\b(?:does(?:n't| not)|won't|will not|wouldn't)"
    r" (?:\w+ )?(?:work|help|fix|compile|exist|support|apply)\b|\bfails (?:because|since|due|as|with)\b"
)
_FAILED: Final = LazyPattern(_FAILED_THEN)
"""Matches a sentence about something that was tried and did not work."""
_FAILS: Final = LazyPattern(f"{_FAILED_THEN}|{_FAILS_ALWAYS}")
"""Matches a sentence about something that does not work, tried or not."""
_NEXT: Final = LazyPattern(
    r"\b(?:let me|now i|i'll|i will|i need to|let's"
    r"|i'm (?:now )?going to|now let|we need to|still (?:need|to do))\b"
    r"|\A\W*next\b|\bnext,|\bnext (?:up|step|i|we)\b|\bremaining (?:work|steps?|tasks?|items?|is|are)\b"
    r"|\bi'm (?:now |also )?"
    r"(?:check|runn|add|updat|patch|mov|fix|implement|writ|look|read|inspect|verify|test)ing\b",
)
"""Matches a sentence about what the agent does next."""
_OPENER: Final = LazyPattern(
    r"\A(?:(?:(?:good|great|perfect|excellent|ok(?:ay)?|right|alright|yes|i see|got it|hmm|interesting)"
    r"\s*[,.!:—]+|(?:now|so)\b(?! that\b)[,:]?)\s*)+",
    re.IGNORECASE,
)
"""Matches interjections at the beginning of a sentence. `Good practice` and `Now that` are none."""


def prose_sentences(text: str) -> Iterator[str]:
    """Yield the whole sentences of the prose in `text`, in order: without code blocks, tables, headings and
    fragments. List markers and emphasis are removed. O(length, at most `MAX_PROSE_CHARS`)."""
    body = (
        _FENCE.sub("\n", text[:MAX_PROSE_CHARS]) if "```" in text or "~~~" in text else text[:MAX_PROSE_CHARS]
    )
    for line in body.split("\n"):
        if len(line) < MIN_SENTENCE_CHARS or _NOT_PROSE.match(line):
            continue
        bare = _BULLET.sub("", line).replace("**", "").strip()
        for sentence in sentences(bare):
            said = sentence.strip()
            if MIN_SENTENCE_CHARS <= len(said) <= MAX_SENTENCE_CHARS and said.count(" ") >= 3:
                yield said


def decides(sentence: str) -> int:
    """Return how strongly a sentence says what was decided or found: 0 not at all, 1, or 2 if it gives a
    reason."""
    said = _straight(sentence).lower()
    if _DECIDES.search(said) is None or sentence.endswith(("?", ":")):
        return 0
    return 2 if _REASONS.search(said) else 1


def reports_failure(sentence: str, *, tried: bool = True) -> bool:
    """Return whether a sentence says that something that was tried did not work; with `tried` false, also
    whether it says that something does not work."""
    fails = _FAILED if tried else _FAILS
    return fails.search(_straight(sentence).lower()) is not None and not sentence.endswith("?")


def announces(sentence: str) -> bool:
    """Return whether a sentence says what the agent does next."""
    return _NEXT.search(_straight(sentence).lower()) is not None


def without_opener(sentence: str) -> str:
    """Return a sentence without interjections at its beginning, such as `Good! Now`."""
    bare = _OPENER.sub("", sentence)
    if len(bare) < MIN_SENTENCE_CHARS:
        return sentence
    # A name keeps its spelling.
    return bare[:1].upper() + bare[1:] if bare.split(" ", 1)[0].isalpha() else bare


def _straight(sentence: str) -> str:
    """Return a sentence with typewriter apostrophes, so that `I’ll` is `I'll`."""
    return sentence.replace("’", "'")
