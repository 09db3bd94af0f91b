"""The audit of a session as one web page: its cost over time with the rebuilds, and tables. The page is
self-contained, has no script, and loads nothing from elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import tzinfo

from compactd.cli.audit.bill import Bill, CostPoint
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
from compactd.cli.framework.page import plural
from compactd.cli.inspect.html_page import document, html_list, page_style, section
from compactd.cli.inspect.markup import escape
from compactd.cli.usage.prices import PriceList
from compactd.cli.usage.table import cost_text

WIDTH, HEIGHT = 1000, 240
_EDGE = 10
_STYLE = """\
.audit td,.audit th{padding:3px 14px 3px 0}
.audit tr{display:table-row}
.audit td:last-child,.audit th:last-child{padding-right:0}
.audit .total td{border-top:1px solid var(--edge);font-weight:600}
.rebuild{fill:var(--bad);stroke:var(--card);stroke-width:1.5}
.compaction{stroke:var(--summary);stroke-width:2;stroke-dasharray:6 4}
.ends{display:flex;justify-content:space-between;gap:16px;margin:4px 0 0;color:var(--soft);font-size:13px}
.key svg{display:inline;width:22px;height:12px;vertical-align:-1px;margin-right:4px}
"""


_KEY = """\
<p class="hint key"><svg viewBox="0 0 22 12" aria-hidden="true"><circle class="rebuild" cx="11" cy="6" r="5"/>
</svg>a rebuild of the cache
<svg viewBox="0 0 22 12" aria-hidden="true"><line class="compaction" x1="0" x2="22" y1="6" y2="6"/></svg>
a compaction</p>"""
"""What the signs in the picture mean."""


def page(audit: Audit, title: str, prices: PriceList, zone: tzinfo | None) -> str:
    """Return the page as HTML. Text of the session can never become markup in it. O(requests)."""
    bill = audit.bill
    outputs = [line.removeprefix("- ") for line in estimate_lines(audit.reduction, audit.reduced)]
    body = "\n".join(
        (
            f"<header><h1>{escape(title)}</h1>"
            f'<div class="percent">{escape(cost_text(bill.total))}</div></header>',
            f'<p class="about">{escape(_about(bill, zone))}</p>',
            section("Cost", "after each request", _picture(bill, zone)),
            section(
                "Bill",
                f"{share_text(bill.total.cached_share)} of the input came from the cache",
                _bill(bill, prices),
            ),
            section("Cache", rebuild_text(bill), _rebuilds(bill, zone)),
            section("Compactions", "what they lost", _compactions(audit, zone)) if bill.compactions else "",
            section("With compactd's policy", "an estimate", _policy(audit)),
            section("Tool outputs", "reduced before the context", html_list(outputs)) if outputs else "",
            section("What the file does not say", "", html_list(bill.unknown)) if bill.unknown else "",
            section("Notes", "about the file", html_list(audit.notes)) if audit.notes else "",
        )
    )
    return document(f"Audit of {title}", body, page_style() + _STYLE)


def _about(bill: Bill, zone: tzinfo | None) -> str:
    total = bill.total
    when = (
        f"{time_text(total.first_at or None, zone)} to {time_text(total.last_at, zone)}"
        if total.last_at
        else "no times"
    )
    return f"{plural(total.requests, 'request')}, {when}, {name_list(bill.models)}"


def _picture(bill: Bill, zone: tzinfo | None) -> str:
    """Return the curve of the cost, with a dot for each rebuild and a dashed line for each compaction."""
    points = bill.points
    highest = points[-1].dollars if points else 0.0
    if len(points) < 2 or not highest:
        return "<p>The file has too few requests of a known cost for a picture.</p>"
    step = (WIDTH - 2 * _EDGE) / (len(points) - 1)

    def spot(place: int) -> tuple[float, float]:
        return _EDGE + place * step, HEIGHT - _EDGE - (HEIGHT - 2 * _EDGE) * points[place].dollars / highest

    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(spot, range(len(points))))
    marks = "".join(_mark(place, point, *spot(place), zone) for place, point in enumerate(points))
    bottom = HEIGHT - _EDGE
    compacted = sum(point.is_compacted for point in points)
    told = (
        f"The cost rises to {dollars(highest)} over {plural(len(points), 'request')}, with"
        f" {plural(len(bill.rebuilds), 'rebuild')} and {plural(compacted, 'compaction')}."
    )
    return (
        f'<div class="plot"><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="pt pd">'
        f'<title id="pt">Cost after each request</title><desc id="pd">{escape(told)}</desc>'
        f'<path class="area" d="M{_EDGE},{bottom}L{line.replace(" ", "L")}L{WIDTH - _EDGE},{bottom}Z"/>'
        f'<line class="grid" x1="{_EDGE}" x2="{WIDTH - _EDGE}" y1="{bottom}" y2="{bottom}"/>'
        f'<polyline class="curve" points="{line}"/>{marks}</svg></div>'
        f'<p class="ends"><span>request 1, {escape(time_text(points[0].at, zone))}</span>'
        f"<span>request {len(points):,}, {escape(time_text(points[-1].at, zone))}:"
        f" {escape(dollars(highest))}</span></p>"
        f"{_KEY}"
    )


def _mark(place: int, point: CostPoint, x: float, y: float, zone: tzinfo | None) -> str:
    mark = ""
    if point.is_compacted:
        mark = f'<line class="compaction" x1="{x:.1f}" x2="{x:.1f}" y1="{_EDGE}" y2="{HEIGHT - _EDGE}"/>'
    if point.cause is None:
        return mark
    told = f"request {place + 1:,}, {time_text(point.at, zone)}: {CAUSE_TEXTS[point.cause]}"
    circle = f'<circle class="rebuild" cx="{x:.1f}" cy="{y:.1f}" r="5">'
    return f"{mark}{circle}<title>{escape(told)}</title></circle>"


def _bill(bill: Bill, prices: PriceList) -> str:
    rows = [(one.kind, one.tokens, one.cost, one.share) for one in kind_rows(bill)]
    notes = "".join(f'<p class="hint">{escape(one)}</p>' for one in price_notes(bill, prices))
    return _table(("kind", "tokens", "cost", "share"), rows, (1, 2, 3), has_total=True) + notes


def _rebuilds(bill: Bill, zone: tzinfo | None) -> str:
    if not bill.rebuilds:
        return "<p>The cache was never built again.</p>"
    causes = [
        (CAUSE_TEXTS[one.cause], f"{one.rebuilds:,}", f"{one.tokens:,}", dollars(one.cost_usd))
        for one in bill.causes
    ]
    total = ("total", f"{len(bill.rebuilds):,}", f"{bill.rebuilt_tokens:,}", dollars(bill.rebuilt_usd))
    rows = [
        (
            time_text(one.at, zone),
            gap_text(one.gap_s),
            f"{one.tokens:,}",
            dollars(one.cost_usd),
            cause_text(one) + chain_text(bill.agent, one.chain),
            "" if one.line is None else f"{one.line:,}",
        )
        for one in bill.rebuilds
    ]
    heads = ("answered", "pause", "tokens", "extra cost", "cause", "line")
    return (
        _table(("cause", "rebuilds", "tokens", "extra cost"), [*causes, total], (1, 2, 3), has_total=True)
        + f'<p class="hint">{escape(after_prompts_text(bill.rebuilds))}</p>'
        + f"<details><summary>All {len(rows):,}, in order</summary>"
        + f"{_table(heads, rows, (1, 2, 3, 5))}</details>"
    )


def _compactions(audit: Audit, zone: tzinfo | None) -> str:
    items: list[str] = []
    for size, number in numbered_compactions(audit.bill):
        boundary = size.boundary
        who = f"{boundary.trigger} {boundary.kind}".strip() + (", sub-agent" if boundary.chain else "")
        text = f"{time_text(boundary.at, zone)}, {who}: {size_text(size)}"
        loss = None if number is None else audit.loss_of(number)
        if loss is not None:
            text += f"; {losses_text([loss])}"
        lost = (
            []
            if loss is None
            else [
                *(f"constraint: {one}" for one in loss.constraints),
                *(f"task: {one}" for one in loss.tasks),
            ]
        )
        items.append(f"<li>{escape(text)}{html_list(lost) if lost else ''}</li>")
    return f"<ul>{''.join(items)}</ul>"


def _policy(audit: Audit) -> str:
    text = policy_text(audit.policy)
    told = (
        f"<p>{escape(text[0].upper() + text[1:])}.</p>"
        if not text.endswith(".")
        else f"<p>{escape(text)}</p>"
    )
    if not isinstance(audit.policy, Replay):
        return told
    hints = (POLICY,) if audit.policy.is_same else (ASSUMPTIONS, POLICY)
    return told + "".join(f'<p class="hint">{escape(hint)}</p>' for hint in hints)


def _table(
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    numbers: Sequence[int],
    *,
    has_total: bool = False,
) -> str:
    """Return a table. `numbers`: the columns that are aligned to the right. `has_total`: the last row is a
    sum."""

    def cells(row: Sequence[str], tag: str) -> str:
        scope = ' scope="col"' if tag == "th" else ""
        looks = [' class="number"' if place in numbers else "" for place in range(len(row))]
        return "".join(
            f"<{tag}{look}{scope}>{escape(cell)}</{tag}>" for cell, look in zip(row, looks, strict=True)
        )

    lines = [f"<tr>{cells(row, 'td')}</tr>" for row in rows]
    if has_total:
        lines[-1] = lines[-1].replace("<tr>", '<tr class="total">', 1)
    # A region that scrolls must be reachable with the keyboard.
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="table by {escape(heads[0])}">'
        f'<table class="audit"><tr>{cells(heads, "th")}</tr>{"".join(lines)}</table></div>'
    )
