"""Explains the compaction of the project's own session to 4k tokens: what is kept, why, and what is lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from benchmarks.retention import lost, ours, tables
from benchmarks.retention.points import Cut, count

BUDGET = 4_000
LONGEST = 200
"""Characters of a line shown on the page; the record's own lines are whole."""

WHY = {
    "": "Says what this is, so that no model takes it for a request.",
    "## Goal": "The user's own words: nobody else keeps them, they are cheap, and each of them is needed.",
    "## Constraints & Preferences": "What the user demands stands in every later context word for word.",
    "### Done": "Calls by themselves: the commands that are run again, the files that were looked at.",
    "### In Progress": "The newest list of tasks, what is begun.",
    "### Blocked": "Calls that failed and were not tried with success since.",
    "## Progress": "The heading of the three below.",
    "## Key Decisions": "Sentences of the agent that decide something: they need their whole sentence.",
    "## Next Steps": "The newest list of tasks, what is open.",
    "## Critical Context": "Lines by the chance that the agent writes what they hold again, for their tokens,"
    " each thing paid once; under the call or message that they are from.",
    "<read-files>": "Which files were read and which changed, the newest first, within a small share.",
}


class Part(Struct, frozen=True):
    """A section of the record."""

    heading: str
    lines: int
    tokens: int


def parts_of(summary: str) -> list[Part]:
    """The sections of a record, in order; before the first heading the one named ''."""
    found: dict[str, list[str]] = {"": []}
    heading = ""
    for line in summary.split("\n"):
        if line in WHY and line:
            heading = line
            found[heading] = []
        elif line == "<modified-files>" and "<read-files>" not in found:
            heading = "<read-files>"
            found[heading] = []
        else:
            found[heading].append(line)
    return [
        Part(heading, sum(bool(line.strip()) for line in lines), count("\n".join((heading, *lines))))
        for heading, lines in found.items()
    ]


def page(cut: Cut) -> Iterator[str]:
    """The Markdown of the walk."""
    items = ours.items_of(cut.past)
    made = ours.in_process(items, BUDGET)
    past, after = sum(cut.sizes), count(made.context)
    tail = count(made.context) - count(made.summary)
    yield (
        f"The recording has {cut.point.end} messages; it is cut before message {cut.point.cut}, where"
        f" {past:,} tokens lie behind, and compacted to {BUDGET:,}. The next request then has {after:,}"
        f" tokens as the metric renders it: a record of {count(made.summary):,}, and {tail:,} for the newest"
        " request and the verbatim tail."
    )
    yield ""
    yield _table(parts_of(made.summary))
    yield ""
    yield "The record as the agent gets it:"
    yield ""
    yield "~~~~~~text"
    yield made.summary
    yield "~~~~~~"
    yield ""
    yield "And what the agent needed later and does not find in the new context:"
    yield ""
    yield "~~~~~~text"
    title = f"messages {cut.point.start} to {cut.point.cut - 1} at {BUDGET:,}"
    yield from lost.report(cut, made.context, title)
    yield "~~~~~~"


def _table(parts: Sequence[Part]) -> str:
    rows = ([_title(part), f"{part.lines}", f"{part.tokens}", WHY[part.heading]] for part in parts)
    return tables.table(["part", "lines", "tokens", "why"], rows)


def _title(part: Part) -> str:
    return f"`{part.heading}`" if part.heading else "lead"
