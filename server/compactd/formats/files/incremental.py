"""Read session files that another program is still writing, line by line.

Files of Claude Code, Codex CLI and pi only grow, by one JSON object per line. So only the new lines must be
read. Files of other programs are read as a whole: Gemini CLI replaces what it wrote before, and the other
programs write one document.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Protocol

from msgspec import Raw

from compactd.formats.agents import claude_code, codex, pi
from compactd.formats.files.json_lines import records
from compactd.formats.files.session_file import SessionBuilder, text_field
from compactd.protocol.errors import CompactdError
from compactd.protocol.messages import Message


class BranchChanged(Exception):
    """A new line does not continue the entry before it, so the whole file must be read again."""


class IncrementalReader(Protocol):
    """A reader of a session file that another program is still writing."""

    @property
    def session(self) -> SessionBuilder:
        """Everything that was read so far."""
        ...

    @property
    def begun(self) -> Message | None:
        """The model's newest answer, if it may still continue. It is not part of `session` yet. None if there
        is no such answer.
        """
        ...

    def feed(self, data: bytes) -> None:
        """Read the next complete lines of the file. O(bytes of `data`). Raise `BranchChanged` if the whole
        file must be read again.
        """
        ...


def incremental_reader(format: str) -> IncrementalReader | None:
    """Return a reader for a file of this format; None if its lines cannot be read one after the other."""
    match format:
        case "claude-code":
            return _ClaudeCode()
        case "codex":
            return _Codex()
        case "pi":
            return _Pi()
        case _:
            return None


class _ClaudeCode:
    def __init__(self) -> None:
        self._reading = claude_code.ClaudeCodeReader()

    @property
    def session(self) -> SessionBuilder:
        return self._reading.session

    @property
    def begun(self) -> Message | None:
        return self._reading.begun

    def feed(self, data: bytes) -> None:
        read_lines(self._reading, data)


def read_lines(reading: claude_code.ClaudeCodeReader, data: bytes) -> None:
    """Read complete lines of a Claude Code file. Skip what cannot be read. O(bytes)."""
    for _, record in records(data, _ignore):
        with suppress(CompactdError):
            reading.record(record)


class _Codex:
    begun = None

    def __init__(self) -> None:
        self._reading = codex.CodexReader()

    @property
    def session(self) -> SessionBuilder:
        return self._reading.session

    def feed(self, data: bytes) -> None:
        for _, record in records(data, _ignore):
            with suppress(CompactdError):
                self._reading.record(record)
        self._reading.close()


class _Pi:
    begun = None

    def __init__(self) -> None:
        self._reading = pi.PiReader()
        self._last: str | None = None
        self._number = 0

    @property
    def session(self) -> SessionBuilder:
        return self._reading.session

    def feed(self, data: bytes) -> None:
        for number, record in records(data, _ignore):
            parent = _parent(record)
            if parent is not None and self._last is not None and parent != self._last:
                raise BranchChanged
            with suppress(CompactdError):
                self._reading.record(record, self._number + number)
            if "parentId" in record:
                self._last = text_field(record, "id")
        self._number += data.count(b"\n")


def _parent(record: dict[str, Raw]) -> str | None:
    return text_field(record, "parentId") if "parentId" in record else None


def _ignore(text: str) -> None:
    """Ignore a warning about a line. It is reported when the whole file is read."""
