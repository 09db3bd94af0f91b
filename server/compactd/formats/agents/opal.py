"""Read Opal's session files (`<session id>.jsonl`): a header, then one message per line, in no order.

The format is defined by matteing/opal, `opal/lib/opal/session/session.ex` and `opal/lib/opal/message.ex`,
until commit 72eb814 (2026-02), read 2026-11. The header is `{session_id, current_id, metadata}`. Messages
have `id` and `parent_id`; the conversation is the path from the root to `current_id`. A compaction replaces
messages by one whose `metadata.type` is `compaction_summary`. Newer files are Erlang tables, which only Opal
reads.

A message of role user was typed unless its metadata has a type. `branch_summary` is a model's summary of an
abandoned branch (`opal/lib/opal/session/branch_summary.ex`).
"""

from __future__ import annotations

from msgspec import Raw

from compactd.core.authors.authors import SUMMARY, UNKNOWN
from compactd.formats.files.json_lines import records
from compactd.formats.files.session_file import SessionBuilder, SessionFile, branch_to, is_true, text_field
from compactd.formats.messages.lenient_json import Given, object_in, objects_in, summary_meta, text_in
from compactd.protocol.errors import InvalidParams
from compactd.protocol.messages import Block, Meta, Text, Thinking, ToolCall, ToolResult

LEAD = "[conversation summary"
"""The beginning of a summary without metadata, in lower case. Opal also writes it with capitals
(compaction.ex).
"""


def read(data: bytes) -> SessionFile:
    """Return the session in `data`. A record that cannot be read is skipped with a warning. O(bytes)."""
    session = SessionBuilder("opal")
    messages: dict[str, tuple[int, Given]] = {}
    current = ""
    for number, record in records(data, session.warn):
        if "current_id" in record or "session_id" in record:
            session.session_id = text_field(record, "session_id")
            current = text_in(record, "current_id")
            about = object_in(record, "metadata")
            session.title = text_field(about, "title")
            session.working_dir = text_field(about, "working_dir")
            model = object_in(about, "model")
            session.set_model(text_in(model, "id"), text_in(model, "provider"))
        else:
            messages[text_in(record, "id")] = number, record
    for number, record in _path(messages, current, session):
        with session.skipping("line", number):
            _message(session, record)
    return session.finish()


def _path(
    messages: dict[str, tuple[int, Given]], current: str, session: SessionBuilder
) -> list[tuple[int, Given]]:
    """Return the messages from the root to `current`; if the file has no `current`, all messages in file
    order.
    """
    if current not in messages:
        if current:
            session.warn("the file's current message is not in the file, so all of its messages were read")
        return list(messages.values())
    parents = {id: text_in(given, "parent_id") for id, (_, given) in messages.items()}
    path = [messages[id] for id in branch_to(current, parents)]
    if len(path) < len(messages):
        session.count_skipped(
            "branch of the conversation's tree" if len(messages) - len(path) == 1 else "branch"
        )
    return path


def _message(session: SessionBuilder, given: Given) -> None:
    id, text = text_field(given, "id"), text_in(given, "content")
    said: list[Block] = [Text(text=text)] if text else []
    about = object_in(given, "metadata")
    match text_in(given, "role"):
        case "user" if text_in(about, "type") == "compaction_summary" or _is_lead(about, text):
            session.summary(text, id=id, meta=summary_meta(about, "read_files", "modified_files"))
        case "user" if kind := text_in(about, "type"):
            author = SUMMARY if kind == "branch_summary" else UNKNOWN
            session.add("user", said, id=id, meta=Meta(author=author, synthetic=True))
        case "user":
            session.add("user", said, id=id)
        case "system":
            session.add("system", said, id=id)
        case "assistant":
            thinking = text_in(given, "thinking")
            thought: list[Block] = [Thinking(text=thinking)] if thinking else []
            calls = [_call(one) for one in objects_in(given, "tool_calls")]
            session.add("assistant", (*thought, *said, *calls), id=id)
        case "tool_call":
            call = ToolCall(
                call_id=text_in(given, "call_id"), name=text_in(given, "name"), arguments=Raw(text.encode())
            )
            session.add("assistant", (call,), id=id)
        case "tool_result":
            result = ToolResult(
                call_id=text_in(given, "call_id"),
                name=text_field(given, "name"),
                content=text,
                is_error=is_true(given, "is_error"),
            )
            session.add("tool", (result,), id=id)
        case role:
            raise InvalidParams(f"{role!r} is not a role of Opal's messages", "$.role")


def _is_lead(about: Given, text: str) -> bool:
    return not about and text[: len(LEAD)].lower() == LEAD


def _call(given: Given) -> ToolCall:
    arguments = given.get("arguments", Raw(b"{}"))
    return ToolCall(call_id=text_in(given, "call_id"), name=text_in(given, "name"), arguments=arguments)
