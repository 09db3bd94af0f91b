"""`compactd sessions show ID [ENTRY ...]`: prints a stored conversation, or some of its messages, in full."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime

from msgspec import Raw, Struct

from compactd.cli.chat.pieces import block_text, escape_controls
from compactd.cli.framework.command import Argument, Command
from compactd.cli.framework.complete import session_ids
from compactd.cli.framework.exit_codes import DONE, NOTHING_TO_DO, USAGE, CommandError
from compactd.cli.framework.page import Page, one_line, plural
from compactd.client import Client, RpcError
from compactd.core.text.tool_results import text_of_result
from compactd.formats.messages.neutral import decode_message
from compactd.protocol.errors import InvalidParams
from compactd.protocol.messages import Block, Message, ToolCall, ToolResult
from compactd.protocol.wire import HistoryEntry, SessionInfo

PAGE_ENTRIES = 200
"""How many entries are requested from the daemon at once."""


class ShowOptions(Struct, frozen=True, kw_only=True):
    """The options of `sessions show`."""

    id: str
    entries: tuple[str, ...]


class ShownMessage(Struct, frozen=True, kw_only=True):
    """A message, for `--json`."""

    entry_id: str
    at: float
    """When it was appended, in Unix seconds; 0 for the original of a reduced tool output."""
    message: Raw
    """The message as it was appended."""


def show(options: ShowOptions, page: Page) -> int:
    """Print the messages in full, oldest first."""
    with Client() as client:
        session_id = find_session(options.id, client.session_list().sessions).session_id
        client.session_start(session_id=session_id)
        try:
            entries = list(_entries(client, session_id, options.entries))
        except RpcError as error:
            if error.code != InvalidParams.code:
                raise
            raise CommandError(
                f"session {session_id!r} has no entry {', '.join(options.entries)!r}.",
                hint="`compactd search WORDS` shows the entries of what it finds.",
                exit_code=USAGE,
            ) from error
    shown = [entry for entry in entries if isinstance(entry.message, Raw) or entry.compaction is not None]
    if page.is_json:
        page.json(
            {
                "session_id": session_id,
                "messages": [
                    ShownMessage(entry_id=entry.entry_id, at=entry.at, message=entry.message)
                    for entry in shown
                    if isinstance(entry.message, Raw)
                ],
            }
        )
    else:
        for place, entry in enumerate(shown):
            if place:
                page.line()
            _print_entry(entry, page)
        if not shown:
            _say_what_is_stored(session_id, page)
    return DONE if shown else NOTHING_TO_DO


def find_session(session_id: str, sessions: tuple[SessionInfo, ...]) -> SessionInfo:
    """Return the session with exactly this id. Raise `CommandError` if there is none; it names the ids that
    begin so.
    """
    found = next((one for one in sessions if one.session_id == session_id), None)
    if found is not None:
        return found
    meant = [one.session_id for one in sessions if session_id and one.session_id.startswith(session_id)]
    hint = "`compactd sessions` lists the stored sessions."
    if len(meant) == 1:
        hint = f"Did you mean {one_line(meant[0])}?"
    elif meant:
        hint = f"{plural(len(meant), 'session')} have an id that begins so. {hint}"
    raise CommandError(f"no session has the id {session_id!r}.", hint=hint, exit_code=USAGE, code=1001)


def _entries(client: Client, session_id: str, wanted: tuple[str, ...]) -> Iterator[HistoryEntry]:
    """Yield the wanted entries; all if none is named. The original of a reduced tool output must be named: it
    is no message.
    """
    if wanted:
        for entry_id in dict.fromkeys(wanted):
            try:
                yield from client.session_history(session_id=session_id, from_=entry_id, limit=1).entries
            except RpcError as error:
                if error.code != InvalidParams.code:
                    raise
                for one in client.session_expand(session_id=session_id, entry_id=entry_id).entries:
                    yield HistoryEntry(
                        entry_id=one.entry_id, kind="output", at=0.0, in_context=False, message=one.message
                    )
        return
    begin: str | None = None
    while True:
        found = client.session_history(session_id=session_id, from_=begin, limit=PAGE_ENTRIES)
        yield from found.entries
        begin = found.next
        if begin is None:
            return


def _say_what_is_stored(session_id: str, page: Page) -> None:
    """Say that the session has no messages, and how many outputs of tools it keeps."""
    from compactd.cli.usage.reductions import count_outputs

    outputs = count_outputs(os.environ, [session_id]).get(session_id)
    if outputs is None or outputs.is_empty:
        page.line("this session has no messages")
        return
    page.line(f"this session has {outputs.outputs_text} and no messages")
    if outputs.done.count:
        page.line("the mark in a reduced output names the command that prints the whole output")


def _print_entry(entry: HistoryEntry, page: Page) -> None:
    when = datetime.fromtimestamp(entry.at).strftime("%Y-%m-%d %H:%M") if entry.at else entry.kind
    if isinstance(entry.message, Raw):
        message = decode_message(entry.message)
        page.line(f"{entry.entry_id}  {message.role}  {when}")
        _print_text("\n".join(_texts(message)), page)
    elif entry.compaction is not None and entry.kind == "compaction":
        page.line(f"{entry.entry_id}  compaction  {when}")
        _print_text(entry.compaction.summary or "", page)
    elif entry.compaction is not None:
        page.line(f"{entry.entry_id}  {one_line(entry.kind)}  {when}")
        _print_text(entry.compaction.reason or "", page)


def _print_text(text: str, page: Page) -> None:
    """Print a text indented, so that none of its lines can be taken for the heading of a message."""
    page.text("\n".join(f"  {line}" for line in escape_controls(text).split("\n")))


def _texts(message: Message) -> Iterator[str]:
    """Yield the parts of a message as text. Nothing is shortened."""
    for block in message.content:
        text = _text(block)
        if text:
            yield text


def _text(block: Block) -> str:
    match block:
        case ToolCall():
            return f"→ {block.name} {bytes(block.arguments).decode('utf-8', 'replace')}"
        case ToolResult():
            return text_of_result(block)
        case _:
            return block_text(block)


SHOW = Command(
    "show",
    ShowOptions,
    show,
    about="Prints a stored conversation in full, with what was compacted away. With ENTRY, as\n"
    "`compactd search` shows it (e57), it prints only these messages.",
    params=(
        Argument("id", "the session's id, as listed", completed=session_ids),
        Argument("entries", "entries to print", metavar="ENTRY", required=False, is_many=True),
    ),
    examples=(
        ("compactd sessions show ID e1", "print one message"),
        ("compactd sessions show ID --json | jq -r '.messages[].entry_id'", "print the entries' ids"),
    ),
    is_paged=True,
)
