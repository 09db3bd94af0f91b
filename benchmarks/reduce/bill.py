"""What reducing tool outputs saves of the bill: `python -m benchmarks.reduce.bill`.

Recorded sessions are replayed as in docs/cost.md, but tool outputs are reduced when they enter the context.
If the agent uses something later that was left out, it expands the whole original first: an extra request,
whose result stays in the context. These requests are part of the bill.
"""

from __future__ import annotations

import datetime
import os
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec import Struct

from benchmarks.cost import running
from benchmarks.cost.bill import Bill, PriceList, billed
from benchmarks.cost.facts import Fact, Facts
from benchmarks.cost.policies import AnyPolicy, Cost, Fixed
from benchmarks.cost.replay import Outcome, replay
from benchmarks.retention import sessions
from benchmarks.retention.document import with_block
from benchmarks.retention.records import Call, Record
from benchmarks.retention.scoring import fingerprint, remembered
from benchmarks.retention.sessions import REPOSITORY, Source
from benchmarks.retention.tables import table as markdown_table
from compactd.core.reduce.kinds import OutputKind, recognise
from compactd.core.reduce.output import LEVELS, Level, ToolOutput
from compactd.core.reduce.reduce import reduce_output
from compactd.core.reduce.shown import ShownLines

CACHE: Final = Path("build/reduce")
PAGE: Final = REPOSITORY / "docs" / "reduce.md"
JSON: Final = REPOSITORY / "docs" / "reduce-bill.json"
THRESHOLD: Final = 160_000
"""80 % of the window, where most agents compact."""
MIN_CHARS: Final = 1_000
"""A smaller output is not reduced."""

Group = Literal["file", "shell", "search", "other"]
GROUPS: Final[dict[Group, str]] = {
    "file": "files that were read",
    "shell": "shell commands",
    "search": "searches and listings",
    "other": "other tools",
}
_GROUP_OF: Final[dict[OutputKind, Group]] = {
    "file": "file",
    "shell": "shell",
    "search": "search",
    "listing": "search",
}


class Variant(Struct, frozen=True):
    """Which outputs are reduced, and how much."""

    level: Level
    group: Group | None = None
    """The only kind of output that is reduced; None for all."""


VARIANTS: Final = (
    *(Variant(level) for level in LEVELS),
    *(Variant("default", group) for group in GROUPS),
)


class ReducedEntrance:
    """Reduces the tool outputs of a replay."""

    def __init__(self, variant: Variant) -> None:
        self._variant = variant
        self._shown = ShownLines()

    def show(self, entry_id: str, output: Record, call: Call | None) -> str:
        """Return what the context shows of an output. O(length)."""
        given = _output_of(output, call)
        text = output.text
        if len(text) >= MIN_CHARS and self._variant.group in (None, _group_of(given)):
            text = reduce_output(given, self._shown, entry_id, self._variant.level).text
        self._shown.add(entry_id, msgspec.structs.replace(given, text=text))
        return text

    def begin_again(self, outputs: Iterable[tuple[str, Record, Call | None]]) -> None:
        """Take the outputs that the context shows after a compaction."""
        self._shown = ShownLines()
        for entry_id, record, call in outputs:
            self._shown.add(entry_id, _output_of(record, call))


def _output_of(record: Record, call: Call | None) -> ToolOutput:
    if call is None:
        return ToolOutput(record.tool, {}, record.text, record.is_error)
    return ToolOutput(call.name, call.arguments, record.text, record.is_error)


def _group_of(output: ToolOutput) -> Group:
    return _GROUP_OF.get(recognise(output).kind, "other")


class Row(Struct, frozen=True):
    """The bill of all sessions under one policy and one variant."""

    variant: Variant | None
    """None: nothing is reduced."""
    bill: float
    losses: float
    """The part of the bill that pays for what was read again or expanded."""
    retained: float
    """The share of the used facts that were in the context when they were used."""
    expanded: int
    """How many extra requests there were."""


class _Job(Struct, frozen=True):
    source: Source
    policies: tuple[AnyPolicy, ...]
    common: frozenset[Fact]
    code: str


def _replayed(job: _Job) -> list[list[Outcome]]:
    """Return the replays of a recording: for each policy, without a reduction and under each variant."""
    session = sessions.read(job.source)
    if sum(record.role == "assistant" for record in session.records) < running.MIN_REQUESTS:
        return []
    facts = Facts(session.records, job.common)

    def one(policy: AnyPolicy, variant: Variant | None) -> Outcome:
        key = f"{job.code} {session.name} {job.source.file.stat().st_size} " + repr((policy, variant))
        entrance = None if variant is None else ReducedEntrance(variant)
        return remembered(CACHE, key, lambda: replay(session.name, session.records, facts, policy, entrance))

    return [[one(policy, variant) for variant in (None, *VARIANTS)] for policy in job.policies]


def measure(found: Sequence[Source], prices: PriceList, processes: int) -> tuple[dict[str, list[Row]], int]:
    """Return (the bills by policy: without a reduction, then under each of `VARIANTS`; how many sessions)."""
    code = running.engine() + fingerprint([Path(__file__)])
    common = running.common_of(found, CACHE, code)
    policies: tuple[AnyPolicy, ...] = (Fixed(THRESHOLD), Cost(prices))
    jobs = [_Job(source, policies, common, code) for source in found]
    jobs.sort(key=lambda job: -job.source.file.stat().st_size)
    with ProcessPoolExecutor(processes) as pool:
        replays = [done for done in pool.map(_replayed, jobs) if done]
    bills = {
        policy.name: [
            _row(variant, [billed(done[at][column].sent, prices) for done in replays])
            for column, variant in enumerate((None, *VARIANTS))
        ]
        for at, policy in enumerate(policies)
    }
    return bills, len(replays)


def _row(variant: Variant | None, bills: Sequence[Bill]) -> Row:
    uses = sum(bill.uses for bill in bills)
    return Row(
        variant=variant,
        bill=sum(bill.total() for bill in bills),
        losses=sum(bill.loss for bill in bills),
        retained=1 - sum(bill.lost for bill in bills) / uses if uses else 1.0,
        expanded=sum(bill.rereads for bill in bills),
    )


def table(found: Sequence[Row]) -> str:
    """Return the bills as a Markdown table."""
    base = found[0].bill
    head = ("reduced", "bill", "saved", "losses", "extra requests", "facts kept")
    return markdown_table(
        head,
        [
            (
                _name(row.variant),
                f"${row.bill:.2f}",
                f"{(1 - row.bill / base) * 100:.1f} %",
                f"${row.losses:.2f}",
                f"{row.expanded:,}",
                f"{row.retained * 100:.1f} %",
            )
            for row in found
        ],
    )


def _name(variant: Variant | None) -> str:
    if variant is None:
        return "nothing"
    return variant.level if variant.group is None else f"{variant.level}, only {GROUPS[variant.group]}"


class Bills(Struct, frozen=True):
    """All figures, as docs/reduce-bill.json has them."""

    date: str
    sessions: int
    prices: str
    """The name of the price list."""
    policies: dict[str, list[Row]]


def block(found: Bills) -> str:
    """Return the section's tables and what they are about."""
    about = f"Measured on {found.date}, {found.sessions} sessions, prices of {found.prices}."
    titles = {"160k": "Compacted at 80 % of the window:", "cost": "Compacted by the cost policy:"}
    tables = (f"{titles[name]}\n\n{table(rows)}" for name, rows in found.policies.items())
    return "\n\n".join((about, *tables))


def written() -> Bills:
    """Return the figures that were written last."""
    return msgspec.json.decode(JSON.read_bytes(), type=Bills)


def main() -> int:
    """Print the bills, or write them to the page with `--write`. Return the exit code."""
    found = running.wanted(sessions.shared_data())
    prices = running.price_lists()[0]
    policies, count = measure(found, prices, os.cpu_count() or 1)
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    bills = Bills(date=today, sessions=count, prices=prices.name, policies=policies)
    if "--write" in sys.argv[1:]:
        PAGE.write_text(with_block(PAGE.read_text("utf-8"), "bill", block(bills)), "utf-8")
        JSON.write_bytes(msgspec.json.format(msgspec.json.encode(bills), indent=1) + b"\n")
    print(block(bills))
    return 0


if __name__ == "__main__":
    sys.exit(main())
