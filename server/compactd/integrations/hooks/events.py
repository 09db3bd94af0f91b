"""Parse the event that an agent passes to a hook on stdin, for every supported agent and version.

The events have the forms of Claude Code (hooks reference, 2.1.240, 2026-08), Codex (0.169.0, `hooks.json`,
seen 2026-11) and Gemini CLI (0.61.0, hooks reference, seen 2026-11). All three agents change these forms
between releases. Therefore a field that is missing or has another type is read as empty, never as an error.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec
from msgspec import Raw, Struct

AgentName = Literal["claude-code", "codex", "gemini-cli"]
AGENTS: Final[tuple[AgentName, ...]] = ("claude-code", "codex", "gemini-cli")

HookEventKind = Literal[
    "start", "prompt", "before", "fork_end", "after", "end", "inner_end", "tool", "module", "other"
]
"""What an event reports: the `start` of a session, a `prompt`, the time `before` or `after` a compaction, the
end of the fork that may have written its summary (`fork_end`), the `end` of a turn or session, the end of
a sub-agent (`inner_end`), the output of a `tool`, or a question of the plugin's `module`.
"""

_KINDS: Final[dict[str, HookEventKind]] = {
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
    "session.compact": "module",
    "subagentstop": "inner_end",
    "posttooluse": "tool",
}
_NAMES: Final = {
    "sessionstart": "SessionStart",
    "userpromptsubmit": "UserPromptSubmit",
    "beforeagent": "BeforeAgent",
}
"""Events whose answer may contain context, spelled as the agents spell them."""

MAX_EVENT_ID_CHARS: Final = 256
MAX_PROMPT_CHARS: Final = 256
"""How many characters of a prompt are read. They show whether a program wrote it."""


def agent_of(name: str) -> AgentName | None:
    """Return the agent with this name; None if there is none."""
    return next((agent for agent in AGENTS if agent == name), None)


class HookEvent(Struct, frozen=True, kw_only=True):
    """One event of an agent."""

    agent: AgentName
    kind: HookEventKind
    name: str = ""
    """The event's name, which the hook's answer must contain; empty if the agent takes no context from an
    answer to this event.
    """
    session_id: str = ""
    transcript: str = ""
    """The absolute path of the session's transcript; empty if the agent keeps none."""
    cwd: str = ""
    source: str = ""
    """Why the session started: `startup`, `resume`, `clear`, `compact` or `fork`; empty for other events."""
    summary: str = ""
    """The agent's summary as its context gets it, in an event after a compaction or at the end of a fork;
    empty if the agent does not pass it."""
    trigger: str = ""
    """What began the compaction that the event is about: `manual` or `auto`; empty if the agent does not
    say."""
    prompt: str = ""
    """The beginning of the prompt, in a `prompt` event."""
    prompt_id: str = ""
    """Identifies the prompt during which the event happened; empty if the agent does not say."""
    agent_id: str = ""
    """The sub-agent whose event it is; empty for the session's own."""
    is_inner: bool = False
    """Whether the event is a sub-agent's, whose messages are not part of the session."""


def event_of(agent: AgentName, data: bytes) -> HookEvent | None:
    """Return the event in `data`; None if it is not a JSON object. O(bytes)."""
    given = _fields(data)
    if given is None:
        return None
    said = _text(given, "hook_event_name", "hookEventName", "event_name", "event")
    key = said.replace("_", "").replace("-", "").lower()
    session_id = _text(given, "session_id", "sessionId", "thread_id", "thread-id", "conversation_id")
    transcript = _text(given, "transcript_path", "transcriptPath", "rollout_path")
    kind = _KINDS.get(key, "other")
    agent_id = _text(given, "agent_id", "agentId")
    is_inner = bool(agent_id or _text(given, "parent_session_id"))
    if kind == "inner_end" and _is_fork(agent, given):
        kind, is_inner = "fork_end", False
    return HookEvent(
        agent=agent,
        kind=kind,
        name=_NAMES.get(key, ""),
        session_id=session_id if _is_id(session_id) else "",
        transcript=transcript if _is_place(transcript) else "",
        cwd=_text(given, "cwd", "working_directory", "workspace"),
        source=_text(given, "source").lower(),
        summary=_summary(agent, kind, given),
        trigger=_text(given, "trigger").lower(),
        prompt=_text(given, "prompt")[:MAX_PROMPT_CHARS] if kind == "prompt" else "",
        prompt_id=_text(given, "prompt_id"),
        agent_id=agent_id[:MAX_EVENT_ID_CHARS],
        is_inner=is_inner,
    )


def _is_fork(agent: AgentName, given: dict[str, Raw]) -> bool:
    """Return whether a sub-agent that ended was a fork of the session: its type is empty (Claude Code
    2.1.197, 2.1.240 and 2.1.330, run 2026-11).
    """
    return agent == "claude-code" and bytes(given.get("agent_type", b"")) == b'""'


def _summary(agent: AgentName, kind: HookEventKind, given: dict[str, Raw]) -> str:
    if kind not in ("after", "fork_end"):
        return ""
    names = ("compact_summary", "compactSummary", "summary")
    text = _text(given, *(("last_assistant_message",) if kind == "fork_end" else names))
    if agent != "claude-code" or "<" not in text:
        return text
    from compactd.integrations.hooks.agent_summary import without_analysis

    return without_analysis(text)


def _is_id(text: str) -> bool:
    return 0 < len(text) <= MAX_EVENT_ID_CHARS and text.isprintable()


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
    # The JSON contains a lone surrogate or invalid UTF-8. These are replaced, and the JSON is read again.
    from compactd.formats.files.json_lines import repair_surrogates

    try:
        mended = repair_surrogates(bare.decode("utf-8", "replace").encode())
        return msgspec.json.decode(mended, type=dict[str, Raw])
    except (msgspec.DecodeError, RecursionError):
        return None


def _text(given: dict[str, Raw], *names: str) -> str:
    """Return the first of the fields `names` that is a non-empty string; empty if none is."""
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
