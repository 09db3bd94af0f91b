"""Find out from a transcript of Claude Code which tool outputs left the context because the user rewound.

A row names the row before it. After a rewind, the next prompt names an older row, so the rows in between are
on no path from the newest row. The results of parallel calls are on no such path either, but the answer with
their call has the same id as one on the path (2.1.330, run 2026-11).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Raw, Struct

TAIL_BYTES: Final = 262_144
"""So many bytes at the end of a transcript are read. The rows that were rewound last are in them."""


class _Message(Struct, frozen=True):
    id: str = ""
    content: Raw = Raw(b'""')


class _Row(Struct, frozen=True, rename="camel"):
    type: str = ""
    uuid: str = ""
    parent_uuid: str | None = None
    is_sidechain: bool = False
    message: _Message = _Message()


class _Result(Struct, frozen=True):
    tool_use_id: str = ""


def rewound_calls(transcript: Path) -> frozenset[str]:
    """Return the ids of the calls in the newest part of a transcript whose results have left the context.
    Empty if it cannot be read. O(`TAIL_BYTES`).
    """
    rows = _newest_rows(transcript)
    by_id = {row.uuid: row for row in rows}
    path: set[str] = set()
    at = rows[-1].uuid if rows else ""
    while at in by_id and at not in path:
        path.add(at)
        at = by_id[at].parent_uuid or ""
    first = next((number for number, row in enumerate(rows) if row.uuid in path), len(rows))
    answers = {row.message.id for row in rows if row.uuid in path and row.type == "assistant"}
    gone: set[str] = set()
    for row in rows[first:]:
        if row.uuid in path or row.type != "user":
            continue
        call = by_id.get(row.parent_uuid or "")
        if call is None or call.uuid in path or call.message.id in answers:
            continue
        gone.update(_results(row.message.content))
    return frozenset(gone)


def _newest_rows(transcript: Path) -> list[_Row]:
    """Return the rows of the session's own conversation at the end of a transcript, oldest first."""
    try:
        with transcript.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL_BYTES))
            lines = file.read(TAIL_BYTES).split(b"\n")
    except OSError:
        return []
    decode = msgspec.json.Decoder(_Row).decode
    rows: list[_Row] = []
    for line in lines if size <= TAIL_BYTES else lines[1:]:
        try:
            row = decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            continue
        if row.uuid and not row.is_sidechain:
            rows.append(row)
    return rows


def _results(content: Raw) -> list[str]:
    try:
        return [
            one.tool_use_id for one in msgspec.json.decode(content, type=list[_Result]) if one.tool_use_id
        ]
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return []
