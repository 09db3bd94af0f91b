"""Parts of recorded sessions for the laws, without the ids that their programs gave."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from msgspec.structs import replace

from compactd.formats.files.detect import read
from compactd.protocol.messages import Message, ToolCall, ToolResult
from tests.support.recorded import folder, sessions

FORMATS = ("claude-code", "gemini-cli", "pi", "openhands-log", "cline")
FILES = {row["name"]: row["file"] for row in sessions(*FORMATS)}
"""The files, by the session's name; empty if the data is not on this machine."""


@cache
def messages_of(name: str) -> tuple[Message, ...]:
    """All messages of a session."""
    within = folder()
    assert within is not None
    return tuple(replace(message, id=None) for message, _ in read(Path(within) / FILES[name]).messages)


def first_messages(name: str, most: int) -> tuple[Message, ...]:
    """The first messages of a session, up to the end of a batch."""
    said = messages_of(name)
    end = most
    while end < len(said) and any(isinstance(block, ToolResult) for block in said[end].content):
        end += 1
    return said[:end]


def is_between_turns(said: tuple[Message, ...], at: int) -> bool:
    """Return whether a user may speak before message `at`, because no call waits for its result."""
    before = said[at - 1] if at else None
    return said[at].role == "assistant" and not (
        before is not None and any(isinstance(block, ToolCall) for block in before.content)
    )
