"""Decide whether a model's answer is a usable summary, and clean it up.

An answer that is empty, cut off, a refusal or an unfilled form is a failure, never a summary
(docs/dev/behaviour.md, "Summarise").
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from textwrap import dedent

from msgspec import Struct

from compactd.core.history.entries import ProviderSummary
from compactd.protocol.messages import Usage

TRUNCATED = frozenset(
    (
        "length",
        "max_tokens",
        "max_output_tokens",
        "model_length",
        "incomplete",
        "model_context_window_exceeded",
    )
)
"""Stop reasons that mean "cut off at the output limit", in lower case (OpenAI, Anthropic, Gemini; seen
2026-11)."""
REFUSED = frozenset(
    (
        "refusal",
        "content_filter",
        "safety",
        "recitation",
        "prohibited_content",
        "blocklist",
        "spii",
        "blocked",
    )
)
"""Stop reasons that mean "refused or blocked", in lower case (OpenAI, Anthropic, Gemini; seen 2026-11)."""
BROKEN = frozenset(("error", "aborted", "cancelled", "canceled", "tool_use", "tool_calls", "function_call"))
"""Stop reasons that mean "ended without an answer", in lower case (OpenAI, Anthropic, Gemini; seen
2026-11)."""

REFUSALS = (
    "i'm sorry",
    "i am sorry",
    "sorry, but",
    "i can't",
    "i cannot",
    "i'm unable",
    "i am unable",
    "as an ai",
)
"""The usual beginnings of a refusal, in lower case. They are checked only for summaries in free text, which
have no headings to check."""

REFUSAL_CHARS = 600
"""An answer with more characters than this is no refusal, even if it begins like one."""

PREAMBLE_CHARS = 400
"""Text before the first heading, such as "Here is the summary:", is dropped if it has at most this many
characters."""

TAGS = ("read-files", "modified-files", "previous-summary", "unfinished-summary", "conversation")
"""The tags of blocks that only code may write. Such blocks are removed from a model's answer."""

RESTART_CHARS = 24
"""If the first characters of a continuation, this many, are those of the answer so far, the continuation
repeats the whole summary from its beginning."""

REPEATED = 0.8
"""A line of a summary repeats an instruction if it has this share of the instruction's words."""

RULE_WORDS = 5
"""Instructions with fewer words are not looked for, because users say similar things."""


class ModelReply(Struct, frozen=True, kw_only=True):
    """A model's answer."""

    text: str
    stop_reason: str | None = None
    usage: Usage | None = None


class SummaryFailed(Struct, frozen=True):
    """The result of asking a model that gave no answer."""

    reason: str


class ProviderAnswer(Struct, frozen=True, kw_only=True):
    """What a provider answered that was asked to compact with its own method."""

    summary: ProviderSummary | None = None
    why: str = ""
    """Why there is no summary, in words for a person; empty if there is one."""
    note: str = ""
    """What was done differently from the request, in words for a person; empty for nothing."""
    usage: Usage | None = None


NOT_ASKED = ProviderAnswer(why="no provider was asked")


class NoModel(Struct, frozen=True):
    """The result if there is no model to ask."""


SummaryAnswer = ModelReply | SummaryFailed | NoModel


def summary_in(
    answer: SummaryAnswer, headings: tuple[str, ...] = (), placeholders: tuple[str, ...] = ()
) -> tuple[str, str]:
    """Return the summary in an answer, as (summary, ""), or ("", the reason why there is none, in words for a
    person).

    An answer counts if it ended by itself, has text under its headings, contains none of `placeholders`, and
    has the first and at least half of `headings` (models leave out empty sections). O(text).
    """
    match answer:
        case NoModel():
            return "", "there is no model to ask"
        case SummaryFailed(reason=reason):
            return "", reason
        case ModelReply(text=text, stop_reason=stop_reason):
            stop = (stop_reason or "").lower()
            if stop in TRUNCATED:
                return "", "the model's summary was cut off at its output limit"
            if stop in REFUSED:
                return "", "the model refused to summarise"
            if stop in BROKEN:
                return "", f"the model's answer ended with the stop reason {stop}"
            return _check_headings(clean_answer(text), headings, placeholders)


def is_cut_off(answer: SummaryAnswer) -> bool:
    """Return whether the model stopped at its output limit or at the end of its window."""
    return isinstance(answer, ModelReply) and (answer.stop_reason or "").lower() in TRUNCATED


def join_continued(begun: str, more: str) -> str:
    """Join the beginning of a summary that was cut off with its continuation. If the model started again from
    the beginning, return only `more`."""
    again = begun.strip()[:RESTART_CHARS]
    if len(again) == RESTART_CHARS and more.strip().startswith(again):
        return more
    is_new_line = more.startswith(("#", "- ", "* ")) and not begun.endswith("\n")
    return f"{begun}\n{more}" if is_new_line else begun + more


def clean_answer(text: str) -> str:
    """Return `text` without a code fence around it and without blocks that only code may write. O(text)."""
    text = text.strip()
    if text.startswith("```") and text.endswith("```") and "\n" in text:
        text = text[text.index("\n") + 1 : -3].strip()
    for tag in TAGS:
        text = _without(text, f"<{tag}>", f"</{tag}>")
    return text.strip()


def without_rules(summary: str, rules: str, said: str) -> str:
    """Return `summary` without list items that repeat one of `rules`, the instructions to the summariser.
    Such items would pass for constraints of the user (klaude-code `52de46ff`). An item that also occurs in
    `said`, the text of the conversation, stays. O(lines × rules)."""
    parts = [
        part
        for line in rules.splitlines()
        for part in line.replace(", and ", ". ").replace("; ", ". ").split(". ")
    ]
    told = [words for part in parts if len(words := _words(part)) >= RULE_WORDS]
    lines, kept = summary.splitlines(), list[str]()
    for at, line in enumerate(lines):
        item = line.strip()
        if not item.startswith(("- ", "* ")) or not _repeats(_words(item), told) or item[2:].strip() in said:
            kept.append(line)
            continue
        after = next((rest for rest in lines[at + 1 :] if rest.strip()), "#")
        before = next((rest for rest in reversed(kept) if rest.strip()), "#")
        if after.startswith("#") and before.startswith("#"):
            kept.append("(none)")
    return "\n".join(kept)


_MARKS = r"(?:[-*•+]\s+|\(?\d{1,2}[.)]\s+|\#{1,6}\s+)*[*_]*(?:\d{1,2}[.)]\s+)?"


def with_headings(text: str, headings: tuple[str, ...]) -> str:
    """Return `text` with headings in place of lines that name one of `headings` in another form: `1. GOAL:
    …`, `- **Goal**`, `## 1. Goal`. What follows the name in such a line becomes an item under the heading. If
    several lines name a heading, the first of the least indented ones counts. O(text × headings)."""
    lines = text.split("\n")
    found: dict[int, tuple[str, str]] = {}
    for heading in headings:
        words = r"\s+".join("(?:&|and)" if w == "&" else re.escape(w) for w in heading.split())
        shape = re.compile(
            rf"{_MARKS}{words}[*_]*\s*(?:[:：][*_]*|\s[–—-]+\s|\Z)(?P<rest>.*)\Z", re.IGNORECASE
        )
        for at, line in enumerate(lines):
            match = shape.match(line.strip())
            if match is not None:
                found[at] = (heading, match["rest"].strip())
    least = min((_indent(lines[at]) for at in found), default=0)
    taken: set[str] = set()
    parts: list[str] = []
    body: list[str] = []
    for at, line in enumerate(lines):
        heading, rest = found.get(at, ("", ""))
        if heading and heading not in taken and _indent(line) == least:
            taken.add(heading)
            parts += [dedent("\n".join(body)), f"## {heading}"]
            body = []
            if rest:
                parts.append(f"- {rest}")
        else:
            body.append(line)
    return "\n".join(part for part in (*parts, dedent("\n".join(body))) if part.strip())


def heading_of(line: str) -> str:
    """Return the words of a heading in lower case, without `#`, `*` and `:`; empty if the line is not a
    heading."""
    bare = line.strip()
    if not bare.startswith(("#", "**")) and not bare.endswith(":") and not bare.isupper():
        return ""
    return " ".join(bare.strip("#*: ").lower().replace(" and ", " & ").split())


def _check_headings(text: str, headings: tuple[str, ...], placeholders: tuple[str, ...]) -> tuple[str, str]:
    """Check the headings and the content of a cleaned answer. Return (summary, "") or ("", the reason why it
    is not used), like `summary_in`."""
    if not text:
        return "", "the model's summary was empty"
    if not headings:
        if len(text) <= REFUSAL_CHARS and text.lower().startswith(REFUSALS):
            return "", "the model refused to summarise"
        return text, ""
    if any(placeholder in text for placeholder in placeholders):
        return "", "the model returned the form of the prompt without filling it in"
    lines = text.splitlines()
    places = _places(lines, headings)
    if not _has_enough(places, headings):
        lines = with_headings(text, headings).splitlines()
        places = _places(lines, headings)
    if not _has_enough(places, headings):
        return "", "the model's answer lacks the headings that the prompt asks for"
    first = min(places.values())
    if len("\n".join(lines[:first])) <= PREAMBLE_CHARS:
        lines = lines[first:]
    if not any(_has_content(line) for line in lines):
        return "", "the model's summary was empty"
    return "\n".join(lines).strip(), ""


def _places(lines: Sequence[str], headings: tuple[str, ...]) -> dict[str, int]:
    """Return the line number of each of `headings` that the text contains. The keys are the headings in lower
    case."""
    wanted = {heading.lower() for heading in headings}
    return {heading: at for at, line in enumerate(lines) if (heading := heading_of(line)) in wanted}


def _has_enough(places: Mapping[str, int], headings: tuple[str, ...]) -> bool:
    return headings[0].lower() in places and 2 * len(places) >= len(headings)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _words(line: str) -> frozenset[str]:
    return frozenset("".join(c if c.isalnum() else " " for c in line.lower()).split())


def _repeats(words: frozenset[str], rules: Sequence[frozenset[str]]) -> bool:
    """Return whether these words repeat one of the rules."""
    return any(len(words & rule) >= REPEATED * len(rule) and len(words) <= 2 * len(rule) for rule in rules)


def _has_content(line: str) -> bool:
    """Return whether a line has content: it is not empty, not a heading and not `(none)`."""
    bare = line.strip().strip("-*0123456789.[] x")
    return bool(bare) and not line.lstrip().startswith("#") and bare.lower() not in ("(none)", "none", "n/a")


def _without(text: str, opening: str, closing: str) -> str:
    """Return `text` without the blocks between these tags, or without the opening tag if it is never
    closed."""
    while (start := text.find(opening)) >= 0:
        end = text.find(closing, start)
        rest = start + len(opening) if end < 0 else end + len(closing)
        text = text[:start] + text[rest:]
    return text
