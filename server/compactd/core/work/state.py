"""Derive the state of the work from the messages of a conversation.

`WorkReader` reads one message after another, each in time proportional to its length. Its method `work` then
returns what the messages add up to. Nothing here asks a model, and each item names the message it comes from.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final, assert_never

from msgspec import Struct
from msgspec.structs import replace

from compactd.core.authors.authors import SKILL, TOOL, author_of, stretches_of
from compactd.core.constraints.constraints import NO_CONSTRAINTS, Constraints, is_constraint
from compactd.core.constraints.replaced import find_replaced
from compactd.core.constraints.user_text import typed_sentences
from compactd.core.history.entries import EntryId, Item, is_summary
from compactd.core.history.message_kinds import is_request
from compactd.core.text.lazy_patterns import LazyPattern
from compactd.core.text.tool_results import text_of_result
from compactd.core.work import aider, prose
from compactd.core.work.calls import Call, read_call, shell_call, shorten
from compactd.core.work.changes import Changes, Commit, git_words, is_taking_back
from compactd.core.work.checks import Checks, Failure
from compactd.core.work.edit_blocks import ProposedEdit
from compactd.core.work.edits import FileEdit, edits_in
from compactd.core.work.file_operations import paths_in
from compactd.core.work.gists import EditGist, gist_of
from compactd.core.work.history import Turn, WorkHistory
from compactd.core.work.line_words import names_something
from compactd.core.work.outcome import MAX_ERROR_LINES, Result, error_lines, first_line, read_result
from compactd.core.work.plan import Plan
from compactd.core.work.retractions import Retraction, Retractions
from compactd.core.work.text_outline import clean_lines
from compactd.protocol.messages import Message, Text, ToolCall, ToolResult
from compactd.protocol.work import CurrentStep, FailedAttempt, StatedConstraint, Work, WorkDecision

MAX_REQUEST_CHARS: Final = 1_200
"""The most characters of a request. A longer one ends with `…`."""
MAX_QUOTE_CHARS: Final = 300
MAX_REPORT_SENTENCES: Final = 8
"""A request with more sentences is a task; what it says of failures is its subject."""
MAX_DECISIONS: Final = 60
MAX_ATTEMPTS: Final = 40
"""The newest decisions and attempts are kept."""
TOOK_BACK: Final = "The user took back the commit"
MAX_TAKEN_BACK: Final = 3
"""The newest commits that the user took back are told, this many."""
MAX_BRIEFS: Final = 4
MAX_BRIEF_CHARS: Final = 6_000
MAX_EDITS: Final = 30
MAX_REPAIRS: Final = 3
"""How many edits are kept, and how many of them a repaired failure names."""
MAX_PENDING: Final = 20
"""How many edits without a result are kept."""
MAX_COMMANDS: Final = 2_000
MAX_SINCE_CHARS: Final = 160
"""The most characters of a call that is named after the agent's last words."""
SHOWN_CALLS: Final = 3
"""How many calls after the agent's last words are named."""

_ANSWERED: Final = LazyPattern(r'"(?P<question>[^"]{1,300})"\s*[=:]\s*"(?P<answer>[^"]{1,600})"')
"""A question and the user's answer in the result of a tool that asks (Claude Code's AskUserQuestion)."""
_COMMAND_NAME: Final = LazyPattern(r"<command-name>\s{0,8}(/[\w:.-]{1,80})\s{0,8}</command-name>")
"""The name of a slash command in the message with which Claude Code reports it."""
_LOCAL: Final = """
/clear /compact /config /context /cost /doctor /exit /export /help /hooks /login /logout /mcp /memory /model
/permissions /resume /rewind /status /theme /usage /vim
"""
_LOCAL_COMMANDS: Final = frozenset(_LOCAL.split())
"""Commands that change or show something of the agent, and ask nothing of the model."""
_NAMED_THING: Final = LazyPattern(
    r"[\w./-]*\w\.(?:md|txt|rst|adoc)\b|(?<![\w/.-])[A-Za-z]{2,40}-[\w.]{2,40}(?![\w/-])|(?<!\w)#?\d{1,7}(?![\w.])"
)
"""Matches the name of a thing that can be looked up: a text file, an issue such as `parser-12` or `#12`."""
_CHANGING_PROGRAMS: Final = frozenset(("git", "cd", "rm", "mv", "cp", "mkdir", "touch", "echo", "kill"))
_CHANGING_WORDS: Final = frozenset(("update", "close", "create", "add", "edit", "delete", "install", "run"))
"""Programs, and first words of commands, that do something instead of showing it."""
_CORRECTS: Final = LazyPattern(
    r"(?:no\b[,.!: ]|nope\b|wait\b|stop\b|don't\b|do not\b|actually\b|rather\b|instead\b|undo\b|revert\b"
    r"|that's (?:wrong|not)\b|[^.!?]{0,60}\binstead\b)",
    re.IGNORECASE,
)
"""Matches the beginning of a request that corrects what the agent decided."""
_NOT_READ: Final = LazyPattern(r"has not been read yet|must (?:first )?read|modified since read")
"""Matches the refusal of an edit because the file was not read before. It says nothing of the work."""
_PULL_REQUEST: Final = LazyPattern(r"https://[\w.-]{1,100}/[\w./-]{1,200}/(?:pull|merge_requests)/\d{1,9}")


class Repair(Struct, frozen=True):
    """An edit between a failure and the success of the same."""

    path: str
    gist: str
    """What the edit did (`EditGist.text`)."""
    at: int
    """The number of the edit's message."""


class Attempt(Struct, frozen=True):
    """Something that was tried and did not work."""

    text: str
    """What was tried, in a sentence."""
    entry_id: EntryId
    errors: tuple[str, ...] = ()
    """The decisive lines of a tool's output."""
    said: str = ""
    """What the agent, or the user, said about it next."""
    mended_at: EntryId | None = None
    """The message in which the same succeeded; None if it did not."""
    repairs: tuple[Repair, ...] = ()
    """The edits between the failure and the success."""

    @property
    def report(self) -> str:
        """All of it in one text."""
        said = f" {self.said}" if self.said else ""
        mended = "" if self.mended_at is None else f" It succeeded later ({self.mended_at})."
        ends = "." if (said or mended) and self.text[-1:].isalnum() else ""
        why = f": {'; '.join(self.errors)}." if self.errors else ends
        return f"{self.text}{why}{said}{mended}"


class Event(Struct, frozen=True):
    """A step that others can see: a commit, a push, a new pull request."""

    text: str
    entry_id: EntryId
    details: tuple[str, ...] = ()
    """The lines that the agent wrote about it, such as the body of a commit's message."""


class Brief(Struct, frozen=True):
    """What a tool said about a thing that the first request names, such as an issue or a plan."""

    call: str
    """The call on one line."""
    text: str
    """The beginning of its output."""
    entry_id: EntryId


class WorkState(Struct, frozen=True):
    """What the messages of a conversation say about the state of the work."""

    work: Work
    """The state as clients get it."""
    turns: tuple[Turn, ...]
    """The user's requests, oldest first, and what the agent said about each."""
    attempts: tuple[Attempt, ...]
    """What was tried and did not work, oldest first."""
    failures: tuple[Failure, ...]
    """The failed calls that nothing resolved yet, oldest first."""
    events: tuple[Event, ...]
    """Commits, pushes and pull requests, oldest first."""
    briefs: tuple[Brief, ...]
    """What tools said about the things that the first request names, oldest first."""
    skill: Brief | None
    """The text that the newest request stands for, if that is a command of the agent's program."""
    totals: Mapping[EntryId, str]
    """What the last runs of checks counted, in the words of their output, by the message of the run."""
    gists: Mapping[str, tuple[str, ...]]
    """What the edits of each changed file did since its last commit, by its path: a few lines of code in
    backticks, oldest first."""
    pending: tuple[str, ...]
    """The files that are being edited: the result of the last call has not come yet."""
    planned: tuple[int, int]
    """How many tasks of the plan are done, and how many it has. `Work.plan` leaves out some of a long one."""
    branch: str
    """The git branch that was named last; empty if none was."""
    committed: EntryId | None
    """The message with the last commit."""
    last_commit: Commit | None
    """This commit."""
    pushed: EntryId | None
    """The message with the last push."""
    is_pushed: bool
    """Whether the last push was after the last commit."""
    replaced: Mapping[str, tuple[str, EntryId]]
    """The user's statements that a newer one replaces, each with the newer one and its message."""
    reverted: tuple[Retraction, ...]
    """The newest edits that took back a whole earlier one, oldest first."""
    commands: frozenset[EntryId] = frozenset()
    """The newest prompts that ask nothing of the model, such as `/add x.py` in aider."""


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
        self._attempts: list[tuple[int, Attempt]] = []
        """What failed, each with the number of the message."""
        self._history = WorkHistory()
        self._events: list[Event] = []
        self._named: frozenset[str] = frozenset()
        """The things that the first request names."""
        self._briefs: list[Brief] = []
        self._command = ""
        """The command that is the newest request; empty if the user typed that."""
        self._skill: Brief | None = None
        """The text that it stands for."""
        self._looks: dict[str, str] = {}
        """The calls without a result that look at one of these things, by their id."""
        self._pending: dict[str, Call] = {}
        """The newest edits without a result, by the id of the call."""
        self._retractions = Retractions()
        self._edits: deque[Repair] = deque(maxlen=MAX_EDITS)
        """The newest edits."""
        self._committed: EntryId | None = None
        self._pushed: EntryId | None = None
        self._is_pushed = False
        self._decisions: dict[str, WorkDecision] = {}
        self._decided: str | None = None
        """The key of the last decision since the user's last request."""
        self._now: tuple[str, EntryId] | None = None
        """The agent's last words about what it does, and their message."""
        self._since: list[str] = []
        """The calls since then."""
        self._aider = aider.AiderReader()
        self._commands: deque[EntryId] = deque(maxlen=MAX_COMMANDS)
        """The newest prompts that ask nothing of the model."""
        self._linted: Call | None = None
        """The linter of which aider showed a report, until an edit has none."""

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
            self._pending.clear()
            self._read_request(item)
        elif (command := _command_in(message)) is not None and _asks(command):
            self._history.ask((f"(command {command})",), item.entry_id)
            self._command, self._skill = command, None
        elif message.role == "user":
            self._read_skill(item.entry_id, message)
            self._read_shown(item.entry_id, message)

    def work(self, constraints: Constraints = NO_CONSTRAINTS) -> Work:
        """Return the state of the work after the messages that were read. `constraints` are the user's.
        O(what was found)."""
        changes = self._changes_now()
        return Work(
            goal=self._goal,
            request=self._request,
            constraints=tuple(
                StatedConstraint(text=one.text, entry_id=one.entry_id) for one in constraints.in_force
            ),
            plan=self._plan.result(),
            changes=changes.result(self._checks.passed_at),
            checks=self._checks.checks(changes.last_at),
            decisions=tuple(self._decisions.values()),
            failed_attempts=tuple(
                FailedAttempt(text=one.report, entry_id=one.entry_id) for one in self._all_attempts()
            ),
            open_errors=self._checks.open_errors(self._at),
            now=self._current_step(),
        )

    @property
    def has_plan_in_file(self) -> bool:
        """Whether the plan is a checklist in a file."""
        return self._plan.is_in_file

    def state(self, constraints: Constraints = NO_CONSTRAINTS) -> WorkState:
        """Return all that is known after the messages that were read. It does not change when more are read.
        O(what was found)."""
        turns = self._history.result()
        return WorkState(
            work=self.work(constraints),
            turns=turns,
            attempts=self._all_attempts(),
            failures=self._checks.open_failures(self._at),
            events=tuple(self._events),
            briefs=tuple(self._briefs),
            skill=self._skill,
            totals=self._checks.totals,
            gists=self._changes_now().gists,
            pending=tuple(
                dict.fromkeys(p for call in self._pending.values() for p in paths_in(call.arguments))
            ),
            planned=self._plan.counts,
            branch=self._changes.branch,
            committed=self._committed,
            last_commit=self._changes.last_commit,
            pushed=self._pushed,
            is_pushed=self._is_pushed,
            replaced=_replaced_in(turns),
            reverted=tuple(one for one in self._retractions.result() if one.is_whole),
            commands=frozenset(self._commands),
        )

    def _changes_now(self) -> Changes:
        """Return the changes, with those of calls that have no result yet."""
        pending = tuple(self._pending.values())
        return self._changes.after(pending, self._at + 1) if pending else self._changes

    def _all_attempts(self) -> tuple[Attempt, ...]:
        """Return the attempts, and the edits that took back earlier ones, in order."""
        taken_back = (
            (one.at, Attempt(one.text, one.entry_id, said=one.instead)) for one in self._retractions.result()
        )
        attempts = sorted((*self._attempts, *taken_back), key=lambda one: one[0])
        return tuple(attempt for _, attempt in attempts[-MAX_ATTEMPTS:])

    def _current_step(self) -> CurrentStep | None:
        if self._now is None:
            return None
        text, entry_id = self._now
        if self._since:
            before = len(self._since) - SHOWN_CALLS
            more = f" ({before} more calls before that)" if before > 0 else ""
            text = f"{text.rstrip(' :.')}. Since then: {'; '.join(self._since[-SHOWN_CALLS:])}{more}"
        return CurrentStep(text=text, entry_id=entry_id)

    # --- what was said --------------------------------------------------------------------------------

    def _read_request(self, item: Item) -> None:
        said = self._without_command(item, [sentence.text for sentence in typed_sentences(item)])
        command = _command_in(item.message)
        if command is not None and _asks(command):
            said.insert(0, f"(command {command})")
        text = " ".join(said)
        if not text:
            return
        self._command, self._skill = command or "", None
        self._request = shorten(text, MAX_REQUEST_CHARS)
        self._correct(text)
        self._history.ask(said, item.entry_id)
        if self._goal is None:
            self._goal = self._request
            self._named = frozenset(_NAMED_THING.findall(self._request))
        self._since = []
        self._end_rejection(item.entry_id, f" The user then said: “{shorten(text, MAX_QUOTE_CHARS)}”")
        if len(said) > MAX_REPORT_SENTENCES:
            return
        for sentence in said:
            if len(sentence) <= prose.MAX_SENTENCE_CHARS and prose.reports_failure(sentence, tried=False):
                self._fail(f"The user said: “{sentence}”", item.entry_id)

    def _without_command(self, item: Item, said: list[str]) -> list[str]:
        """Return what a prompt asks for: without a command of aider, and nothing if it only runs that."""
        text = _text_of(item.message)
        self._note_all(self._aider.read_prompt(text, item.entry_id), item.entry_id)
        if not self._aider.is_on:
            return said
        if aider.is_no_request(text):
            self._commands.append(item.entry_id)
            return []
        return [aider.without_command(one) if at == 0 else one for at, one in enumerate(said)]

    def _read_skill(self, entry_id: EntryId, message: Message) -> None:
        """Read the text of the skill that the newest command runs."""
        for block in message.content:
            for stretch in stretches_of(message, block) if isinstance(block, Text) else ():
                if stretch.author in (SKILL, "unknown") and self._command and self._skill is None:
                    call = f"The text that the command {self._command} stands for"
                    self._skill = Brief(call, stretch.text[:MAX_BRIEF_CHARS], entry_id)

    def _correct(self, text: str) -> None:
        """Note at the last decision since the request before that the user then wanted something else."""
        if self._decided is not None and _CORRECTS.match(text) is not None:
            known = self._decisions.get(self._decided)
            if known is not None:
                said = f"{known.text} But then the user said: “{shorten(text, MAX_QUOTE_CHARS)}”"
                self._decisions[self._decided] = replace(known, text=said)
        self._decided = None

    def _read_words(self, entry_id: EntryId, message: Message, block: Text) -> None:
        """Read what the agent says in a text block."""
        last = announced = ""
        for stretch in stretches_of(message, block):
            if stretch.author != "assistant":
                continue
            # The agent goes on, so what has no result was not done.
            self._pending = {key: one for key, one in self._pending.items() if one.entry_id == entry_id}
            text, notes = self._aider.read_answer(stretch.text)
            self._note_all(notes, entry_id)
            if notes and not text:
                continue
            self._plan.read_text(text, entry_id)
            self._history.say(text, entry_id)
            for sentence in prose.prose_sentences(text):
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
                elif prose.decides(sentence) > int(is_next or not names_something(sentence)):
                    self._decide(prose.without_opener(sentence), entry_id)
                last = sentence
            last = last or shorten(_on_one_line(text), MAX_QUOTE_CHARS)
        if last:
            self._now, self._since = (announced or last, entry_id), []

    def _end_rejection(self, entry_id: EntryId, reply: str = "") -> None:
        if self._rejected is not None:
            self._fail(f"{self._rejected}{reply}", entry_id)
            self._rejected = None

    # --- what was done --------------------------------------------------------------------------------

    def _read_call(self, entry_id: EntryId, block: ToolCall) -> None:
        call = read_call(block, entry_id)
        if self._named and len(self._briefs) < MAX_BRIEFS and _looks_at(call, self._named):
            self._looks[block.call_id] = shorten(call.line, MAX_SINCE_CHARS)
        if call.kind != "look":
            self._calls[block.call_id] = call
        if call.kind in ("edit", "write", "patch"):
            self._pending[block.call_id] = call
            if len(self._pending) > MAX_PENDING:
                del self._pending[next(iter(self._pending))]
        if call.kind == "plan":
            self._plan.read_list(call.arguments, entry_id)

    def _read_result(self, entry_id: EntryId, block: ToolResult) -> None:
        call = self._calls.pop(block.call_id, None)
        self._pending.pop(block.call_id, None)
        look = self._looks.pop(block.call_id, None)
        if look is not None and not block.is_error and len(self._briefs) < MAX_BRIEFS:
            self._briefs.append(Brief(look, text_of_result(block)[:MAX_BRIEF_CHARS], entry_id))
        if call is None:
            return
        output = text_of_result(block)
        result = read_result(output, is_error=block.is_error, commands=call.commands, kind=call.check)
        if result.is_rejected:
            self._rejected = self._rejected or f"The user did not allow: {call.line}."
        elif call.kind == "shell":
            self._read_shell(call, output, result, entry_id)
            ending = {"failed": "failed", "passed": "succeeded", "unknown": "ended"}[result.outcome]
            self._since.append(f"`{shorten(call.line, MAX_SINCE_CHARS)}` {ending}")
        elif call.kind == "task_list":
            if not block.is_error:
                self._plan.read_listed(output, entry_id)
        elif not block.is_error:
            self._read_done(call, output, entry_id)
            self._read_file(call, None, entry_id)
            self._since.append(shorten(call.line, MAX_SINCE_CHARS))
        elif call.kind in ("edit", "write", "patch") and _NOT_READ.search(output) is None:
            self._read_file(call, error_lines(output, 1) or (first_line(output),), entry_id)

    def _read_file(self, call: Call, lines: tuple[str, ...] | None, entry_id: EntryId) -> None:
        """Read how a tool that changes a file ended. `lines` are those of its error, None if it succeeded."""
        path = next(iter(paths_in(call.arguments)), "")
        if call.kind not in ("edit", "write", "patch") or not path:
            return
        failures = self._checks.read_tool(call, path, lines, entry_id, self._at)
        if lines is not None:
            self._unexplained += failures
            return
        for one in failures:
            if one.said:
                self._fail(
                    f"{one.call.line} failed",
                    one.entry_id,
                    errors=one.lines,
                    said=one.said,
                    mended_at=entry_id,
                )

    def _read_done(self, call: Call, output: str, entry_id: EntryId) -> None:
        """Read the successful result of a call that is no shell command."""
        match call.kind:
            case "edit" | "write" | "patch":
                edits: list[tuple[FileEdit, EditGist]] = []
                for edit in edits_in(call.arguments):
                    undone = self._retractions.read(edit, entry_id, self._at)
                    gist = gist_of(edit) if undone is None else EditGist(undoes=undone)
                    edits.append((edit, gist))
                    if gist.text:
                        self._edits.append(Repair(edit.path, gist.text, self._at))
                self._changes.read_edit(call, entry_id, self._at, edits)
                self._plan.read_file(call.arguments, entry_id)
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
            self._fail(
                f"`{failure.call.line}` failed",
                failure.entry_id,
                errors=failure.lines,
                said=failure.said,
                mended_at=entry_id,
                repairs=tuple(one for one in self._edits if one.at > failure.at)[:MAX_REPAIRS],
            )
        if any(is_taking_back(command) for command in call.commands):
            self._fail(f"Changes were taken back: `{call.line}`", entry_id)
        for commit in self._changes.read_commands(call, output, entry_id, self._at):
            self._note_commit(commit, entry_id)
        for command in call.commands:
            words = git_words(command)
            if command.program == "git" and words[:1] == ("push",):
                self._pushed, self._is_pushed = entry_id, True
            elif command.program == "gh" and command.words[:2] == ("pr", "create"):
                found = _PULL_REQUEST.search(output)
                self._happen(Event(f"Opened a pull request{f': {found[0]}' if found else ''}", entry_id))

    # --- what aider shows -----------------------------------------------------------------------------

    def _read_shown(self, entry_id: EntryId, message: Message) -> None:
        """Read a message that no person typed: what aider showed, or a prompt that it made."""
        if aider.is_shown(message):
            self._note_all(self._aider.read_shown(message, _text_of(message)), entry_id)
        elif author_of(message) == TOOL and aider.is_lint_prompt(text := _text_of(message)):
            self._note_all((self._aider.read_lint_prompt(text),), entry_id)

    def _note_all(self, notes: Sequence[aider.Note], entry_id: EntryId) -> None:
        """Take in what aider says about the work."""
        for note in notes:
            match note:
                case aider.Applied(edit, is_new):
                    call = aider.edit_call(edit, entry_id, is_new=is_new)
                    self._read_done(call, "", entry_id)
                    self._read_file(call, None, entry_id)
                    self._since.append(shorten(call.line, MAX_SINCE_CHARS))
                case aider.Refused(path, lines):
                    call = aider.edit_call(ProposedEdit(path), entry_id)
                    if path:
                        self._read_file(call, lines, entry_id)
                    else:
                        self._fail("An edit could not be applied", entry_id, errors=lines)
                case aider.Committed(name, subject):
                    commit = Commit(name, (subject,))
                    self._changes.commit_all(commit, entry_id, self._at)
                    self._note_commit(commit, entry_id)
                case aider.Undone():
                    self._undo(note, entry_id)
                case aider.Ran():
                    self._read_run(note, note.entry_id or entry_id)
                case aider.Linted():
                    call = aider.lint_call(note.command, entry_id)
                    lines = note.marked if not note.command else error_lines(note.text, kind="lint")
                    result = Result("failed", lines=lines[:MAX_ERROR_LINES] or error_lines(note.text))
                    self._unexplained += self._checks.read(call, result, entry_id, self._at)
                    self._linted = call
                case aider.LintPassed():
                    if self._linted is not None:
                        self._read_shell(self._linted, "", Result("passed"), entry_id)
                    self._linted = None
                case _:
                    assert_never(note)

    def _read_run(self, ran: aider.Ran, entry_id: EntryId) -> None:
        """Read a command that the user ran in aider, and what it printed."""
        call = shell_call(ran.command, {"command": ran.command}, entry_id, name="run")
        if ran.has_failed is None and not ran.output.strip():
            return  # Nothing says how it ended.
        is_error = ran.has_failed is True
        result = read_result(ran.output, is_error=is_error, commands=call.commands, kind=call.check)
        self._read_shell(call, "", result, entry_id)

    def _undo(self, undone: aider.Undone, entry_id: EntryId) -> None:
        """Take in that the user took back the last commit."""
        before = self._changes.undo_commit(undone.hash)
        if before is not None:
            commit, self._committed = before
            said = _commit_line(commit)
            self._events = [one for one in self._events if one.text != said]
            self._decisions.pop(_key_of(said), None)
        subject = f": {undone.subject}" if undone.subject else ""
        self._fail(f"{TOOK_BACK} {undone.hash}{subject}", entry_id)
        taken_back = [one for one in self._attempts if one[1].text.startswith(TOOK_BACK)]
        if len(taken_back) > MAX_TAKEN_BACK:
            self._attempts.remove(taken_back[0])

    def _note_commit(self, commit: Commit, entry_id: EntryId) -> None:
        said = _commit_line(commit)
        self._decide(said, entry_id)
        self._happen(Event(said, entry_id, commit.message[1:]))
        self._committed, self._is_pushed = entry_id, False

    # --- what follows from it -------------------------------------------------------------------------

    def _decide(self, text: str, entry_id: EntryId, *, about: str = "") -> None:
        """Take in a decision. `about` is the question that it answers; a newer answer replaces an older
        one."""
        key = about or _key_of(text)
        before = self._decisions.pop(key, None)
        was = before.text if before is not None and before.text != text else None
        self._decisions[key] = WorkDecision(text=text, was=was, entry_id=entry_id)
        self._decided = key
        if len(self._decisions) > MAX_DECISIONS:
            del self._decisions[next(iter(self._decisions))]

    def _happen(self, event: Event) -> None:
        self._events.append(event)
        del self._events[:-MAX_ATTEMPTS]

    def _fail(
        self,
        text: str,
        entry_id: EntryId,
        *,
        errors: tuple[str, ...] = (),
        said: str = "",
        mended_at: EntryId | None = None,
        repairs: tuple[Repair, ...] = (),
    ) -> None:
        self._attempts.append((self._at, Attempt(text, entry_id, errors, said, mended_at, repairs)))
        del self._attempts[:-MAX_ATTEMPTS]


def _replaced_in(turns: Sequence[Turn]) -> dict[str, tuple[str, EntryId]]:
    """Return the user's statements that a newer one replaces, with the newer one and its message."""
    said = [(one, turn.entry_id) for turn in turns if turn.entry_id for one in turn.sentences]
    statements = [one for one, _ in said]
    limits = {at for at, one in enumerate(statements) if is_constraint(one)}
    found = find_replaced(statements, [entry_id for _, entry_id in said], limits=limits)
    still = {one: at for at, one in enumerate(statements)}
    # What was said again later is not replaced.
    return {statements[old]: said[new] for old, new in found.items() if still[statements[old]] < new}


def _commit_line(commit: Commit) -> str:
    subject = f": {commit.subject}" if commit.subject else ""
    return f"Committed {commit.hash}{subject}" if commit.hash else f"Committed{subject}"


def _key_of(text: str) -> str:
    """Return by what a decision is recognised: its words."""
    return " ".join(text.lower().split())


def _text_of(message: Message) -> str:
    return "\n".join(block.text for block in message.content if isinstance(block, Text))


def _on_one_line(text: str) -> str:
    """Return the prose of the agent's words on one line, without quotations and code."""
    return " ".join(" ".join(clean_lines(text[: prose.MAX_PROSE_CHARS])).split())


def _looks_at(call: Call, named: frozenset[str]) -> bool:
    """Return whether a call shows one of these things: it reads the file, or a command takes the name."""
    if call.kind == "look":
        return any(path.endswith(name) for path in paths_in(call.arguments) for name in named)
    return call.check is None and any(
        command.program not in _CHANGING_PROGRAMS
        and not named.isdisjoint(command.words)
        and not (command.words and command.words[0] in _CHANGING_WORDS)
        for command in call.commands
    )


def _asks(command: str) -> bool:
    """Return whether a slash command asks something of the model."""
    return command not in _LOCAL_COMMANDS


def _command_in(message: Message) -> str | None:
    """Return the name of the slash command that the user ran with this message; None for none."""
    first = next((block.text for block in message.content if isinstance(block, Text)), "")
    if not first.startswith(("<command-message>", "<command-name>")):
        return None
    found = _COMMAND_NAME.search(first)
    return None if found is None else found[1]


def _is_the_agents(message: Message) -> bool:
    """Return whether the agent itself wrote a message of its role: no sub-agent, and no program, such as one
    that inserts a demonstration."""
    is_synthetic = message.meta is not None and message.meta.synthetic
    return not is_synthetic and author_of(message) == "assistant"
