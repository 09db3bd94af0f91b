"""Writes the figures of docs/cost.md: each table between its marks, the pictures, docs/cost.json."""

from __future__ import annotations

from pathlib import Path

import msgspec

from benchmarks.cost import pictures
from benchmarks.cost.figures import BASE, FIXED, WEIGHTS, WITHIN, Figures, Row, SessionRow
from benchmarks.retention.document import filled
from benchmarks.retention.sessions import REPOSITORY
from benchmarks.retention.tables import table
from compactd.core.cost.policy import KEPT_TOKENS, MAX_REREAD_TOKENS, REREAD_SHARE

DOCS = REPOSITORY / "docs"
PAGE = DOCS / "cost.md"
JSON = DOCS / "cost.json"
TITLES = {
    "never": "never",
    "160k": "160k (80 %)",
    "190k": "190k (95 %)",
    "160k today": "160k, keeping 50k as compactd does by default",
    "own": "the agent's own",
    "cost": "**cost policy**",
}
PART_TITLES = {"tuned": "Sessions tuned on", "aside": "Held-out sessions", "all": "All sessions"}


def blocks(found: Figures) -> dict[str, str]:
    """Return the text of each block of the page, by name."""
    first = next(iter(found.lists))
    texts = {f"bills {part}": _bills(found.lists[first][part]) for part in PART_TITLES}
    texts["own"] = _bills(found.own["all"])
    texts["weights"] = _weights(found)
    texts["lists"] = _lists(found)
    texts["sessions"] = _sessions(found.sessions)
    texts["rereads"] = _rereads(found)
    texts["summary"] = _summary(found, first)
    return texts


def _title(policy: str) -> str:
    return TITLES.get(policy, policy)


def _share(row: Row, base: Row, weight: str = "1") -> str:
    return f"{100 * (row.totals[weight] / base.totals[weight] - 1):+.0f} %"


def _bills(rows: dict[str, Row]) -> str:
    if not rows:
        return "No sessions."
    base = rows[BASE]
    head = ["policy", "bill", "against 80 %", "read", "written", "output", "summaries", "losses"]
    head += ["compactions", "read again", "facts kept", "per 1,000 kept facts"]
    own = max(row.bill.summary for row in rows.values()) > 0

    def line(name: str, row: Row) -> list[str]:
        bill = row.bill
        amounts = (bill.read, bill.write, bill.output, bill.summary, bill.loss)
        kept = bill.uses - bill.lost
        return [
            _title(name),
            f"${row.totals['1']:.2f}",
            _share(row, base),
            *(f"{amount:.2f}" for amount in amounts),
            f"{bill.compactions}",
            f"{bill.rereads}",
            f"{100 * bill.retained:.1f} %",
            f"${1000 * row.totals['1'] / kept:.3f}" if kept else "–",
        ]

    shown = {name: row for name, row in rows.items() if name != "own" or own}
    return f"{base.sessions} sessions.\n\n" + table(head, (line(name, row) for name, row in shown.items()))


def _weights(found: Figures) -> str:
    rows = next(iter(found.lists.values()))["all"]
    keys = [f"{weight:g}" for weight in WEIGHTS]
    lines = (
        [_title(name), *(f"${row.totals[key]:.2f} ({_share(row, rows[BASE], key)})" for key in keys)]
        for name, row in rows.items()
        if name != "own"
    )
    return table(["policy", "losses × ½", "losses × 1", "losses × 2"], lines)


def _lists(found: Figures) -> str:
    rows = next(iter(found.lists.values()))["all"]
    names = [name for name in rows if name == "cost" or not name.startswith(("own", "cost"))]

    def cell(of: str, name: str) -> str:
        rows = found.lists[of]["all"]
        return f"${rows[name].totals['1']:.2f} ({_share(rows[name], rows[BASE])})"

    return table(
        ["policy", *found.lists], ([_title(name), *(cell(of, name) for of in found.lists)] for name in names)
    )


def _sessions(rows: tuple[SessionRow, ...]) -> str:
    shown = sorted(rows, key=lambda row: -row.ratio)
    return table(
        ["session", "held out", "requests", "80 %", "best threshold", "its bill", "cost policy", "ratio"],
        (
            [
                row.name,
                "yes" if row.is_aside else "no",
                f"{row.requests}",
                f"${row.totals[BASE]:.2f}",
                row.best,
                f"${row.totals[row.best]:.2f}",
                f"${row.totals['cost']:.2f}",
                f"{row.ratio:.3f}",
            ]
            for row in shown
        ),
    )


def _rereads(found: Figures) -> str:
    lines = [
        [
            name,
            f"{one.compactions}",
            f"{one.removed:,}",
            f"{one.reread:,}",
            f"{one.rereads}",
            f"{one.reread / one.removed:.3f}" if one.removed else "–",
            f"{one.reread / one.compactions:,.0f}" if one.compactions else "–",
        ]
        for name, one in found.rereads.items()
    ]
    head = ["threshold", "compactions", "removed tokens", "read again", "reads", "share read again"]
    return table([*head, "read again per compaction"], lines)


def _summary(found: Figures, first: str) -> str:
    said = []
    for part, title in PART_TITLES.items():
        rows = found.lists[first][part]
        if not rows:
            continue
        mine = [row for row in found.sessions if part == "all" or row.is_aside == (part == "aside")]
        within = sum(row.ratio <= WITHIN for row in mine)
        best = sum(row.totals[row.best] for row in mine)
        cost = rows["cost"].totals["1"]
        single = min(FIXED, key=lambda name: rows[name].totals["1"])
        said.append(
            f"- {title}: ${cost:.2f}, {_share(rows['cost'], rows[BASE])} against 80 % of the window;"
            f" {100 * (cost / best - 1):+.1f} % against the best threshold of each session in hindsight"
            f" (${best:.2f}), {100 * (cost / rows[single].totals['1'] - 1):+.1f} % against the best single"
            f" threshold ({single}); {within} of {len(mine)} sessions are at most 5 % above their best"
            f" threshold, the worst is {100 * (max(row.ratio for row in mine) - 1):.1f} % above it."
        )
    said.append(
        f"- The constants of the policy: {REREAD_SHARE:g} tokens are read again per removed token, at most"
        f" {MAX_REREAD_TOKENS:,} per compaction; a compaction leaves {KEPT_TOKENS:,} tokens of the messages."
    )
    return "\n".join(said)


def write(found: Figures) -> list[Path]:
    """Write the page, its pictures and the JSON again. Return the files."""
    JSON.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    PAGE.write_text(filled(PAGE.read_text("utf-8"), blocks(found)), "utf-8")
    return [PAGE, JSON, *pictures.write(found, DOCS)]


def stale() -> list[str]:
    """Return what of the page and its pictures differs from docs/cost.json."""
    found = msgspec.json.decode(JSON.read_bytes(), type=Figures)
    page = PAGE.read_text("utf-8")
    wrong = [] if filled(page, blocks(found)) == page else [PAGE.name]
    drawn = {"frontier": pictures.frontier, "sessions": pictures.by_session}
    for name, draw in drawn.items():
        file = DOCS / pictures.FILES[name]
        if not file.exists() or file.read_text("utf-8") != draw(found):
            wrong.append(file.name)
    return wrong
