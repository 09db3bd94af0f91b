"""The session file formats: a row for each, and the functions that recognise a file from its contents, never
from its name.

To add a format, add a row to `SESSION_FORMATS`, recognise its files in `of_record` (one object per line),
`of_document` (one object) or `of_list`, and write the module that reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Raw, Struct

from compactd.formats.agents.klaude import MESSAGES as KLAUDE
from compactd.formats.agents.mini_swe_agent import COMMAND
from compactd.formats.messages.json_parts import elements, fields
from compactd.formats.messages.lenient_json import (
    Given,
    is_list,
    is_object,
    is_text,
    object_in,
    objects_in,
    text_in,
)
from compactd.formats.messages.shapes import is_responses_item
from compactd.protocol.messages import NULL

Marks = Literal["parts", "messages", "joined"]
"""What a format can mark as not written by a person: parts of a message, only whole messages, or only whole
messages whose texts it joins."""


class SessionFormat(Struct, frozen=True, kw_only=True):
    """One format of session files. The defaults are those of messages in the format of a provider."""

    name: str
    title: str
    """Its name for people."""
    what: str = "a list of messages of a request, with its tools"
    """Which files have it, in Markdown. With `lost`, it is a row of docs/formats.md."""
    lost: str = "ids, times, usage, compactions"
    """What a file in this format cannot contain; "–" if compactd does not write it."""
    reader: str = ""
    """The module below `compactd.formats` with `read(data: bytes) -> SessionFile`. Empty for messages in the
    format of a provider (`messages_file`)."""
    writer: str = ""
    """The function below `compactd.formats` that writes the format, as `module:function`. Empty if the format
    belongs to no other program."""
    written_as: str = ""
    """Which of the program's formats is written, if it has several."""
    marks: Marks = "parts"


SESSION_FORMATS = (
    SessionFormat(
        name="compactd",
        title="compactd",
        what="compactd's own journal",
        lost="nothing is lost",
        reader="files.compactd_file",
    ),
    SessionFormat(
        name="claude-code",
        title="Claude Code",
        what="Claude Code's `projects/<folder>/<id>.jsonl`",
        lost="system prompt, the model's provider, what stayed next to a summary",
        reader="agents.claude_code",
        writer="agents.claude_code_out:write",
        marks="messages",
    ),
    SessionFormat(
        name="pi",
        title="pi",
        what="pi's sessions, versions 1 to 3",
        lost="system prompt",
        reader="agents.pi",
        writer="agents.pi_out:write",
        marks="messages",
    ),
    SessionFormat(
        name="codex",
        title="Codex CLI",
        what="Codex CLI's rollouts, those of 2025 too",
        lost="title, stop reasons, signatures of thinking, tokens written to the cache",
        reader="agents.codex",
        writer="agents.codex_out:write",
    ),
    SessionFormat(
        name="gemini-cli",
        title="Gemini CLI",
        what="Gemini CLI's chats, `.json` and `.jsonl`",
        lost="system prompt, ids of results, stop reasons, tokens written to the cache",
        reader="agents.gemini_cli",
        writer="agents.gemini_cli_out:write",
    ),
    SessionFormat(
        name="cline",
        title="Cline",
        what="Cline's extension and SDK, Roo Code",
        lost="title, working directory, stop reasons, what stayed next to a summary",
        reader="agents.cline",
        writer="agents.cline_out:write",
        written_as="SDK",
        marks="messages",
    ),
    SessionFormat(
        name="opencode",
        title="OpenCode",
        what="`opencode export`, and its `storage` folder until 2026",
        lost="system prompt, ids of other programs",
        reader="agents.opencode",
        writer="agents.opencode_out:write",
        written_as="export",
    ),
    SessionFormat(
        name="swe-agent",
        title="SWE-agent",
        what="SWE-agent's `.traj`, with calls and with actions",
        lost="ids, times, usage, stop reasons, that a call failed, summaries as such",
        reader="agents.swe_agent",
        writer="agents.swe_agent_out:write",
        marks="messages",
    ),
    SessionFormat(
        name="mini-swe-agent",
        title="mini-swe-agent",
        what="mini-swe-agent's `.traj.json`, versions 1 and 2",
        lost="ids, stop reasons, summaries as such",
        reader="agents.mini_swe_agent",
        writer="agents.swe_agent_out:write_mini",
        marks="messages",
    ),
    SessionFormat(
        name="openhands",
        title="OpenHands",
        what="OpenHands' events: of its SDK, of version 0, a folder of them",
        lost="session id, title, model, working directory, usage, stop reasons",
        reader="agents.openhands",
        writer="agents.openhands_out:write",
        written_as="SDK",
        marks="messages",
    ),
    SessionFormat(
        name="aider",
        title="aider",
        what="aider's `.aider.chat.history.md`",
        lost="everything but text: calls become text",
        reader="agents.aider",
        writer="agents.aider_out:write",
        marks="joined",
    ),
    SessionFormat(
        name="klaude",
        title="klaude",
        what="klaude-code's `events.jsonl`",
        lost="session id, title, working directory (they are in another file)",
        reader="agents.klaude",
        writer="agents.klaude_out:write",
        marks="messages",
    ),
    SessionFormat(
        name="opal",
        title="Opal",
        what="Opal's `.jsonl` until 2026-02",
        lost="what a compaction removed, system prompt, times, usage, stop reasons",
        reader="agents.opal",
        writer="agents.opal_out:write",
        marks="joined",
    ),
    SessionFormat(name="openai", title="OpenAI messages"),
    SessionFormat(name="anthropic", title="Anthropic messages"),
    SessionFormat(name="gemini", title="Gemini contents"),
    SessionFormat(
        name="openai_responses",
        title="OpenAI Responses items",
        what="items of OpenAI's Responses API, with its tools",
    ),
    SessionFormat(
        name="neutral",
        title="neutral messages",
        what="compactd's own message format",
        lost="compactions",
    ),
)
"""All formats that can be read, compactd's own first."""

BY_NAME = {row.name: row for row in SESSION_FORMATS}

SUPPORTED = tuple(BY_NAME)
"""Names of the formats that can be read."""

WRITABLE = tuple(row.name for row in SESSION_FORMATS if row.writer)
"""Names of the other programs' formats that can be written."""


def title_of(name: str) -> str:
    """Return a format's name for people; `name` itself if there is no such format."""
    return BY_NAME[name].title if name in BY_NAME else name


MAX_EXAMINED_RECORDS = 200
"""How many records of a file are examined. Claude Code's files can begin with many records
without messages.
"""

_CODEX = ("session_meta", "turn_context", "response_item", "event_msg", "compacted")
_CLINE_FIELDS = ("modelInfo", "metrics", "isSummary", "condenseParent", "conversationHistoryIndex")
_CLINE_TEXTS = ("<task>", "<feedback>", "<environment_details>", "<user_message>")
"""The tags that mark a user's text in the extensions of Cline and Roo (src/core/task/index.ts, 2026-11)."""


def of_record(record: Given) -> str | None:
    """Return the format of a file with one object per line, judged by one of its records. Return None if such
    a record occurs in several formats or in none.
    """
    kind = text_in(record, "type")
    if "seq" in record and "crc" in record:
        return "compactd"
    if kind == "session" and "id" in record and "timestamp" in record:
        return "pi"
    if kind in _CODEX and is_object(record.get("payload", NULL)):
        return "codex"
    if kind in KLAUDE and is_object(record.get("data", NULL)):
        return "klaude"
    if kind in ("user", "assistant") and "message" in record and ("uuid" in record or "sessionId" in record):
        return "claude-code"
    if "$set" in record or "$rewindTo" in record or _is_gemini_cli(record):
        return "gemini-cli"
    if "current_id" in record and "session_id" in record:
        return "opal"
    if "parent_id" in record and "is_error" in record and is_text(record.get("role", NULL)):
        return "opal"
    if is_event(record):
        return "openhands"
    if "record_type" in record or (not kind and "timestamp" in record and "instructions" in record):
        return "codex"  # The format until 2025-09
    return "codex" if is_responses_item(record) else None


def _is_gemini_cli(record: Given) -> bool:
    if "projectHash" in record and "sessionId" in record:
        return True
    return text_in(record, "type") in ("user", "gemini") and {"id", "timestamp", "content"} <= record.keys()


def is_event(record: Given) -> bool:
    """Return whether the record is an event of OpenHands, of its SDK or of version 0."""
    if "source" not in record or "timestamp" not in record:
        return False
    if is_text(record.get("kind", NULL)) and "id" in record:
        return True
    is_action = is_text(record.get("action", NULL)) and is_object(record.get("args", NULL))
    return is_action or (is_text(record.get("observation", NULL)) and "content" in record)


def of_document(about: Given) -> str | None:
    """Return the format of a file that is one object; None if unknown."""
    if text_in(about, "trajectory_format").startswith("mini-swe-agent"):
        return "mini-swe-agent"
    if is_list(about.get("history", NULL)):
        history = objects_in(about, "history")
        if any("role" in one and "parts" not in one for one in history[:MAX_EXAMINED_RECORDS]):
            return "swe-agent" if "trajectory" in about or "environment" in about else None
        if any(is_event(one) for one in history[:MAX_EXAMINED_RECORDS]):
            return "openhands"
    for name in ("events", "items"):
        if any(is_event(one) for one in objects_in(about, name)[:MAX_EXAMINED_RECORDS]):
            return "openhands"
    if "projectHash" in about and "sessionId" in about:
        return "gemini-cli"
    messages = objects_in(about, "messages")[:MAX_EXAMINED_RECORDS]
    if "sessionId" in about and any(_is_gemini_cli(one) for one in messages):
        return "gemini-cli"
    if {"sessionId", "agent", "version"} <= about.keys() and messages:
        return "cline"
    if "info" in about and _is_mini(object_in(about, "info"), messages):
        return "mini-swe-agent"
    return of_messages(messages)


def _is_mini(info: Given, messages: Sequence[Given]) -> bool:
    return "mini_version" in info or ("exit_status" in info and "model_stats" in info and bool(messages))


def of_list(raws: Sequence[Raw]) -> str | None:
    """Return the format of a file that is one list; None if unknown."""
    objects = [fields(raw, "$", "an element") for raw in raws[:MAX_EXAMINED_RECORDS] if is_object(raw)]
    if any(is_event(one) for one in objects):
        return "openhands"
    if _is_plain_mini(objects):
        return "mini-swe-agent"
    return of_messages(objects)


def of_messages(messages: Sequence[Given]) -> str | None:
    """Return the format of a list of messages; None if the messages do not show it."""
    if any(is_object(one.get("info", NULL)) and is_list(one.get("parts", NULL)) for one in messages):
        return "opencode"
    if any(_is_cline(one) for one in messages):
        return "cline"
    return None


def _is_cline(message: Given) -> bool:
    if text_in(message, "role") not in ("user", "assistant") or "parts" in message:
        return False
    if any(name in message for name in _CLINE_FIELDS):
        return True
    content = message.get("content", NULL)
    if not is_list(content) or text_in(message, "role") != "user":
        return False
    texts = [fields(raw, "$", "a block") for raw in elements(content, "$") if is_object(raw)]
    return any(text_in(one, "text").startswith(_CLINE_TEXTS) for one in texts)


def _is_plain_mini(messages: Sequence[Given]) -> bool:
    """Return whether the messages look like mini-swe-agent's without other fields: plain text, a fenced
    command in the first answer, and a command's output in a user message.
    """
    answers = [text_in(one, "content") for one in messages if text_in(one, "role") == "assistant"]
    if not answers or any(one.keys() - {"role", "content", "timestamp"} for one in messages):
        return False
    told = [text_in(one, "content") for one in messages if text_in(one, "role") == "user"]
    has_output = any(text.startswith(("<returncode>", "Observation: ")) for text in told)
    return has_output and COMMAND.search(answers[0]) is not None
