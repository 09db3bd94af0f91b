"""Writes the figures of docs/retention.md: each table between its marks, the pictures, docs/retention.json.

The text between the marks `<!-- figures: NAME -->` and `<!-- end -->` is replaced; the rest is by hand.
`benchmarks/public_suite` writes one of these blocks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from benchmarks.retention import ablations, agreement, oracle, pictures, scoring, tables, walk
from benchmarks.retention.ablations import Ablation
from benchmarks.retention.agreement import Agreement
from benchmarks.retention.figures import PARTS, Figures
from benchmarks.retention.scoring import Job
from benchmarks.retention.sessions import OWN, OWN_NAME, REPOSITORY, Source

DOCS = REPOSITORY / "docs"
PAGE = DOCS / "retention.md"
JSON = DOCS / "retention.json"

PUBLIC_SUITE = "public suite"
"""The block that `benchmarks/public_suite` writes."""

_BLOCK = re.compile(r"(<!-- figures: (?P<name>[a-z -]+) -->\n)(?P<text>.*?)(?P<end><!-- end -->)", re.DOTALL)


class Published(Struct, frozen=True):
    """Everything that the page shows."""

    figures: Figures
    agreement: dict[str, Agreement]
    ablations: tuple[Ablation, ...]
    ablations_every: int
    oracle: oracle.Scores = {}
    """The scores of the oracle, which knows the future, by part and budget."""


def published(
    found: Figures,
    agreed: dict[str, Agreement],
    foretold: oracle.Scores,
    jobs: Sequence[Job],
    every: int,
    processes: int,
) -> Published:
    """Measure the ablations and return all published figures."""
    asked = [replace(job, budgets=ablations.BUDGETS) for job in jobs]
    return Published(found, agreed, tuple(ablations.measured(asked, every, processes)), every, foretold)


def blocks(shown: Published, cache: Path) -> dict[str, str]:
    """The text of each block of the page."""
    own = Job(Source(OWN_NAME, OWN, "auto"), frozenset(), (), (), cache)
    return {**blocks_of(shown), "walk": "\n".join(walk.page(scoring.cuts(own)[-1]))}


def blocks_of(shown: Published) -> dict[str, str]:
    """Return the blocks that follow from the figures alone, by name."""
    found = shown.figures
    texts = {"data": f"Measured on {found.data}.", "agreement": agreement.table(shown.agreement)}
    for part in PARTS:
        texts[f"scores {part}"] = f"{_counted(found, part)}\n\n{tables.scores(found, part)}"
        texts[f"differences {part}"] = tables.differences(found, part)
        texts[f"oracle {part}"] = oracle.table(found, shown.oracle, part)
        texts[f"ablations {part}"] = ablations.table(shown.ablations, part)
    texts["ablations"] = _ablated(shown)
    texts["categories"] = tables.categories(found, str(found.sessions_budget))
    texts["checks"] = _checks(shown)
    return texts


def _counted(found: Figures, part: str) -> str:
    scores = next(iter(found.scores[part].values()), {})
    one = next(iter(scores.values()), None)
    return "" if one is None else f"{one.sessions} sessions, {one.cuts} cuts."


def _ablated(shown: Published) -> str:
    cuts = {part: max(s.cuts for s in shown.ablations[0].scores[part].values()) for part in PARTS}
    which = "every cut" if shown.ablations_every == 1 else f"one of {shown.ablations_every} cuts"
    return f"Here {which}: {cuts['tuned']} of the sessions tuned on, {cuts['aside']} of those put aside."


def _checks(shown: Published) -> str:
    found = shown.figures
    refused = sum(score.refused for score in found.scores["all"].get("extract", {}).values())
    return (
        f"Of all these compactions of ours {found.over} were over their budget (beyond the marks that the"
        f" rendering adds), {found.made} named an atom that their past does not hold, {refused} were refused"
        " because the newest request alone does not fit."
    )


def filled(page: str, texts: Mapping[str, str]) -> str:
    """Return `page` with its blocks replaced, except `PUBLIC_SUITE`. Raise `KeyError` for a block that is not
    in `texts`."""
    return _BLOCK.sub(
        lambda found: found[0] if found["name"] == PUBLIC_SUITE else _block(found, texts[found["name"]]), page
    )


def with_block(page: str, name: str, text: str) -> str:
    """Return `page` with one block replaced. Raise `KeyError` if the page does not have it."""
    if name not in {found["name"] for found in _BLOCK.finditer(page)}:
        raise KeyError(name)
    return _BLOCK.sub(lambda found: _block(found, text) if found["name"] == name else found[0], page)


def _block(found: re.Match[str], text: str) -> str:
    return f"{found[1]}\n{text}\n\n{found['end']}"


def write(shown: Published, cache: Path) -> list[Path]:
    """Write the page, its pictures and the JSON again. Return the files."""
    PAGE.write_text(filled(PAGE.read_text("utf-8"), blocks(shown, cache)), "utf-8")
    JSON.write_bytes(msgspec.json.format(msgspec.json.encode(shown), indent=1) + b"\n")
    return [PAGE, JSON, *pictures.write(shown.figures, DOCS)]


def stale(page: str, shown: Published) -> list[str]:
    """Blocks of `page` that are not what the figures say."""
    wanted = blocks_of(shown)
    return [
        found["name"]
        for found in _BLOCK.finditer(page)
        if found["name"] in wanted and found["text"].strip() != wanted[found["name"]].strip()
    ]
