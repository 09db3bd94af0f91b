"""Write the next request of a compacted session as a session file, by default in the format that came in."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import UNSET, Raw, Struct
from msgspec.structs import replace

from compactd.cli.framework.conversation import LoadedConversation
from compactd.cli.framework.load_file import TIMEOUT_S
from compactd.client import Client
from compactd.core.history.entries import is_summary
from compactd.formats.files.other_agent import prepare_for_other_agent
from compactd.formats.files.session_file import MessageLine, SessionFile
from compactd.formats.files.session_formats import BY_NAME, WRITABLE, title_of
from compactd.formats.files.write import request_document, write
from compactd.formats.messages.base import RENDERABLE
from compactd.formats.messages.neutral import decode_message
from compactd.formats.messages.neutral_out import encode_message
from compactd.protocol.messages import Message
from compactd.protocol.wire import ContextResult

FORMATS = ("compactd", *RENDERABLE, *WRITABLE)
"""The formats in which a compacted session can be written: all that can be read."""


CONTINUED = ("claude-code", "codex", "gemini-cli", "opencode", "pi")
"""The formats of agents that continue a session of another agent. Messages are prepared for them."""


class CompactedFile(Struct, frozen=True, kw_only=True):
    """A compacted session as the bytes of a file."""

    data: bytes
    what: str
    """What the file contains, for people."""
    messages: int
    warnings: tuple[str, ...] = ()
    """Sentences that say what the format cannot represent."""


def compacted_file(
    client: Client, daemon_session: str, conversation: LoadedConversation, format: str, session_id: str
) -> CompactedFile:
    """Return the context of the session `daemon_session`, which was made from `conversation`, as a file in
    one of `FORMATS`. The session in the file has the id `session_id`. O(bytes).

    The file contains the summary and the messages that stayed. If it is for another agent than the one that
    `conversation` is from, they are as `prepare_for_other_agent` makes them. Usage reports are left out: they
    are about the requests before the compaction, and an agent would believe that its context is still full.
    """
    if format == "compactd":
        return _journal(client, daemon_session)
    shape = format if format in RENDERABLE else "neutral"
    # A file is no request, so it has no marks for the provider's prompt cache.
    client.session_configure(session_id=daemon_session, compaction={"cache": "off"}, timeout_s=TIMEOUT_S)
    context = client.session_context(session_id=daemon_session, format=shape, timeout_s=TIMEOUT_S)
    if format in RENDERABLE:
        return _messages_file(context, conversation, format, session_id)
    messages = [decode_message(raw) for raw in map(_without_report, context.messages)]
    changes: tuple[str, ...] = ()
    if format != conversation.format and format in CONTINUED:
        prepared = prepare_for_other_agent(messages)
        messages, changes = list(prepared.messages), prepared.changes
    if format == "opencode":
        # `opencode import` skips messages whose ids are already in its database (1.18, 2026-11).
        messages = [replace(message, id=None) for message in messages]
    lines = _with_times(messages)
    file = SessionFile(
        format=format,
        messages=lines,
        session_id=session_id,
        title=conversation.title,
        model=conversation.model,
        working_dir=conversation.working_dir,
        system_prompt=conversation.system_prompt,
        compactions=sum(is_summary(message) for message, _ in lines),
    )
    written = write(file, format)
    tools = ("not kept: the declarations of the tools",) if conversation.tools else ()
    form = BY_NAME[format].written_as
    return CompactedFile(
        data=written.data,
        what=f"a session file of {title_of(format)}{f' ({form})' if form else ''}",
        messages=len(lines),
        warnings=(*tools, *changes, *written.warnings),
    )


def _journal(client: Client, daemon_session: str) -> CompactedFile:
    """Return the journal of the session, with the messages that the compaction removed."""
    with tempfile.TemporaryDirectory(prefix="compactd-") as folder:
        path = Path(folder) / "journal"
        client.session_export(
            session_id=daemon_session, format="compactd", path=str(path), timeout_s=TIMEOUT_S
        )
        data = path.read_bytes()
    context = client.session_context(session_id=daemon_session, timeout_s=TIMEOUT_S)
    return CompactedFile(
        data=data, what="a journal of compactd, with the removed messages", messages=len(context.messages)
    )


def _messages_file(
    context: ContextResult, conversation: LoadedConversation, format: str, session_id: str
) -> CompactedFile:
    """Return a list of messages in the format of a provider, or of neutral messages. If there is more to say
    than the messages, such as tools or a title, the file is one object that contains the list.
    """
    messages = [_without_report(raw) for raw in context.messages]
    system = context.system if isinstance(context.system, str) else None
    tools = () if context.tools is UNSET else context.tools
    about: Mapping[str, str | None] = {
        "session_id": session_id if conversation.session_id else None,
        "title": conversation.title,
        "model": conversation.model,
        "working_dir": conversation.working_dir,
    }
    title = title_of(format)
    if tools or any(about.values()) or format not in ("openai", "neutral"):
        data = request_document(format, about, system, messages, tools)
        return CompactedFile(data=data, what=f"a JSON object with {title}", messages=len(messages))
    if system is not None:
        messages.insert(0, Raw(msgspec.json.encode({"role": "system", "content": system})))
    is_array = format == "openai"
    return CompactedFile(
        data=_array(messages) if is_array else _lines(messages),
        what=f"a JSON array of {title}" if is_array else f"{title}, one per line",
        messages=len(messages),
    )


def _with_times(messages: Sequence[Message]) -> tuple[MessageLine, ...]:
    """Return the messages with their neutral form. A summary without a time gets the time of the message
    after it, because some agents sort messages by their times.
    """
    lines: list[MessageLine] = []
    following: float | None = None
    for message in reversed(messages):
        if message.created_at is None and is_summary(message):
            message = replace(message, created_at=following)
        following = message.created_at or following
        lines.append((message, Raw(encode_message(message))))
    return tuple(reversed(lines))


def _without_report(raw: Raw) -> Raw:
    """Return the message without its usage report, which does not describe the new context."""
    fields = msgspec.json.decode(raw, type=dict[str, Raw])
    return Raw(msgspec.json.encode(fields)) if fields.pop("usage", None) is not None else raw


def _array(messages: Sequence[Raw]) -> bytes:
    return b"[\n" + b",\n".join(bytes(raw) for raw in messages) + b"\n]\n"


def _lines(messages: Sequence[Raw]) -> bytes:
    # A message is written as the daemon sent it. It may contain line breaks, but only between JSON tokens.
    return b"".join(bytes(raw).replace(b"\n", b" ") + b"\n" for raw in messages)
