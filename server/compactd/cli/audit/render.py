"""`compactd audit` in a terminal: the bill, the rebuilds of the cache, the compactions, an estimate."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo

from compactd.cli.audit.bill import AuditedRebuild, Bill
from compactd.cli.audit.not_told import name_list
from compactd.cli.audit.reductions import estimate_lines
from compactd.cli.audit.replay import ASSUMPTIONS, POLICY, Replay
from compactd.cli.audit.result import Audit, numbered_compactions
from compactd.cli.audit.rows import (
    CAUSE_TEXTS,
    after_prompts_text,
    cause_text,
    chain_text,
    dollars,
    gap_text,
    kind_rows,
    losses_text,
    policy_text,
    price_notes,
    rebuild_text,
    share_text,
    size_text,
    time_text,
)
from compactd.cli.framework.page import Page, one_line, plural, shorten_to_columns
from compactd.cli.inspect.markup import short
from compactd.cli.usage.prices import PriceList

MAX_REBUILDS = 20
"""How many rebuilds are listed: the most expensive ones, in the order of the file."""
MAX_LOST = 3
"""How many lost constraints and tasks of a compaction are quoted."""
_GAP = 2
_NARROW = 60
"""In a terminal with fewer columns, tables have shorter numbers and fewer columns."""


def show_bill(page: Page, bill: Bill, prices: PriceList, zone: tzinfo | None) -> None:
    """Print what the requests cost, and why the cache was built again."""
    total = bill.total
    is_narrow = page.is_drawn and page.width < _NARROW
    first = time_text(total.first_at or None, zone)
    last = time_text(total.last_at or None, zone)
    span = "no times" if not total.last_at else first if first == last else f"{first} to {last}"
    page.line(f"{plural(total.requests, 'request')}, {span}, {name_list(bill.models)}")
    page.line()
    rows = kind_rows(bill)
    table(
        page,
        [("", "tokens", "cost", ""), *((one.kind, one.tokens, one.cost, one.share) for one in rows)],
        "<>>>",
        optional=(3,),
    )
    page.line(f"{share_text(total.cached_share)} of the input came from the cache.")
    for told in price_notes(bill, prices):
        page.line(told)
    page.line()
    page.line(rebuild_text(bill))
    if bill.rebuilds:
        page.line()
        _show_causes(page, bill)
        page.line()
        _show_rebuilds(page, bill.agent, bill.rebuilds, zone, is_narrow=is_narrow)


def _show_causes(page: Page, bill: Bill) -> None:
    rows = [
        (CAUSE_TEXTS[one.cause], f"{one.rebuilds:,}", f"{one.tokens:,}", dollars(one.cost_usd))
        for one in bill.causes
    ]
    if len(rows) > 1:
        rows.append(
            ("total", f"{len(bill.rebuilds):,}", f"{bill.rebuilt_tokens:,}", dollars(bill.rebuilt_usd))
        )
    table(page, [("cause", "rebuilds", "tokens", "extra cost"), *rows], "<>>>", optional=(1,))
    if told := after_prompts_text(bill.rebuilds):
        page.line(told)


def _show_rebuilds(
    page: Page, agent: str, rebuilds: Sequence[AuditedRebuild], zone: tzinfo | None, *, is_narrow: bool
) -> None:
    listed = set(sorted(range(len(rebuilds)), key=lambda at: -rebuilds[at].tokens)[:MAX_REBUILDS])
    rows: list[tuple[str, ...]] = [
        ("answered", "pause", "tokens", "cost" if is_narrow else "extra cost", "cause")
    ]
    for at, one in enumerate(rebuilds):
        if at in listed:
            rows.append(
                (
                    time_text(one.at, zone, is_short=is_narrow),
                    gap_text(one.gap_s),
                    short(one.tokens) if is_narrow else f"{one.tokens:,}",
                    dollars(one.cost_usd),
                    (CAUSE_TEXTS[one.cause] if is_narrow else cause_text(one))
                    + ("" if is_narrow else chain_text(agent, one.chain)),
                )
            )
    if all(one.at is None for one in rebuilds):
        table(page, [row[2:] for row in rows], ">><")
    else:
        table(page, rows, "<>>><", optional=(1,))
    more = len(rebuilds) - len(listed)
    if more:
        page.line(f"{plural(more, 'smaller one is', 'smaller ones are')} not listed; --json lists all")


def show_rest(page: Page, audit: Audit, zone: tzinfo | None) -> None:
    """Print what the compactions lost, the estimate, and what the file does not say."""
    prunes = sum(one.boundary.kind == "prune" for one in audit.bill.compactions)
    compactions = [one for one in numbered_compactions(audit.bill) if one[0].boundary.kind == "compaction"]
    if compactions or prunes:
        page.line()
        told = [plural(len(compactions), "compaction")] if compactions else []
        told += [f"{plural(prunes, 'prune')} of tool results"] if prunes else []
        page.line(", ".join(told))
    for size, number in compactions:
        boundary = size.boundary
        who = f"{boundary.trigger} " if boundary.trigger else ""
        who += "in a sub-agent " if boundary.chain else ""
        page.line(f"- {time_text(boundary.at, zone)}  {who}{size_text(size)}")
        loss = None if number is None else audit.loss_of(number)
        if loss is None:
            continue
        page.row("", losses_text([loss]), columns=2)
        _quote(page, "constraint", loss.constraints)
        _quote(page, "task", loss.tasks)
    page.line()
    page.line(f"with compactd's policy: {policy_text(audit.policy)}")
    if isinstance(audit.policy, Replay):
        if not audit.policy.is_same:
            page.row("", ASSUMPTIONS, columns=2)
        page.row("", POLICY, columns=2)
    lines = estimate_lines(audit.reduction, audit.reduced)
    if lines:
        page.line()
        for line in lines:
            page.row("", line, columns=0)
    if audit.bill.unknown:
        page.line()
        page.line("what the file does not say")
        for told_line in audit.bill.unknown:
            page.row("-", told_line, columns=2)


def _quote(page: Page, what: str, texts: Sequence[str]) -> None:
    is_cut = len(texts) > MAX_LOST
    for text in texts[:MAX_LOST]:
        line = f"{what}: {one_line(text)}"
        shown = shorten_to_columns(line, page.width - 4) if page.is_drawn else line
        is_cut = is_cut or shown != line
        page.row("", shown, columns=4)
    more = f"and {len(texts) - MAX_LOST:,} more; " if len(texts) > MAX_LOST else ""
    if is_cut:
        page.row("", f"{more}--json shows all in full", columns=4)


def table(page: Page, rows: Sequence[tuple[str, ...]], sides: str, optional: Sequence[int] = ()) -> None:
    """Print rows in columns. `sides` has `<` or `>` for each column: where its cells are aligned. `optional`:
    the columns that are left out if the terminal is too narrow, the first of them first.
    """
    widths = [max(len(row[place]) for row in rows) for place in range(len(sides))]
    shown = list(range(len(sides)))
    for place in optional:
        if page.is_drawn and sum(widths[one] + _GAP for one in shown) - _GAP > page.width:
            shown.remove(place)
    for row in rows:
        cells = [
            row[place].ljust(widths[place]) if sides[place] == "<" else row[place].rjust(widths[place])
            for place in shown
        ]
        page.line((" " * _GAP).join(cells).rstrip())
