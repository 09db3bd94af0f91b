"""Keep the originals of reduced outputs that belong to no conversation, in a session per project folder.

The session's name comes from the folder, so that repeated calls share it. If another process has it open, or
if it has grown large, the next one with the same name and a number is used.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from pathlib import Path

from msgspec import UNSET, Struct

from compactd.client import Client
from compactd.client.events import TIMEOUT_S
from compactd.core.history.entries import EntryId
from compactd.core.reduce.marks import defuse
from compactd.core.text.tool_results import text_of_result
from compactd.formats.messages.neutral import decode_message
from compactd.integrations.outputs.references import PREFIX, Reference, name_originals
from compactd.protocol.messages import ToolResult
from compactd.storage.paths import data_folder, file_stem

MAX_BYTES = 32 * 1024 * 1024
"""A session whose journal is larger gets no further outputs: each call reads the journal, and the daemon
keeps the originals in memory."""
MAX_SESSIONS = 999
MAX_LOCKED = 8
"""So many sessions are tried that other processes have open."""


class NoSession(Exception):
    """No session can take the output. The text says why."""


class ReducedText(Struct, frozen=True, kw_only=True):
    """What to show of an output."""

    text: str
    tokens_before: int
    tokens_after: int
    rules: tuple[str, ...]
    """The rules that acted, or would have acted."""
    entry_id: EntryId | None = None
    """Where the original is, in the session that was asked. None if nothing was left out."""


class Call(Struct, frozen=True, kw_only=True):
    """The tool call that an output answers."""

    name: str
    arguments: Mapping[str, object]
    is_error: bool = False


def session_name(kind: str, folder: Path, *more: str) -> str:
    """Return the name of the session for outputs of `kind` in a project folder: six letters and digits, the
    same ones for the same arguments."""
    digest = hashlib.sha256("\0".join((kind, str(folder), *more)).encode("utf-8", "surrogatepass")).digest()
    return base64.b32encode(digest).decode().lower()[:6]


def open_own(
    client: Client,
    name: str,
    *,
    title: str,
    folder: Path,
    environ: Mapping[str, str],
    timeout_s: float,
    max_bytes: int = MAX_BYTES,
) -> str:
    """Open the first session with this name that can take an output, and return its id. It stays open until
    the daemon ends. Raise `NoSession`, and the errors of `Client.call`."""
    sessions = data_folder(environ) / "sessions"
    locked = 0
    for number in range(1, MAX_SESSIONS + 1):
        session_id = f"{PREFIX}{name}" + (f".{number}" if number > 1 else "")
        size = _size(sessions / f"{file_stem(session_id)}.jsonl")
        if size > max_bytes:
            continue
        started = client.session_start(
            session_id=session_id,
            title=UNSET if size else title,
            working_dir=str(folder),
            timeout_s=timeout_s,
        )
        if not started.read_only:
            return session_id
        client.session_close(session_id=session_id, timeout_s=timeout_s)
        locked += 1
        if locked == MAX_LOCKED:
            raise NoSession(f"{locked} sessions for this folder are open in other processes")
    raise NoSession(f"the {MAX_SESSIONS} sessions for this folder are full")


def open_stored(client: Client, session_id: str, timeout_s: float) -> None:
    """Open a session that exists, to keep outputs in it. Raise `NoSession` if another process has it open,
    and the errors of `Client.call`."""
    # Without `read_only`, a session that does not exist would be created.
    client.session_start(session_id=session_id, read_only=True, timeout_s=timeout_s)
    client.session_close(session_id=session_id, timeout_s=timeout_s)
    if client.session_start(session_id=session_id, timeout_s=timeout_s).read_only:
        raise NoSession(f"session {session_id!r} is open in another process")


def reduce_text(
    client: Client,
    session_id: str,
    text: str,
    call: Call,
    *,
    how: str,
    level: str | None = None,
    observe: bool = False,
    timeout_s: float,
) -> ReducedText:
    """Return what to show of an output. Its original is durable then, if something is left out.

    In a session of `open_own`, the marks name the original in full, after the words `how`. In any other, they
    stay as they are: the session's own tools find the entry. With `observe`, the text is unchanged and only
    counts are stored. Raise the errors of `Client.call`.
    """
    is_own = session_id.startswith(PREFIX)
    given = client.session_reduce(
        session_id=session_id,
        name=call.name,
        arguments=dict(call.arguments),
        content=text,
        is_error=call.is_error,
        level=level,
        observe=observe,
        # Nobody knows what the model still sees of the earlier outputs of a pipe.
        compare=not is_own,
        timeout_s=timeout_s,
    )
    shown, entry_id = given.content, given.entry_id
    if entry_id is not None and is_own:
        shown = name_originals(shown, Reference(session_id, entry_id), how)
        if len(shown) > len(text):
            # The longer marks take more than what was left out.
            shown = defuse(text)
            entry_id = None if shown == text else entry_id
    return ReducedText(
        text=shown,
        tokens_before=given.tokens_before,
        tokens_after=given.tokens_after if shown != text or observe else given.tokens_before,
        rules=given.rules,
        entry_id=entry_id,
    )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def read_original(client: Client, where: Reference, timeout_s: float = TIMEOUT_S) -> str:
    """Return the whole output of which a part was left out. Raise `RpcError` if the session or the entry is
    not there."""
    client.session_start(session_id=where.session_id, read_only=True, timeout_s=timeout_s)
    found = client.session_expand(
        session_id=where.session_id, entry_id=where.entry_id, timeout_s=timeout_s
    ).entries
    message = decode_message(found[0].message)
    return "".join(text_of_result(block) for block in message.content if isinstance(block, ToolResult))
