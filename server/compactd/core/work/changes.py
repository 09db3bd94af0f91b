"""Follow which files the agent changed, and which of the changes were committed or taken back."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping, Sequence
from copy import copy
from fnmatch import fnmatchcase
from typing import Final

from msgspec import Struct

from compactd.core.history.entries import EntryId
from compactd.core.text.lazy_patterns import LazyPattern
from compactd.core.work.calls import Call
from compactd.core.work.edits import FileEdit, edits_in
from compactd.core.work.file_operations import PATCH_ARGUMENTS, patched_paths, paths_in
from compactd.core.work.gists import MAX_GISTS, EditGist, gist_of, shown_of, still_true
from compactd.core.work.shell import Command
from compactd.core.work.tool_kinds import command_line
from compactd.protocol.work import ChangeKind, FileChange

_COMMITTED: Final = LazyPattern(
    r"^\[(?P<branch>[^\s\]]{0,200})[^\]\n]{0,200}?\b(?P<hash>[0-9a-f]{7,40})\] ", re.MULTILINE
)
"""The line with which `git commit` reports a new commit."""
_PATCHED: Final = LazyPattern(
    r"^\*\*\* (Add File|Update File|Delete File|Move to): *(\S.*?) *\r?$", re.MULTILINE
)
_PATCH_KINDS: Final[dict[str, ChangeKind]] = {
    "Add File": "created",
    "Update File": "edited",
    "Delete File": "deleted",
    "Move to": "renamed",
}
_COMMITS_ALL: Final = LazyPattern(r"--all|-[^\W\d_mFCctuS]*a\w*")
"""An option of `git commit` with which it includes all changes. No option that takes a value is before the
`a`."""
_MAKES_BRANCH: Final = frozenset(("-b", "-B", "-c", "-C", "--create"))
_ON_BRANCH: Final = LazyPattern(r"^On branch (\S{1,200})$", re.MULTILINE)
_PUSHED: Final = LazyPattern(
    r"^ [ *+] (?:\[new branch\]|[0-9a-f]{7,40}\.{2,3}[0-9a-f]{7,40}) +(?!HEAD )(?P<branch>\S{1,200}) +-> \S",
    re.MULTILINE,
)
"""The line with which `git push` reports a pushed branch."""
_EVERYTHING: Final = frozenset((".", "./", ":/"))
_GIT_OPTIONS: Final = frozenset(("-C", "-c", "--git-dir", "--work-tree"))
"""Options of git before the subcommand that take a value."""


MAX_MESSAGE_CHARS: Final = 8_000
MAX_UNDOABLE: Final = 50
"""Only so many of the newest commits can be taken back."""
_DOCUMENT: Final = LazyPattern(r"<<-?[ \t]?(['\"]?)(?P<end>\w{1,40})\1")
"""Matches the beginning of a here-document in a line."""
_MESSAGE_OPTION: Final = LazyPattern(
    r"(?<!\S)(?:-[a-z]{0,3}m|--message)[ =]\s{0,4}(?P<quote>['\"])(?P<text>.*?)(?<!\\)(?P=quote)", re.DOTALL
)
"""Matches an option with a message, or with a paragraph of it."""
_QUIET: Final = frozenset(("-q", "--quiet"))
_MESSAGE_WORD: Final = LazyPattern(r"-[a-z]{0,3}m|--message")
_TRAILER: Final = LazyPattern(r"[A-Z][\w-]{2,40}-[Bb]y: |\W{0,4}Generated with |[Cc]o-authored-by")


class _File(Struct):
    kind: ChangeKind
    edits: int
    entry_id: EntryId
    changed_at: int
    """The number of the message with the last change."""
    committed_at: int = -1
    """The number of the message with the last commit that included the file; -1 for none."""
    gists: tuple[EditGist, ...] = ()
    """What the newest edits since the last commit did, oldest first."""


class Commit(Struct, frozen=True):
    """A commit, as `git commit` reported it."""

    hash: str
    """Empty if git was told to be quiet."""
    message: tuple[str, ...]
    """The lines of the message that the agent gave, without trailers; empty if the call contains none. Git
    reports the first line too, but anything can print that."""

    @property
    def subject(self) -> str:
        """The first line of the message; empty if the call contains none."""
        return self.message[0] if self.message else ""


class _Undoable(Struct, frozen=True):
    """A commit that can be taken back."""

    commit: Commit
    entry_id: EntryId
    before: Mapping[str, _File | None]
    """The files that it included, as they were at their commit before; None for those without one."""


class Changes:
    """The changed files of a conversation, in the order of their last change. Messages are numbered."""

    def __init__(self) -> None:
        self.branch = ""
        """The branch that git named last; empty if it named none."""
        self.last_commit: Commit | None = None
        """The last commit that git reported; None if it reported none."""
        self._files: dict[str, _File] = {}
        self._added: dict[str, int] = {}
        """The files that `git` added since the last commit, and the number of the message with it."""
        self._at_commit: dict[str, _File] = {}
        """The files as they were at their last commit by `commit_all`."""
        self._undoable: deque[_Undoable] = deque(maxlen=MAX_UNDOABLE)
        """The newest of these commits, oldest first."""

    @property
    def last_at(self) -> int:
        """The number of the message with the last change; -1 for none."""
        return max((file.changed_at for file in self._files.values()), default=-1)

    def result(self, passed_at: int) -> tuple[FileChange, ...]:
        """Return the changes. `passed_at` is the number of the message in which a check passed last."""
        return tuple(
            FileChange(
                path=path,
                kind=file.kind,
                edits=file.edits,
                last_entry_id=file.entry_id,
                committed=file.committed_at >= file.changed_at,
                checked=passed_at > file.changed_at,
            )
            for path, file in sorted(self._files.items(), key=lambda one: one[1].changed_at)
        )

    @property
    def gists(self) -> dict[str, tuple[str, ...]]:
        """What the edits of each file did since its last commit, by its path: at most `MAX_GISTS` lines in
        backticks, oldest first. Each edit has one line; if there is room, the last one has two."""
        return {path: lines for path, file in self._files.items() if (lines := shown_of(file.gists))}

    def after(self, calls: Sequence[Call], at: int) -> Changes:
        """Return the changes as they are if these edits, of which the results have not come yet, succeed.
        `at` is later than the last message. O(files + calls)."""
        changes = copy(self)
        changes._files = {path: copy(file) for path, file in self._files.items()}
        for call in calls:
            edits = [(edit, gist_of(edit)) for edit in edits_in(call.arguments)]
            changes.read_edit(call, call.entry_id, at, edits)
        return changes

    def read_edit(
        self, call: Call, entry_id: EntryId, at: int, edits: Sequence[tuple[FileEdit, EditGist]] = ()
    ) -> None:
        """Take in a successful call of a tool that writes files. `at` is the number of the message with the
        result, `edits` say what it did to each file."""
        self._read_edit(call, entry_id, at)
        for edit, gist in edits:
            file = self._files.get(edit.path)
            if file is None:
                continue
            file.gists = tuple(still_true(file.gists, edit))
            if gist.text and not (gist.is_dull and file.gists):
                before = [one for one in file.gists if not one.is_dull]
                file.gists = (*before, gist)[-MAX_GISTS:]

    def _read_edit(self, call: Call, entry_id: EntryId, at: int) -> None:
        patch = next((str(call.arguments[name]) for name in PATCH_ARGUMENTS if name in call.arguments), "")
        patched = frozenset(patched_paths(call.arguments))
        if patched:
            before = ""
            for found in _PATCHED.finditer(patch):
                verb, path = found[1], found[2]
                if path not in patched:
                    continue  # too long for a path
                if verb == "Move to":
                    self._rename(before, path, entry_id, at)
                else:
                    self._change(path, _PATCH_KINDS[verb], entry_id, at)
                before = path
            return
        for path in paths_in(call.arguments):
            self._change(path, "created" if call.kind == "write" else "edited", entry_id, at)

    def read_commands(self, call: Call, output: str, entry_id: EntryId, at: int) -> tuple[Commit, ...]:
        """Take in the commands of a shell call that did not fail. Return the commits that they made."""
        reported = _COMMITTED.finditer(output)
        commits: list[Commit] = []
        for command in call.commands:
            options = git_words(command)
            words = [word for word in options if not word.startswith("-")]
            match command.program, words:
                case "git", ["commit", *_]:
                    self._commit(at, is_all=any(_COMMITS_ALL.fullmatch(word) for word in options))
                    found = next(reported, None)
                    message = message_of(call, command)
                    if not message and "--amend" in options and self.last_commit is not None:
                        message = self.last_commit.message
                    if found is not None:
                        commits.append(Commit(found["hash"], message))
                        self.branch = found["branch"]
                    elif not _QUIET.isdisjoint(options) and message:
                        commits.append(Commit("", message))
                    self.last_commit = commits[-1] if commits else self.last_commit
                case "git", ["checkout" | "switch", name] if not _MAKES_BRANCH.isdisjoint(options):
                    self.branch = name
                case "git", ["status"] if (found := _ON_BRANCH.search(output)) is not None:
                    self.branch = found[1]
                case "git", ["push", *_] if not self.branch and (found := _PUSHED.search(output)) is not None:
                    self.branch = found["branch"]
                case "git", ["add", *paths]:
                    for path in paths or (".",):
                        self._added.update(dict.fromkeys(self._named(path), at))
                case ("rm", paths) | ("git", ["rm", *paths]):
                    # A file that nobody mentioned before was not part of the work.
                    named = (self._named(word) for word in paths if word != "*" and word not in _EVERYTHING)
                    for path in dict.fromkeys(known for some in named for known in some):
                        self._change(path, "deleted", entry_id, at)
                        self._stage(command, path, at)
                case ("mv", [old, new]) | ("git", ["mv", old, new]):
                    self._rename(old, new, entry_id, at)
                    self._stage(command, new, at)
                case "git", ["checkout" | "restore", *paths] if not _is_unstaging(options):
                    self._take_back(paths)
                case "git", ["reset", *_] if "--hard" in options:
                    self._take_back((".",))
                case _:
                    pass
        return tuple(commits)

    def commit_all(self, commit: Commit, entry_id: EntryId, at: int) -> None:
        """Take in a commit of all changes that did not come from a shell command. O(files)."""
        some = [path for path, file in self._files.items() if file.committed_at < file.changed_at]
        self._commit(at, is_all=True)
        self._undoable.append(_Undoable(commit, entry_id, {path: self._at_commit.get(path) for path in some}))
        self._at_commit.update((path, copy(self._files[path])) for path in some)
        self.last_commit = commit

    def undo_commit(self, name: str) -> tuple[Commit, EntryId | None] | None:
        """Take back the newest commit by `commit_all` and its changes, if `name` is its hash. Return it, and
        the message with the commit before it; None if it is another commit. O(its files)."""
        newest = self._undoable[-1] if self._undoable else None
        if newest is None or not _is_same_hash(newest.commit.hash, name):
            return None
        self._undoable.pop()
        for path, before in newest.before.items():
            if before is None:
                self._files.pop(path, None)
                self._at_commit.pop(path, None)
            else:
                self._files[path], self._at_commit[path] = copy(before), before
        left = self._undoable[-1] if self._undoable else None
        self.last_commit = None if left is None else left.commit
        return newest.commit, None if left is None else left.entry_id

    def _change(self, path: str, kind: ChangeKind, entry_id: EntryId, at: int) -> None:
        known = self._files.get(path)
        if known is None:
            self._files[path] = _File(kind, 1, entry_id, at)
            return
        if "deleted" in (kind, known.kind):
            known.kind = kind
        if known.committed_at >= known.changed_at:
            known.gists = ()
        known.edits, known.entry_id, known.changed_at = known.edits + 1, entry_id, at

    def _rename(self, old: str, new: str, entry_id: EntryId, at: int) -> None:
        same = (path for path in self._named(old) if _is_same_file(path, old))
        before = self._files.pop(next(same, ""), None)
        edits = 1 if before is None else before.edits
        # A patch that edits a file and moves it is one change.
        if before is not None and (before.entry_id, before.changed_at) != (entry_id, at):
            edits += 1
        gists = () if before is None else before.gists
        self._files[new] = _File("renamed", edits, entry_id, at, gists=gists)

    def _stage(self, command: Command, path: str, at: int) -> None:
        if command.program == "git":
            self._added[path] = at

    def _commit(self, at: int, *, is_all: bool) -> None:
        for path, file in self._files.items():
            # What changed after `git add` is not in the commit.
            if is_all or self._added.get(path, -1) >= file.changed_at:
                file.committed_at = at
        self._added.clear()

    def _named(self, word: str) -> list[str]:
        """Return the changed files that an argument of a command may name: the file itself, otherwise files
        whose path ends with it or that it is a folder of."""
        if word in _EVERYTHING:
            return list(self._files)
        if word in self._files:
            return [word]
        if "*" in word:
            return [path for path in self._files if fnmatchcase(f"/{path}", f"*/{word.removeprefix('./')}")]
        folder = f"/{word.removeprefix('./').strip('/')}/"
        return [
            path
            for path in self._files
            if _is_same_file(path, word) or (folder != "//" and folder in f"/{path}")
        ]

    def _take_back(self, words: Sequence[str]) -> None:
        for path in [path for word in words for path in self._named(word)]:
            file = self._files.get(path)
            if file is None:
                continue
            if file.committed_at < 0:
                del self._files[path]
            else:
                file.changed_at = min(file.changed_at, file.committed_at)


def message_of(call: Call, command: Command) -> tuple[str, ...]:
    """Return the lines of the message with which `command`, a `git commit` of this call, commits. Trailers
    and blank lines are left out. O(length)."""
    text = command_line(call.arguments)[:MAX_MESSAGE_CHARS]
    lines = _here_document(text)
    if not lines:
        lines = [line for one in _MESSAGE_OPTION.finditer(text) for line in one["text"].split("\n")]
    if not lines:
        options = [at for at, word in enumerate(command.words[:-1]) if _MESSAGE_WORD.fullmatch(word)]
        lines = [command.words[at + 1] for at in options]
    said: list[str] = []
    for line in lines:
        bare = line.strip()
        if not bare or _TRAILER.match(bare):
            continue
        if said and line[:1] in " \t" and not bare.startswith(("-", "*")):
            said[-1] += f" {bare}"  # The paragraph or the item goes on.
        else:
            said.append(bare)
    return tuple(said)


def _here_document(text: str) -> list[str]:
    """Return the lines of the here-document that a `git commit` in `text` reads; empty if there is none."""
    lines = text.split("\n")
    for at, line in enumerate(lines):
        begins = line.find("commit", line.find("git") + 1) if "git" in line else -1
        found = _DOCUMENT.search(line, begins) if begins >= 0 else None
        if found is not None:
            size = next((n for n, one in enumerate(lines[at + 1 :]) if one.strip() == found["end"]), None)
            return [] if size is None else lines[at + 1 : at + 1 + size]
    return []


def git_words(command: Command) -> Sequence[str]:
    """Return the words of a git command from its subcommand on; all words of another command."""
    words = command.words
    at = 0
    while command.program == "git" and at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in _GIT_OPTIONS else 1
    return words[at:]


def is_taking_back(command: Command) -> bool:
    """Return whether a command takes changes back: `git revert`, `git restore`, `git checkout -- FILE` or
    `git reset --hard`."""
    words = git_words(command)
    if command.program != "git" or not words or _is_unstaging(words):
        return False
    return (
        words[0] in ("revert", "restore")
        or (words[0] == "reset" and "--hard" in words)
        or (words[0] == "checkout" and "--" in words)
    )


def _is_same_hash(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


def _is_unstaging(words: Sequence[str]) -> bool:
    return words[:1] == ("restore",) and ("--staged" in words or "-S" in words)


def _is_same_file(path: str, other: str) -> bool:
    """Return whether two spellings may name the same file: equal, or one ends with the other."""
    one, two = f"/{path.removeprefix('./').lstrip('/')}", f"/{other.removeprefix('./').lstrip('/')}"
    return one.endswith(two) or two.endswith(one)
