"""Find the title of an agent's session file from the head of the file."""

from __future__ import annotations

from compactd.cli.agent_files.places import AgentFile

HEAD_BYTES = 131_072
"""How much of a file is read for its title. A longer first line is not searched."""

_UNTITLED = "New session - "
"""The beginning of OpenCode's title of a session that has none yet (anomalyco/opencode,
packages/opencode/src/session/index.ts, read 2026-11).
"""


def title_of_file(file: AgentFile) -> str | None:
    """Return the title that the agent gave to a session, otherwise the first request of the user; None if the
    head of the file contains neither. O(`HEAD_BYTES`).
    """
    from compactd.core.history.titles import title_of
    from compactd.formats.files.detect import read
    from compactd.protocol.errors import CompactdError

    try:
        with file.path.open("rb") as stream:
            head = stream.read(HEAD_BYTES)
    except OSError:
        return None
    if file.agent == "opencode":
        return _opencode_title(head)
    try:
        session = read(head)
    except CompactdError:
        return None
    titles = (title_of(message) for message, _, *_ in session.messages)
    return session.title or next((title for title in titles if title is not None), None)


def _opencode_title(head: bytes) -> str | None:
    """Return the title in OpenCode's file about a session. Its messages are in other files."""
    import msgspec

    try:
        title = msgspec.json.decode(head, type=dict[str, object]).get("title")
    except msgspec.DecodeError:
        return None
    return title if isinstance(title, str) and not title.startswith(_UNTITLED) else None
