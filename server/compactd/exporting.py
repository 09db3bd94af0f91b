"""A session as a file for other programs, or for another daemon. (Contract, `session/export`.)"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Raw, Struct

from compactd.core.entries import Entry, Item
from compactd.core.projection import Repair, project
from compactd.errors import FormatNotSupported, InvalidParams, LimitExceeded
from compactd.formats.base import RENDERABLE, render
from compactd.formats.neutral_out import encode_message
from compactd.messages import Tool
from compactd.session import Session
from compactd.store import files
from compactd.store.records import line

FORMATS = ("compactd", *RENDERABLE)

INLINE_BYTES = 32 * 1024 * 1024
"""Most that an answer holds; a file has no limit."""

_NAMES = {
    "anthropic": ("system", "messages"),
    "gemini": ("system", "contents"),
    "openai_responses": ("instructions", "input"),
}
"""(where the system prompt stands, where the messages do)."""

_TOLD = {
    "missing_result": "calls without a result were given an error result",
    "orphan_result": "results without their call were left out",
    "duplicate_result": "further results of answered calls were left out",
    "moved_result": "late results stand next to their calls",
    "renamed_call": "call ids that were used twice have a suffix",
    "empty_message": "empty messages were left out",
}


class Exported(Struct, frozen=True, kw_only=True):
    """A session as bytes."""

    data: bytes
    """UTF-8."""
    warnings: tuple[str, ...]


class Held(Struct, frozen=True, kw_only=True):
    """What an export is made of: a session as it stands, to be read in a worker."""

    session_id: str
    entries: tuple[Entry, ...]
    items: tuple[Item, ...]
    system: str | None
    tools: tuple[Tool, ...]
    raw_tools: tuple[Raw, ...]
    title: str | None
    model: str | None
    working_dir: str | None


def check(format: str) -> None:
    """Raises `FormatNotSupported` for a format that is not written here."""
    if format not in FORMATS:
        raise FormatNotSupported(
            f"the format {format!r} is not written here; those that are: {', '.join(FORMATS)}",
            supported=list(FORMATS),
        )


def held(session: Session) -> Held:
    """The session as it stands now. O(messages)."""
    state = session.fold
    return Held(
        session_id=session.id,
        entries=tuple(session.entries),
        items=tuple(state.path_items()),
        system=state.system_prompt,
        tools=session.tools(),
        raw_tools=state.tools,
        title=state.shown_title,
        model=state.model.model,
        working_dir=session.working_dir,
    )


def exported(of: Held, format: str) -> Exported:
    """`of` in a format of `FORMATS`. O(bytes).

    `compactd`: the journal, every entry. `neutral`: the messages as their clients sent them. The others:
    the messages as a request to that provider, mended where it would refuse them.
    """
    if format == "compactd":
        lines = (line(seq, msgspec.json.encode(entry)) for seq, entry in enumerate(of.entries))
        return Exported(data=b"".join(lines), warnings=())
    if format == "neutral":
        messages = [
            Raw(encode_message(item.message)) if item.source is None else item.source for item in of.items
        ]
        return Exported(data=_body(of, format, of.system, messages, of.raw_tools), warnings=())
    projection = project(of.items, _nothing)
    made = render(format, of.system, of.tools, projection, of.model)
    return Exported(
        data=_body(of, format, made.system, made.messages, made.tools or ()),
        warnings=tuple(_told(projection.repairs)),
    )


def _nothing(text: str) -> int:
    """Nobody asks for the tokens of an export."""
    return 0


def _told(repairs: Sequence[Repair]) -> Iterator[str]:
    for kind, count in Counter(repair.kind for repair in repairs).items():
        yield f"{count} × {_TOLD.get(kind, kind)}"


def _body(of: Held, format: str, system: str | None, messages: Sequence[Raw], tools: Sequence[Raw]) -> bytes:
    """One JSON object, a message a line."""
    system_name, messages_name = _NAMES.get(format, ("system", "messages"))
    about = {
        "format": format,
        "session_id": of.session_id,
        "title": of.title,
        "model": of.model,
        "working_dir": of.working_dir,
        system_name: system,
    }
    pieces = [
        b"%b:%b" % (msgspec.json.encode(name), msgspec.json.encode(value))
        for name, value in about.items()
        if value is not None
    ]
    if tools:
        pieces.append(b'"tools":' + msgspec.json.encode(list(tools)))
    rows = b",\n".join(bytes(message).strip() for message in messages)
    pieces.append(b'"%b":[\n%b\n]' % (messages_name.encode(), rows))
    return b"{" + b",\n".join(pieces) + b"}\n"


def inline(data: bytes) -> str:
    """`data` for an answer. Raises `LimitExceeded`."""
    if len(data) > INLINE_BYTES:
        raise LimitExceeded(
            f"the session takes {len(data):,} bytes, an answer at most {INLINE_BYTES:,}: give a `path`",
            limit_bytes=INLINE_BYTES,
            size_bytes=len(data),
        )
    return data.decode("utf-8", "replace")


def write(path: str, data: bytes) -> None:
    """Puts `data` into a new file for the user alone; durable when it returns.

    Raises `InvalidParams` where something is there already or the folder is not, `StorageFailed`; then
    nothing is left there.
    """
    target = Path(path)
    if not target.is_absolute() or "\0" in path:
        raise InvalidParams(f"{path!r} is no absolute path; the daemon has no folder of its own", "$.path")
    try:
        fd = files.open_private(target, files.CREATE_NEW)
    except FileExistsError:
        raise InvalidParams(
            f"{path} is there already, and nothing is written over: choose another", "$.path"
        ) from None
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        raise InvalidParams(f"{path} cannot be made: its folder is not there", "$.path") from None
    except OSError as refused:
        raise files.storage_failed("The file could not be made", refused) from refused
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
