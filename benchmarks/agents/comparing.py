"""Scores each recorded compaction four times: the agent's summary, that plus what the hook adds, and
compactd's summary at both sizes.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from benchmarks.retention import ours
from benchmarks.retention.aside import is_aside
from benchmarks.retention.figures import mean, score
from benchmarks.retention.points import Cut, count
from benchmarks.retention.records import SUMMARY, Record
from benchmarks.retention.scoring import Row, judged
from compactd.core.extract.facts import FactCache
from compactd.formats.messages.neutral_out import encode_message
from compactd.integrations.hooks.hook import MAX_PAYLOAD_CHARS
from compactd.integrations.hooks.hook_state import MirroredMessage
from compactd.integrations.hooks.lost_facts import Lost, characters, find_lost

OWN, WITH_HOOK, OURS, OURS_WITH = "own", "hook", "ours", "ours at both"
METHODS = (OWN, WITH_HOOK, OURS, OURS_WITH)


class Compared(Struct, frozen=True):
    """One recorded compaction."""

    session: str
    agent: str
    past: int
    """Tokens of the removed messages."""
    summary: int
    """Tokens of the agent's own summary."""
    back: int
    """Characters that the hook puts back."""
    back_tokens: int
    rows: dict[str, Row]
    seconds: float
    """That finding what was lost took, with nothing known before."""


def held_of(past: Sequence[Record], folder: str) -> list[MirroredMessage]:
    """The past as a hook's mirror holds it."""
    cache = FactCache(folder or None)
    found: list[MirroredMessage] = []
    for item, record in zip(ours.items_of(past), (r for r in past if r.role != "system"), strict=True):
        found.append(
            MirroredMessage(
                entry_id=item.entry_id,
                message=encode_message(item.message),
                tokens=item.tokens,
                client_id="",
                facts=cache.learn(item),
                is_typed=record.role == "user" and not record.kind,
                is_summary=record.kind == SUMMARY,
            )
        )
    return found


def put_back(cut: Cut, most: int = MAX_PAYLOAD_CHARS) -> Lost:
    """Return what the hook gives back after the recorded compaction at `cut`."""
    held = held_of(cut.past, cut.folder)
    return find_lost(held, summary_of(cut), "", folder=cut.folder, most=most, count=characters)


def summary_of(cut: Cut) -> str:
    """The agent's summary, without the mark of its role that a context is rendered with."""
    return cut.summary.removeprefix("[user] ")


def compared(agent: str, cuts: Iterable[Cut], most: int = MAX_PAYLOAD_CHARS) -> Iterator[Compared]:
    """The recorded compactions among `cuts`. Seconds each, for CG."""
    for cut in cuts:
        if not cut.summary:
            continue
        began = time.process_time()
        back = put_back(cut, most).text
        seconds = time.process_time() - began
        both = f"{cut.summary}\n[user] {back}" if back else cut.summary
        sizes = {OURS: count(cut.summary), OURS_WITH: count(both)}
        items = ours.items_of(cut.past)
        contexts = {OWN: cut.summary, WITH_HOOK: both}
        contexts |= {name: ours.in_process(items, size).context for name, size in sizes.items()}
        yield Compared(
            session=cut.session,
            agent=agent,
            past=sum(cut.sizes),
            summary=sizes[OURS],
            back=characters(back),
            back_tokens=count(back),
            rows={name: judged(cut, name, sizes.get(name, 0), text) for name, text in contexts.items()},
            seconds=seconds,
        )


class Means(Struct, frozen=True):
    """Means over some compactions: first over those of each session, then over sessions."""

    sessions: int
    compactions: int
    scores: dict[str, tuple[float, float]]
    """(linked, CG) in percent, by method."""
    back: float
    """Characters."""


def means(found: Sequence[Compared]) -> Means:
    """Return the means over all of `found`."""
    scores = {name: score([one.rows[name] for one in found]) for name in METHODS}
    return Means(
        sessions=len({one.session for one in found}),
        compactions=len(found),
        scores={name: (value.linked, value.cg) for name, value in scores.items()},
        back=mean(one.back for one in found),
    )


def aside(found: Sequence[Compared]) -> list[Compared]:
    """Return those of held-out sessions, which nothing was tuned on."""
    return [one for one in found if is_aside(one.session)]
