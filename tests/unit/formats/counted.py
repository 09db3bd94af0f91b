"""Counts the messages that are read from session files: all, typed by a person, written by a program."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from compactd.core.authors.authors import is_typed
from compactd.formats.files.detect import read
from compactd.protocol.messages import ToolResult
from tests.support import recorded
from tests.unit.formats.outlined import FIXTURES


def files() -> Iterator[tuple[str, Path]]:
    """(name, path) of each recording, named by its hash, if they are here, and of each made file."""
    folder = recorded.folder()
    if folder is not None:
        for row in recorded.sessions(*FORMATS):
            path = folder / row["file"]
            yield hashlib.sha256(path.read_bytes()).hexdigest()[:12], path
        for path in sorted((folder.parent / "claude-code").glob("*/*/transcript.jsonl")):
            yield "/".join(path.parts[-3:-1]), path
    for path in sorted(FIXTURES.iterdir()):
        if path.name != "README.md":
            yield path.name, path


FORMATS = (
    *("claude-code", "gemini-cli", "pi", "openhands-log", "cline", "swe-agent", "mini-swe-agent"),
    "aider-md",
)


def counts(path: Path) -> tuple[str, int, int, int]:
    """(format, messages, those that a person typed, those of programs and others in the user's role)."""
    file = read(path)
    said = [m for m, _ in file.messages if m.role == "user"]
    typed = sum(is_typed(m) and not any(isinstance(b, ToolResult) for b in m.content) for m in said)
    return file.format, len(file.messages), typed, len(said) - typed
