"""Tell where the work stands, in the sections of a summary: what the user wants, what was done and how it
ended, what failed, what is open, and what comes next.

All of it comes from the state of the work (`core/work`), which code derives from the messages. Each item
names the message that it is about. The kinds of items share the room: each has a largest share, and what one
kind leaves is free for those after it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import pairwise
from typing import Final

from compactd.core.constraints.replaced import gives_value
from compactd.core.extract.earlier import MAX_ITEMS, Earlier
from compactd.core.extract.earlier_items import SUMMARY_MARK, earlier_lines
from compactd.core.extract.lines import without_line_number
from compactd.core.extract.story_room import (
    AGENT_LEAD,
    EARLIER,
    ITEM_CHARS,
    MIN_ITEM_CHARS,
    NO_STORY,
    SHARES,
    USER_LEAD,
    Item,
    Room,
    StoryText,
    words_in,
    words_of,
)
from compactd.core.history.entries import EntryId
from compactd.core.text.lazy_patterns import LazyPattern
from compactd.core.text.quoting import neutralise, quote_line
from compactd.core.text.summary_format import (
    BLOCKED,
    CHANGES,
    DECISIONS,
    DONE,
    FAILURES,
    GOAL,
    IN_PROGRESS,
    NEXT,
)
from compactd.core.work import prose
from compactd.core.work.condense import Condensable
from compactd.core.work.history import Statement, Turn, find_repeated
from compactd.core.work.line_words import names_something
from compactd.core.work.state import Attempt, Repair, WorkState
from compactd.protocol.work import FileChange, WorkCheck

MIN_SAID_CHARS: Final = 40
"""What is left of a statement and is shorter says nothing."""
MIN_STATEMENT_CHARS: Final = 120
"""A shorter statement only says what comes next."""
STATEMENT_CHARS: Final = 500
"""The characters that a statement gets on average."""
FULL_STATEMENT_CHARS: Final = 1_200
"""A longer statement says no more than one of this length."""
LAST_WORDS: Final = 1.8
"""A factor for the last long statement about a request: it usually reports how the work ended."""
ONE_LINE_CHARS: Final = 300
"""The sentences of a request that is not longer are written on one line."""
EXACT: Final = 1.0
"""What it adds to a request's worth, from 0 to 2, that it names something exactly."""
GIVEN: Final = 1.0
"""What it adds that it gives something a value."""
ONLY_ASKS: Final = 1.5
"""What it subtracts that it only asks something, which the agent then answered."""
ANSWER_CHARS: Final = 40
"""A shorter request, such as `yes, option 2`, needs the question that it answers."""
MAX_QUESTION_CHARS: Final = 240
LAST_SENTENCES: Final = 3
"""A question to the user is one of the last sentences, this many, of what the agent said."""
DISTINCT_CHARS: Final = 60
"""Two sentences with the same beginning, of this many characters, say the same."""
LISTED: Final = (12, 6, 3)
"""How many names a list has; a shorter list is used if the longer one does not fit."""
LAST_CHECKS: Final = 4
"""How many calls that check something are named."""
KINDS: Final = {"other": "check"}
"""What a kind of check is called, if not by its name."""
ENDINGS: Final = {"passed": "passed", "failed": "failed", "unknown": "ended, result unknown"}

SAME_ITEM: Final = 0.7
"""An item of an earlier summary repeats another item that has this share of its words."""
STATE_KINDS: Final = ("now", "errors", "plan", "failed", "git", "checks", "changes")
"""The kinds of items that say where the work stands."""

_SMALL_TALK: Final = LazyPattern(
    r"(?:hi|hello|hey|good(?: morning| evening)?|thanks?|thank you|ok(?:ay)?|great|perfect|nice|fine|sure|yes"
    r"|right)\b[^.!?:]{0,12}[.!,]*\Z",
    re.IGNORECASE,
)
"""Matches a sentence that asks for nothing."""
_DEMANDS: Final = LazyPattern(
    r"\b(?:can|could|would|will|should|shall|may|might) (?:you|we|i)\b|\bplease\b|\blet'?s\b|\bhow about\b"
    r"|\bwhy (?:not|don't)\b|\bwhat about\b",
    re.IGNORECASE,
)
"""Matches a question that asks for a change of the work."""
_MISTYPED: Final = LazyPattern(
    r"[Nn]o such file or directory|(?:directory|command|file) not found|unexpected EOF|syntax error near"
    r"|[Cc]ould not find the exact text|[Ss]tring to replace not found|old_str\w* (?:was )?not found"
)
"""Matches the error of a call with a mistake in it, such as an edit of a text that is not there."""


class StoryTeller:
    """Tells the story of one conversation, in any size."""

    def __init__(
        self,
        state: WorkState,
        *,
        show: Callable[[str], str],
        name: Callable[[str], str],
        value: Callable[[str], float],
        places: Mapping[EntryId, int],
        kept: Collection[EntryId],
        stated: Collection[str] = (),
        earlier: Sequence[tuple[EntryId, Earlier]] = (),
    ) -> None:
        """`show` shortens the paths in a text; `name` returns a short name of a file. `value` says what the
        names and words in a line are worth. `places` has the index of each message in the conversation.
        `kept` are the messages that stay in the view word for word; what only they say is not told. `stated`
        are sentences of the user that stand elsewhere in the summary. `earlier` are summaries of messages
        that are not in the conversation, with their entries."""
        self._earlier = earlier
        self._state, self._show, self._name, self._value = state, show, name, value
        self._places, self._kept, self._stated = places, frozenset(kept), "\n".join(stated)
        self._said = [
            (turn, [one for one in turn.statements if one.entry_id not in kept]) for turn in state.turns
        ]
        self._replaces = {
            state.replaced[one]: turn.entry_id
            for turn in state.turns
            for one in turn.sentences
            if one in state.replaced
        }
        """For each statement that replaces another, with its message: the message of the other."""
        self._asked = _questions_before(state.turns)
        """For each short answer of the user: the question of the agent before it."""
        self._repeated = find_repeated(state.turns)
        self._gives_value = cache(gives_value)
        self._brief_text = cache(Condensable)
        self._valued_text = cache(partial(Condensable, value=value))

    def tell(
        self,
        room: int,
        count: Callable[[str], int],
        known: str = "",
        kinds: Collection[str] = tuple(SHARES),
    ) -> StoryText:
        """Return the story in at most `room` tokens, counted by `count`. Items that the text `known` contains
        are left out, and items of other `kinds`. O(state of the work)."""
        if room <= 0:
            return NO_STORY
        kinds = frozenset(kinds) if self._earlier else frozenset(kinds) - {EARLIER}
        told = Room(room, count, frozenset(words_in(known)), kinds)
        asked = [turn for turn in self._state.turns if turn.sentences and turn.entry_id not in self._kept]
        told.fill("now", self._now())
        told.fill("goal", self._last_message())
        # What is said again and again is hardly the goal.
        distinct = [turn for turn in asked if turn.entry_id not in self._repeated]
        first = (distinct or asked)[:1]
        told.fill("goal", self._requests(first, told.chars("goal"), GOAL))
        later = distinct[1:]
        newest = (later or asked[1:])[-1:]
        room = told.chars("requests")
        told.fill("requests", self._requests(newest, room, GOAL, whole=room >= ITEM_CHARS))
        later = later[:-1]
        told.fill("git", self._git())
        told.fill("checks", self._checks())
        told.fill("briefs", self._briefs(told.chars("briefs")))
        told.fill("errors", self._open_errors())
        told.fill("plan", self._plan(told))
        told.fill("requests", self._requests(self._by_value(later), told.chars("requests", 3), DONE))
        told.fill("said", self._statements(told.chars("said", most=None)))
        told.fill("failed", self._failed(told))
        told.fill("events", self._events(told.chars("events", 3)))
        told.fill("changes", self._changes(told))
        told.fill("decisions", self._decisions(told.text))
        told.fill(EARLIER, self._summarised(told))
        is_told = {place for section, place in told.places if section in (DONE, GOAL)}
        rest = [turn for turn in self._by_value(asked) if self._place(turn.entry_id) not in is_told]
        told.fill("requests", self._requests(rest, ITEM_CHARS, DONE), is_last=True)
        told.fill(EARLIER, self._summarised(told), is_last=True)
        return told.story()

    # --- what is wanted and what comes next -----------------------------------------------------------

    def _requests(
        self, turns: Sequence[Turn], most: int, section: str, *, whole: bool = False
    ) -> Iterator[Item]:
        """Yield requests: under Goal, or as steps of the work. Sentences that stand elsewhere in the summary
        are left out; with `whole`, only if all of them do."""
        for turn in turns:
            sentences = [one for one in turn.sentences if one not in self._state.replaced]
            more = [one for one in sentences if one not in self._stated]
            sentences = sentences if whole and more else more
            is_alone = len(turn.sentences) == 1
            sentences = [
                one for n, one in enumerate(sentences) if _says_something(sentences, n, is_alone=is_alone)
            ]
            text = " ".join(sentences)
            is_short = len(text) <= min(ONE_LINE_CHARS, most)
            lines = self._condensed(text, most) if is_short else self._request_lines(sentences, most)
            if lines:
                under = GOAL if any(map(self._gives_value, sentences)) else section
                lead = "" if under == GOAL else USER_LEAD
                lines[0] = f"- [{turn.entry_id}] {lead}{lines[0].removeprefix('- ')}"
                pairs = ((one, turn.entry_id or "") for one in sentences)
                if question := self._asked.get(turn.entry_id or ""):
                    lines[-1] += f" (the agent had asked: {neutralise(self._show(question))})"
                older = next((self._replaces[pair] for pair in pairs if pair in self._replaces), None)
                if older is not None:
                    lines[-1] += f" (replaces [{older}])"
                yield Item(under, 0, self._place(turn.entry_id), _indented(lines), is_users=True)

    def _request_lines(self, sentences: Sequence[str], most: int) -> list[str]:
        """Return the sentences of a long request in at most about `most` characters. If not all fit, those
        that give something a value come first, because no tool can tell it again."""
        given: list[str] = []
        if sum(len(one) + 1 for one in sentences) > most:
            room = most // 2
            for one in sentences:
                if len(one) <= room and self._gives_value(one):
                    given.append(one)
                    room -= len(one)
        rest = [one for one in sentences if one not in given]
        return [
            *(neutralise(self._show(one)) for one in given),
            *self._condensed("\n".join(rest), most - sum(map(len, given))),
        ]

    def _briefs(self, most: int) -> Iterator[Item]:
        """Yield the text of the command that is the newest request, and what tools said about the things that
        the first request names: the first brief in at most `most` characters, the others in half of that."""
        skill = self._state.skill
        for brief in (*([] if skill is None else [skill]), *self._state.briefs):
            if brief.entry_id in self._kept or "\n" not in brief.text.strip():
                continue  # A line alone only says that something was not found.
            text = "\n".join(without_line_number(line) for line in brief.text.split("\n"))
            # Sentences tell the reader more than the names that are used most.
            lines = [quote_line(self._show(line), "tool") for line in self._brief_text(text).condense(most)]
            if lines:
                head = f"- [{brief.entry_id}] {quote_line(self._show(brief.call), 'assistant')}:"
                yield Item(GOAL, 1, self._place(brief.entry_id), [head, *lines])
                most = max(MIN_ITEM_CHARS, most // 2)

    def _by_value(self, turns: Sequence[Turn]) -> list[Turn]:
        """Return requests without repetitions: those that say most first, and of these the newest. What gives
        something a value says most, because no tool can tell it again. Questions
        come late, and requests that are made again and again last."""
        distinct = {turn.sentences: turn for turn in turns}
        values = {key: self._value(" ".join(key)) for key in distinct}
        most = max(values.values(), default=0.0) or 1.0
        size = len(self._places) or 1
        return sorted(
            distinct.values(),
            key=lambda turn: (
                turn.entry_id in self._repeated,
                -(
                    values[turn.sentences] / most
                    + self._place(turn.entry_id) / size
                    + EXACT * names_something(" ".join(turn.sentences))
                    + GIVEN * any(map(self._gives_value, turn.sentences))
                    - ONLY_ASKS * all(map(_only_asks, turn.sentences))
                ),
            ),
        )

    def _now(self) -> Iterator[Item]:
        step = self._state.work.now
        if step is not None and step.entry_id not in self._kept and step.entry_id not in self._repeated:
            yield Item(IN_PROGRESS, 1, 0, _bullet(self._show(step.text), step.entry_id))

    def _last_message(self) -> Iterator[Item]:
        """Yield where the user's last message belongs, if it stays in the view without what was done for
        it."""
        asked = [turn.entry_id for turn in self._state.turns if turn.entry_id in self._kept]
        since = [one.entry_id for turn in self._state.turns for one in turn.statements]
        since += [turn.entry_id for turn in self._state.turns if turn.entry_id]
        at = self._place(asked[-1]) if asked else len(self._places)
        known = self._kept | self._repeated
        later = [one for one in since if self._place(one) > at and one not in known]
        if len(later) > 1:
            text = f"- The message of the user after this record is [{asked[-1]}]. What is told from"
            first = min(later, key=self._place)
            yield Item(GOAL, 9, len(self._places), [f"{text} [{first}] on came after it."])

    def _plan(self, told: Room) -> Iterator[Item]:
        plan = self._state.work.plan
        for n, task in enumerate(plan):
            if task.status in ("in_progress", "open"):
                section = NEXT if task.status == "open" else IN_PROGRESS
                yield Item(section, 0, n, _bullet(f"[ ] {self._show(task.text)}", task.entry_id))
        done = [self._show(task.text) for task in plan if task.status == "done"]
        for most in (len(done), *LISTED) if done else ():
            if most <= len(done):
                all_done, total = self._state.planned
                before = f" (and {all_done - most} before)" if most < all_done else ""
                text = f"{all_done} of {total} planned tasks are done: {'; '.join(done[-most:])}{before}"
                yield Item(DONE, 1, 0, _bullet(text))
                if told.is_added:
                    break

    # --- what was said and done -----------------------------------------------------------------------

    def _statements(self, most: int) -> Iterator[Item]:
        """Yield what the agent said, shortened to `most` characters together: long statements, the last ones
        about a request and the newest ones first."""
        some: list[tuple[float, Statement]] = []
        for _, statements in self._said:
            is_last = True
            for one in reversed(statements):
                size = min(len(one.text), FULL_STATEMENT_CHARS)
                if size >= MIN_STATEMENT_CHARS:
                    some.append((size * (LAST_WORDS if is_last else 1.0), one))
                    is_last = False
        some.sort(key=lambda pair: self._place(pair[1].entry_id))
        ranked = sorted(
            ((value * (0.4 + 0.6 * (n + 1) / len(some)), one) for n, (value, one) in enumerate(some)),
            key=lambda pair: -pair[0],
        )
        best = ranked[: max(1, most // STATEMENT_CHARS)]
        total = sum(value for value, _ in best)
        for value, one in best:
            lines = self._condensed(one.text, max(MIN_ITEM_CHARS, int(most * value / total)))
            if len(lines) > 1 or (lines and len(lines[0]) >= MIN_SAID_CHARS):
                said = lines[0].removeprefix("- ")
                # It must not read as a request of the user.
                lead = AGENT_LEAD if said.startswith(USER_LEAD.strip()) else ""
                lines[0] = f"- [{one.entry_id}] {lead}{said}"
                lines[-1] += self._undone(one.text, one.entry_id)
                yield Item(DONE, 0, self._place(one.entry_id), _indented(lines))

    def _events(self, most: int) -> Iterator[Item]:
        for event in reversed(self._state.events):
            details = self._condensed("\n".join(event.details), most)
            lines = [*_bullet(self._show(event.text), event.entry_id), *details]
            yield Item(DONE, 0, self._place(event.entry_id), _indented(lines))

    def _git(self) -> Iterator[Item]:
        """Yield what is known of the branch, and whether it was pushed."""
        state = self._state
        parts = [f"branch `{state.branch}`"] if state.branch else []
        if state.committed is not None:
            commit = state.last_commit.hash if state.last_commit is not None else ""
            parts.append(f"last commit {f'{commit} ' if commit else ''}[{state.committed}]")
            if state.is_pushed:
                parts.append(f"pushed after it [{state.pushed}]")
            elif state.pushed is not None:
                parts.append(f"not pushed since (last push [{state.pushed}])")
            else:
                parts.append("no push seen")
        if parts:
            yield Item(DONE, 2, -1, [f"- Git: {', '.join(parts)}"])

    def _checks(self) -> Iterator[Item]:
        """Yield the last runs of checks, those of one call together. A failed run that a later success
        resolved is left out."""
        still = {failure.entry_id for failure in self._state.failures}
        runs: dict[EntryId, list[WorkCheck]] = {}
        for run in self._state.work.checks:
            if run.outcome != "failed" or run.entry_id in still:
                runs.setdefault(run.entry_id, []).append(run)
        for entry_id, some in list(runs.items())[: -LAST_CHECKS - 1 : -1]:
            kinds = " and ".join(dict.fromkeys(KINDS.get(run.kind, run.kind) for run in some))
            stale = "; files changed since" if some[0].stale else ""
            ending = ENDINGS[some[0].outcome]
            text = f"Last {kinds} run: `{self._show(some[0].command)}` {ending}{stale}"
            totals = self._state.totals.get(entry_id)
            counted = [] if totals is None else [quote_line(self._show(totals), "tool")]
            yield Item(DONE, 2, self._place(entry_id), [*_bullet(text, entry_id), *counted])

    def _changes(self, told: Room) -> Iterator[Item]:
        """Yield the files that are not committed, with what the last edit did, then the committed ones."""
        changes = self._state.work.changes
        for change in reversed(changes):
            if not change.committed:
                checked = "" if change.checked else ", not checked since"
                gist = self._show(" … ".join(self._state.gists.get(change.path, ())))
                last = f"; last edits: {gist}" if gist and change.kind != "deleted" else ""
                pending = ", the last edit without a result" if change.path in self._state.pending else ""
                text = f"{self._show(change.path)} {_edited(change)}, not committed{checked}{pending}{last}"
                entry_id = change.last_entry_id
                yield Item(CHANGES, 1, self._place(entry_id), _bullet(text, entry_id))
        committed = [change for change in changes if change.committed]
        for most in LISTED if committed else ():
            some = committed[: -most - 1 : -1]
            more = f" and {len(committed) - most} more" if len(committed) > most else ""
            names = ", ".join(f"{self._name(one.path)} ({_edited(one)})" for one in some)
            yield Item(CHANGES, 0, len(self._places), _bullet(f"Committed: {names}{more}"))
            if told.is_added:
                break

    # --- what failed, and what was decided ------------------------------------------------------------

    def _open_errors(self) -> Iterator[Item]:
        for failure in reversed(self._state.failures):
            if failure.entry_id in self._kept:
                continue
            errors = [quote_line(self._show(line), "tool") for line in failure.lines]
            text = f"`{self._show(failure.call.line)}` failed{':' if errors else ''}"
            yield Item(BLOCKED, 0, self._place(failure.entry_id), [*_bullet(text, failure.entry_id), *errors])

    def _failed(self, told: Room) -> Iterator[Item]:
        """Yield the failed attempts; those without a tool's error only if they are not told yet. If there is
        no room for one, a shorter one follows."""
        attempts = self._state.attempts
        said = told.text
        for one in sorted(attempts, key=lambda one: (-_telling(one), -self._place(one.entry_id))):
            text = self._show(one.text)
            if one.entry_id in self._kept:
                continue
            if not one.errors and neutralise(text[:DISTINCT_CHARS]) in said:
                continue
            if one.said and not one.said.endswith(":"):
                text = f"{text}. {self._show(one.said)}"
            lines = _bullet(text, one.entry_id)
            if one.mended_at is not None:
                after = ", ".join(neutralise(self._repair(repair)) for repair in one.repairs)
                lines[0] += f" It succeeded later [{one.mended_at}]{f' after {after}' if after else ''}."
            errors = [quote_line(self._show(line), "tool") for line in one.errors]
            yield Item(FAILURES, 0, self._place(one.entry_id), [*lines, *errors])
            if not told.is_added and errors:
                bare = _bullet(f"{self._show(one.text)}:", one.entry_id)
                yield Item(FAILURES, 0, self._place(one.entry_id), [*bare, errors[0]])

    def _repair(self, repair: Repair) -> str:
        return f"an edit of {self._name(repair.path)}: {self._show(repair.gist)}"

    def _decisions(self, told: str) -> Iterator[Item]:
        """Yield the decisions that are not in `told`: those with a reason and a name first."""
        ranked = sorted(
            self._state.work.decisions,
            key=lambda one: (
                -prose.decides(one.text) - names_something(one.text),
                -self._place(one.entry_id),
            ),
        )
        for one in ranked:
            text = self._show(one.text)
            if (
                one.entry_id in self._kept
                or text.startswith(("Committed ", "Committed: "))
                or neutralise(text[:DISTINCT_CHARS]) in told
            ):
                continue
            was = f" (was: {self._show(one.was)})" if one.was else ""
            lines = _bullet(f"{text}{was}", one.entry_id)
            lines[0] += self._undone(one.text, one.entry_id)
            yield Item(DECISIONS, 0, self._place(one.entry_id), lines)

    # --- what an earlier summary says -----------------------------------------------------------------

    def _summarised(self, told: Room) -> Iterator[Item]:
        """Yield what earlier summaries say, after what the messages say, and without repeating it."""
        said = [
            words
            for lines in (*told.items, *([one] for one in self._stated.split("\n")))
            if (words := words_of(lines))
        ]
        place = len(self._places)
        most = told.chars(EARLIER, most=None)
        for entry_id, earlier in reversed(self._earlier):
            for section, n, line in earlier_lines(
                entry_id, earlier, most, condense=self._condensed, value=self._value
            ):
                words = words_of([line.replace(SUMMARY_MARK, "")])
                if not any(len(words & other) >= SAME_ITEM * len(words) for other in said):
                    yield Item(section, 9, place + n, [line])
                    if told.is_added:
                        said.append(words)
            place += MAX_ITEMS

    # --- help -----------------------------------------------------------------------------------------

    def _undone(self, text: str, entry_id: EntryId) -> str:
        """Return a remark if what a text says of a file was reverted later; empty if it was not."""
        place = self._place(entry_id)
        for one in self._state.reverted:
            is_between = self._place(one.since) <= place < self._place(one.entry_id)
            if is_between and one.path.rsplit("/", 1)[-1] in text:
                return f" (an edit of that file was reverted later [{one.entry_id}])"
        return ""

    def _place(self, entry_id: EntryId | None) -> int:
        return self._places.get(entry_id or "", -1)

    def _condensed(self, text: str, most: int) -> list[str]:
        return [neutralise(self._show(line)) for line in self._valued_text(text).condense(most)]


def _says_something(sentences: Sequence[str], n: int, *, is_alone: bool) -> bool:
    """Return whether a sentence of a request says something: it is no greeting, unless it is the whole
    request, and no heading of a list of which nothing follows."""
    if sentences[n].endswith(":") and n == len(sentences) - 1:
        return False
    return is_alone or _SMALL_TALK.match(sentences[n]) is None


def _only_asks(sentence: str) -> bool:
    """Return whether a sentence is a question that demands nothing."""
    return sentence.endswith(("?", "？")) and _DEMANDS.search(sentence) is None


def _questions_before(turns: Sequence[Turn]) -> dict[EntryId, str]:
    """Return, for each request that is a short answer, the last question that the agent asked before it."""
    found: dict[EntryId, str] = {}
    for before, turn in pairwise(turns):
        is_short = len(" ".join(turn.sentences)) <= ANSWER_CHARS
        if turn.entry_id and before.statements and turn.sentences and is_short:
            said = list(prose.prose_sentences(before.statements[-1].text))[-LAST_SENTENCES:]
            question = next((one for one in reversed(said) if one.endswith("?")), "")
            if 0 < len(question) <= MAX_QUESTION_CHARS:
                found[turn.entry_id] = question
    return found


def _bullet(text: str, entry_id: EntryId | None = None) -> list[str]:
    line = f"- {neutralise(text)}"
    return [line if entry_id is None else f"{line} [{entry_id}]"]


def _indented(lines: Sequence[str]) -> list[str]:
    """Return an item of several lines."""
    return [lines[0], *(f"  {line}" for line in lines[1:])]


def _edited(change: FileChange) -> str:
    if change.edits < 2 or change.kind == "deleted":
        return change.kind
    if change.kind == "created":
        return f"created, then changed {_times(change.edits - 1)}"
    return f"{change.kind} {_times(change.edits)}"


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _telling(one: Attempt) -> int:
    """Return how much an attempt says: what a tool reported and what was said about it say more than a
    sentence with a word such as "reverted", and a mistyped path says least."""
    if any(_MISTYPED.search(line) for line in one.errors):
        return 0
    return 1 + bool(one.errors) + bool(one.said)
