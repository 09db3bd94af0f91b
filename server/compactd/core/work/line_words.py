"""Tell what the words of one line say about the work: how much, or nothing at all."""

from __future__ import annotations

from typing import Final

from compactd.core.text.lazy_patterns import LazyPattern
from compactd.core.work import prose

SENTENCE_WORDS: Final = 6
"""A line with more words than this is a sentence."""
NAME_WORDS: Final = 3
"""A line with no more words than this is a name."""
OPEN_WORTH: Final = 1.0
"""What a line is worth below a title that says that something is open, or that sums up."""
PRAISE_COST: Final = 2.0
"""What a line loses that tells what is good about something."""

_CHAIN: Final = LazyPattern(r"\A\W*\w[^→\n]{0,60}→[^→\n]{1,60}→")
"""Matches a chain of arrows, such as an import cycle. It is kept even in a code block."""

# Patterns for lower case are matched against text in lower case: three times as fast as ignoring the case.
_OUTCOME: Final = LazyPattern(
    r"\b(?:passed|passes|passing|failed|fails|failing|fixed|committed|pushed|merged|reverted|removed|added"
    r"|changed|replaced|done|complete[d]?|verified|pending|remaining|open|blocked|broken|skipped|missing"
    r"|works|unchanged|not yet|still|todo|next)\b",
)
"""Words in a line about what was done, and how it ended."""
_CAUSE: Final = LazyPattern(
    r"\b(?:because|since|due to|caused? by|instead|revert\w*|unless|missing|only (?:if|when|triggers?)"
    r"|(?:does|do|did|is|are|was|ca|wo)n't|(?:does|do|did|is|are|was|will) not|cannot|will (?:fail|break)"
    r"|no longer|lacks?|never|turns out)\b",
)
"""Words in a line that gives a cause or a limit."""
_VERDICT: Final = LazyPattern(
    r"\b(?:ship it|lgtm|verdict|severity|(?:non-?)?blocking|critical|recommend\w*|conclusion|bottom line"
    r"|approved?|ready to (?:merge|ship)|all (?:[\w-]+ ){0,2}(?:tests?|checks?)(?: now)? pass(?:ed|es)?"
    r"|\d+ (?:tests )?(?:passed|failed|errors?)|nothing (?:is |was )?(?:committed|pushed)"
    r"|result:|the problem\b|root cause)",
)
"""Words in a line that sums up."""
_NAMES: Final = LazyPattern(r"`[^`\n]+`|\d|[/_.]\w")
"""Matches a part of a line that names something exactly."""
_ANCHORS: Final = LazyPattern(
    r"`[^`\n]{6,}`|\.\w{1,5}:\d|(?:Error|Exception)\b|[A-Z]-?\d|#\d|\d ?(?:%|m?s\b|[kMG]?i?B\b)|_\w|/\w+\.\w"
)
"""Matches a part of a line that leads to one place: a name, a place in a file, a number with its unit."""
_PLACE: Final = LazyPattern(r"\.\w{1,5}:\d")
"""Matches a place in a file."""
_ANNOUNCES: Final = LazyPattern(
    r"\A\W*(?:(?:good|great|perfect|excellent|ok(?:ay)?|alright|right|sure|done|now|next|first|then|so|finally)\b"
    r"[^\w`]{1,4}){0,3}(?:let me|now i|i'm (?:now |also )?going to|ready (?:for|to)|time to"
    r"|(?:i'll|i will|let's) (?:now |also |then )?(?:add|begin|check|continue|create|examine|explore|find|fix"
    r"|implement|inspect|investigate|look|make|move|proceed|read|review|run|search|see|start|summarize|take|test"
    r"|update|verify|write))\b",
)
"""Matches the beginning of a sentence that only says what the agent does next."""
_POLITE: Final = LazyPattern(
    r"\A\W*(?:great|perfect|excellent|good|nice|awesome|wonderful|done|all done|all set|sure|got it|i see"
    r"|ok(?:ay)?|absolutely|certainly|of course|you're (?:absolutely )?right|sounds good)\b"
    r"[^.!?:]{0,25}[.!]?\W*\Z"
    r"|\A\W*(?:let me know|feel free|happy to|hope this|is there anything)\b",
)
"""Matches a sentence that is only friendly."""
_OFFERS: Final = LazyPattern(
    r"\A\W*(?:want me|would you like|do you want|shall (?:i|we)|should (?:i|we)|ready)\b",
)
"""Matches the beginning of a question that offers to go on."""
_OPENS: Final = LazyPattern(
    r"\A\W*(?:(?:great|perfect|good|excellent|all done|done|sure)\b\W+)?(?:here(?:'s| is| are)\b|below\b"
    r"|summary\b|overview\b|details\b|changes(?: made)?:|the changes\b"
    r"|what (?:i |we |was )?(?:did|changed|done)\b)",
)
"""Matches a title or a line with a colon that what follows does not need."""
_OPEN: Final = LazyPattern(
    r"\W*(?:remaining|open|still|not yet|to ?do|blocked|left|what's left|next|root cause|verdict|conclusion"
    r"|recommendation|bottom line)\b"
)
"""Matches the title of a list that tells what is open, or why, or sums up."""
_LABEL: Final = LazyPattern(r"\A\s*(?:[-*•+] )?[A-Z][\w /-]{2,24}: ")
"""Matches a line that begins with a label, such as `Impact: `."""
_PRAISES: Final = LazyPattern(
    r"\b(?:benefits?|advantages|pros|strengths|highlights|what(?:'s| is) good|why (?:this|it) is better"
    r"|(?:key )?features)\b",
)
"""Matches the title of a list that tells what is good about something."""


def lowered(text: str) -> str:
    """Return a text in lower case, with typewriter apostrophes."""
    return text.lower().replace("’", "'")


def names_something(line: str) -> bool:
    """Return whether a line names something exactly: in backticks, by a number or by a path."""
    return _NAMES.search(line) is not None


def is_polite(low: str) -> bool:
    """Return whether a sentence in lower case is only friendly."""
    return _POLITE.match(low) is not None


def is_chain(text: str) -> bool:
    """Return whether a line is a chain of arrows, such as an import cycle."""
    return "→" in text and _CHAIN.match(text) is not None


def sums_up(low: str) -> bool:
    """Return whether a line in lower case says how something ended, or what is recommended."""
    return _VERDICT.search(low) is not None


def gives_cause(low: str) -> bool:
    """Return whether a line in lower case gives a cause or a limit."""
    return _CAUSE.search(low) is not None


def is_only_opening(low: str) -> bool:
    """Return whether what follows a title in lower case does not need it."""
    return _OPENS.match(low) is not None


def tone_of(low: str) -> float:
    """Return what a title in lower case adds to the worth of the lines below it."""
    return OPEN_WORTH * (_OPEN.match(low) is not None) - PRAISE_COST * (_PRAISES.search(low) is not None)


def worth_of_words(text: str, low: str) -> float:
    """Return how much a text says about the work. `low` is the text in lower case."""
    worth = 1.5 * prose.decides(text) + 2.5 * prose.reports_failure(text)
    worth += 1.0 * (_OUTCOME.search(low) is not None) + 2.0 * gives_cause(low)
    spaces = text.count(" ")
    # A name alone tells less than a sentence about it.
    worth += (0.7 if spaces >= NAME_WORDS else 0.2) * min(3, len(_ANCHORS.findall(text)))
    worth += 0.3 * min(2, len(_NAMES.findall(text))) + 1.0 * (spaces >= SENTENCE_WORDS)
    if is_chain(text):
        worth += 3.0
    if ":" in text and _PLACE.search(text) is not None:
        worth += 1.0
    if _LABEL.match(text) is not None:
        worth += 0.7
    return worth


def states(low: str) -> bool:
    """Return whether a line that ends with a colon also states something."""
    return low.count(" ") >= SENTENCE_WORDS - 2 and (
        names_something(low) or gives_cause(low) or prose.decides(low[:-1]) > 0
    )


def tells_nothing(low: str, *, is_last: bool) -> bool:
    """Return whether a sentence is only friendly, or only says what the agent does next. A question at the
    end tells something if it is about one thing."""
    if is_polite(low):
        return True
    if low.endswith("?"):
        is_about = is_last and (" or " in low or names_something(low))
        return _OFFERS.match(low) is not None and not is_about
    return _ANNOUNCES.match(low) is not None and not gives_cause(low) and not prose.decides(low)
