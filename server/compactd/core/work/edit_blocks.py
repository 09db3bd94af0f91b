"""Find the edits that an answer proposes in its text: SEARCH/REPLACE blocks, unified diffs and whole files.

Agents without tool calls write their edits as text. An edit in an answer is only proposed: the program around
the model may refuse it. `aider` says which of the edits were applied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from compactd.core.text.lazy_patterns import LazyPattern
from compactd.core.work.file_operations import MAX_PATH_CHARS, Json

MAX_ANSWER_CHARS: Final = 400_000
"""Only this many characters of an answer are read."""
MAX_EDITS: Final = 200
"""Only so many edits of an answer are kept."""

_SEARCH: Final = ("<<<<<<< SEARCH", "<<<<<<< ORIGINAL")
_DIVIDER: Final = "======="
_REPLACE: Final = (">>>>>>> REPLACE", ">>>>>>> UPDATED")
"""The lines around the old and the new text (aider; the second ones in 2023)."""
_FENCE: Final = LazyPattern(r"(`{3,}|~{3,})([^`]*)\Z")
_NAME_LINES: Final = 3
"""The name of a file is at most so many lines before its block, with only fences between."""
_NAME: Final = LazyPattern(r"[^\x00-\x1f<>|\"*?]{1,1024}\Z")
_SENTENCE: Final = LazyPattern(r"\S+\s+\S+\s+\S+\s+\S")
"""Matches a line that is a sentence and no name."""
_DIFF_FILE: Final = LazyPattern(r"(?:---|\+\+\+) (?:[ab]/)?([^\t\n]{1,1024})")
_NO_FILE: Final = "/dev/null"


class ProposedEdit(Struct, frozen=True):
    """What an answer proposes to do to one file."""

    path: str
    pairs: tuple[tuple[str, str], ...] = ()
    """The old and the new text of each change, in order."""
    whole: str | None = None
    """The whole new file; None if only parts change."""

    @property
    def arguments(self) -> Mapping[str, Json]:
        """The edit in the form of a tool call's arguments."""
        if self.pairs:
            edits: list[Json] = [{"old_text": old, "new_text": new} for old, new in self.pairs]
            return {"path": self.path, "edits": edits}
        return {"path": self.path} if self.whole is None else {"path": self.path, "content": self.whole}


def proposed_edits(text: str) -> tuple[ProposedEdit, ...]:
    """Return the edits that an answer proposes: one for each file, in order. O(length)."""
    if "<<<<<<< " not in text and "```" not in text and "~~~" not in text:
        return ()
    reading = _Reading(text[:MAX_ANSWER_CHARS].split("\n"))
    for at in range(len(reading.lines)):
        reading.read_line(at)
    return reading.result()


def without_names(text: str, edits: Sequence[ProposedEdit]) -> str:
    """Return an answer without the lines that only name the files of `edits` before their code. O(length)."""
    names = {edit.path for edit in edits}
    lines = text.split("\n")
    return "\n".join(
        line
        for line, after in zip(lines, (*lines[1:], ""), strict=True)
        if _FENCE.match(after.strip()) is None or _name_in(line.strip()) not in names
    )


class _Reading:
    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self._pairs: dict[str, list[tuple[str, str]]] = {}
        self._whole: dict[str, str] = {}
        self._count = 0
        self._path = ""
        """The file of the last block."""
        self._old: int | None = None
        """The line with which the open block began; None outside blocks."""
        self._new: int | None = None
        """The line that divides it."""
        self._fence = ""
        """The fence of the open code; empty outside code."""
        self._since = 0
        """The line with this fence."""
        self._has_block = False
        """Whether the open code contains blocks."""

    def result(self) -> tuple[ProposedEdit, ...]:
        """Return what was read, by file."""
        paths = dict.fromkeys((*self._pairs, *self._whole))
        return tuple(
            ProposedEdit(path, tuple(self._pairs.get(path, ())), self._whole.get(path)) for path in paths
        )

    def read_line(self, at: int) -> None:
        """Read the line at index `at`."""
        line = self.lines[at].strip()
        if self._old is not None:
            self._read_block(at, line, self._old)
        elif line in _SEARCH:
            self._path = self._name_before(at) or self._path
            self._old, self._new, self._has_block = at, None, True
        elif self._fence:
            if line.startswith(self._fence) and not line.strip(self._fence[0]):
                self._end_code(at)
        elif (found := _FENCE.match(line)) is not None:
            self._fence, self._since, self._has_block = found[1], at, False

    def _read_block(self, at: int, line: str, old: int) -> None:
        if self._new is None:
            self._new = at if line == _DIVIDER else None
        elif line in _REPLACE:
            self._add(self._path, self._text(old, self._new), self._text(self._new, at))
            self._old = None

    def _end_code(self, at: int) -> None:
        """Read the code that ends at line `at`: a unified diff, or a whole file after its name."""
        first = self.lines[self._since + 1] if self._since + 1 < at else ""
        if not self._has_block and first.startswith("--- "):
            self._read_diff(self.lines[self._since + 1 : at])
        elif not self._has_block and (path := self._name_before(self._since)):
            self._count += 1
            if self._count <= MAX_EDITS:
                self._whole[path] = self._text(self._since, at)
        self._fence = ""

    def _read_diff(self, lines: Sequence[str]) -> None:
        path, old, new = "", list[str](), list[str]()
        for n, line in enumerate((*lines, "@@")):
            is_name = line.startswith("--- ") and lines[n + 1 : n + 2] and lines[n + 1].startswith("+++ ")
            if is_name or line.startswith("@@"):
                if path and (old or new):
                    self._add(path, "\n".join(old), "\n".join(new))
                old, new = [], []
            if is_name:
                path = ""
            elif line.startswith("+++ ") and not path:
                path = _name_in_diff(line) or _name_in_diff(lines[n - 1] if n else "")
            elif not line.startswith("@@"):
                old += () if line.startswith("+") else (line[1:],)
                new += () if line.startswith("-") else (line[1:],)

    def _add(self, path: str, old: str, new: str) -> None:
        self._count += 1
        if path and self._count <= MAX_EDITS:
            self._pairs.setdefault(path, []).append((old, new))

    def _text(self, start: int, end: int) -> str:
        """Return the lines between two lines."""
        return "\n".join(self.lines[start + 1 : end])

    def _name_before(self, at: int) -> str:
        """Return the name of the file in the lines before line `at`; empty if there is none."""
        for line in reversed(self.lines[max(at - _NAME_LINES, 0) : at]):
            bare = line.strip()
            if _FENCE.match(bare) is None:
                return _name_in(bare)
        return ""


def _name_in(line: str) -> str:
    """Return the name of a file that is alone on a line; empty if there is none."""
    bare = line[: 2 * MAX_PATH_CHARS].rstrip(":").lstrip("#").strip().strip("`").strip("*").strip("`")
    bare = bare.replace("\\_", "_").rstrip(":").strip()
    if not ("." in bare or "/" in bare) and (" " in bare or line.endswith(":")):
        return ""
    return bare if _NAME.match(bare) and _SENTENCE.match(bare) is None else ""


def _name_in_diff(line: str) -> str:
    found = _DIFF_FILE.match(line)
    path = "" if found is None else found[1].strip()
    return "" if path == _NO_FILE else path
