"""How much of what an agent needed later its own compaction kept, and how much the hook adds.

For each recorded compaction, three contexts are scored: the agent's own summary; that summary plus what
`compactd hook` adds (at most 9,500 characters); and compactd's summary with the same token budget as each of
the two. docs/retention.md describes the metric. `--document` writes the tables of docs/agents.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.agents.comparing import METHODS, Compared, Means, aside, compared, means
from benchmarks.retention import document, scoring, sessions
from benchmarks.retention.scoring import Job
from benchmarks.retention.sessions import Source
from benchmarks.retention.tables import table
from compactd.integrations.hooks.hook import MAX_PAYLOAD_CHARS

PAGE = document.DOCS / "agents.md"
AGENTS = {"claude-code": "Claude Code", "pi": "pi", "gemini-cli": "Gemini CLI"}
OTHERS = "other recordings"
HEAD = (
    "the agent's own summary",
    "+ what the hook puts back",
    "ours, at the summary's size",
    "ours, at the size of both",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Return the exit code."""
    given = argparse.ArgumentParser(prog="python -m benchmarks.agents", description=__doc__)
    given.add_argument("--data", type=Path, metavar="DIR", help="the folder of recordings")
    given.add_argument(
        "--limit", type=int, default=MAX_PAYLOAD_CHARS, metavar="CHARS", help="put back at most (9,500)"
    )
    given.add_argument("--cache", type=Path, default=scoring.CACHE, metavar="DIR")
    given.add_argument("--document", action="store_true", help="write docs/agents.md's tables anew")
    options = given.parse_args(arguments)
    data = options.data or sessions.shared_data()
    if data is None:
        print(
            "no recordings: COMPACTD_TEST_DATA names none, and none are beside the checkout", file=sys.stderr
        )
        return 2
    found = scored(data, options)
    if not found:
        print("no compaction was recorded there", file=sys.stderr)
        return 1
    texts = {"each": each(found), "means": summed(found)}
    print("\n\n".join(texts.values()))
    slow = max(found, key=lambda one: one.seconds)
    print(f"\nslowest: {slow.seconds:.2f} s of processor for {slow.past:,} tokens, nothing known before")
    if options.document:
        PAGE.write_text(document.filled(PAGE.read_text("utf-8"), texts), "utf-8")
        print(f"wrote {PAGE}")
    return 0


def scored(data: Path, options: argparse.Namespace) -> list[Compared]:
    """Return the scored recorded compactions, in the order of the sessions' names."""
    kept = options.cache / "kept"
    sources = sessions.sources(data)
    common = scoring.common_of(sources, kept)
    found: list[Compared] = []
    for source in sources:
        if source.name != sessions.OWN_NAME:
            cuts = scoring.cuts(Job(source, common, (), (), kept))
            found += compared(agent_of(source), cuts, options.limit)
    return found


def agent_of(source: Source) -> str:
    """Return the agent that recorded a session; `OTHERS` if only its messages are known, not its files."""
    return AGENTS.get(source.format, OTHERS)


def each(found: Sequence[Compared]) -> str:
    """Return a table with one row per compaction, for the agents whose own files are available."""
    rows = (
        [
            f"{one.session}, {one.agent}",
            f"{one.past:,}",
            f"{one.summary:,}",
            f"{one.back:,}",
            *(_pair(one, name) for name in METHODS),
        ]
        for one in found
        if one.agent != OTHERS
    )
    return table(["linked / CG, %", "tokens removed", "its summary", "put back, characters", *HEAD], rows)


def summed(found: Sequence[Compared]) -> str:
    """Return a table of means: by agent, of all, and of the sessions that nothing was tuned on."""
    parts = {
        agent: [one for one in found if one.agent == agent] for agent in sorted({o.agent for o in found})
    }
    parts |= {"**all**": list(found), "of them put aside": aside(found)}
    rows = (_row(name, means(part)) for name, part in parts.items() if part)
    return table(["linked / CG, %", "compactions", *HEAD], rows)


def _row(name: str, one: Means) -> list[str]:
    pairs = (f"{linked:.0f} / {cg:.0f}" for linked, cg in (one.scores[method] for method in METHODS))
    return [
        f"{name} ({one.sessions} session{'' if one.sessions == 1 else 's'})",
        str(one.compactions),
        *pairs,
    ]


def _pair(one: Compared, method: str) -> str:
    row = one.rows[method]
    return f"{100 * (row.linked or 0):.0f} / {100 * row.cg:.0f}"


if __name__ == "__main__":
    sys.exit(main())
