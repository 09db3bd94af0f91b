"""Reports each probe that a compaction lost: what it is, where it was, and where the agent needed it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.retention.atoms import Atoms, folded
from benchmarks.retention.judging import kept
from benchmarks.retention.points import Cut
from benchmarks.retention.probes import CATEGORIES, NAMES, Probe
from benchmarks.retention.records import Record

SHOWN_CHARS = 160
PLACES = 3


def lost_of(cut: Cut, context: str) -> list[Probe]:
    """The probes that the past holds and `context` does not, by category, then as they were needed."""
    found = kept(cut.probes, context, Atoms(cut.folder), cut.folder)
    return sorted(
        cut.full - found, key=lambda probe: (CATEGORIES.index(probe[0]), needed_at(cut, probe), probe[1])
    )


def needed_at(cut: Cut, probe: Probe) -> int:
    """The message in which the agent wrote it again; of a sentence, the first of the future."""
    if probe[0] == "line":
        return cut.probes.lines[str(probe[1])]
    if probe in cut.probes.sentences:
        return cut.point.cut
    return cut.probes.atoms[probe[0], str(probe[1])]


def report(cut: Cut, context: str, title: str) -> Iterator[str]:
    """Lines for a person."""
    lost = lost_of(cut, context)
    yield f"{title}: {len(lost)} of {len(cut.full)} probes lost"
    for category in CATEGORIES:
        mine = [probe for probe in lost if probe[0] == category]
        total = sum(probe[0] == category for probe in cut.full)
        if total:
            yield f"\n  {NAMES[category]}: {len(mine)} of {total}"
        for probe in mine:
            yield f"    {clipped(shown(cut, probe))}"
            stood = [record for record in cut.past if _holds(record, cut, probe)]
            needed = ""
            if probe not in cut.probes.sentences:
                needed = f"; needed at message {needed_at(cut, probe)}"
            yield f"        stood in {_where(stood)}{needed}"


def shown(cut: Cut, probe: Probe) -> str:
    """A probe as it was written."""
    return cut.probes.sentences[probe] if probe in cut.probes.sentences else str(probe[1])


def clipped(text: str) -> str:
    """One line of it."""
    line = folded(text)
    return line if len(line) <= SHOWN_CHARS else line[: SHOWN_CHARS - 1] + "…"


def _holds(record: Record, cut: Cut, probe: Probe) -> bool:
    wanted = folded(shown(cut, probe))
    text = folded(record.text + "\n" + record.given)
    return wanted in (text.replace(cut.folder + "/", "") if cut.folder else text)


def _where(stood: Sequence[Record]) -> str:
    """`12 tool Read, 40 assistant and 3 before`."""
    last = [f"{r.at} {r.role}{' ' + r.tool if r.tool else ''}" for r in stood[-PLACES:]]
    before = len(stood) - len(last)
    return ", ".join(last) + (f" and {before} before" if before else "") if last else "no single message"
