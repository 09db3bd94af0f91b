"""Read mini-swe-agent's trajectories (`<name>.traj.json`): a list of messages, or an object with `messages`.

The format is defined by SWE-agent/mini-swe-agent, `src/minisweagent/agents/default.py` (`serialize`, `save`)
and `src/minisweagent/models/litellm_model.py`, read 2026-11. Before version 2, an answer contains one command
in a fenced block, and the user message after it is the command's output. From version 2 on
(`trajectory_format` `mini-swe-agent-1.1`), answers have `tool_calls`, results have the role `tool`, and
`extra` contains the provider's response and the time. The last message may have the role `exit`.

The task before the first answer was written by a person. Later user messages are the program's (outputs, and
complaints about the format of an answer), unless `extra.interrupt_type` says that the user interrupted, or
`extra.actions` contains the command that the user ran (`src/minisweagent/agents/interactive.py`, version 2).
Version 1 records neither; in its files, the user message after a command is always read as its output.
"""

from __future__ import annotations

import re

import msgspec
from msgspec import Raw

from compactd.core.authors.authors import UNKNOWN
from compactd.core.text.lazy_patterns import LazyPattern
from compactd.core.text.message_text import join_text_blocks
from compactd.formats.files.documents import open_document
from compactd.formats.files.session_file import SessionBuilder, SessionFile, plain_content, text_field
from compactd.formats.messages import openai
from compactd.formats.messages.json_parts import fields, first_byte
from compactd.formats.messages.lenient_json import Given, number_in, object_in, text_in
from compactd.protocol.messages import NULL, Block, Message, Meta, ToolCall, ToolResult

SHELL = "bash"
BY_USER = "UserInterruption"
"""The `interrupt_type` of what a user says between two steps. Other values for a user are `UserRejection` and
`UserNewTask`.
"""
BY_PROGRAM = "Program"
"""The `interrupt_type` of what no person said. Only compactd writes it."""
COMMAND = LazyPattern(r"```\w+\n(.*?)```", re.S)
"""A pattern for the command of an answer, in a fenced block. The block's language is `bash`, from 2025-11 on
`mswea_bash_command` (`action_regex`).
"""


def read(data: bytes) -> SessionFile:
    """Return the session in `data`. A message that cannot be read is skipped with a warning. O(bytes).

    Raise `InvalidParams` if there is no list of messages.
    """
    session = SessionBuilder("mini-swe-agent")
    about, messages = open_document(data, session.warn, "messages")
    config = object_in(object_in(about, "info"), "config")
    session.model = text_field(object_in(config, "model"), "model_name")
    session.working_dir = text_field(object_in(config, "environment"), "cwd") or None
    reading = _Reader(session)
    for number, raw in enumerate(messages, start=1):
        with session.skipping("message", number):
            reading.message(fields(raw, f"$.messages[{number - 1}]", "a message"))
    return session.finish()


class _Reader:
    def __init__(self, session: SessionBuilder) -> None:
        self._session = session
        self._count = 0
        self._has_answered = False
        self._open = ""
        """The id of the call whose output is the next user message; empty if there is no such call."""
        self._names: dict[str, str] = {}

    def message(self, given: Given) -> None:
        """Read the next message."""
        if text_in(given, "role") == "exit":
            self._session.count_skipped("exit record at the end of the run")
            return
        extra = object_in(given, "extra")
        at = number_in(extra, "timestamp") or number_in(given, "timestamp")
        message = openai.read_message(_json(given), "$.messages")
        if message.role == "assistant":
            self._answer(message, extra, at, has_calls="tool_calls" in given)
        elif message.role == "user" and self._open and not _is_typed(extra):
            result = ToolResult(call_id=self._open, name=SHELL, content=plain_content(message.content))
            self._open = ""
            self._session.add("tool", (result,), created_at=at)
        else:
            failed = (number_in(extra, "returncode") or 0) != 0
            blocks = [self._with_name(block, failed) for block in message.content]
            is_asked = message.role == "user" and (self._has_answered or "interrupt_type" in extra)
            meta = Meta(author=UNKNOWN) if is_asked and not _is_typed(extra) else None
            self._session.add(message.role, blocks, created_at=at, meta=meta)

    def _answer(self, message: Message, extra: Given, at: float | None, *, has_calls: bool) -> None:
        self._has_answered = True
        blocks = list(message.content)
        calls = [block for block in blocks if isinstance(block, ToolCall)]
        self._names.update((call.call_id, call.name) for call in calls)
        if not has_calls:
            self._count += 1
            self._open = f"call_{self._count}"
            found = COMMAND.search(join_text_blocks(blocks))
            command = msgspec.json.encode({"command": found[1].strip() if found else ""})
            blocks.append(ToolCall(call_id=self._open, name=SHELL, arguments=Raw(command)))
        response = object_in(extra, "response")
        usage = response.get("usage", NULL)
        model = text_in(response, "model")
        self._session.model = self._session.model or model or None
        self._session.add(
            "assistant", blocks, created_at=at, usage=usage if first_byte(usage) == b"{" else None
        )

    def _with_name(self, block: Block, failed: bool) -> Block:
        if not isinstance(block, ToolResult):
            return block
        return msgspec.structs.replace(block, name=self._names.get(block.call_id), is_error=failed)


def _is_typed(extra: Given) -> bool:
    return text_in(extra, "interrupt_type").startswith("User") or "actions" in extra


def _json(given: Given) -> bytes:
    known = ("role", "content", "tool_calls", "tool_call_id", "name", "reasoning_content")
    return msgspec.json.encode({name: raw for name, raw in given.items() if name in known and raw != NULL})
