"""What an agent's hook tells on stdin, whichever agent and version: one `Event`.

Shapes as documented by Claude Code (hooks reference, 2.1.240, 2026-08), Codex (0.169.0, `hooks.json`, seen
2026-11) and Gemini CLI (0.61.0, hooks reference, seen 2026-11). What is missing or of another kind is empty,
never an error: each of the three changes its shapes with its releases.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec
from msgspec import Raw, Struct

Agent = Literal["claude-code", "codex", "gemini-cli"]
AGENTS: Final[tuple[Agent, ...]] = ("claude-code", "codex", "gemini-cli")

Kind = Literal["start", "prompt", "before", "after", "end", "other"]
"""`before` and `after` a compaction; `end` of a turn or session."""

_KINDS: Final[dict[str, Kind]] = {
    "sessionstart": "start",
    "userpromptsubmit": "prompt",
    "beforeagent": "prompt",
    "precompact": "before",
    "precompress": "before",
    "postcompact": "after",
    "postcompress": "after",
    "stop": "end",
    "afteragent": "end",
    "sessionend": "end",
}
_NAMES: Final = {
    "sessionstart": "SessionStart",
    "userpromptsubmit": "UserPromptSubmit",
    "beforeagent": "BeforeAgent",
}
"""Events whose answer may hold context, as the agents write them."""

MOST_ID_CHARS: Final = 256


def agent_of(name: str) -> Agent | None:
    """The agent with this name; none where there is none."""
    return _BY_NAME.get(name)


_BY_NAME: Final[dict[str, Agent]] = {agent: agent for agent in AGENTS}


class Event(Struct, frozen=True, kw_only=True):
    """One event."""

    agent: Agent
    kind: Kind
    name: str = ""
    """As the answer has to name it; empty where no answer takes context."""
    session_id: str = ""
    transcript: str = ""
    """An absolute path; empty where the agent keeps none."""
    cwd: str = ""
    source: str = ""
    """Of a start: `startup`, `resume`, `clear`, `compact`, `fork`."""
    summary: str = ""
    """Of an end of a compaction, where the agent tells it."""
    is_inner: bool = False
    """A sub-agent's: its messages are no part of the session."""

    @property
    def takes_context(self) -> bool:
        """Whether the agent reads context from the answer to this event."""
        return bool(self.name)


def event_of(agent: Agent, data: bytes) -> Event | None:
    """The event in `data`; none where that is no JSON object. O(bytes)."""
    given = _fields(data)
    if given is None:
        return None
    said = _text(given, "hook_event_name", "hookEventName", "event_name", "event")
    key = said.replace("_", "").replace("-", "").lower()
    session_id = _text(given, "session_id", "sessionId", "thread_id", "thread-id", "conversation_id")
    transcript = _text(given, "transcript_path", "transcriptPath", "rollout_path")
    return Event(
        agent=agent,
        kind=_KINDS.get(key, "other"),
        name=_NAMES.get(key, ""),
        session_id=session_id if _is_id(session_id) else "",
        transcript=transcript if _is_place(transcript) else "",
        cwd=_text(given, "cwd", "working_directory", "workspace"),
        source=_text(given, "source").lower(),
        summary=_text(given, "compact_summary", "compactSummary", "summary"),
        is_inner=bool(_text(given, "agent_id", "agentId", "parent_session_id")),
    )


def _is_id(text: str) -> bool:
    return 0 < len(text) <= MOST_ID_CHARS and text.isprintable()


def _is_place(text: str) -> bool:
    return text.startswith(("/", "~")) or text[1:3] in (":\\", ":/")


def _fields(data: bytes) -> dict[str, Raw] | None:
    bare = data.removeprefix(b"\xef\xbb\xbf").strip()
    if not bare.startswith(b"{"):
        return None
    try:
        return msgspec.json.decode(bare, type=dict[str, Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    # A lone surrogate, or bytes that are no text: what can be read of it.
    from compactd.formats.files.lines import mend_surrogates

    try:
        mended = mend_surrogates(bare.decode("utf-8", "replace").encode())
        return msgspec.json.decode(mended, type=dict[str, Raw])
    except (msgspec.DecodeError, RecursionError):
        return None


def _text(given: dict[str, Raw], *names: str) -> str:
    """The first of these fields that is a text with something in it."""
    for name in names:
        raw = bytes(given.get(name, b""))
        if raw.startswith(b'"'):
            try:
                text = msgspec.json.decode(raw, type=str)
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue
            if text:
                return text
    return ""
