"""Read session files that another program is still writing, line by line.

Files of Claude Code, Codex CLI and pi only grow, by one JSON object per line. So only the new lines must be
read. Files of other programs are read as a whole: Gemini CLI replaces what it wrote before, and the other
programs write one document.
"""

from __future__ import annotations

from typing import Protocol

from compactd.formats.agents.claude_code import ClaudeCodeReader
from compactd.formats.agents.codex import CodexReader
from compactd.formats.agents.pi import PiReader
from compactd.formats.files.session_file import SessionBuilder
from compactd.protocol.messages import Message


class IncrementalReader(Protocol):
    """A reader of a session file that another program is still writing."""

    @property
    def session(self) -> SessionBuilder:
        """Everything that was read so far. In its warnings, the lines of each piece are counted from 1."""
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
            return ClaudeCodeReader()
        case "codex":
            return CodexReader()
        case "pi":
            return PiReader()
        case _:
            return None
