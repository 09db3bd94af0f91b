"""Check and complete a summary, whichever strategy wrote it, and measure which facts it lost.

The user's constraints are written into the summary word for word. *Facts* are names, commands and limits in
the removed text that were used again. Facts that the summary lacks are added under Critical Context, in at
most a quarter of the budget. If a model's summary lost too many facts, it is repaired with lines from
`extract`. Statements of the model that the conversation does not contain are listed in the summary. (Rules:
docs/dev/behaviour.md, "A compaction", 4.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from compactd.core.constraints.constraints import bullets, lines_under, missing_constraints
from compactd.core.extract.conversation import conversation_order
from compactd.core.extract.story import STATE_KINDS
from compactd.core.extract.story_room import StoryText, words_in
from compactd.core.summary.answers import heading_of
from compactd.core.summary.attribution import Attributed, ForeignWords, TypedWords, attribute
from compactd.core.summary.fidelity import NOT_FOUND, find_unfounded
from compactd.core.summary.input import SummaryInput, item_texts
from compactd.core.summary.message import add_under_heading
from compactd.core.text.lazy_patterns import LazyPattern
from compactd.core.text.summary_format import CONSTRAINTS, ROLES, count_line
from compactd.protocol.messages import Retention
from compactd.protocol.work import PlanTask

STATE_DIVISOR: Final = 6
REPAIR_DIVISOR: Final = 3
"""What a model's summary lacks of the state of the work may take a sixth of the summary's budget; a third if
the summary lost too many facts. These are the divisors."""
SHARES_OF_ROOM: Final = (1.0, 0.75, 0.5)
"""If what is added does not fit, less is tried: these shares of the room."""
SAME_TASK: Final = 0.8
"""A line is about a task if it has this share of the task's words."""
_DONE_MARK: Final = LazyPattern(r"(\s*[-*] )\[[xX]\]")

SUPPLEMENT_DIVISOR: Final = 4
"""The lines about lost facts may take a quarter of the summary's budget. This is the divisor."""

MIN_RECORD_TOKENS: Final = 96
"""The smallest extract, in tokens, with which a model's summary is repaired. If there is less room, the
summary is not repaired."""

HOPELESS_DIVISOR: Final = 10
"""A model's summary that has no room for a repair is used all the same, unless it kept less than the floor
divided by this: readers get more from a full summary in a model's words than from quoted lines, whatever
names it keeps (docs/reading.md)."""
CROWDED: Final = 8
"""If a model's summary that lost too many facts leaves less than an eighth of the budget, there is too little
room to repair it, and it is not used. This is the divisor."""


REPAIRS: Final = (*STATE_KINDS, "events", "decisions")
"""The kinds of items that are added to a model's summary that kept too few facts."""


class CheckedSummary(Struct, frozen=True, kw_only=True):
    """A summary after the check."""

    text: str
    """The whole text of the summary message, as it will be in the view."""
    retention: Retention | None
    """How many facts of the removed text the new view contains; None if they were not looked for."""
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
        removed messages, with the constraints added. Facts are not looked for: that would take many times as
        long as dropping the messages.
        """
        plan = self._plan
        found: Counter[str] = Counter(item.message.role for item in self._given.gone)
        pinned = "\n".join((CONSTRAINTS, *bullets(plan.constraints))) if plan.constraints else ""
        numbers = count_line({role: found[role] for role in ROLES})
        body = "\n\n".join(part for part in (numbers, extra, pinned) if part)
        return CheckedSummary(text=self._given.frame(body, nature=False), retention=None)

    def check_answer(self, body: str) -> CheckedSummary:
        """Check `body`, the summary that a model wrote. If it kept too few facts, repair it or, if there is
        no room for that, return a result with `why`."""
        budget = self._plan.summary_budget
        own = self._given.frame(body)
        before = self._given.search.with_summary(own).score
        strange = self._find_unfounded(body)
        found = self._attribute(body)
        body = self._with_constraints(found.text)
        body, reopened = with_open_tasks(body, self._given.work.work.plan)
        note = ""
        if before < self._plan.inputs.settings.retention_floor:
            kept = f"the model's summary kept {before:.0%} of the facts that were used again"
            room = budget - self._count(own)
            if room >= budget // CROWDED and room >= MIN_RECORD_TOKENS:
                body = self._with_state(body, REPAIRS, REPAIR_DIVISOR)
                note = f"{kept}; what it lacks of the state of the work was added"
            elif before < self._plan.inputs.settings.retention_floor / HOPELESS_DIVISOR:
                return CheckedSummary(text="", retention=Retention(score=before, kept=0, lost=()), why=kept)
            else:
                note = f"{kept}; it has no room for more"
        else:
            body = self._with_state(body, STATE_KINDS, STATE_DIVISOR)
        if reopened:
            note = f"{note}; " if note else ""
            note += f"{reopened} tasks that it called done are open"
        text = self._given.frame(body)
        lines = self._supplement(text, budget - self._count(text), quotes_tools=False)
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

    def _supplement(self, text: str, room: int, *, quotes_tools: bool = True) -> str:
        """Return lines that name facts which `text` lost, in at most `room` tokens; without `quotes_tools`,
        only lines that the user or the agent wrote."""
        most = min(room, self._plan.summary_budget // SUPPLEMENT_DIVISOR)
        if most <= 0:
            return ""
        return self._given.search.supplement(text, most, self._count, quotes_tools=quotes_tools)

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

    def _with_state(self, body: str, kinds: Collection[str], divisor: int) -> str:
        """Return `body` with what it does not say of the state of the work: items of these `kinds`, in at
        most the budget divided by `divisor`."""
        budget = self._plan.summary_budget
        left = budget - self._count(self._given.frame(body))
        for share in SHARES_OF_ROOM:
            room = int(min(budget // divisor, left) * share)
            fuller = self._add_story(body, self._given.source.missing(body, room, self._count, kinds))
            # Headings that `body` does not have take room too.
            if fuller == body or self._count(self._given.frame(fuller)) <= budget:
                return fuller
        return body

    def _add_story(self, body: str, story: StoryText) -> str:
        """Return `body` with the items of `story` under their headings."""
        told = story.laid_out(self._layout)
        for heading, parts in self._layout.sections:
            items = [item for part in parts for item in told.get(part, ())]
            if items:
                lines = "\n".join(line for _, some in items for line in some)
                body = add_under_heading(body, lines, heading)
        return body

    def _find_unfounded(self, body: str) -> tuple[str, ...]:
        """Return what `body` states but neither the conversation nor the summariser's instructions
        contain."""
        merged, request = self._given.merged, self._plan.inputs.request
        told = (request.instructions or "", *request.context)
        known = () if merged is None else tuple(item_texts(merged))
        return find_unfounded(body, (*told, *known), self._given.texts, self._given.search.programs)


def with_open_tasks(body: str, plan: Sequence[PlanTask]) -> tuple[str, int]:
    """Return a summary's text in which no task of the plan that is still open is marked as done, and how many
    marks were changed. O(text + tasks)."""
    still = [
        (frozenset(words_in(task.text)), task) for task in plan if task.status in ("open", "in_progress")
    ]
    if not still:
        return body, 0
    done = [frozenset(words_in(task.text)) for task in plan if task.status == "done"]
    changed = 0
    lines = body.split("\n")
    for n, line in enumerate(lines):
        found = _DONE_MARK.match(line)
        if found is None:
            continue
        words = frozenset(words_in(line))
        for wanted, task in still:
            if wanted and len(wanted & words) >= SAME_TASK * len(wanted) and wanted not in done:
                lines[n] = f"{found[1]}[ ]{line[found.end() :]} (still open [{task.entry_id}])"
                changed += 1
                break
    return "\n".join(lines), changed
