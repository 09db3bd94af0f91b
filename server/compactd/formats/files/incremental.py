"""Session files that another program is still writing: read line by line as the lines come.

Claude Code's, Codex CLI's and pi's files only grow, one JSON object a line: the cost of a new line is that
line's. Gemini CLI's replaces what it wrote before, and the others are one document: they are read anew.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Protocol

from msgspec import Raw

from compactd.formats.agents import claude_code, codex, pi
from compactd.formats.files.lines import records
from compactd.formats.files.session_file import Collected, text_field
from compactd.protocol.errors import CompactdError
from compactd.protocol.messages import Message


class Branched(Exception):
    """The newest entry does not follow the one before it: what is in force has to be read anew."""


class Growing(Protocol):
    """A session that is read as it grows."""

    @property
    def session(self) -> Collected:
        """All that was read so far."""
        ...

    @property
    def begun(self) -> Message | None:
        """An answer of which more may come; no part of `session` yet."""
        ...

    def feed(self, data: bytes) -> None:
        """Takes in the next lines, all of them whole. O(bytes of `data`). Raises `Branched`."""
        ...


def growing(format: str) -> Growing | None:
    """Reads a file of this format from its beginning; none where its lines cannot be read one by one."""
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
        self._reading = claude_code.Reading()

    @property
    def session(self) -> Collected:
        return self._reading.session

    @property
    def begun(self) -> Message | None:
        return self._reading.begun

    def feed(self, data: bytes) -> None:
        read_lines(self._reading, data)


def read_lines(reading: claude_code.Reading, data: bytes) -> None:
    """Takes in whole lines of Claude Code's; what cannot be read is left out. O(bytes)."""
    for _, record in records(data, _unsaid):
        with suppress(CompactdError):
            reading.record(record)


class _Codex:
    begun = None

    def __init__(self) -> None:
        self._reading = codex.Reading()

    @property
    def session(self) -> Collected:
        return self._reading.session

    def feed(self, data: bytes) -> None:
        for _, record in records(data, _unsaid):
            with suppress(CompactdError):
                self._reading.record(record)
        self._reading.close()


class _Pi:
    begun = None

    def __init__(self) -> None:
        self._reading = pi.Reading()
        self._last: str | None = None
        self._number = 0

    @property
    def session(self) -> Collected:
        return self._reading.session

    def feed(self, data: bytes) -> None:
        for number, record in records(data, _unsaid):
            parent = _parent(record)
            if parent is not None and self._last is not None and parent != self._last:
                raise Branched
            with suppress(CompactdError):
                self._reading.record(record, self._number + number)
            if "parentId" in record:
                self._last = text_field(record, "id")
        self._number += data.count(b"\n")


def _parent(record: dict[str, Raw]) -> str | None:
    return text_field(record, "parentId") if "parentId" in record else None


def _unsaid(text: str) -> None:
    """What is wrong with a line is told by those who read the whole file."""
