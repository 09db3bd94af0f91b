"""Export of a session, to a file or into an answer, for other programs or another daemon (protocol.md,
"session/export").
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Raw, Struct

from compactd.core.history.entries import Compacted, Entry, Item, summary_message
from compactd.core.history.projection import Repair, project
from compactd.core.history.state import SessionState
from compactd.core.tokens.counting import Chars4
from compactd.formats.files.session_file import MessageLine, SessionFile
from compactd.formats.files.session_formats import WRITABLE
from compactd.formats.files.write import Written, describe_losses, request_document
from compactd.formats.files.write import write as write_file
from compactd.formats.messages.base import RENDERABLE, render
from compactd.formats.messages.neutral_out import encode_message
from compactd.formats.messages.shape_losses import shape_losses
from compactd.protocol.errors import FormatNotSupported, InvalidParams, LimitExceeded
from compactd.protocol.messages import Tool
from compactd.session.session import Session
from compactd.storage import files
from compactd.storage.journal_records import encode_record
from compactd.storage.outside_copies import remember_export

_log = logging.getLogger("compactd.exporting")

FORMATS = ("compactd", *RENDERABLE, *WRITABLE)

INLINE_BYTES = 32 * 1024 * 1024
"""The most bytes of an export that an answer can contain. An export to a file has no limit."""

_REPAIR_SENTENCES = {
    "missing_result": "tool call without a result: an error result was added",
    "orphan_result": "tool result without its call: left out",
    "duplicate_result": "further result of the same tool call: left out",
    "moved_result": "late tool result: moved next to its call",
    "renamed_call": "tool call id that was already in use: a suffix was added",
    "empty_message": "message without content: left out",
}


class ExportSource(Struct, frozen=True, kw_only=True):
    """A copy of a session's state from which a worker makes an export."""

    session_id: str
    entries: tuple[Entry, ...]
    items: tuple[Item, ...]
    """The messages of the current branch, oldest first, compacted or not."""
    summaries: tuple[tuple[int, Compacted], ...]
    """(number of `items` before the compaction, the compaction) for each compaction in force, in order."""
    system: str | None
    tools: tuple[Tool, ...]
    raw_tools: tuple[Raw, ...]
    title: str | None
    model: str | None
    working_dir: str | None
    reduced: int
    """How many tool outputs the messages show reduced."""


def check(format: str) -> None:
    """Raise `FormatNotSupported` if sessions cannot be exported in this format."""
    if format not in FORMATS:
        raise FormatNotSupported(
            f"The format {format!r} cannot be written. Use one of: {', '.join(FORMATS)}.",
            format=format,
            supported=list(FORMATS),
        )


def export_source(session: Session) -> ExportSource:
    """Return a copy of the session's current state. O(messages)."""
    state = session.state
    return ExportSource(
        session_id=session.id,
        entries=tuple(session.entries),
        items=tuple(state.path_items()),
        summaries=tuple(_summaries(state)),
        system=state.system_prompt,
        tools=session.tools(),
        raw_tools=state.tools,
        title=state.shown_title,
        model=state.model.model,
        working_dir=session.shown_dir,
        reduced=len(state.outputs.on_path(frozenset(state.path))),
    )


def export_session(of: ExportSource, format: str) -> Written:
    """Return the session as bytes in `format`, one of `FORMATS`. O(bytes).

    - `compactd`: the journal, with every entry, the originals of reduced tool outputs included.
    - `neutral`: the messages as the clients sent them.
    - a provider's format: the messages as in a request to that provider, repaired where it would refuse
      them.
    - another program's format: its session file, with the compactions in force. The warnings list by entry
      what the format cannot express.
    """
    if format == "compactd":
        lines = (encode_record(seq, msgspec.json.encode(entry)) for seq, entry in enumerate(of.entries))
        return Written(data=b"".join(lines), warnings=())
    written = _export_messages(of, format)
    if not of.reduced:
        return written
    which = "1 tool output was" if of.reduced == 1 else f"{of.reduced} tool outputs were"
    left = f"not kept: the originals, because {which} reduced; the format `compactd` has them"
    return msgspec.structs.replace(written, warnings=(*written.warnings, left))


def _export_messages(of: ExportSource, format: str) -> Written:
    if format in WRITABLE:
        file, names = _as_file(of, format)
        return write_file(file, format, names)
    if format == "neutral":
        messages = [
            Raw(encode_message(item.message)) if item.source is None else item.source for item in of.items
        ]
        return Written(data=_body(of, format, of.system, messages, of.raw_tools), warnings=())
    projection = project(of.items, Chars4())  # the token counts of an export are not used
    made = render(format, of.system, of.tools, projection, of.model)
    return Written(
        data=_body(of, format, made.system, made.messages, made.tools or ()),
        warnings=(*_describe_repairs(projection.repairs), *_find_losses(of, made.messages, format)),
    )


def _summaries(state: SessionState) -> Iterator[tuple[int, Compacted]]:
    steps = {step.id: step for step in state.compactions()}
    count = 0
    for entry_id in state.path:
        if entry_id in state.originals:
            count += 1
        elif entry_id in steps:
            yield count, steps[entry_id]


def _as_file(of: ExportSource, format: str) -> tuple[SessionFile, tuple[str, ...]]:
    """Return (the session as a session file, the entry ids of its messages)."""
    messages: list[MessageLine] = []
    places: dict[str, int] = {}
    first_kept: list[tuple[int, int]] = []
    pinned: list[tuple[int, tuple[int, ...]]] = []
    summaries = list(of.summaries)
    for count in range(len(of.items) + 1):
        while summaries and summaries[0][0] == count:
            entry = summaries.pop(0)[1]
            place = places[entry.id] = len(messages)
            if entry.first_kept in places:
                first_kept.append((place, places[entry.first_kept]))
            if entry.pinned:
                pinned.append((place, tuple(places[i] for i in entry.pinned if i in places)))
            summary = msgspec.structs.replace(summary_message(entry), created_at=entry.at)
            messages.append((summary, Raw(encode_message(summary))))
        if count < len(of.items):
            item = of.items[count]
            places[item.entry_id] = len(messages)
            messages.append((item.message, item.source or Raw(encode_message(item.message))))
    file = SessionFile(
        format=format,
        messages=tuple(messages),
        session_id=of.session_id,
        title=of.title,
        model=of.model,
        working_dir=of.working_dir,
        system_prompt=of.system,
        compactions=len(of.summaries),
        first_kept=tuple(first_kept),
        pinned=tuple(pinned),
    )
    return file, tuple(places)


def _describe_repairs(repairs: Sequence[Repair]) -> Iterator[str]:
    for kind, count in Counter(repair.kind for repair in repairs).items():
        yield f"{count} × {_REPAIR_SENTENCES.get(kind, kind)}"


def _find_losses(of: ExportSource, made: Sequence[Raw], format: str) -> Iterator[str]:
    messages = [item.message for item in of.items]
    yield from describe_losses(
        shape_losses(messages, made, format), range(len(messages)), [item.entry_id for item in of.items]
    )
    if of.summaries:
        count = len(of.summaries)
        word = "compaction" if count == 1 else "compactions"
        yield f"not kept: {count} {word}; the export contains all messages in full"


def _body(
    of: ExportSource, format: str, system: str | None, messages: Sequence[Raw], tools: Sequence[Raw]
) -> bytes:
    """Return the session as one JSON object in which each message has a line of its own."""
    about = {
        "session_id": of.session_id,
        "title": of.title,
        "model": of.model,
        "working_dir": of.working_dir,
    }
    return request_document(format, about, system, messages, tools)


def inline(data: bytes) -> str:
    """Return `data` as text for an answer. Raises `LimitExceeded` if `data` has more than `INLINE_BYTES`."""
    if len(data) > INLINE_BYTES:
        raise LimitExceeded(
            f"The exported session has {len(data):,} bytes, but an answer can contain at most "
            f"{INLINE_BYTES:,}. Give a `path` to write it to a file.",
            limit_bytes=INLINE_BYTES,
            size_bytes=len(data),
        )
    return data.decode("utf-8", "replace")


def remember(home: Path, session_id: str, path: str) -> None:
    """Record the path of an export, so that `session/redact` and `session/delete` can name it."""
    try:
        remember_export(home, session_id, path)
    except OSError as refused:
        # Only a warning: the export itself is complete.
        _log.warning(
            "the path of an export could not be stored, so session/redact and session/delete will not name "
            "it: %s",
            refused.strerror,
        )


def write(path: str, data: bytes) -> None:
    """Write `data` to a new file that only the user can read. The file is on disk when this returns.

    Raises `InvalidParams` if the file exists or its folder does not, and `StorageFailed` if the write fails.
    After an error, no new file is left.
    """
    target = Path(path)
    if not target.is_absolute() or "\0" in path:
        raise InvalidParams(f"{path!r} is not an absolute path; give an absolute path", "$.path")
    try:
        fd = files.open_private(target, files.CREATE_NEW)
    except FileExistsError:
        raise InvalidParams(
            f"{path} already exists, and compactd overwrites no file; choose another path", "$.path"
        ) from None
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        raise InvalidParams(f"{path} cannot be created: its folder does not exist", "$.path") from None
    except OSError as refused:
        raise files.storage_failed("The file could not be created", refused) from refused
    try:
        try:
            files.write_all(fd, (data,))
            files.sync(fd)
        finally:
            os.close(fd)
        files.sync_folder(target.parent)
    except OSError as refused:
        target.unlink(missing_ok=True)
        raise files.storage_failed("The file could not be written", refused) from refused
