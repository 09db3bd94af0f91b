"""Follow aider's work in the lines that it shows: edits, commits, undos, linters' reports, commands.

aider has no tool calls. Its lines are from Aider-AI/aider (read 2026-11): `aider/coders/base_coder.py`
(`apply_updates`, `allowed_to_edit`, `dirty_commit`, `lint_edited`, `send_message`),
`aider/coders/editblock_coder.py` (`apply_edits`), `aider/repo.py` (`commit`), `aider/linter.py`,
`aider/commands.py` (`cmd_undo`, `cmd_test`, `cmd_run`, `cmd_lint`) and `aider/io.py` (`append_chat_history`).
Recent versions mark only the first line of a report about blocks that did not match, so the rest of the
report is in the next answer.

The output of a program may contain any line. Therefore an edit counts only after an answer, an undo only
after `/undo`, and nothing in the output of a command that the user ran. If the message does not say that it
is aider's, an edit also needs its proposal in an answer, and a commit an edit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct

from compactd.core.history.entries import EntryId
from compactd.core.text.lazy_patterns import LazyPattern
from compactd.core.work.calls import Call, shell_call, shorten
from compactd.core.work.edit_blocks import ProposedEdit, proposed_edits, without_names
from compactd.core.work.file_operations import MAX_PATH_CHARS
from compactd.core.work.tool_kinds import ToolKind
from compactd.protocol.messages import Message

MAX_SHOWN_CHARS: Final = 200_000
"""Only this many characters of what aider showed at once are read."""
MAX_SUBJECT_CHARS: Final = 200
MAX_COMMITS: Final = 20
"""Only so many commits in what aider showed at once are read."""
MAX_LINE_CHARS: Final = 2_000
"""A longer line is none of aider's."""
MAX_PROPOSED: Final = 60
"""Only the edits of so many files are remembered until they are applied."""

SHOWN_KIND: Final = "aider_output"
_STARTED_KIND: Final = "aider_started"

_CONTROL: Final = LazyPattern(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
"""Matches signs that no path and no subject contains: those that control a terminal or end a line."""

LineKind = Literal["applied", "refused", "failed", "malformed", "commit", "undone", "asked", "test"]

_LINES: Final[tuple[tuple[LineKind, LazyPattern], ...]] = (
    ("applied", LazyPattern(r"Applied edit to (?P<path>\S.*)\Z")),
    ("refused", LazyPattern(r"Did not apply edit to (?P<path>\S.*?)(?: \(--dry-run\))?\Z")),
    ("refused", LazyPattern(r"Failed to apply edit to (?P<path>\S.*)\Z")),
    (
        "failed",
        LazyPattern(
            r"## SearchReplace\w+: This SEARCH block failed to exactly match lines in (?P<path>\S.*)\Z"
        ),
    ),
    ("malformed", LazyPattern(r"The LLM did not conform to the edit format\b")),
    ("malformed", LazyPattern(r"# \d+ SEARCH/REPLACE blocks? failed to match!\Z")),
    ("commit", LazyPattern(r"Commit (?P<hash>[0-9a-f]{7,40}) (?P<subject>\S.*)\Z")),
    ("undone", LazyPattern(r"Removed: (?P<hash>[0-9a-f]{7,40})(?: (?P<subject>\S.*))?\Z")),
    ("asked", LazyPattern(r"Create new file\? \(Y\)es/\(N\)o.*: y(?:es)?\Z", re.IGNORECASE)),
    ("test", LazyPattern(r"Attempt to fix test errors\?")),
)
"""The lines of aider that say how the work went. `asked` follows a line with the path of a new file."""
_OTHERS_APPLIED: Final = LazyPattern(
    r"^# The other \d+ SEARCH/REPLACE blocks? were applied successfully", re.MULTILINE
)
_REPORT: Final = LazyPattern(r"\s*## SearchReplace\w+: ")
_REPORT_ENDS: Final = (
    "The SEARCH section must exactly match an existing block of lines including all white space, comments,"
    " indentation, docstrings, etc",
    "Don't re-send them.",
    "Just reply with fixed versions of the block above that failed to match.",
    "Just reply with fixed versions of the blocks above that failed to match.",
)
"""The lines with which a report about blocks that did not match ends, in order."""
_REPORT_END_CHARS: Final = 300
"""The other of these lines are within so many characters after the one before."""
_FAILED: Final = LazyPattern(r"Added [1-9]\d* lines? of output to the chat\.\Z")
"""Matches the line after a `/test` that failed."""
_OWN: Final = LazyPattern(
    r"Add (?:the|command|[\d.]+k tokens of command) output to the chat\?"
    r"|Added \d+ lines? of output to the chat|Tokens: |Running |\(y/n/instructions\)"
)
"""Matches lines of aider after a command that the user ran. They are not its output."""
LINTED: Final = "# Fix any errors below, if possible."
_LINTER: Final = LazyPattern(r"## Running: (?P<command>\S.*)\Z")
_PLACE: Final = LazyPattern(r"\s{0,8}\d{1,7}█")
"""Matches a line in which aider marks an error."""
_LINTED_FILE: Final = LazyPattern(r"(?P<path>\S{1,400}):\Z")
_TEST_OPTION: Final = " --test-cmd "

_COMMAND: Final = LazyPattern(r"\s*(?:(?P<name>/[a-z][a-z-]{0,40})(?=\s|\Z)|(?P<bang>!))\s*")
_TALKS: Final = frozenset(("/ask", "/code", "/architect", "/context"))
"""Commands with the user's words to the model."""
_RUNS: Final = frozenset(("/run", "/test"))
_NAMES: Final = """
/add /drop /read-only /ls /tokens /clear /reset /model /models /weak-model /editor-model /chat-mode
/exit /quit /help /map /map-refresh /settings /save /load /copy /copy-context /paste /report /voice
/multiline-mode /editor /edit /undo /diff /commit /git /lint /web /think-tokens /reasoning-effort
"""
_MANAGES: Final = frozenset(_NAMES.split())
"""Commands that ask nothing of the model. (`aider/commands.py`)"""
_COMMITS: Final = frozenset(("", "/commit", "/lint")) | _TALKS
"""Commands of prompts after which aider may commit before an answer, such as what the user changed."""


class Applied(Struct, frozen=True, tag=True):
    """An edit that was applied."""

    edit: ProposedEdit
    is_new: bool = False
    """Whether it made the file."""


class Refused(Struct, frozen=True, tag=True):
    """An edit that could not be applied."""

    path: str
    """Empty if no file is named."""
    lines: tuple[str, ...]


class Committed(Struct, frozen=True, tag=True):
    """A commit of all changes. A program or a model wrote its subject."""

    hash: str
    subject: str


class Undone(Struct, frozen=True, tag=True):
    """A commit that the user took back."""

    hash: str
    subject: str


class Ran(Struct, frozen=True, tag=True):
    """A command that the user ran, or the tests that aider ran."""

    command: str
    output: str
    has_failed: bool | None
    """None if only the output may say it."""
    entry_id: EntryId | None = None
    """The prompt with the command, if its result is in no message."""


class Linted(Struct, frozen=True, tag=True):
    """The report of a linter."""

    command: str
    """Empty for aider's own linter."""
    text: str
    """The report, without aider's headings."""
    marked: tuple[str, ...]
    """The lines that aider's own linter marked, with the name of the file."""


class LintPassed(Struct, frozen=True, tag=True):
    """An edit after a linter's report, without a new report: aider lints each edit."""


Note = Applied | Refused | Committed | Undone | Ran | Linted | LintPassed


class AiderReader:
    """Reads the messages of a session, and returns what aider's lines say about the work."""

    def __init__(self) -> None:
        self.is_on = False
        """Whether aider showed something."""
        self._proposed: dict[str, ProposedEdit] = {}
        """What the answers since the last prompt propose, by path, if it was not applied."""
        self._has_answer = False
        """Whether there was an answer since the last prompt."""
        self._has_edit = False
        """Whether there was an edit since the last commit."""
        self._command = ""
        """The command of the last prompt; empty if it has none."""
        self._ran = ""
        """The command line that the user ran with the last prompt, until its result comes."""
        self._asked_at: EntryId | None = None
        """The last prompt."""
        self._tests = ""
        """The command line of the tests."""
        self._refused: tuple[str, ...] | None = None
        """The paths of which edits were refused, if the report about them may be in the next answer."""
        self._is_linted = False
        """Whether a linter reported something after the last edits."""

    def _start(self) -> None:
        """Forget what a new run of aider does not know."""
        self.is_on = True
        self._proposed, self._has_answer, self._has_edit = {}, False, False
        self._command = self._ran = self._tests = ""
        self._refused, self._is_linted = None, False

    # --- prompts and answers --------------------------------------------------------------------------

    def read_prompt(self, text: str, entry_id: EntryId) -> tuple[Note, ...]:
        """Take in a prompt that the user typed. Return what it says about what was before."""
        ended: tuple[Note, ...] = ()
        if self._ran and self._command == "/test":
            # aider says nothing about a test that passed.
            ended = (Ran(self._ran, "", has_failed=False, entry_id=self._asked_at),)
        self._proposed, self._has_answer, self._refused = {}, False, None
        self._command, words = command_in(text)
        self._ran, self._asked_at = "", entry_id
        if self._command in _RUNS:
            self._ran = words.split("\n", 1)[0].strip()[:MAX_LINE_CHARS]
            if self._command == "/test":
                self._ran = self._tests = self._ran or self._tests
        return ended

    def read_answer(self, text: str) -> tuple[str, tuple[Note, ...]]:
        """Take in an answer. Return the words of the model in it, and what a report before them says."""
        notes: tuple[Note, ...] = ()
        if self._refused is not None:
            if _REPORT.match(text):
                end = _end_of_report(text)
                notes = tuple(self._read_report(text[:end], self._refused))
                text = text[end:].lstrip()
            self._refused, self._proposed = None, {}
        self._ran, self._has_answer = "", True
        edits = proposed_edits(text)
        for edit in edits:
            self._proposed[edit.path] = edit
        while len(self._proposed) > MAX_PROPOSED:
            del self._proposed[next(iter(self._proposed))]
        return (without_names(text, edits) if self.is_on and edits else text), notes

    def _read_report(self, report: str, refused: Sequence[str]) -> Iterator[Note]:
        """Yield what the rest of a report says: the files that failed, and those of which all edits were
        applied."""
        failed = {found["path"]: line for kind, found, line in _matches(report) if kind == "failed"}
        yield from (Refused(path, (_plain(line),)) for path, line in failed.items() if path not in refused)
        if _OTHERS_APPLIED.search(report):
            for path in [path for path in self._proposed if not any(_is_same(path, one) for one in failed)]:
                yield Applied(self._proposed.pop(path))

    def read_lint_prompt(self, text: str) -> Note:
        """Take in a prompt that aider made from a linter's report."""
        self._proposed, self._has_answer, self._ran = {}, False, ""
        self._is_linted = True
        return linted_in(text.removeprefix(LINTED))

    # --- what aider showed ----------------------------------------------------------------------------

    def read_shown(self, message: Message, text: str) -> tuple[Note, ...]:
        """Return what a message that no person typed says about the work. O(its length)."""
        meta = message.meta
        if meta is not None and meta.kind == _STARTED_KIND:
            self._start()
            return ()
        is_aiders = meta is not None and meta.kind == SHOWN_KIND
        text = text[:MAX_SHOWN_CHARS]
        self.is_on = self.is_on or is_aiders
        if self._ran and self.is_on:
            command, self._ran = self._ran, ""
            return (self._result_of(command, text),)
        shown, linted, report = _before_lint(text)
        self._tests = _tests_in(shown) or self._tests
        notes = list(self._read_lines(shown, is_aiders=is_aiders))
        if linted and (is_aiders or self._has_answer):
            notes.append(linted_in(report))
            self._is_linted = True
        elif self._is_linted and any(isinstance(note, Applied) for note in notes):
            notes.append(LintPassed())
            self._is_linted = False
        self.is_on = self.is_on or bool(notes)
        return tuple(notes)

    def _result_of(self, command: str, text: str) -> Ran:
        lines = [line for line in text.split("\n") if len(line) <= MAX_LINE_CHARS]
        output = "\n".join(line for line in lines if _OWN.match(line) is None)
        is_added = any(_FAILED.match(line) for line in lines)
        has_failed = (True if is_added else None) if self._command == "/test" else None
        return Ran(command, output, has_failed)

    def _read_lines(self, text: str, *, is_aiders: bool) -> Iterator[Note]:
        applied: set[str] = set()
        new: set[str] = set()
        failed: dict[str, str] = {}
        malformed, commits = "", 0
        for kind, found, line in _matches(text):
            match kind:
                case "applied" if self._has_answer and found["path"] not in applied:
                    path = found["path"]
                    edit = self._take(path)
                    if edit is not None or is_aiders:
                        applied.add(path)
                        self._has_edit = True
                        yield Applied(edit or ProposedEdit(path), is_new=path in new)
                case "refused" if self._has_answer and (is_aiders or self._take(found["path"])):
                    yield Refused(found["path"], (line,))
                case "failed":
                    failed[found["path"]] = line
                case "malformed":
                    malformed = line
                case "commit" if commits < MAX_COMMITS and self._may_commit(is_aiders=is_aiders):
                    self._has_edit = False
                    commits += 1
                    yield Committed(found["hash"], _subject(found))
                case "undone" if self._command == "/undo":
                    yield Undone(found["hash"], _subject(found))
                case "asked":
                    new.add(found["path"])
                case "test" if self._tests and self._has_answer:
                    yield Ran(self._tests, "", has_failed=True)
                case _:
                    pass
        if malformed and self._has_answer:
            yield from self._refuse(_plain(malformed), failed, text)

    def _may_commit(self, *, is_aiders: bool) -> bool:
        """Return whether aider may commit. `is_aiders` means that the message is known to be aider's."""
        if self._has_edit or self._command == "/commit":
            return True
        return is_aiders and (self._has_answer or self._command in _COMMITS)

    def _refuse(self, why: str, failed: Mapping[str, str], text: str) -> Iterator[Note]:
        """Yield the edits that were refused: of the files that the lines name, otherwise of all files that
        the answer names."""
        if failed:
            yield from (Refused(path, (_plain(line),)) for path, line in failed.items())
            yield from self._read_report(text, tuple(failed))
            self._proposed = {}
            return
        self._refused = tuple(self._proposed)
        yield from (Refused(path, (why,)) for path in self._refused or ("",))

    def _take(self, path: str) -> ProposedEdit | None:
        """Return the edit of a file that an answer proposes, once. The answer may name the file from another
        folder."""
        named = path if path in self._proposed else next((p for p in self._proposed if _is_same(p, path)), "")
        edit = self._proposed.pop(named, None)
        return None if edit is None else ProposedEdit(path, edit.pairs, edit.whole)


def is_shown(message: Message) -> bool:
    """Return whether a message is one that no person typed and that aider may have shown."""
    meta = message.meta
    return (
        message.role == "user"
        and meta is not None
        and meta.synthetic
        and meta.type is None
        and meta.kind in (None, SHOWN_KIND, _STARTED_KIND)
        and meta.author in (None, "unknown", "tool")
    )


def is_lint_prompt(text: str) -> bool:
    """Return whether a text is the prompt that aider makes from a linter's report."""
    return text.startswith(LINTED)


def linted_in(report: str) -> Linted:
    """Return what a linter's report says. O(length)."""
    command, path = "", ""
    rest: list[str] = []
    marked: list[str] = []
    for line in report[:MAX_SHOWN_CHARS].split("\n"):
        bare = line.strip()
        if len(bare) > MAX_LINE_CHARS or not bare:
            continue
        if (found := _LINTER.match(bare)) is not None:
            command = command or found["command"]
        elif (found := _LINTED_FILE.match(bare)) is not None:
            path = found["path"]
        elif _PLACE.match(line) is not None:
            number, _, code = bare.partition("█")
            marked.append(f"{path}:{number}: {code.strip()}")
        elif not bare.startswith(("## ", "Attempt to fix ")) and "│" not in bare[:8] and "⋮" not in bare[:8]:
            rest.append(line)
    return Linted(command, "\n".join(rest), tuple(marked))


def command_in(text: str) -> tuple[str, str]:
    """Return the command of a prompt and the words after it. `!` is `/run`. Without a command, the first is
    empty."""
    found = _COMMAND.match(text)
    if found is None:
        return "", text
    return ("/run" if found["bang"] else found["name"]), text[found.end() :]


def is_no_request(text: str) -> bool:
    """Return whether a prompt asks nothing of the model: it manages files or aider, or runs a command."""
    command, words = command_in(text)
    return command in _MANAGES or command in _RUNS or (command in _TALKS and not words.strip())


def without_command(sentence: str) -> str:
    """Return the first sentence of a prompt without a command such as `/ask`."""
    command, words = command_in(sentence)
    return words if command in _TALKS else sentence


def edit_call(edit: ProposedEdit, entry_id: EntryId, *, is_new: bool = False) -> Call:
    """Return an edit as a call of a tool that changes files."""
    kind: ToolKind = "write" if is_new else "edit"
    line = f"{kind.title()} {edit.path}"
    return Call(entry_id=entry_id, kind=kind, arguments=edit.arguments, line=line, key=f"edit {edit.path}")


def lint_call(command: str, entry_id: EntryId) -> Call:
    """Return the run of a linter as a call. Without a command, it is aider's own linter."""
    if command:
        return shell_call(command, {"command": command}, entry_id, name="lint")
    return Call(entry_id=entry_id, kind="shell", arguments={}, line="lint", key="lint", check="lint")


def _matches(text: str) -> Iterator[tuple[LineKind, Mapping[str, str], str]]:
    """Yield the lines of aider in a text, with their kind and parts."""
    before = ""
    for raw in text.split("\n"):
        line = raw.strip()
        if not line or len(line) > MAX_LINE_CHARS:
            continue
        for kind, pattern in _LINES:
            found = pattern.match(line)
            if found is None:
                continue
            parts = {"path": before} if kind == "asked" else found.groupdict("")
            path = parts.get("path", "")
            if len(path) <= MAX_PATH_CHARS and _CONTROL.search(path) is None:
                yield kind, parts, line
            break
        before = line


def _subject(found: Mapping[str, str]) -> str:
    return shorten(" ".join(_CONTROL.sub(" ", found["subject"]).split()), MAX_SUBJECT_CHARS)


def _before_lint(text: str) -> tuple[str, bool, str]:
    """Return what is before a linter's report, whether there is one, and the report."""
    at = 0 if text.startswith(LINTED) else text.find(f"\n{LINTED}") + 1
    if not text.startswith(LINTED, at):
        return text, False, ""
    return text[:at], True, text[at + len(LINTED) :]


def _end_of_report(text: str) -> int:
    """Return where the report at the beginning of an answer ends; 0 if it has no end."""
    end = 0
    for last in _REPORT_ENDS:
        at = text.find(last, end, end + _REPORT_END_CHARS if end else len(text))
        end = at + len(last) if at >= 0 else end
    return end


def _tests_in(text: str) -> str:
    """Return the command line of the tests with which aider was started."""
    first = text.split("\n", 1)[0][:MAX_LINE_CHARS]
    program, option, rest = first.partition(_TEST_OPTION)
    is_start = bool(option) and "aider" in program.split(" ", 1)[0]
    return rest.partition(" --")[0].strip() if is_start else ""


def _plain(line: str) -> str:
    """Return a line without the signs of a heading and the name of the error."""
    bare = line.lstrip("# ")
    return (bare.partition(": ")[2] if bare.startswith("SearchReplace") else bare).rstrip("!.")


def _is_same(path: str, other: str) -> bool:
    return path == other or path.endswith(f"/{other}") or other.endswith(f"/{path}")
