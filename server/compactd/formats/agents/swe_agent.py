"""Read SWE-agent's trajectories (`<instance>.traj`): one JSON document with `history` and `trajectory`.

The format is defined by SWE-agent/SWE-agent, `sweagent/agent/agents.py` (`get_trajectory_data`) and
`sweagent/types.py` (`HistoryItem`), read 2026-11, and seen in files of 2024 to 2025. With function calling,
an answer has `tool_calls` and its result `tool_call_ids`. Without it, an answer is a `thought` with one
`action`, a command, and the user message after it is the command's output.

The last user message before the first answer is the task, written by the person who started the run. If it
came from an issue on GitHub (`replay_config.problem_statement`), its author is unknown. All user messages
after the first answer are the program's.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from compactd.core.authors.authors import UNKNOWN
from compactd.formats.files.documents import open_document
from compactd.formats.files.session_file import (
    SessionBuilder,
    SessionFile,
    is_true,
    plain_content,
    text_field,
)
from compactd.formats.messages import openai
from compactd.formats.messages.json_parts import fields, string
from compactd.formats.messages.lenient_json import (
    Given,
    is_list,
    is_object,
    list_in,
    object_in,
    objects_in,
    text_in,
)
from compactd.formats.messages.neutral_out import encode_message
from compactd.protocol.errors import CompactdError
from compactd.protocol.messages import NULL, Block, Message, Meta, Text, Thinking, ToolCall, ToolResult

SHELL = "bash"
"""The name of the tool that runs an action if the trajectory names none."""


def read(data: bytes) -> SessionFile:
    """Return the session in `data`. A message that cannot be read is skipped with a warning. O(bytes).

    Raise `InvalidParams` if there is no history.
    """
    session = SessionBuilder("swe-agent")
    about, history = open_document(data, session.warn, "history")
    config = _config(about.get("replay_config", NULL))
    session.model = text_field(object_in(object_in(config, "agent"), "model"), "name")
    messages = [fields(raw, f"$.history[{at}]", "a message") for at, raw in enumerate(history)]
    if any("tool_calls" in message for message in messages):
        _with_calls(session, messages)
    else:
        _with_actions(session, messages)
    _name_authors(session, is_foreign=_is_of_github(config))
    return session.finish()


def _config(config: Raw) -> Given:
    """Return the fields of the configuration, which is a JSON object or a string that contains one."""
    try:
        if not is_object(config):
            config = Raw(string(config, "$.replay_config").encode())
        return fields(config, "$.replay_config", "replay_config")
    except CompactdError:
        return {}


def _is_of_github(config: Given) -> bool:
    """Return whether the task is the text of an issue on GitHub (`sweagent/agent/problem_statement.py`)."""
    given = object_in(config, "problem_statement")
    return text_in(given, "type") == "github" or "github_url" in given


def _name_authors(session: SessionBuilder, *, is_foreign: bool) -> None:
    has_answered = False
    for at, (message, _) in enumerate(session.messages):
        has_answered = has_answered or message.role == "assistant"
        if message.role == "user" and message.meta is None and (has_answered or is_foreign):
            whole = replace(message, meta=Meta(author=UNKNOWN))
            session.messages[at] = (whole, Raw(encode_message(whole)))


def _with_calls(session: SessionBuilder, messages: list[Given]) -> None:
    names: dict[str, str] = {}
    for number, given in enumerate(messages, start=1):
        with session.skipping("message", number):
            if text_in(given, "role") == "tool":
                ids = [string(raw, "$.tool_call_ids") for raw in list_in(given, "tool_call_ids")]
                call_id = text_in(given, "tool_call_id") or next(iter(ids), "")
                content = _content(given)
                result = ToolResult(call_id=call_id, name=names.get(call_id), content=content)
                session.add("tool", (result,))
                continue
            message = openai.read_message(_json(given), f"$.history[{number - 1}]")
            calls = [block for block in message.content if isinstance(block, ToolCall)]
            names.update((call.call_id, call.name) for call in calls)
            session.add(message.role, (*_thinking(given), *message.content), meta=_meta(given))


def _with_actions(session: SessionBuilder, messages: list[Given]) -> None:
    count, open_call = 0, ""
    for number, given in enumerate(messages, start=1):
        with session.skipping("message", number):
            message = openai.read_message(_json(given), f"$.history[{number - 1}]")
            if message.role == "assistant":
                count += 1
                open_call = f"call_{count}"
                session.add("assistant", _action_blocks(given, message, open_call))
            elif message.role == "user" and open_call:
                session.add("tool", (ToolResult(call_id=open_call, name=SHELL, content=_content(given)),))
                open_call = ""
            else:
                session.add(message.role, message.content, meta=_meta(given))


def _action_blocks(given: Given, message: Message, call_id: str) -> list[Block]:
    thought = text_in(given, "thought")
    said: list[Block] = [Text(text=thought)] if thought else list(message.content)
    command = msgspec.json.encode({"command": text_in(given, "action")})
    return [*_thinking(given), *said, ToolCall(call_id=call_id, name=SHELL, arguments=Raw(command))]


def _thinking(given: Given) -> list[Block]:
    """Return the thinking blocks of a message, which SWE-agent keeps next to its content, as Anthropic's API
    gives them.
    """
    blocks = objects_in(given, "thinking_blocks")
    return [
        Thinking(text=text_in(one, "thinking"), signature=text_field(one, "signature"))
        for one in blocks
        if text_in(one, "type") == "thinking"
    ]


def _meta(given: Given) -> Meta | None:
    return Meta(synthetic=True) if is_true(given, "is_demo") else None


def _content(given: Given) -> str | tuple[Block, ...]:
    raw = given.get("content", NULL)
    if not is_list(raw):
        return text_in(given, "content")
    message = openai.read_message(_json({"role": Raw(b'"user"'), "content": raw}), "$.content")
    return plain_content(message.content)


def _json(given: Given) -> bytes:
    known = ("role", "content", "tool_calls", "name")
    return msgspec.json.encode({name: raw for name, raw in given.items() if name in known and raw != NULL})
