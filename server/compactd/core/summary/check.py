"""Check and complete a summary, whichever strategy wrote it, and measure which facts it lost.

The user's constraints are written into the summary word for word. *Facts* are names, commands and limits in
the removed text that were used again. Facts that the summary lacks are added under Critical Context, in at
most a quarter of the budget. If a model's summary lost too many facts, it is repaired with lines from
`extract`. Statements of the model that the conversation does not contain are listed in the summary. (Rules:
docs/dev/behaviour.md, "A compaction", 4.)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from compactd.core.constraints.constraints import bullets, lines_under, missing_constraints
from compactd.core.extract.conversation import conversation_order
from compactd.core.summary.answers import heading_of
from compactd.core.summary.attribution import Attributed, ForeignWords, TypedWords, attribute
from compactd.core.summary.fidelity import NOT_FOUND, find_unfounded
from compactd.core.summary.input import SummaryInput, item_texts
from compactd.core.summary.message import add_under_heading
from compactd.core.text.summary_format import CONSTRAINTS, NONE, ROLES, Layout, count_line
from compactd.protocol.messages import Retention

SUPPLEMENT_DIVISOR: Final = 4
"""The lines about lost facts may take a quarter of the summary's budget. This is the divisor."""

MIN_RECORD_TOKENS: Final = 96
"""The smallest extract, in tokens, with which a model's summary is repaired. If there is less room, the
summary is not repaired."""

CROWDED: Final = 8
"""If a model's summary that lost too many facts leaves less than an eighth of the budget, there is too little
room to repair it, and it is not used. This is the divisor."""

RECORD_DIVISOR: Final = 2
"""For a repair, an extract may take half of the tokens that a model's summary leaves of the budget. The other
half is for facts that are still lost. This is the divisor."""


class CheckedSummary(Struct, frozen=True, kw_only=True):
    """A summary after the check."""

    text: str
    """The whole text of the summary message, as it will be in the view."""
    retention: Retention
    """How many facts of the removed text the new view contains."""
    note: str = ""
    """What was repaired, in words for a person; empty for nothing."""
    why: str = ""
    """Why the summary cannot be used, in words for a person; empty if it can."""
    unfounded: tuple[str, ...] = ()
    """Names, numbers and commands in the summary that the conversation does not contain."""
    remarks: tuple[str, ...] = ()
    """Lines that the model wrote in the user's name although the user's words do not support them."""


class SummaryCheck:
    """Checks the summaries of one compaction."""

    def __init__(self, given: SummaryInput) -> None:
        self._given, self._plan = given, given.plan
        self._count, self._layout = given.count, given.layout

    def check_extract(self, text: str) -> CheckedSummary:
        """Return the checked text of the strategy `extract`, with lost facts added. It already contains the
        constraints."""
        lines = self._supplement(text, self._plan.summary_budget - self._count(text))
        text = self._fit_lines(
            lines, text, lambda lines: add_under_heading(text, lines, self._layout.context, self._end)
        )
        return CheckedSummary(text=text, retention=self._given.search.with_summary(text))

    def check_truncated(self, extra: str) -> CheckedSummary:
        """Return the checked summary of the strategy `truncate`, which contains `extra` and the numbers of
        removed messages, with the constraints and the lost facts added."""
        plan = self._plan
        roles = {role: sum(item.message.role == role for item in self._given.gone) for role in ROLES}

        def text_of(*parts: str) -> str:
            body = "\n\n".join(part for part in (count_line(roles), *parts) if part)
            return self._given.frame(body, nature=False)

        pinned = "\n".join((CONSTRAINTS, *bullets(plan.constraints))) if plan.constraints else ""
        text = text_of(extra, pinned)
        room = plan.summary_budget - self._count(text) - self._count(self._layout.context + "\n\n")
        text = self._fit_lines(
            self._supplement(text, room),
            text,
            lambda lines: text_of(extra, pinned, f"{self._layout.context}\n{lines}"),
        )
        return CheckedSummary(text=text, retention=self._given.search.with_summary(text))

    def check_answer(self, body: str) -> CheckedSummary:
        """Check `body`, the summary that a model wrote. If it kept too few facts, repair it or, if there is
        no room for that, return a result with `why`."""
        budget = self._plan.summary_budget
        own = self._given.frame(body)
        before = self._given.search.with_summary(own).score
        strange = self._find_unfounded(body)
        found = self._attribute(body)
        body = self._with_constraints(found.text)
        note = ""
        if before < self._plan.inputs.settings.retention_floor:
            kept = f"the model's summary kept {before:.0%} of the facts that were used again"
            room = budget - self._count(own)
            if room < budget // CROWDED or room < MIN_RECORD_TOKENS:
                return CheckedSummary(text="", retention=Retention(score=before, kept=0, lost=()), why=kept)
            body = self._repair(body)
            note = f"{kept}; the summary of the strategy extract was added"
        text = self._given.frame(body)
        lines = self._supplement(text, budget - self._count(text))
        told = f"\n\n{NOT_FOUND}{', '.join(strange)}" if strange else ""

        text = self._fit_lines(
            lines,
            self._given.frame(body + told) if told else text,
            lambda lines: self._given.frame(add_under_heading(body, lines, self._layout.context) + told),
        )
        retention = replace(self._given.search.with_summary(text), before=before)
        return CheckedSummary(
            text=text, retention=retention, note=note, unfounded=strange, remarks=found.remarks
        )

    def _fit_lines(self, supplement: str, text: str, text_of: Callable[[str], str]) -> str:
        """Return `text` with as many lines of `supplement` as the budget has room for. `text_of` writes the
        text with the lines that it gets. Each attempt is counted as a whole, because joined lines can take a
        token more than the sum of the single ones."""
        most = max(self._plan.summary_budget, self._count(text))
        lines = supplement.splitlines()
        while lines:
            fuller = text_of("\n".join(lines))
            if self._count(fuller) <= most:
                return fuller
            lines.pop()
        return text

    @property
    def _end(self) -> str:
        """The beginning of the profile's end line, up to the number of messages."""
        return self._plan.inputs.settings.rules.end.partition("{")[0]

    def _supplement(self, text: str, room: int) -> str:
        """Return lines that name facts which `text` lost, in at most `room` tokens."""
        most = min(room, self._plan.summary_budget // SUPPLEMENT_DIVISOR)
        return self._given.search.supplement(text, most, self._count) if most > 0 else ""

    def _with_constraints(self, body: str) -> str:
        """Return `body` with the constraints that it lacks."""
        heading = next(heading for heading, parts in self._layout.sections if CONSTRAINTS in parts)
        words = heading_of(heading)
        lacking = missing_constraints(
            self._plan.constraints, lines_under(body, lambda line: heading_of(line) == words)
        )
        if not lacking:
            return body
        return add_under_heading(body, "\n".join(bullets(lacking)), heading)

    def _attribute(self, body: str) -> Attributed:
        """Check the statements that `body`, a model's summary, makes in the user's name. Return it with those
        that the user's words do not support as remarks. O(the user's words) at the first use."""
        sections = self._layout.sections
        constraints = next(heading for heading, parts in sections if CONSTRAINTS in parts)
        is_mixed = constraints != CONSTRAINTS
        most = self._plan.summary_budget
        return attribute(
            body,
            self._typed_words,
            self._foreign,
            rules=() if is_mixed else (heading_of(constraints),),
            mixed=(heading_of(constraints),) if is_mixed else (),
            remarks_under=self._layout.context,
            fits=lambda text: self._count(self._given.frame(text)) <= most,
        )

    @cached_property
    def _typed_words(self) -> TypedWords:
        """The words that the user typed in this conversation. O(their characters)."""
        return TypedWords(item for item, _ in conversation_order(self._given.gone, self._given.stays))

    @cached_property
    def _foreign(self) -> ForeignWords:
        """The words of this conversation that neither the user nor the model wrote."""
        return ForeignWords([item for item, _ in conversation_order(self._given.gone, self._given.stays)])

    def _repair(self, body: str) -> str:
        """Return `body` with lines of `extract` under the same headings, as many as the budget has room
        for."""
        layout = self._layout
        room = (self._plan.summary_budget - self._count(self._given.frame(body))) // RECORD_DIVISOR
        if room < MIN_RECORD_TOKENS:
            return body
        found = self._given.source.record(room, self._count, lead="", layout=layout)
        for heading, lines in _sections(found, layout).items():
            fresh = "\n".join(line for line in lines if line not in body)
            if fresh.strip():
                body = add_under_heading(body, fresh, heading)
        return body

    def _find_unfounded(self, body: str) -> tuple[str, ...]:
        """Return what `body` states but neither the conversation nor the summariser's instructions
        contain."""
        merged, request = self._given.merged, self._plan.inputs.request
        told = (request.instructions or "", *request.context)
        known = () if merged is None else tuple(item_texts(merged))
        return find_unfounded(body, (*told, *known), self._given.texts, self._given.search.programs)


def _sections(text: str, layout: Layout) -> dict[str, list[str]]:
    """Return the lines of an extract by heading, without `(none)`, the lead and the file lists."""
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
