"""Derive the state of the work from the messages of a conversation.

`WorkReader` reads one message after another, each in time proportional to its length. Its method `work` then
returns what the messages add up to. Nothing here asks a model, and each item names the message it comes from.
"""

from __future__ import annotations

import re
from typing import Final

from compactd.core.authors.authors import author_of, stretches_of
from compactd.core.constraints.constraints import NO_CONSTRAINTS, Constraints
from compactd.core.constraints.user_text import typed_sentences
from compactd.core.history.entries import EntryId, Item, is_summary
from compactd.core.history.message_kinds import is_request
from compactd.core.text.tool_results import text_of_result
from compactd.core.work import prose
from compactd.core.work.calls import Call, read_call, shorten
from compactd.core.work.changes import Changes, is_taking_back
from compactd.core.work.checks import Checks, Failure
from compactd.core.work.outcome import Result, read_result
from compactd.core.work.plan import Plan
from compactd.protocol.messages import Message, Text, ToolCall, ToolResult
from compactd.protocol.work import CurrentStep, FailedAttempt, StatedConstraint, Work, WorkDecision

MAX_REQUEST_CHARS: Final = 1_200
"""The most characters of a request. A longer one ends with `…`."""
MAX_QUOTE_CHARS: Final = 300
MAX_DECISIONS: Final = 60
MAX_ATTEMPTS: Final = 40
"""The newest decisions and attempts are kept."""
SHOWN_CALLS: Final = 3
"""How many calls after the agent's last words are named."""

_ANSWERED: Final = re.compile(r'"(?P<question>[^"]{1,300})"\s*[=:]\s*"(?P<answer>[^"]{1,600})"')
"""A question and the user's answer in the result of a tool that asks (Claude Code's AskUserQuestion)."""


class WorkReader:
    """Reads the messages of a conversation in order, and derives the state of the work from them."""

    def __init__(self) -> None:
        self._at = 0
        """The number of messages that were read."""
        self._calls: dict[str, Call] = {}
        """The calls without a result, by their id."""
        self._goal: str | None = None
        self._request: str | None = None
        self._plan = Plan()
        self._changes = Changes()
        self._checks = Checks()
        self._unexplained: list[Failure] = []
        """The failures since the agent last said something."""
        self._rejected: str | None = None
        """The call that the user did not allow, until the next words."""
        self._attempts: list[FailedAttempt] = []
        self._decisions: dict[str, WorkDecision] = {}
        self._now: tuple[str, EntryId] | None = None
        """The agent's last words about what it does, and their message."""
        self._since: list[str] = []
        """The calls since then."""

    def add(self, item: Item) -> None:
        """Read the next message. O(its length)."""
        self._at += 1
        message = item.message
        if is_summary(message):
            return
        if message.role == "assistant" and not _is_the_agents(message):
            return
        for block in message.content:
            match block:
                case Text() if message.role == "assistant":
                    self._read_words(item.entry_id, message, block)
                case ToolCall():
                    self._read_call(item.entry_id, block)
                case ToolResult():
                    self._read_result(item.entry_id, block)
                case _:
                    pass
        if is_request(message):
            # After the results: the user may reply to the rejection of a call in the same message.
            self._read_request(item)

    def work(self, constraints: Constraints = NO_CONSTRAINTS) -> Work:
        """Return the state of the work after the messages that were read. `constraints` are the user's.
        O(what was found)."""
        return Work(
            goal=self._goal,
            request=self._request,
            constraints=tuple(
                StatedConstraint(text=one.text, entry_id=one.entry_id) for one in constraints.in_force
            ),
            plan=self._plan.result(),
            changes=self._changes.result(self._checks.passed_at),
            checks=self._checks.checks(self._changes.last_at),
            decisions=tuple(self._decisions.values()),
            failed_attempts=tuple(self._attempts),
            open_errors=self._checks.open_errors(self._at),
            now=self._current_step(),
        )

    def _current_step(self) -> CurrentStep | None:
        if self._now is None:
            return None
        text, entry_id = self._now
        if self._since:
            before = len(self._since) - SHOWN_CALLS
            more = f" ({before} more calls before that)" if before > 0 else ""
            text = f"{text} Since then: {'; '.join(self._since[-SHOWN_CALLS:])}{more}"
        return CurrentStep(text=text, entry_id=entry_id)

    # --- what was said --------------------------------------------------------------------------------

    def _read_request(self, item: Item) -> None:
        said = [sentence.text for sentence in typed_sentences(item)]
        text = " ".join(said)
        if not text:
            return
        self._request = shorten(text, MAX_REQUEST_CHARS)
        self._goal = self._goal or self._request
        self._since = []
        self._end_rejection(item.entry_id, f" The user then said: “{shorten(text, MAX_QUOTE_CHARS)}”")
        for sentence in said:
            if len(sentence) <= prose.MAX_SENTENCE_CHARS and prose.reports_failure(sentence):
                self._fail(f"The user said: “{sentence}”", item.entry_id)

    def _read_words(self, entry_id: EntryId, message: Message, block: Text) -> None:
        """Read what the agent says in a text block."""
        last = announced = ""
        for stretch in stretches_of(message, block):
            if stretch.author != "assistant":
                continue
            self._plan.read_text(stretch.text, entry_id)
            for sentence in prose.prose_sentences(stretch.text):
                self._end_rejection(entry_id)
                is_next = prose.announces(sentence)
                announced = sentence if is_next else announced
                if self._unexplained and not is_next:
                    for failure in self._unexplained:
                        failure.said = sentence
                    self._unexplained = []
                elif prose.reports_failure(sentence):
                    # "Let me try a different approach" says nothing without the sentence before it.
                    if last or not is_next:
                        self._fail(f"{last} {sentence}" if is_next else sentence, entry_id)
                elif prose.decides(sentence) > int(is_next):
                    self._decide(prose.without_opener(sentence), entry_id)
                last = sentence
            last = last or shorten(" ".join(stretch.text.split()), MAX_QUOTE_CHARS)
        if last:
            self._now, self._since = (announced or last, entry_id), []

    def _end_rejection(self, entry_id: EntryId, reply: str = "") -> None:
        if self._rejected is not None:
            self._fail(f"{self._rejected}{reply}", entry_id)
            self._rejected = None

    # --- what was done --------------------------------------------------------------------------------

    def _read_call(self, entry_id: EntryId, block: ToolCall) -> None:
        call = read_call(block, entry_id)
        if call.kind != "look":
            self._calls[block.call_id] = call
        if call.kind == "plan":
            self._plan.read_list(call.arguments, entry_id)

    def _read_result(self, entry_id: EntryId, block: ToolResult) -> None:
        call = self._calls.pop(block.call_id, None)
        if call is None:
            return
        output = text_of_result(block)
        result = read_result(output, is_error=block.is_error, commands=call.commands, kind=call.check)
        if result.is_rejected:
            self._rejected = self._rejected or f"The user did not allow: {call.line}."
        elif call.kind == "shell":
            self._read_shell(call, output, result, entry_id)
            ending = {"failed": "failed", "passed": "succeeded", "unknown": "ended"}[result.outcome]
            self._since.append(f"`{call.line}` {ending}")
        elif not block.is_error:
            self._read_done(call, output, entry_id)
            self._since.append(call.line)

    def _read_done(self, call: Call, output: str, entry_id: EntryId) -> None:
        """Read the successful result of a call that is no shell command."""
        match call.kind:
            case "edit" | "write" | "patch":
                self._changes.read_edit(call, entry_id, self._at)
            case "task_create":
                self._plan.read_created(call.arguments, output, entry_id)
            case "task_update":
                self._plan.read_updated(call.arguments, entry_id)
            case "ask":
                for found in _ANSWERED.finditer(output):
                    said = f"The user chose: {found['question']} → {found['answer']}"
                    self._decide(said, entry_id, about=found["question"])
            case "propose":
                plan = str(call.arguments.get("plan") or "").strip().split("\n", 1)[0].lstrip("# ")
                self._decide(f"The user approved the plan: {shorten(plan, MAX_QUOTE_CHARS)}", entry_id)
            case _:
                pass

    def _read_shell(self, call: Call, output: str, result: Result, entry_id: EntryId) -> None:
        failures = self._checks.read(call, result, entry_id, self._at)
        if result.outcome == "failed":
            self._unexplained += failures
            return
        for failure in failures:
            if not failure.call.check and not failure.said:
                continue
            why = f": {'; '.join(failure.lines)}" if failure.lines else ""
            said = f" {failure.said}" if failure.said else ""
            self._fail(
                f"`{failure.call.line}` failed{why}.{said} It succeeded later ({entry_id}).", failure.entry_id
            )
        if any(is_taking_back(command) for command in call.commands):
            self._fail(f"Changes were taken back: `{call.line}`", entry_id)
        for commit in self._changes.read_commands(call, output, entry_id, self._at):
            self._decide(f"Committed {commit.hash}: {commit.subject}", entry_id)

    # --- what follows from it -------------------------------------------------------------------------

    def _decide(self, text: str, entry_id: EntryId, *, about: str = "") -> None:
        """Take in a decision. `about` is the question that it answers; a newer answer replaces an older
        one."""
        key = about or " ".join(text.lower().split())
        before = self._decisions.pop(key, None)
        was = before.text if before is not None and before.text != text else None
        self._decisions[key] = WorkDecision(text=text, was=was, entry_id=entry_id)
        if len(self._decisions) > MAX_DECISIONS:
            del self._decisions[next(iter(self._decisions))]

    def _fail(self, text: str, entry_id: EntryId) -> None:
        self._attempts.append(FailedAttempt(text=text, entry_id=entry_id))
        del self._attempts[:-MAX_ATTEMPTS]


def _is_the_agents(message: Message) -> bool:
    """Return whether the agent itself wrote a message of its role: no sub-agent, and no program, such as one
    that inserts a demonstration."""
    is_synthetic = message.meta is not None and message.meta.synthetic
    return not is_synthetic and author_of(message) == "assistant"
