"""The short descriptions of sessions that the SDK lists: kept next to the transcripts, made from them.

Each call reads only what was added since the last one. A description that is lost or outdated is made again.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any, Final

import msgspec
from claude_agent_sdk import SessionSummaryEntry, fold_session_summary
from msgspec import Struct

from compactd.integrations.frameworks.claude_agent_sdk.keys import LOCK, SUMMARY, Key
from compactd.integrations.frameworks.claude_agent_sdk.transcript import entries_in, key_in
from compactd.storage import files
from compactd.storage.locks import Lock, take_lock
from compactd.storage.os_files import SYSTEM

_MS: Final = 1_000_000


class _Kept(Struct, frozen=True):
    """A description, and how much of the transcript it is about."""

    header: str
    """The first line of the transcript."""
    size: int
    data: dict[str, Any]


def summary_path(transcript: Path) -> Path:
    """Return the path of a transcript's description. It need not exist."""
    return transcript.with_suffix(SUMMARY)


def read_summary(path: Path, project_key: str) -> SessionSummaryEntry | None:
    """Return the description of the transcript at `path`; None if it is none of this project.

    O(what is new).
    """
    try:
        fd = files.open_private(path, files.READ)
    except OSError:
        return None
    try:
        mtime = SYSTEM.stat_open(fd).st_mtime_ns // _MS
        kept = _read(summary_path(path))
        start = 0
        if kept is not None:
            header = kept.header.encode()
            SYSTEM.seek(fd, 0)
            start = kept.size if SYSTEM.read(fd, len(header)) == header else 0
        new = files.read_from(fd, start)
    finally:
        SYSTEM.close(fd)
    end = new.rfind(b"\n") + 1
    lines = new[:end].split(b"\n")[:-1]
    if start == 0:
        if not lines:
            return None
        kept = _Kept((lines.pop(0) + b"\n").decode("utf-8", "replace"), 0, {})
    assert kept is not None
    key = key_in(kept.header.encode())
    if key is None or key.project_key != project_key:
        return None
    summary: SessionSummaryEntry = {"session_id": key.session_id, "mtime": mtime, "data": kept.data}
    if lines:
        entries = [entry for entry in entries_in(lines, path) if isinstance(entry, dict)]
        summary = fold_session_summary(summary, _given(key), entries)  # type: ignore[arg-type] # any JSON objects
        summary["mtime"] = mtime
        _write(path, _Kept(kept.header, start + end, summary["data"]))
    return summary


def _given(key: Key) -> Any:
    return {"project_key": key.project_key, "session_id": key.session_id}


def _read(path: Path) -> _Kept | None:
    try:
        kept = msgspec.convert(json.loads(path.read_bytes()), _Kept)
    except (OSError, ValueError, msgspec.ValidationError, RecursionError):
        return None
    return kept if kept.size > 0 else None


def _write(transcript: Path, kept: _Kept) -> None:
    """Keep a description, unless the transcript is being written or was deleted. It is only a saving."""
    with contextlib.suppress(OSError, ValueError, TypeError):
        lock = take_lock(transcript.with_suffix(LOCK))
        if not isinstance(lock, Lock):
            return
        try:
            if transcript.exists():
                data = json.dumps({"header": kept.header, "size": kept.size, "data": kept.data})
                files.replace_file(summary_path(transcript), (data.encode(),), durable=False)
        finally:
            lock.release(remove=not transcript.exists())
