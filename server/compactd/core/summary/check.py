"""The check of a summary, whoever wrote it: what it must hold is in it, and the result says what it lost.

The user's constraints stand in it word for word. Facts of the removed text that were used again and are
missing are appended under Critical Context, as far as a share of the budget goes. A model's summary that lost
too much is repaired by `extract`'s record; what it states and the past does not hold is named.
(Rules: docs/dev/behaviour.md, "A compaction", 4.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from compactd._runtime.yield_gil import breathe
from compactd.core.constraints.constraints import Constraints, bullets, lines_under, missing
from compactd.core.extract.conversation import in_order
from compactd.core.extract.extract import FactCache, Source, learnt
from compactd.core.extract.named import Names
from compactd.core.planning.plan import Plan
from compactd.core.summary.answers import heading_of
from compactd.core.summary.attribution import Attributed, ForeignWords, TypedWords, attributed
from compactd.core.summary.fidelity import NOT_FOUND, unfounded
from compactd.core.summary.input import Material, Work, framed_by, layout_of, request_of, texts_of
from compactd.core.summary.message import truncated, under_heading
from compactd.core.summary.retention import FactSearch
from compactd.core.text.slices import clear
from compactd.core.text.summary_format import CONSTRAINTS, NONE, Layout
from compactd.protocol.messages import Retention

SUPPLEMENT_DIVISOR: Final = 4
"""Of the summary's budget, for facts that a summary lost."""

RECORD_LEAST: Final = 96
"""Tokens below which a record beside a model's summary says nothing."""

CROWDED: Final = 8
"""A model's summary that leaves less than the budget ÷ this leaves no room for a repair worth the name."""

RECORD_DIVISOR: Final = 2
"""Of what a model's summary leaves of the budget, for the record; the rest names what is still lost."""


class Checked(Struct, frozen=True, kw_only=True):
    """A summary as it will stand in the view."""

    text: str
    retention: Retention
    note: str = ""
    """What was repaired, for a person."""
    why: str = ""
    """Why it cannot be used."""
    unfounded: tuple[str, ...] = ()
    """Names, numbers and commands in it that the past does not hold."""
    remarks: tuple[str, ...] = ()
    """Lines that a model put in the user's name and the user's words do not hold."""


class Guard:
    """What the summaries of one compaction are checked against: what stays is looked at once."""

    def __init__(self, work: Work, made: Plan, material: Material) -> None:
        """O(features of what goes + length of what stays)."""
        self._work, self._made, self._material = work, made, material
        self._layout: Layout = layout_of(work)
        self._count = work.inputs.counter.count
        stays = tuple(text for item in material.stays for text in texts_of(item))
        self._demands = Constraints(made.constraints, made.superseded)
        self._source: Source | None = None
        self._cache = work.cache if work.cache is not None else FactCache()
        known = Names(self._cache) if made.strategies == ("truncate",) else self._cache
        # Facts are looked up by the names that the record has for them, whoever comes first.
        learnt(in_order(material.gone, material.stays), known, work.working_dir)
        breathe()
        self._search = FactSearch(material.gone, stays, cache=known, demands=self._demands)
        breathe()

    @property
    def source(self) -> Source:
        """What a record without a model is made from. O(features) the first time."""
        if self._source is None:
            self._source = Source(
                self._material.gone,
                self._material.stays,
                request=request_of(self._material.stays),
                budget_tokens=self._made.summary_budget,
                working_dir=self._work.working_dir,
                cache=self._cache,
                demands=self._demands,
            )
        return self._source

    def release(self) -> None:
        """Lets go of what was found out, piece by piece: nothing is checked any more. O(features)."""
        source, self._source = self._source, None
        if source is not None:
            source.release()
        clear(vars(self._search))

    def prepare(self) -> Iterator[None]:
        """Finds out, step by step, what most summaries of a model are checked against or repaired from."""
        self._search.look_ahead()
        yield
        if self._past:
            yield
        source = self.source
        yield
        # A repair gets half of what the model's summary leaves, so this much at most.
        most = self._made.summary_budget // RECORD_DIVISOR
        found = source.record(most, self._count, lead="", layout=self._layout)
        yield
        self._search.with_summary(found.text)
        yield

    def of_record(self, text: str) -> Checked:
        """The check of `extract`'s text, which holds the constraints already."""
        lines = self._supplement(text, self._made.summary_budget - self._count(text))
        text = self._with(
            lines, text, lambda lines: under_heading(text, lines, self._layout.context, self._end)
        )
        return Checked(text=text, retention=self._search.with_summary(text))

    def of_counts(self, extra: str) -> Checked:
        """The text of `truncate`, with the constraints and what was used again."""
        made, rules = self._made, self._work.inputs.settings.rules

        def text_of(*parts: str) -> str:
            return truncated(
                rules,
                self._material.gone,
                messages=made.messages_removed,
                extra="\n\n".join(part for part in parts if part),
                read=self._material.read,
                modified=self._material.modified,
                budget_tokens=made.summary_budget,
                counter=self._work.inputs.counter,
            )

        pinned = "\n".join((CONSTRAINTS, *bullets(made.constraints))) if made.constraints else ""
        text = text_of(extra, pinned)
        room = made.summary_budget - self._count(text) - self._count(self._layout.context + "\n\n")
        text = self._with(
            self._supplement(text, room),
            text,
            lambda lines: text_of(extra, pinned, f"{self._layout.context}\n{lines}"),
        )
        return Checked(text=text, retention=self._search.with_summary(text))

    def of_answer(self, body: str) -> Checked:
        """The check of what a model wrote."""
        made = self._made
        own = framed_by(self._work, made, self._material, body)
        before = self._search.with_summary(own).score
        strange = self._unfounded(body)
        found = self._attributed(body)
        body = self._with_constraints(found.text)
        note = ""
        if before < self._work.inputs.settings.retention_floor:
            kept = f"the model's summary kept {before:.0%} of the facts that were used again"
            room = made.summary_budget - self._count(own)
            if room < made.summary_budget // CROWDED or room < RECORD_LEAST:
                return Checked(text="", retention=Retention(score=before, kept=0, lost=()), why=kept)
            body = self._repaired(body)
            note = f"{kept}; extract's record was added"
        text = framed_by(self._work, made, self._material, body)
        lines = self._supplement(text, made.summary_budget - self._count(text))
        told = f"\n\n{NOT_FOUND}{', '.join(strange)}" if strange else ""

        def text_of(body: str) -> str:
            return framed_by(self._work, made, self._material, body + told)

        text = self._with(
            lines,
            text_of(body) if told else text,
            lambda lines: text_of(under_heading(body, lines, self._layout.context)),
        )
        retention = replace(self._search.with_summary(text), before=before)
        return Checked(text=text, retention=retention, note=note, unfounded=strange, remarks=found.remarks)

    def _with(self, supplement: str, text: str, text_of: Callable[[str], str]) -> str:
        """`text_of` as many of the lines as its budget has room for; `text` where it has none.

        Together lines can take a token more than one by one.
        """
        most = max(self._made.summary_budget, self._count(text))
        lines = supplement.splitlines()
        while lines:
            fuller = text_of("\n".join(lines))
            if self._count(fuller) <= most:
                return fuller
            lines.pop()
        return text

    @property
    def _end(self) -> str:
        """How the profile's end line begins."""
        return self._work.inputs.settings.rules.end.partition("{")[0]

    def _supplement(self, text: str, room: int) -> str:
        most = min(room, self._made.summary_budget // SUPPLEMENT_DIVISOR)
        return self._search.supplement(text, most, self._count) if most > 0 else ""

    def _with_constraints(self, body: str) -> str:
        heading = next(heading for heading, parts in self._layout.sections if CONSTRAINTS in parts)
        words = heading_of(heading)
        lacking = missing(self._made.constraints, lines_under(body, lambda line: heading_of(line) == words))
        if not lacking:
            return body
        return under_heading(body, "\n".join(bullets(lacking)), heading)

    def _attributed(self, body: str) -> Attributed:
        """`body`, a model's, with what it says in the user's name checked. O(user's words) the first time."""
        sections = self._layout.sections
        constraints = next(heading for heading, parts in sections if CONSTRAINTS in parts)
        is_mixed = constraints != CONSTRAINTS
        most = self._made.summary_budget
        return attributed(
            body,
            self._typed,
            self._foreign,
            rules=() if is_mixed else (heading_of(constraints),),
            mixed=(heading_of(constraints),) if is_mixed else (),
            remarks_under=self._layout.context,
            fits=lambda text: self._count(framed_by(self._work, self._made, self._material, text)) <= most,
        )

    @cached_property
    def _typed(self) -> TypedWords:
        """What the user typed. O(characters of it)."""
        return TypedWords(item for item, _ in in_order(self._material.gone, self._material.stays))

    @cached_property
    def _foreign(self) -> ForeignWords:
        return ForeignWords([item for item, _ in in_order(self._material.gone, self._material.stays)])

    def _repaired(self, body: str) -> str:
        """`body` with the record of `extract` under the same headings, as far as the budget goes."""
        work, made, layout = self._work, self._made, self._layout
        left = made.summary_budget - self._count(framed_by(work, made, self._material, body))
        room = left // RECORD_DIVISOR
        if room < RECORD_LEAST:
            return body
        found = self.source.record(room, self._count, lead="", layout=layout)
        for heading, lines in _sections(found.text, layout).items():
            fresh = "\n".join(line for line in lines if line not in body)
            if fresh.strip():
                body = under_heading(body, fresh, heading)
        return body

    def _unfounded(self, body: str) -> tuple[str, ...]:
        work, material = self._work, self._material
        request = work.inputs.request
        told = (request.instructions or "", *request.context)
        known = () if material.merged is None else tuple(texts_of(material.merged))
        return unfounded(body, (*told, *known), self._past, self._search.programs)

    @cached_property
    def _past(self) -> tuple[str, ...]:
        """The texts of all originals."""
        past = (*self._material.gone, *self._material.stays)
        return tuple([text for item in past for text in texts_of(item)])


def _sections(text: str, layout: Layout) -> dict[str, list[str]]:
    """The lines under each heading of a record, without `(none)`, lead and file lists."""
    headings = {heading for heading, _ in layout.sections}
    found: dict[str, list[str]] = {}
    under: list[str] | None = None
    for line in text.split("\n"):
        if line in headings:
            under = found.setdefault(line, [])
        elif line.startswith(("<read-files>", "<modified-files>")):
            under = None
        elif under is not None and line.strip() and line != NONE:
            under.append(line)
    return found
